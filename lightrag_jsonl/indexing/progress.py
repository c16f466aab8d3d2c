"""What an insert did so far: its progress, what it spent, and the report at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lightrag_jsonl.core.errors import BudgetError, ConfigError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.types import Extraction, ExtractionReport, Failure, InsertReport
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.changes import ExtractedDocument, GraphKey, IndexChange
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import ALL_REFUSED

UNANSWERED = 16  # after so many unanswered chunks in a row (at least two a slot) the insert ends


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an insert has come: chunks read by the extractor, out of those found so far.

    `steps` holds the step of making documents visible that is under way ("merging", "summarizing",
    "embedding" or "writing"), with (items done, items known).
    """

    chunks_done: int
    chunks_known: int
    documents_done: int
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)


ProgressCallback: TypeAlias = Callable[[Progress], None]


class InsertState(UsageMeter):
    """What one insert spent and did; it refuses calls once a limit is reached or `stop` was called.

    `stopped` says why it ended early. `refused` is the error of the last document that could not be
    indexed, `deferred` are entities and relations whose summary has to wait for the next insert.
    """

    def __init__(self, options: IndexOptions, callback: ProgressCallback | None = None) -> None:
        super().__init__()
        self.stopped = self.refusal = ""
        self.refused: ConfigError | None = None
        self.unchanged: list[str] = []
        self.failures: list[Failure] = []
        self.deferred: set[GraphKey] = set()
        self.given = self.chunks_known = self._chunks_done = self._unanswered = 0
        self._calls = 0  # including those in flight
        self._options = options
        self._callback = callback
        self._documents: list[str] = []
        self._entities: set[int] = set()
        self._relations: set[int] = set()
        self._chunks = 0
        self._extraction = ExtractionReport()

    def check(self) -> None:
        """Count a call that is about to be made; `BudgetError` if it may not be made."""
        if self.refusal:
            raise BudgetError(self.refusal)
        limits, spent = self._options, self.spent
        for name, limit, used in (
            ("calls", limits.max_calls, self._calls),
            ("input tokens", limits.max_input_tokens, spent.input_tokens),
            ("output tokens", limits.max_output_tokens, spent.output_tokens),
        ):
            if limit is not None and used >= limit:
                raise BudgetError(
                    f"stopped: {used} of {limit} {name} are used; what was read is kept, raise the "
                    "limit and insert again to go on"
                )
        self._calls += 1

    def add(self, usage: Usage) -> None:
        """Count what a call cost, and each of its requests if it was repeated."""
        self._calls += max(0, usage.calls - 1)
        super().add(usage)

    def stop(self, reason: str) -> None:
        """End the insert: no further call is made."""
        self.stopped = self.refusal = (
            f"stopped: {reason}; what was read is kept, correct that and insert again to go on"
        )

    def refuse(self, pending: PendingDocument, error: ConfigError) -> None:
        """Note that a document cannot be indexed as it is."""
        name = pending.document.id or pending.document.source or ""
        self.failures.append(Failure(name, None, str(error)))
        self.refused = error

    def chunk_read(self, extraction: Extraction) -> None:
        """Note the outcome of a chunk; if too many in a row got no answer, the insert ends."""
        answered = extraction.records or extraction.rejections or extraction.truncated
        unanswered = extraction.state == "failed" and extraction.error and not answered
        self._unanswered = self._unanswered + 1 if unanswered else 0
        patience = max(UNANSWERED, 2 * self._options.max_concurrent_calls)
        if self._unanswered >= patience and not self.stopped:
            self.stop(f"{self._unanswered} chunks in a row got no answer ({extraction.error})")
        self._chunks_done += 1
        self._show({})

    def committed(self, documents: Iterable[ExtractedDocument], change: IndexChange) -> None:
        """Note what a transaction made visible."""
        self._entities.update(change.graph.rows("entity"))
        self._relations.update(change.graph.rows("relation"))
        for one in documents:
            self._documents.append(one.document.id)
            self._chunks += len(one.chunks)
            for chunk, extraction in zip(one.chunks, one.extractions, strict=True):
                self._extraction += extraction.report
                if extraction.unfinished:
                    reason = extraction.error or ALL_REFUSED
                    self.failures.append(Failure(one.document.id, chunk.id, reason))
        self._show({})

    def step(self, name: str, done: int, known: int) -> None:
        """Report how far a step of making documents visible has come; see `Progress`."""
        if known:
            self._show({name: (done, known)})

    def _show(self, steps: Mapping[str, tuple[int, int]]) -> None:
        if self._callback is not None:
            documents = len(self._documents)
            self._callback(Progress(self._chunks_done, self.chunks_known, documents, steps))

    def report(self) -> InsertReport:
        """What was done, in an order that does not depend on timing."""
        return InsertReport(
            documents=tuple(sorted(self._documents)),
            unchanged=tuple(sorted(self.unchanged)),
            chunks=self._chunks,
            entities=len(self._entities),
            relations=len(self._relations),
            failures=tuple(sorted(self.failures, key=lambda f: (f.document_id, f.chunk_id or ""))),
            usage=self.spent,
            extraction=self._extraction,
            stopped=self.stopped,
        )
