"""What an insert reports: its progress while it runs, its budget, and the report at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lightrag_jsonl.core.errors import BudgetError, ConfigError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.types import Extraction, ExtractionReport, Failure, InsertReport
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.changes import ExtractedDocument, GraphKey, IndexChange, Stage
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
    steps: Mapping[Stage, tuple[int, int]] = field(default_factory=dict)


ProgressCallback: TypeAlias = Callable[[Progress], None]


class InsertBudget(UsageMeter):
    """What an insert spends; refuses calls once a limit is reached or the insert has to end."""

    def __init__(self, options: IndexOptions) -> None:
        super().__init__()
        self._limits = (options.max_calls, options.max_input_tokens, options.max_output_tokens)
        self._calls = 0  # including those in flight
        self.refusal = ""

    def check(self) -> None:
        """Count a call that is about to be made; `BudgetError` if it may not be made."""
        if self.refusal:
            raise BudgetError(self.refusal)
        spent = (self._calls, self.spent.input_tokens, self.spent.output_tokens)
        names = ("calls", "input tokens", "output tokens")
        for name, limit, used in zip(names, self._limits, spent, strict=True):
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


class InsertState:
    """What one insert has done so far; `stopped` says why it ended early, if it did.

    `refused` is the error of the last document that could not be indexed, `deferred` are entities
    and relations whose summary has to wait for the next insert.
    """

    def __init__(self, options: IndexOptions, callback: ProgressCallback | None = None) -> None:
        self.budget = InsertBudget(options)
        self.stopped = ""
        self.refused: ConfigError | None = None
        self.unchanged: list[str] = []
        self.failures: list[Failure] = []
        self.deferred: set[GraphKey] = set()
        self.given = 0
        self.chunks_known = 0
        self._chunks_done = 0
        self._callback = callback
        self._documents: list[str] = []
        self._extraction = ExtractionReport()
        self._chunks = 0
        self._touched: tuple[set[int], set[int]] = (set(), set())
        self._unanswered = 0
        self._patience = max(UNANSWERED, 2 * options.max_concurrent_calls)

    def refuse(self, pending: PendingDocument, error: ConfigError) -> None:
        """Note that a document cannot be indexed as it is."""
        name = pending.document.id or pending.document.source or ""
        self.failures.append(Failure(name, None, str(error)))
        self.refused = error

    def stop(self, reason: str) -> None:
        """End the insert: no further call is made."""
        self.stopped = self.budget.refusal = (
            f"stopped: {reason}; what was read is kept, correct that and insert again to go on"
        )

    def chunk_read(self, extraction: Extraction) -> None:
        """Note the outcome of a chunk; if too many in a row got no answer, the insert ends."""
        answered = extraction.records or extraction.rejections or extraction.truncated
        unanswered = extraction.state == "failed" and extraction.error and not answered
        self._unanswered = self._unanswered + 1 if unanswered else 0
        if self._unanswered >= self._patience and not self.stopped:
            self.stop(f"{self._unanswered} chunks in a row got no answer ({extraction.error})")
        self._chunks_done += 1
        self._report_progress({})

    def step(self, stage: Stage, done: int, known: int) -> None:
        """Report how far a step of making documents visible has come."""
        if known:
            self._report_progress({stage: (done, known)})

    def committed(self, documents: Iterable[ExtractedDocument], change: IndexChange) -> None:
        """Note what a transaction made visible."""
        self._touched[0].update(change.graph.rows("entity"))
        self._touched[1].update(change.graph.rows("relation"))
        for one in documents:
            self._documents.append(one.document.id)
            self._chunks += len(one.chunks)
            for chunk, extraction in zip(one.chunks, one.extractions, strict=True):
                self._extraction += extraction_report(extraction)
                if extraction.unfinished:
                    reason = extraction.error or ALL_REFUSED
                    self.failures.append(Failure(one.document.id, chunk.id, reason))
        self._report_progress({})

    def _report_progress(self, steps: Mapping[Stage, tuple[int, int]]) -> None:
        if self._callback is not None:
            documents = len(self._documents)
            self._callback(Progress(self._chunks_done, self.chunks_known, documents, steps))

    def report(self) -> InsertReport:
        """What was done, in an order that does not depend on timing."""
        return InsertReport(
            documents=tuple(sorted(self._documents)),
            unchanged=tuple(sorted(self.unchanged)),
            chunks=self._chunks,
            entities=len(self._touched[0]),
            relations=len(self._touched[1]),
            failures=tuple(sorted(self.failures, key=lambda f: (f.document_id, f.chunk_id or ""))),
            usage=self.budget.spent,
            extraction=self._extraction,
            stopped=self.stopped,
        )


def extraction_report(extraction: Extraction) -> ExtractionReport:
    """The report of one chunk."""
    reasons = Counter([str(one.reason) for one in extraction.rejections])
    return ExtractionReport(
        **{extraction.state: 1},
        records=extraction.records,
        rejections=dict(sorted(reasons.items())),
        repaired=reasons["repaired"],
        ungrounded=sum([not mention.grounded for mention in extraction.entities]),
        truncated=extraction.truncated,
        resumed=extraction.resumed,
        gleaned=extraction.gleaned,
        usage=extraction.usage,
    )
