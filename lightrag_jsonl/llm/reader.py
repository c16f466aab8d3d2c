"""Reads a model's JSONL answer, whole or as it streams, into records and rejections.

A record is an object that is whole in the text, never one that was completed. Text beside an object
on its line (`{"a":1} // note`) makes the line malformed, except in an array that never ends. An
object that breaks off ends at the next line that can only be a new record; objects nested inside it
are not read as records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Json, JsonlResult, Record, Rejection, RejectionReason
from lightrag_jsonl.llm import json_values
from lightrag_jsonl.llm.json_values import ParsedObject, object_end, parse_object
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.llm.thinking import PROMPTED_END, thinking_at

Normalize = Callable[[Record], Iterable[Record]]

_MAX_TEXT = 2_000  # characters of a rejection

_SPACE = r"[^\S\n]"
_BLANK = re.compile(rf"(?:\s|{PROMPTED_END.pattern})*", re.IGNORECASE)
_FENCE = re.compile(r"`{3,}|~{3,}")
_AFTER_FENCE = re.compile(r'[{\[](?=\s*(?:["{}\[\]]|\Z))')
_CLOSING_FENCE = re.compile(rf"[`~]+{_SPACE}*(?=\n|\Z)")
_BULLET = re.compile(r"(?:[-*+•·–—①-⑳]|[(（]?\d{1,6}[.)、:．）：]?)\s*(?=[{\[])")
_SEPARATOR = re.compile("[\r\u2028\u2029\x85\n]|\\Z")
_APART = re.compile("[,，、；。\\[\\]\r\u2028\u2029\x85]")  # parts what stands on a line
_GAP = re.compile(rf"(?:{_SPACE}|{_APART.pattern})*")
_SCALAR = re.compile(
    r'(?:"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|true|false|null|-?[0-9][0-9.eE+-]*)'
    rf"(?={_SPACE}*(?:{_APART.pattern}|\n|\Z))"
)


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
        self._schema = Schema(schema) if isinstance(schema, Mapping) else schema
        self._normalize = normalize
        self._records: list[Record] = []
        self._line_numbers: list[int] = []
        self._rejections: list[Rejection] = []
        self._result: JsonlResult | None = None
        self._tail: list[str] = []  # text that was not looked at
        self._wait = 0  # characters that have to come before it is
        self._text, self._at = "", 0  # lines, and how far they were read
        self._line, self._counted = 1, 0  # the number of the line at a position
        self._in_line = self._ended = self._truncated = False
        self._pending: list[tuple[int, str, Record, bool]] = []  # arguments of `_accept`
        self._part = self._part_line = 0  # where what stands together begins
        self._apart = True  # whether something new may begin
        self._arrays = self._array_line = 0  # how many are open, and where the first began
        self._nested = self._outer = 0  # arrays that were opened in this line, and before it
        self._thinking: re.Pattern[str] | None = None  # what ends the thinking that goes on
        self._thinking_line, self._first = 0, True  # whether no content came yet

    def feed(self, piece: str) -> list[Record]:
        """Take the next piece of text; returns the records that it completed.

        An object over several lines is looked at again whenever its text has doubled.
        """
        before = len(self._records)
        end = piece.rfind("\n") + 1
        self._tail.append(piece[:end])
        self._wait -= end
        if end and self._wait <= 0:
            self._read()
        self._tail.append(piece[end:])
        return self._records[before:]

    def close(self) -> JsonlResult:
        """End the text: read what is left, and return the whole result."""
        if self._result is not None:
            return self._result
        self._ended = True
        self._read()
        self._begin_part(len(self._text))
        if self._thinking is not None:
            line = self._thinking_line
            self._reject(line, "<think>", "truncated", "the text ends inside thinking")
        elif self._arrays:
            self._reject(self._array_line, "[", "truncated", "the text ends inside this array")
        rejections = tuple(sorted(self._rejections, key=attrgetter("line")))
        records, numbers = tuple(self._records), tuple(self._line_numbers)
        self._result = JsonlResult(records, numbers, rejections, self._truncated)
        return self._result

    def _read(self) -> None:
        text = sanitize("".join(self._tail).replace("\x00", "").replace("\x1e", ""))
        text, self._tail = json_values.without_invisible(text), []
        if self._in_line:
            self._text += text
        else:
            self._line_number(self._at)
            self._text, self._at, self._counted = text, 0, 0
        while self._at < len(self._text) and self._step():
            pass
        self._wait = len(self._text) - self._at

    # ── lines and their items ───────────────────────────────────────────────────

    def _step(self) -> bool:
        """Read the beginning of a line, or an item of one; False if more text must come first."""
        if not self._in_line:
            if not self._read_line():
                self._begin_line()
            return True
        text, at = self._text, _end_of(_GAP, self._text, self._at)
        gap, self._at = text[self._at : at], at
        line_ends = text[at : at + 1] in ("", "\n") or _CLOSING_FENCE.match(text, at) is not None
        self._apart = self._apart or line_ends or _APART.search(gap) is not None
        if self._apart:
            self._begin_part(at)
        self._count_arrays(gap)
        if line_ends:
            self._in_line, self._at = False, _line_end(text, at) + 1
        elif text[at] == "{":
            return self._read_object(at)
        elif self._apart and (scalar := _SCALAR.match(text, at)):
            self._reject(self._part_line, scalar[0], "not_object")
            self._at, self._apart = scalar.end(), False
        else:
            return self._refuse_part(at)
        return True

    def _read_line(self) -> bool:
        """Read a line that is an object and nothing else: the usual case, made fast."""
        text, at = self._text, self._at
        if text[at] != "{" or self._thinking is not None:
            return False
        parsed = parse_object(text, at)
        if parsed.record is None or text[parsed.end : parsed.end + 1] not in ("", "\n"):
            return False
        self._accept(self._line_number(at), text[at : parsed.end], parsed.record, False)
        self._at, self._first = parsed.end + 1, False
        return True

    def _begin_line(self) -> None:
        """Find where a line's content begins, after thinking, the mark of a fence and a bullet."""
        number = self._line_number(self._at)
        line = self._text[self._at : _line_end(self._text, self._at)]
        at = self._skip_thinking(line, number)
        self._first = self._first and at == len(line)
        if _FENCE.match(line, at):
            content = _AFTER_FENCE.search(line, at)
            at = content.start() if content else len(line)
        self._at += _end_of(_BULLET, line, at)
        self._in_line = self._apart = True
        self._nested, self._outer = 0, self._arrays

    def _skip_thinking(self, line: str, number: int) -> int:
        at = 0
        while True:
            if self._thinking is not None:
                end = self._thinking.search(line, at)
                if end is None:
                    return len(line)
                at, self._thinking = end.end(), None
            at = _end_of(_BLANK, line, at)
            begun = thinking_at(line, at, first=self._first)
            if begun is None:
                return at
            (at, self._thinking), self._thinking_line = begun, number

    def _begin_part(self, at: int) -> None:
        """Accept the pending objects, since nothing that they stand together with spoils them."""
        for found in self._pending:
            self._accept(*found)
        self._pending.clear()
        self._part, self._part_line = at, self._line_number(at)

    def _count_arrays(self, gap: str) -> None:
        change = gap.count("[") - gap.count("]")
        if not self._arrays:
            self._array_line = self._line
        self._arrays = max(0, self._arrays + change)
        self._nested = max(0, self._nested + change)

    def _refuse_part(self, at: int) -> bool:
        """Refuse what stands together around `at`, up to a separator or the end of an object."""
        self._arrays = min(self._outer, self._arrays)
        self._pending.clear()
        text, separator = self._text, _SEPARATOR.search(self._text, at)
        end = separator.start() if separator else len(text)
        brace = text.find("{", at, end)
        if brace >= 0 and text[end : end + 1] in ("", "\n") and object_end(text[brace:end])[1]:
            return self._read_broken(self._part, brace, ParsedObject("broken", brace))
        part = text[self._part : end].strip()
        is_json = "{" in part or part[:1] in ("[", '"', "}")
        self._reject(self._part_line, part, "malformed" if is_json else "not_json")
        self._at, self._apart = end, True
        return True

    # ── objects ─────────────────────────────────────────────────────────────────

    def _read_object(self, at: int) -> bool:
        parsed = parse_object(self._text, at)
        if parsed.state == "whole":
            return self._close_object(at, parsed.end, parsed)
        if parsed.state == "open":
            self._begin_part(at)
            return self._leave_open(at, "truncated")
        return self._read_broken(at, at, parsed)

    def _read_broken(self, start: int, brace: int, parsed: ParsedObject) -> bool:
        """Find the end of a broken object; repair it, or refuse the text from `start` to there."""
        end, closed = self._broken_end(brace, parsed.end)
        if closed and start == brace:
            return self._close_object(start, end, parsed)
        if start == brace:
            self._begin_part(start)
        reason: RejectionReason = "too_deep" if parsed.state == "too deep" else "malformed"
        if end < 0:
            return self._leave_open(start, "truncated" if reason == "malformed" else reason)
        self._reject(self._part_line, self._text[start:end], reason, "the object does not close")
        self._at, self._apart, self._in_line = end, True, closed
        return True

    def _broken_end(self, start: int, fault: int) -> tuple[int, bool]:
        """Where a broken object ends, and whether it is closed there; -1 if the text ends first.

        It also ends before a fence, and before a line no further to the right that begins with a
        brace: unless that follows a comma, a colon or a bracket where JSON allows an object.
        """
        text, depth, before = self._text, 0, ""
        indent = _indent(text[text.rfind("\n", 0, start) + 1 : _line_end(text, start)])
        while start < len(text):
            line = text[start : _line_end(text, start)]
            content = _BULLET.sub("", line.strip(), count=1)
            is_new = content.startswith("{") and _indent(line) <= indent
            misplaced = start + len(line) - len(line.lstrip()) == fault
            if before and (
                _FENCE.match(content) or (is_new and (before not in ",[:" or misplaced))
            ):
                return start, False
            end, depth = object_end(line, depth)
            if end >= 0:
                return start + end, True
            before = line.rstrip()[-1:] or before
            start += len(line) + 1
        return -1, False

    def _leave_open(self, start: int, reason: RejectionReason) -> bool:
        """Wait for the rest of an object, or refuse it if the text has ended."""
        if self._ended:
            detail = "the text ends inside this object"
            self._reject(self._part_line, self._text[start:], reason, detail)
            self._at, self._arrays = len(self._text), 0
        return self._ended

    def _close_object(self, start: int, end: int, parsed: ParsedObject) -> bool:
        """Decide about an object that is closed: it is a record, can be repaired, or is refused."""
        text, record = self._text[start:end], parsed.record
        if "\n" in text:
            self._begin_part(start)
        line = self._line_number(start)
        if record is None:
            record = json_values.repaired_object(text)
        if self._nested > 1:
            self._reject(line, text, "array", "inside an array inside an array")
        elif parsed.state == "too deep":
            self._reject(line, text, "too_deep", f"more than {json_values.MAX_DEPTH} levels")
        elif record is None:
            self._reject(line, text, "malformed", "the object is no JSON")
        else:
            self._pending.append((line, text, record, parsed.record is None))
        self._at, self._apart = end, "\n" in text
        return True

    # ── results ─────────────────────────────────────────────────────────────────

    def _accept(self, line: int, text: str, record: Record, repaired: bool) -> None:
        """Keep the records that an object stands for, or reject them by the schema."""
        before = len(self._records)
        for one in self._normalize(record) if self._normalize else (record,):
            fault = self._schema.error(one) if self._schema else None
            if fault is None:
                self._records.append(one)
                self._line_numbers.append(line)
            else:
                self._reject(line, text, "schema", fault)
        if repaired and len(self._records) > before:
            self._reject(line, text, "repaired", "kept after its quoting was repaired")

    def _reject(self, line: int, text: str, reason: RejectionReason, detail: str = "") -> None:
        """Note what was not read; very long texts are shortened."""
        self._truncated = self._truncated or reason == "truncated"
        text = text.strip()
        text = text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…"
        self._rejections.append(Rejection(line, text, reason, detail))

    def _line_number(self, position: int) -> int:
        """The number of the line at a position; positions must not decrease."""
        self._line += self._text.count("\n", self._counted, position)
        self._counted = max(self._counted, position)
        return self._line


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of the pattern at `at`; `at` itself if it does not match."""
    match = pattern.match(text, at)
    return match.end() if match else at
