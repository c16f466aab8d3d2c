"""The state of one insert under way: its budget, what it has done so far, and its report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from lightrag_jsonl.errors import BudgetError, ConfigError, EmbeddingError
from lightrag_jsonl.indexing.committing import Committed, Ready
from lightrag_jsonl.indexing.hubs import Owner
from lightrag_jsonl.indexing.steps import StepName, Steps
from lightrag_jsonl.options import IndexOptions
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import reports
from lightrag_jsonl.types import Document, Extraction, Failure, InsertReport, Usage


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an insert has come: chunks read by the extractor, out of those found so far.

    `steps` are the other steps under way ("merging", "summarizing", "embedding", "writing"), each
    with (items done, items known).
    """

    chunks_done: int
    chunks_known: int
    documents_done: int
    steps: Mapping[StepName, tuple[int, int]] = field(default_factory=dict)


Watcher = Callable[[Progress], None]

TOLD = ""  # in place of a document's content: its warning was given
UNANSWERED = 16  # after so many unanswered chunks in a row (at least two a slot) the insert ends

log = logging.getLogger(__name__)


class Budget(Spending):
    """Stops an insert when a limit on calls or tokens is reached.

    It also stops when the model's server answers no call: see `Run.heard` and `Run.ended`.
    """

    def __init__(self, options: IndexOptions) -> None:
        super().__init__()
        self._limits = (options.max_calls, options.max_input_tokens, options.max_output_tokens)
        self._asked = 0
        self._refusal = ""
        self.patience = max(UNANSWERED, 2 * options.max_concurrent_calls)

    def end(self, reason: str) -> str:
        """Refuse all further calls; returns the message, which says what to do."""
        self._refusal = (
            f"stopped: {reason}; what was read is kept, mend that and insert again to go on"
        )
        return self._refusal

    def check(self) -> None:
        """Count a call that is about to be made; `BudgetError` if it may not be made."""
        if self._refusal:
            raise BudgetError(self._refusal)
        spent = (self._asked, self.spent.input_tokens, self.spent.output_tokens)
        names = ("calls", "input tokens", "output tokens")
        for name, limit, used in zip(names, self._limits, spent, strict=True):
            if limit is not None and used >= limit:
                raise BudgetError(
                    f"stopped: {used} of {limit} {name} are used; what was read is kept, raise the "
                    "limit and insert again to go on"
                )
        self._asked += 1

    def add(self, usage: Usage) -> None:
        """Count what a call cost, and each of its requests where some got lost."""
        self._asked += max(0, usage.calls - 1)
        super().add(usage)


class RowIds:
    """A set of row ids that takes one byte for each, counted with `len`.

    In a Python set each number would be an object of its own.
    """

    def __init__(self) -> None:
        self._seen = bytearray()

    def add(self, rows: Collection[int]) -> None:
        """Add rows."""
        self._seen.extend(bytes(max(0, max(rows, default=0) + 1 - len(self._seen))))
        for row in rows:
            self._seen[row] = 1

    def __len__(self) -> int:
        return self._seen.count(1)


class Contents:
    """The contents of an insert's documents by id, to warn about documents that share one."""

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}

    def add(self, id: str, content: str) -> None:
        """Note a document; if it replaces another one, warn, once for each id."""
        earlier = self._by_id.setdefault(id, content)
        if earlier not in (content, TOLD):
            log.warning(
                "documents of one insert share the id %r: the last one replaces the others", id
            )
            self._by_id[id] = TOLD


@dataclass(slots=True)
class Run:
    """What one insert has done so far; `stopped` says which limit or refusal ended it, if one did.

    `begun` counts documents; `held_up` counts those that wait for an earlier document of the same
    id; `unanswered` counts chunks in a row that got no answer; `refused` is the error of the last
    document that could not be indexed. `broken` is the error that ends the insert once the calls in
    flight are done. Summaries that are `put_off` wait for the next insert.
    """

    spending: Budget
    watcher: Watcher | None
    summarize: bool = True
    documents: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    extracted: reports.Sum = field(default_factory=reports.Sum)
    entities: RowIds = field(default_factory=RowIds)
    relations: RowIds = field(default_factory=RowIds)
    usage: Usage = Usage()
    known: int = 0
    done: int = 0
    contents: Contents = field(default_factory=Contents)
    under_way: dict[str, asyncio.Event] = field(default_factory=dict)
    held_up: int = 0
    stopped: str = ""
    begun: int = 0
    unanswered: int = 0
    refused: ConfigError | None = None
    broken: EmbeddingError | None = None
    put_off: set[Owner] = field(default_factory=set)
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.tell)

    def refuse(self, document: Document, error: ConfigError) -> None:
        """Note that a document cannot be indexed as it is."""
        self.failures.append(Failure(document.id or document.source or "", None, str(error)))
        self.refused = error

    def heard(self, extraction: Extraction) -> None:
        """Note the outcome of a chunk; if too many in a row got no answer, the insert ends."""
        nothing_heard = not (extraction.records or extraction.rejections or extraction.truncated)
        if extraction.state == "failed" and extraction.error and nothing_heard:
            self.unanswered += 1
        else:
            self.unanswered = 0
        if self.unanswered >= self.spending.patience and not self.stopped:
            self.ended(f"{self.unanswered} chunks in a row got no answer ({extraction.error})")

    def broke(self, error: EmbeddingError) -> None:
        """No vectors come any more; the error is raised when what is in flight has come."""
        self.broken = self.broken or error
        self.ended(str(error))

    def ended(self, reason: str) -> None:
        """End the insert: no further call is made."""
        self.stopped = self.spending.end(reason)

    def tell(self) -> None:
        """Report the progress to the watcher."""
        if self.watcher is not None:
            self.watcher(Progress(self.done, self.known, len(self.documents), self.steps.sums()))

    async def begin(self, id: str) -> None:
        """Wait until no other document of this id is under way."""
        self.held_up += 1
        try:
            while id in self.under_way:
                await self.under_way[id].wait()
        finally:
            self.held_up -= 1
        self.under_way[id] = asyncio.Event()

    def end(self, id: str) -> None:
        """The document has been committed, or will not be."""
        done = self.under_way.pop(id, None)
        if done is not None:
            done.set()

    def account(self, batch: Sequence[Ready], done: Committed) -> None:
        """Note what a transaction made visible."""
        self.entities.add(done.entities)
        self.relations.add(done.relations)
        self.usage += done.usage
        for one in batch:
            self.documents.append(one.document.id or "")
            self.end(one.document.id or "")
            for chunk, extraction in zip(one.chunks, one.extractions, strict=True):
                self.usage += extraction.usage
                self.extracted.add(extraction.state, reports.as_object(extraction))
                if extraction.unfinished:
                    reason = extraction.error or reports.ALL_REFUSED
                    self.failures.append(Failure(chunk.document_id, chunk.id, reason))
        self.tell()

    def report(self) -> InsertReport:
        """What was done, in an order that does not depend on timing."""
        return InsertReport(
            documents=tuple(sorted(self.documents)),
            unchanged=tuple(sorted(self.unchanged)),
            chunks=self.extracted.chunks,
            entities=len(self.entities),
            relations=len(self.relations),
            failures=tuple(sorted(self.failures, key=lambda f: (f.document_id, f.chunk_id or ""))),
            usage=self.spending.spent if self.stopped else self.usage,
            extraction=self.extracted.report(),
            stopped=self.stopped,
        )
