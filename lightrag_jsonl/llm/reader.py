"""Reads a model's JSONL answer, complete or as it streams, into records and rejections.

A record is an object with complete text; nothing is ever completed. Text beside an object on the
same line (`{"a":1} // note`) makes the line malformed, except in an array without an end. A
broken-off object ends at the next line that can only be a new record; objects nested inside are no
records.
"""

import json
import logging
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

import msgspec

from lightrag_jsonl.core.types import Json, JsonlResult, Record, Rejection, RejectionReason
from lightrag_jsonl.llm import json_values
from lightrag_jsonl.llm.field_aliases import RepairedRecord
from lightrag_jsonl.llm.json_values import (
    SPACES,
    FoundObject,
    end_of,
    line_end,
    may_hold_commands,
    with_latex_commands,
)
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.llm.thinking import PROMPTED_END, thinking_at
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import cut, sanitize

Normalize = Callable[[Record], Iterable[Record]]

# of an object or line in an answer; small models loop, larger ones write it twice or so
LOGGED_LINES = 5  # of a refused answer, each by itself; further ones are counted
REPEATS = 10
LEAST_REPEATED = 20  # characters of a line without a record; brackets and dashes come back anyway
_LONGEST_REJECTION = 2_000  # characters
_REASON_DETAILS = {
    "malformed": "invalid JSON, or an unclosed object",
    "truncated": "the text ends inside this object",
    "too_deep": f"more than {json_values.MAX_DEPTH} levels",
}
log = logging.getLogger(__name__)
_OBJECT_DECODER = msgspec.json.Decoder(dict)

_SPACE = r"[^\S\n]"
_SEPARATORS = "[,，、;；。\\[\\]\r\u2028\u2029\x85]"  # of objects on a line
_BETWEEN_OBJECTS = pattern_of(f"(?:{_SPACE}|{_SEPARATORS})*")
_BEFORE_RECORD = pattern_of(rf"(?:\s|{PROMPTED_END.pattern})*", re.IGNORECASE)
_CODE_FENCE = pattern_of(json_values.FENCE)
_AFTER_FENCE = pattern_of(r'[{\[](?=\s*(?:["{}\[\]]|\Z))')
_BULLET = pattern_of(f"(?:{json_values.BULLET})?")
_REST_OF_LINE = pattern_of(rf"\n|\Z|[`~]+{_SPACE}*(?=\n|\Z)")  # after a closing fence, too
_END_OF_PART = pattern_of(f"{_SEPARATORS}|{_REST_OF_LINE.pattern}")
_SEPARATOR = pattern_of("[\r\u2028\u2029\x85\n]|\\Z")
_SCALAR = pattern_of(
    r'(?:"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"|true|false|null|-?[0-9][0-9.eE+-]*)'
    rf"(?={_SPACE}*(?:{_SEPARATORS}|\n|\Z))"
)


def parse_jsonl(
    text: str,
    *,
    schema: Mapping[str, Json] | Schema | None = None,
    normalize: Normalize | None = None,
) -> JsonlResult:
    """Read a complete answer. Never raises, for any text; refused lines and an answer without records
    are logged as warnings.

    `normalize` is applied to each object before the schema, and returns one or more records.
    """
    result = read_answer(text, schema=schema, normalize=normalize)
    refused = [line for line in result.rejections if line.reason != "repaired"]
    for line in refused[:LOGGED_LINES]:
        reason = f"{line.reason}: {line.detail}" if line.detail else line.reason
        log.warning("line %d is not a valid record (%s): %.200s", line.line, reason, line.text)
    if len(refused) > LOGGED_LINES:
        log.warning("and %d more lines", len(refused) - LOGGED_LINES)
    if not result.records and not refused:
        log.warning("the answer has no record: it is empty")
    return result


def read_answer(
    text: str,
    *,
    schema: Mapping[str, Json] | Schema | None = None,
    normalize: Normalize | None = None,
) -> JsonlResult:
    """Like `parse_jsonl`, without warnings, for callers that report refused lines."""
    reader = JsonlReader(schema, normalize)
    reader.feed(text)
    return reader.close()


def rejected_text(text: str) -> str:
    """The text of a rejection: at most 2,000 characters of the answer, and "…"."""
    return cut(text.strip(), _LONGEST_REJECTION)


class _ReadObject(NamedTuple):
    """An object with the text and the number of the first line."""

    line: int
    text: str
    result: FoundObject


