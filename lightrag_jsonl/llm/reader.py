"""Reads a model's JSONL answer, complete or as it streams, into records and rejections.

A record is an object that is complete in the text, never one that was completed. Text beside an object
on its line (`{"a":1} // note`) makes the line malformed, except in an array that never ends. An
object that breaks off ends at the next line that can only be a new record; objects nested inside it
are not read as records.
"""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from operator import attrgetter

import msgspec

from lightrag_jsonl.core.text import cut, sanitize
from lightrag_jsonl.core.types import Json, JsonlResult, Record, Rejection, RejectionReason
from lightrag_jsonl.llm import json_values
from lightrag_jsonl.llm.json_values import SPACES, FoundObject, end_of, line_end
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.llm.thinking import PROMPTED_END, thinking_at

Normalize = Callable[[Record], Iterable[Record]]

REPEATS = 10  # of one object or line in an answer; small models loop, others write one twice or so
LEAST_REPEATED = 20  # characters of a line without a record; brackets and dashes come back anyway
_LONGEST_REJECTION = 2_000  # characters
_DETAILS = {
    "malformed": "invalid JSON, or an unclosed object",
    "truncated": "the text ends inside this object",
    "too_deep": f"more than {json_values.MAX_DEPTH} levels",
}
_PLAIN = msgspec.json.Decoder(dict)

_SPACE = r"[^\S\n]"
_APART = "[,，、;；。\\[\\]\r\u2028\u2029\x85]"  # parts what stands on a line
_GAP = re.compile(f"(?:{_SPACE}|{_APART})*")
_BLANK = re.compile(rf"(?:\s|{PROMPTED_END.pattern})*", re.IGNORECASE)
_FENCE = re.compile(json_values.FENCE)
_AFTER_FENCE = re.compile(r'[{\[](?=\s*(?:["{}\[\]]|\Z))')
_BULLET = re.compile(f"(?:{json_values.BULLET})?")
_END_OF_LINE = re.compile(rf"\n|\Z|[`~]+{_SPACE}*(?=\n|\Z)")  # after a closing fence, too
_END_OF_PART = re.compile(f"{_APART}|{_END_OF_LINE.pattern}")
_SEPARATOR = re.compile("[\r\u2028\u2029\x85\n]|\\Z")
_SCALAR = re.compile(
    r'(?:"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|true|false|null|-?[0-9][0-9.eE+-]*)'
    rf"(?={_SPACE}*(?:{_APART}|\n|\Z))"
)


def parse_jsonl(
    text: str,
    *,
    schema: Mapping[str, Json] | Schema | None = None,
    normalize: Normalize | None = None,
) -> JsonlResult:
    """Read a complete answer. Never raises, for any text.

    `normalize` is applied to each object before the schema, and returns the records it stands for.
    """
    reader = JsonlReader(schema, normalize)
    reader.feed(text)
    return reader.close()


