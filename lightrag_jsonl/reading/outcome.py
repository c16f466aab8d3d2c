"""Collects the outcome of a JSONL answer: the records that pass, and why the rest did not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lightrag_jsonl.schemas import Schema
from lightrag_jsonl.types import JsonlResult, Record, Rejection, RejectionReason

Normalize = Callable[[Record], Iterable[Record]]

_MAX_TEXT = 2_000


class Found(NamedTuple):
    """A closed object, the line it began on, and its text."""

    line: int
    text: str
    record: Record
    repaired: bool = False


class Outcome:
    """Collects what the reader finds; applies `normalize` and the schema to every object."""

    __slots__ = ("_line_numbers", "_normalize", "_rejections", "_schema", "records")

    def __init__(self, schema: Schema | None, normalize: Normalize | None) -> None:
        self.records: list[Record] = []
        self._line_numbers: list[int] = []
        self._rejections: list[Rejection] = []
        self._schema = schema
        self._normalize = normalize

    def accept(self, found: Found) -> None:
        """Keep the records that an object stands for, or reject them by the schema."""
        kept = 0
        records = self._normalize(found.record) if self._normalize else (found.record,)
        for record in records:
            fault = self._schema.error(record) if self._schema else None
            if fault is not None:
                self.reject(found.line, found.text, "schema", fault)
                continue
            self.records.append(record)
            self._line_numbers.append(found.line)
            kept += 1
        if kept and found.repaired:
            self.reject(found.line, found.text, "repaired", "kept after its quoting was mended")

    def reject(self, line: int, text: str, reason: RejectionReason, detail: str = "") -> None:
        """Note what was not read; very long texts are shortened."""
        text = text.strip()
        if len(text) > _MAX_TEXT:
            text = text[:_MAX_TEXT] + "…"
        self._rejections.append(Rejection(line, text, reason, detail))

    def result(self) -> JsonlResult:
        """Everything so far, rejections in the order of their lines."""
        rejections = tuple(sorted(self._rejections, key=lambda rejection: rejection.line))
        truncated = any(rejection.reason == "truncated" for rejection in rejections)
        return JsonlResult(tuple(self.records), tuple(self._line_numbers), rejections, truncated)