class JsonlReader:
    """Reads an answer in pieces; the result does not depend on where the text is cut."""

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
        self._text = ""  # whole lines
        self._at = 0  # the position of reading in `_text`
        self._line = 1  # the number of the line at this position
        self._ended = False  # whether the last piece has arrived
        self._first = True  # whether no content came before
        self._arrays: list[int] = []  # the lines on which the open arrays begin
        self._repeats: dict[int, int] = {}  # by hash: of objects and of refused parts
        self._in_loop = False  # whether the model repeats itself, so that the rest is not read
        self._reading = self._read_lines()

    def feed(self, piece: str) -> list[Record]:
        """Take the next piece of text; returns the records completed by the piece.

        An object over several lines is parsed again whenever the text has doubled.
        """
        before = len(self._records)
        self._arrived.append(piece)
        self._wait -= len(piece)
        if self._wait <= 0 and "\n" in piece:
            self._read()
        return self._records[before:]

    def close(self) -> JsonlResult:
        """End the text: read the rest, and return the complete result."""
        if self._result is None:
            self._ended = True
            self._read()
            rejections = tuple(sorted(self._rejections, key=attrgetter("line")))
            truncated = any(rejection.reason == "truncated" for rejection in rejections)
            self._result = JsonlResult(
                records=tuple(self._records),
                line_numbers=tuple(self._line_numbers),
                rejections=rejections,
                truncated=truncated,
            )
        return self._result

    def _read(self) -> None:
        """Read the complete lines so far, and at the end the last line."""
        arrived = "".join(self._arrived)
        end = len(arrived) if self._ended else arrived.rfind("\n") + 1
        self._arrived = [arrived[end:]]
        text = sanitize(arrived[:end].replace("\x00", "").replace("\x1e", ""))
        self._text += json_values.without_invisible(text)
        next(self._reading, None)
        self._wait = len(self._text) - self._at - len(arrived) + end

    # ── lines and their parts; methods yield to wait for more text ────

    def _read_lines(self) -> Iterator[None]:
        while not self._in_loop and (not self._ended or self._at < len(self._text)):
            if self._at >= len(self._text):
                self._text = ""
                self._at = 0
                yield
            elif not self._read_plain_line():
                yield from self._read_line()
        if self._arrays and not self._in_loop:
            self._reject_open_array()

    def _reject_open_array(self) -> None:
        """Note that the text ends inside an array, unless a truncated object already says so."""
        if not any(rejection.reason == "truncated" for rejection in self._rejections):
            rejection = Rejection(
                line=self._arrays[0],
                text="[",
                reason="truncated",
                detail="the text ends inside this array",
            )
            self._rejections.insert(0, rejection)

    def _read_plain_line(self) -> bool:
        """Read a line with an object and nothing else: the usual case, made fast."""
        end = line_end(self._text, self._at)
        line = self._text[self._at : end]
        if not line.startswith("{") or json_values.is_too_deep(line):
            return False
        try:
            record = _OBJECT_DECODER.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        self._accept(self._line, line, record)
        self._at = end + 1
        self._line += 1
        self._first = False
        return True

    def _read_line(self) -> Iterator[None]:
        yield from self._skip_beginning()
        outer = len(self._arrays)  # arrays that were opened before this line
        while not self._in_loop:
            self._skip_gap()
            outer = min(outer, len(self._arrays))
            if _REST_OF_LINE.match(self._text, self._at):
                self._move(line_end(self._text, self._at) + 1)
                return
            yield from self._read_part(outer)
            if self._text[self._at - 1] == "\n":  # a new line ended a broken object
                return

    def _skip_beginning(self) -> Iterator[None]:
        """Skip thinking, the mark of a fence and a bullet."""
        while True:
            end = line_end(self._text, self._at)
            self._at = end_of(_BEFORE_RECORD, self._text, self._at, end)
            thinking = thinking_at(self._text, self._at, end, first=self._first)
            if thinking is None:
                break
            content_start, ending = thinking
            yield from self._skip_thinking(content_start, ending)
        self._first = self._first and self._at == end
        if _CODE_FENCE.match(self._text, self._at, end):
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
        """Skip separators before an object, and count opening and closing brackets of arrays."""
        end = end_of(_BETWEEN_OBJECTS, self._text, self._at)
        for mark in self._text[self._at : end]:
            if mark == "[":
                self._arrays.append(self._line)
            elif mark == "]" and self._arrays:
                self._arrays.pop()
        self._at = end

    def _read_part(self, outer: int) -> Iterator[None]:
        """Read objects side by side, or refuse a part with other text."""
        start = self._at
        if scalar := _SCALAR.match(self._text, start):
            self._read_scalar(scalar[0])
            self._at = scalar.end()
            return
        objects = yield from self._read_objects()
        has_lines = bool(objects) and "\n" in objects[-1].text
        if not has_lines and not _END_OF_PART.match(self._text, self._at):
            del self._arrays[outer:]
            yield from self._refuse_part(start)
            return
        for part in objects:
            record = part.result.record
            if record is None:
                reason = part.result.fault or "malformed"
                self._reject(part.line, part.text, reason, _REASON_DETAILS[reason])
            elif len(self._arrays) - outer > 1:
                self._reject(part.line, part.text, "array", "inside an array inside an array")
            else:
                repaired = part.result.fault == "repaired"
                self._accept(part.line, part.text, record, repaired=repaired)

    def _read_scalar(self, scalar: str) -> None:
        """Read a text in place of a record with one text; refuse any other value but objects."""
        text_field = self._schema.only_text_field if self._schema else ""
        if text_field and scalar.startswith('"'):
            with suppress(ValueError):
                self._accept(self._line, scalar, {text_field: json.loads(scalar)})
                return
        self._reject(self._line, scalar, "not_object")

    def _read_objects(self) -> Generator[None, None, list["_ReadObject"]]:
        """The objects up to a separator, or up to an object over several lines."""
        objects: list[_ReadObject] = []
        while self._text.startswith("{", self._at):
            result = yield from self._find(json_values.find_object, self._at)
            text = self._text[self._at : result.end]
            objects.append(_ReadObject(self._line, text, result))
            self._move(result.end)
            if "\n" in text:
                break
            self._at = end_of(SPACES, self._text, self._at)
        return objects

    def _refuse_part(self, start: int) -> Iterator[None]:
        """Refuse the text from `start` up to a separator, or to the end of a broken object."""
        separator = _SEPARATOR.search(self._text, self._at)
        end = separator.start() if separator else len(self._text)
        brace = self._text.find("{", self._at, end)
        is_last = self._text[end : end + 1] in ("", "\n")
        if brace >= 0 and is_last and json_values.closing_brace(self._text, brace, end)[0] < 0:
            broken = yield from self._find(json_values.find_broken, brace)
            reason: RejectionReason = "truncated" if broken.fault == "truncated" else "malformed"
            end = broken.end
            self._reject(self._line, self._text[start:end], reason, _REASON_DETAILS[reason])
        else:
            part = self._text[start:end].strip()
            is_json = "{" in part or part[:1] in ("[", '"', "}")
            if len(part) < LEAST_REPEATED or not self._is_loop(self._line, part):
                self._reject(self._line, part, "malformed" if is_json else "not_json")
        self._move(end)

    def _find(
        self, find: Callable[[str, int], FoundObject], start: int
    ) -> Generator[None, None, FoundObject]:
        """Find an object at `start`, as soon as the text has arrived up to the object's end."""
        result = find(self._text, start)
        while result.end == len(self._text) and not self._ended:
            yield
            result = find(self._text, start)
        return result

    # ── results ─────────────────────────────────────────────────────────────────

    def _accept(self, line: int, text: str, record: Record, *, repaired: bool = False) -> None:
        """Keep the records of an object, or reject them by the schema."""
        if self._is_loop(line, text):
            return
        before = len(self._records)
        if may_hold_commands(text):
            written = record
            record = {key: with_latex_commands(value) for key, value in written.items()}
            repaired = repaired or record != written
        for normalized in self._normalize(record) if self._normalize else (record,):
            repaired = repaired or isinstance(normalized, RepairedRecord)
            shortened = self._schema.with_short_lists(normalized) if self._schema else normalized
            fault = self._schema.error(shortened) if self._schema else None
            if fault is None:
                self._records.append(shortened)
                self._line_numbers.append(line)
            else:
                self._reject(line, text, "schema", fault)
        if repaired and len(self._records) > before:
            self._reject(line, text, "repaired", "kept after its JSON or its fields were repaired")

    def _is_loop(self, line: int, text: str) -> bool:
        """Whether a part comes back for the `REPEATS`th time: the rest is not read."""
        part = hash(text)
        repeats = self._repeats.get(part, 0) + 1
        self._repeats[part] = repeats
        if repeats == REPEATS and not self._in_loop:
            detail = f"written {REPEATS} times; the rest of the answer is not read"
            self._reject(line, text, "repeated", detail)
            self._in_loop = True
        return self._in_loop

    def _reject(self, line: int, text: str, reason: RejectionReason, detail: str = "") -> None:
        """Note text without a record; a very long text is cut."""
        rejection = Rejection(line=line, text=rejected_text(text), reason=reason, detail=detail)
        self._rejections.append(rejection)

    def _move(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end