def rejected_text(text: str) -> str:
    """The text of a rejection: at most 2,000 characters of the answer, and "…"."""
    return cut(text.strip(), _LONGEST_REJECTION)


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
        self._arrived: list[str] = []  # text that was not looked at
        self._wait = 0  # characters that have to come before it is
        self._text, self._at, self._line = "", 0, 1  # whole lines, and where reading is in them
        self._ended, self._first = False, True  # whether the text ended; whether no content came
        self._arrays: list[int] = []  # the lines on which those that are open begin
        self._repeats: Counter[str] = Counter()  # of objects and of what is none
        self._in_loop = False  # whether the model repeats itself, so that the rest is not read
        self._reading = self._read_lines()

    def feed(self, piece: str) -> list[Record]:
        """Take the next piece of text; returns the records that it completed.

        An object over several lines is looked at again whenever its text has doubled.
        """
        before = len(self._records)
        self._arrived.append(piece)
        self._wait -= len(piece)
        if self._wait <= 0 and "\n" in piece:
            self._read()
        return self._records[before:]

    def close(self) -> JsonlResult:
        """End the text: read what is left, and return the complete result."""
        if self._result is None:
            self._ended = True
            self._read()
            rejections = tuple(sorted(self._rejections, key=attrgetter("line")))
            truncated = any(rejection.reason == "truncated" for rejection in rejections)
            records, numbers = tuple(self._records), tuple(self._line_numbers)
            self._result = JsonlResult(records, numbers, rejections, truncated)
        return self._result

    def _read(self) -> None:
        """Read the whole lines that have arrived, and at the end the last one, too."""
        arrived = "".join(self._arrived)
        end = len(arrived) if self._ended else arrived.rfind("\n") + 1
        self._arrived = [arrived[end:]]
        text = sanitize(arrived[:end].replace("\x00", "").replace("\x1e", ""))
        self._text += json_values.without_invisible(text)
        next(self._reading, None)
        self._wait = len(self._text) - self._at - len(arrived) + end

    # ── lines and their parts; these methods yield where they need more text ────

    def _read_lines(self) -> Iterator[None]:
        while not self._in_loop and (not self._ended or self._at < len(self._text)):
            if self._at >= len(self._text):
                self._text, self._at = "", 0
                yield
            elif not self._read_plain_line():
                yield from self._read_line()
        if (
            self._arrays
            and not self._in_loop
            and not any(one.reason == "truncated" for one in self._rejections)
        ):
            detail = "the text ends inside this array"
            self._rejections.insert(0, Rejection(self._arrays[0], "[", "truncated", detail))

    def _read_plain_line(self) -> bool:
        """Read a line that is an object and nothing else: the usual case, made fast."""
        end = line_end(self._text, self._at)
        line = self._text[self._at : end]
        if not line.startswith("{") or json_values.is_too_deep(line):
            return False
        try:
            record = _PLAIN.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        self._accept(self._line, line, record)
        self._at, self._line, self._first = end + 1, self._line + 1, False
        return True

    def _read_line(self) -> Iterator[None]:
        yield from self._skip_beginning()
        outer = len(self._arrays)  # arrays that were opened before this line
        while not self._in_loop:
            self._skip_gap()
            outer = min(outer, len(self._arrays))
            if _END_OF_LINE.match(self._text, self._at):
                self._move(line_end(self._text, self._at) + 1)
                return
            yield from self._read_part(outer)
            if self._text[self._at - 1] == "\n":  # a new line ended a broken object
                return

    def _skip_beginning(self) -> Iterator[None]:
        """Skip thinking, the mark of a fence and a bullet."""
        while True:
            end = line_end(self._text, self._at)
            self._at = end_of(_BLANK, self._text, self._at, end)
            thinking = thinking_at(self._text, self._at, end, first=self._first)
            if thinking is None:
                break
            yield from self._skip_thinking(*thinking)
        self._first = self._first and self._at == end
        if _FENCE.match(self._text, self._at, end):
            content = _AFTER_FENCE.search(self._text, self._at, end)
            self._at = content.start() if content else end
        self._at = end_of(_BULLET, self._text, self._at, end)

    def _skip_thinking(self, at: int, ending: re.Pattern[str]) -> Iterator[None]:
        while not (end := ending.search(self._text, at)) and not self._ended:
            yield
        if end is None:
            self._reject(self._line, "<think>", "truncated", "the text ends inside thinking")
        self._move(end.end() if end else len(self._text))

    def _skip_gap(self) -> None:
        """Skip what parts objects, and count the arrays that it opens and closes."""
        end = end_of(_GAP, self._text, self._at)
        for mark in self._text[self._at : end]:
            if mark == "[":
                self._arrays.append(self._line)
            elif mark == "]" and self._arrays:
                self._arrays.pop()
        self._at = end

    def _read_part(self, outer: int) -> Iterator[None]:
        """Read the objects that stand together, or refuse the part if anything else does."""
        start = self._at
        if scalar := _SCALAR.match(self._text, start):
            self._reject(self._line, scalar[0], "not_object")
            self._at = scalar.end()
            return
        objects = yield from self._read_objects()
        alone = _END_OF_PART.match(self._text, self._at) or (objects and "\n" in objects[-1][1])
        if not alone:
            del self._arrays[outer:]
            yield from self._refuse_part(start)
            return
        for number, text, found in objects:
            if found.record is None:
                reason = found.fault or "malformed"
                self._reject(number, text, reason, _DETAILS[reason])
            elif len(self._arrays) - outer > 1:
                self._reject(number, text, "array", "inside an array inside an array")
            else:
                self._accept(number, text, found.record, repaired=found.fault == "repaired")

    def _read_objects(self) -> Generator[None, None, list[tuple[int, str, FoundObject]]]:
        """Line, text and result of each object up to a separator, or up to one of several lines."""
        objects = []
        while self._text.startswith("{", self._at):
            found = yield from self._find(json_values.find_object, self._at)
            text = self._text[self._at : found.end]
            objects.append((self._line, text, found))
            self._move(found.end)
            if "\n" in text:
                break
            self._at = end_of(SPACES, self._text, self._at)
        return objects

    def _refuse_part(self, start: int) -> Iterator[None]:
        """Refuse the text from `start` up to a separator, or to the end of an object in it."""
        separator = _SEPARATOR.search(self._text, self._at)
        end = separator.start() if separator else len(self._text)
        brace = self._text.find("{", self._at, end)
        is_last = self._text[end : end + 1] in ("", "\n")
        if brace >= 0 and is_last and json_values.closing_brace(self._text, brace, end)[0] < 0:
            found = yield from self._find(json_values.find_broken, brace)
            reason: RejectionReason = "truncated" if found.fault == "truncated" else "malformed"
            end = found.end
            self._reject(self._line, self._text[start:end], reason, _DETAILS[reason])
        else:
            part = self._text[start:end].strip()
            is_json = "{" in part or part[:1] in ("[", '"', "}")
            if len(part) < LEAST_REPEATED or not self._is_loop(self._line, part):
                self._reject(self._line, part, "malformed" if is_json else "not_json")
        self._move(end)

    def _find(
        self, find: Callable[[str, int], FoundObject], start: int
    ) -> Generator[None, None, FoundObject]:
        """Find an object at `start`, as soon as the text has come in which it ends."""
        while (found := find(self._text, start)).end == len(self._text) and not self._ended:
            yield
        return found

    # ── results ─────────────────────────────────────────────────────────────────

    def _accept(self, line: int, text: str, record: Record, *, repaired: bool = False) -> None:
        """Keep the records that an object stands for, or reject them by the schema."""
        if self._is_loop(line, text):
            return
        before = len(self._records)
        for plain in self._normalize(record) if self._normalize else (record,):
            new = self._schema.with_short_lists(plain) if self._schema else plain
            fault = self._schema.error(new) if self._schema else None
            if fault is None:
                self._records.append(new)
                self._line_numbers.append(line)
            else:
                self._reject(line, text, "schema", fault)
        if repaired and len(self._records) > before:
            self._reject(line, text, "repaired", "kept after its quoting was repaired")

    def _is_loop(self, line: int, text: str) -> bool:
        """Whether a part comes back for the `REPEATS`th time: then nothing more is read."""
        self._repeats[text] += 1
        if self._repeats[text] == REPEATS and not self._in_loop:
            detail = f"written {REPEATS} times; the rest of the answer is not read"
            self._rejections.append(Rejection(line, rejected_text(text), "repeated", detail))
            self._in_loop = True
        return self._in_loop

    def _reject(self, line: int, text: str, reason: RejectionReason, detail: str = "") -> None:
        """Note what was not read; very long texts are shortened."""
        self._rejections.append(Rejection(line, rejected_text(text), reason, detail))

    def _move(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end
