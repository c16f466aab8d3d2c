"""Reads a model's JSONL answer, whole or as it streams, into records and rejections.

A record is an object that is whole in the text, never one that was completed. Three rules go beyond
JSON's grammar, and are strict on purpose:

* Text beside an object on its line (`{"a":1} // note`, `Here: {"a":1}`) makes the line malformed,
  as for any strict parser; so the files of JSONTestSuite that must be refused give no record. The
  exception is an array that never ends: whole objects inside it are records.
* An object that is closed but not valid JSON may be mended (see `reading.repair`). Unescaped inner
  quotes always are; the habits of other languages (single quotes, `True`, a trailing comma) only if
  a schema checks the result. Such a record gets a `repaired` note.
* An object that breaks off is given up at its end, or at the next line that can only be a new
  record; objects nested inside it are not read as records.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lightrag_jsonl.reading.marks import Marks, after, is_fence, skip_bullet
from lightrag_jsonl.reading.objects import (
    INVISIBLE,
    MAX_DEPTH,
    SCALAR,
    STRING,
    Outline,
    State,
    clean,
    decode,
    decode_closed,
)
from lightrag_jsonl.reading.outcome import Found, Normalize, Outcome
from lightrag_jsonl.reading.repair import mend, object_end
from lightrag_jsonl.schemas import Schema, compile_schema
from lightrag_jsonl.types import Json, JsonlResult, Record, RejectionReason

# Lines may be read again, up to so many times the text's length in all; known texts need less than 3.
_BUDGET = 4

_CLOSING_FENCE = re.compile(r"[`~]+\s*\Z")
_WIDE = "，、；。"  # Chinese punctuation that stands between objects or after the last
_SCAFFOLD = re.compile(rf"[\s,{_WIDE}\[\]{INVISIBLE}]*")
_SEPARATOR = re.compile("[\r\u2028\u2029\x85]")
_APART = re.compile(f"[,{_WIDE}\\[\\]\r\u2028\u2029\x85]")
_ITEM_SCALAR = re.compile(
    rf'(?:{STRING}"|{SCALAR})(?=[ \t{INVISIBLE}]*(?:[,\]\r\u2028\u2029\x85]|\Z))', re.DOTALL
)
_CUT_ITEM = re.compile(rf"(?:{STRING}\\?|[\w.+-]+)\Z", re.DOTALL)


def parse_jsonl(
    text: str,
    *,
    schema: Mapping[str, Json] | Schema | None = None,
    normalize: Normalize | None = None,
) -> JsonlResult:
    """Read a whole answer. Never raises, whatever a model has written.

    `normalize` is applied to each object before the schema, and returns the records it stands for.
    """
    reader = JsonlReader(schema, normalize)
    reader.feed(text)
    return reader.close()


class JsonlReader:
    """Reads an answer as it arrives; the result does not depend on how it is cut into pieces."""

    def __init__(
        self,
        schema: Mapping[str, Json] | Schema | None = None,
        normalize: Normalize | None = None,
    ) -> None:
        compiled = compile_schema(schema) if isinstance(schema, Mapping) else schema
        self._outcome = Outcome(compiled, normalize)
        self._judged = compiled is not None
        self._tail: list[str] = []
        self._queue: deque[_Line] = deque()
        self._lines = 0
        self._seen = 0
        self._spent = 0
        self._plain = False
        self._marks = Marks()
        self._arrays = 0
        self._array_line = 0
        self._block: _Block | None = None
        self._pending: list[Found] = []
        self._result: JsonlResult | None = None

    def feed(self, piece: str) -> list[Record]:
        """Take the next piece of text; returns the records of the lines that it completed."""
        if self._result is not None:
            raise ValueError("this reader is closed")
        if not isinstance(piece, str):
            raise TypeError(f"expected a text, got {type(piece).__name__}")
        before = len(self._outcome.records)
        lines = clean(piece).split("\n")
        for line in lines[:-1]:
            self._tail.append(line)
            self._take("".join(self._tail))
            self._tail.clear()
        if lines[-1]:
            self._tail.append(lines[-1])
        return self._outcome.records[before:]

    def close(self) -> JsonlResult:
        """End the text: read what is left, and return the whole result."""
        if self._result is None:
            if self._tail:
                self._take("".join(self._tail))
                self._tail.clear()
            self._end()
            self._result = self._outcome.result()
        return self._result

    # ── lines ───────────────────────────────────────────────────────────────────

    def _take(self, text: str) -> None:
        self._lines += 1
        self._seen += len(text) + 1
        self._queue.append(_Line(text, self._lines))
        while self._queue:
            self._read(self._queue.popleft())

    def _read(self, line: _Line) -> None:
        if self._block is not None:
            if self._block.outline is not None:
                self._follow(line, self._block, self._block.outline)
            else:
                self._skip(line, self._block)
        elif not self._read_record(line):
            if self._plain:
                self._read_plainly(line)
            else:
                self._read_items(line, self._marks.skip(line.text, line.number))

    def _read_record(self, line: _Line) -> bool:
        """The usual case, made fast: a line that is one JSON object and nothing else."""
        text = line.text
        if text[:1] != "{" or "}" not in text or self._marks.thinking:
            return False
        if text.count("{") + text.count("[") > MAX_DEPTH:
            return False
        record = decode(text)
        if record is None:
            return False
        self._outcome.accept(Found(line.number, text, record))
        return True

    def _read_plainly(self, line: _Line) -> None:
        """Refuse a line without a closer look, after the budget for reading again is spent."""
        text = line.text.strip()
        if text:
            self._outcome.reject(line.number, text, "multiline" if "{" in text else "not_json")

    # ── the items of a line ─────────────────────────────────────────────────────

    def _read_items(self, line: _Line, at: int) -> None:
        """Read the objects and scalars of a line one by one; anything else spoils the part it stands in."""
        text, start, arrays = line.text, at, self._arrays
        nested, apart = 0, True
        while True:
            scaffold = text[at : after(_SCAFFOLD, text, at)]
            at += len(scaffold)
            if _SEPARATOR.search(scaffold):
                self._flush()
                start = at
            apart = apart or _APART.search(scaffold) is not None
            nested = self._count_arrays(scaffold, nested, line)
            if nested > MAX_DEPTH:
                self._arrays = arrays
                self._outcome.reject(line.number, text, "too_deep", "arrays are nested too deeply")
                return self._flush()
            if at == len(text) or _CLOSING_FENCE.match(text, at):
                return self._flush()
            if text[at] == "{":
                end, apart = self._read_object(line, at, nested > 1), False
            elif apart and (scalar := _ITEM_SCALAR.match(text, at)):
                self._outcome.reject(line.number, scalar.group(), "not_object")
                end, apart = scalar.end(), False
            elif apart and self._pending and _CUT_ITEM.match(text, at):
                self._outcome.reject(line.number, text[at:], "malformed", "the value does not end")
                return self._flush()
            else:
                self._arrays = min(arrays, self._arrays)
                start = end = self._spoil(line, start, at)
            if end < 0:
                return None
            at = end

    def _count_arrays(self, scaffold: str, nested: int, line: _Line) -> int:
        """Count the arrays opened and closed here; returns how many of this line's own are open."""
        change = scaffold.count("[") - scaffold.count("]")
        if not self._arrays:
            self._array_line = line.number
        self._arrays = max(0, self._arrays + change)
        return max(0, nested + change)

    def _read_object(self, line: _Line, at: int, nested: bool) -> int:
        """Read the object that begins at `at`; returns its end, or -1 if the line ends first."""
        outline = Outline()
        end = outline.read(line.text, at)
        block = _Block(line.number, line.indent, [line.text[at:]], nested)
        if outline.state is State.OPEN:
            block.outline = outline
        elif outline.state is not State.CLOSED:
            block.too_deep = outline.state is State.TOO_DEEP
            end, block.depth = object_end(line.text, at)
        if block.outline is not None or end < 0:
            self._flush()
            self._block = block
            return -1
        self._close_object(block, line.text[at:end], intact=outline.state is State.CLOSED)
        return end

    def _spoil(self, line: _Line, start: int, at: int) -> int:
        """Refuse the part of the line around `at`, up to a separator.

        Returns where that part ends, or -1 if it ends inside a broken object.
        """
        text = line.text
        separator = _SEPARATOR.search(text, at, len(text.rstrip()))
        end = separator.start() if separator else len(text)
        first = self._pending[0].line if self._pending else line.number
        self._pending.clear()
        part = text[start:end].strip()
        brace = text.find("{", at, end)
        depth = object_end(text[brace:end])[1] if brace >= 0 else 0
        if depth and separator is None:
            self._block = _Block(first, line.indent, [part], False, depth=depth)
            return -1
        if "{" in part or part[:1] in ("[", '"', "}"):
            self._outcome.reject(
                first, part, "malformed", f"not JSON from {text[at : at + 20]!r} on"
            )
        else:
            self._outcome.reject(first, part, "not_json")
        return end

    # ── objects over several lines ──────────────────────────────────────────────

    def _follow(self, line: _Line, block: _Block, outline: Outline) -> None:
        """Continue an object that is sound so far with this line."""
        end = outline.read(line.text)
        if outline.state is State.CLOSED:
            self._leave(line, block, end, intact=True)
        elif outline.state is State.OPEN:
            block.lines.append(line.text)
        else:
            block.too_deep = outline.state is State.TOO_DEEP
            broken = outline.state is State.BROKEN
            if broken and line.text[end] == "{" and end == line.indent <= block.indent:
                block.impossible = line.number
            self._look_again(line, block)

    def _look_again(self, line: _Line, block: _Block) -> None:
        """An object turned out to be broken: read its lines again, now looking for its end."""
        again = [*block.lines[1:], line.text]
        self._spent += sum(map(len, again)) + len(again)
        self._queue.extendleft(
            reversed([_Line(text, block.line + n) for n, text in enumerate(again, 1)])
        )
        block.outline = None
        del block.lines[1:]
        block.depth = object_end(block.lines[0])[1]
        if self._spent > _BUDGET * self._seen:
            self._plain = True
            self._block = None
            self._outcome.reject(block.line, block.lines[0], "multiline", "not followed to its end")

    def _skip(self, line: _Line, block: _Block) -> None:
        """Decide whether a line after the start of a broken object belongs to it."""
        if line.number == block.impossible or _starts_afresh(line, block):
            self._block = None
            self._queue.appendleft(line)
            reason: RejectionReason = "too_deep" if block.too_deep else "malformed"
            return self._outcome.reject(block.line, block.text, reason, "the object does not close")
        end, block.depth = object_end(line.text, 0, block.depth)
        if end < 0:
            return block.lines.append(line.text)
        return self._leave(line, block, end, intact=False)

    def _leave(self, line: _Line, block: _Block, end: int, *, intact: bool) -> None:
        self._block = None
        block.lines.append(line.text[:end])
        self._close_object(block, block.text, intact=intact)
        self._read_items(line, end)

    def _close_object(self, block: _Block, text: str, *, intact: bool) -> None:
        """Handle an object that is closed: it is a record, can be mended into one, or is refused."""
        record = decode_closed(text) if intact else None
        repaired = False
        if block.nested:
            return self._outcome.reject(
                block.line, text, "array", "inside an array inside an array"
            )
        if block.too_deep:
            return self._outcome.reject(
                block.line, text, "too_deep", f"more than {MAX_DEPTH} levels"
            )
        if record is None:
            record, repaired = self._mended(text), True
        if record is None:
            return self._outcome.reject(block.line, text, "malformed", "the object is no JSON")
        return self._pending.append(Found(block.line, text, record, repaired))

    def _mended(self, text: str) -> Record | None:
        mended = mend(text, dialect=self._judged)
        if mended is None:
            return None
        outline = Outline()
        end = outline.read(mended)
        whole = outline.state is State.CLOSED and end == len(mended)
        return decode_closed(mended) if whole else None

    # ── results ─────────────────────────────────────────────────────────────────

    def _flush(self) -> None:
        """Accept the pending objects, since nothing in their part of the line spoils them."""
        for found in self._pending:
            self._outcome.accept(found)
        self._pending.clear()

    def _end(self) -> None:
        block = self._block
        if block is not None:
            reason: RejectionReason = "too_deep" if block.too_deep else "truncated"
            self._outcome.reject(block.line, block.text, reason, "the text ends inside this object")
        elif self._marks.thinking:
            self._outcome.reject(
                self._marks.thinking, "<think>", "truncated", "the text ends inside a thought"
            )
        elif self._arrays:
            self._outcome.reject(
                self._array_line, "[", "truncated", "the text ends inside this array"
            )


class _Line(NamedTuple):
    text: str
    number: int

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


@dataclass(slots=True)
class _Block:
    """An object that is not closed yet; if it has no outline, it is known to be broken.

    `depth` counts the open braces of a broken one. At line `impossible` a new object begins where
    JSON does not allow one.
    """

    line: int
    indent: int
    lines: list[str]
    nested: bool
    outline: Outline | None = None
    depth: int = 0
    too_deep: bool = False
    impossible: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def _starts_afresh(line: _Line, block: _Block) -> bool:
    """Whether a line after the start of a broken object can only be the start of another one."""
    text = line.text.strip()
    if is_fence(text):
        return True
    text = text[skip_bullet(text) :]
    if text[:1] != "{" or line.indent > block.indent:
        return False
    before = next((last for last in reversed(block.lines) if last.strip()), "").rstrip()[-1:]
    if before in ("[", ":") or (before == "," and block.impossible):
        return decode(text) is not None
    return before != ","
