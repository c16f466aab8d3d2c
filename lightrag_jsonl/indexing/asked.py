"""Reads chunks for questions, in an index that is read when it is asked: rules read every chunk when it is
inserted, and a model reads the chunks that questions find.

The chunks that no model has read are those that rules read (`StoreView.chunks_by_rules`). What a model
reads takes the place of what rules read, as in an upgrade.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from lightrag_jsonl.core.answers import Reading
from lightrag_jsonl.core.errors import BudgetError, LightRAGError, LLMError
from lightrag_jsonl.core.languages import FixedWords
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Extractor
from lightrag_jsonl.core.types import Extraction
from lightrag_jsonl.indexing.budget import Budget
from lightrag_jsonl.indexing.commits import IndexWriter, plan_documents
from lightrag_jsonl.indexing.extraction import ChunkReader
from lightrag_jsonl.indexing.incoming import (
    IncomingDocument,
    documents_of_chunks,
    with_extractions,
)
from lightrag_jsonl.indexing.insertion import document_with_stated_names
from lightrag_jsonl.indexing.merging import IndexChange
from lightrag_jsonl.indexing.progress import ProgressCounter
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.status import QUESTIONS_READ
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.storage.views import StoreView

IN_PROCESS = 1.0  # seconds more than for another process, to wait for this one

TellProgress = Callable[[int, int], Awaitable[None]]


class QuestionReader:
    """Reads the chunks that questions find, within the budget of each question.

    Questions at the same time share the right to write, and read a chunk once. A chunk that the
    model could not read is not tried again here for another question.
    """

    def __init__(
        self, writer: IndexWriter, extractor: Extractor, options: IndexOptions, words: FixedWords
    ) -> None:
        self._words = words
        self._writer = writer
        self._extractor = extractor
        self._options = options
        self._right = _SharedRight(writer)
        self._commits = asyncio.Lock()  # one at a time, inside the shared right
        self._being_read: dict[int, asyncio.Event] = {}  # by row id of the chunk
        self._unreadable: set[int] = set()

    async def read(
        self,
        chunk_ids: Sequence[str],
        *,
        limit: int,
        meter: UsageMeter,
        tell: TellProgress,
        earlier: Reading,
    ) -> Reading | None:
        """Read the first of these chunks that no model has read, `limit` of them at most; None if there
        are none. What other questions have read meanwhile is no part of the reading.

        A failure of the model or of the store is the `problem` of the reading, and nothing is raised.
        `earlier` is what the question has had read before.
        """
        store = self._writer.store
        if store.read_only:
            return None
        unread = await read(store, partial(self._unread, chunk_ids, limit))
        if not unread:
            return None
        limits = self._options.limits
        most_seconds = self._options.lock_timeout + IN_PROCESS
        tokens_left = limits.read_tokens - earlier.usage.input_tokens - earlier.usage.output_tokens
        budget = _QuestionBudget(
            self._options, max_tokens=max(tokens_left, 0), parent=meter, words=self._words
        )
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(most_seconds):
                    await stack.enter_async_context(self._right.held())
                reading = await self._read_rows(
                    unread, budget, tell, is_counted=not earlier.chunk_ids
                )
        except TimeoutError:
            reading = Reading(problem=self._words.unread_locked.format(most_seconds))
        except LightRAGError as error:
            reading = Reading(problem=str(error))
        return replace(reading, usage=budget.spent)

    def _unread(self, chunk_ids: Sequence[str], limit: int, view: StoreView) -> list[int]:
        """The row ids of the chunks that no model has read, in the order of the ids."""
        names = view.chunks_by_rules(chunk_ids)
        rows = {name: row for row, name in names.items() if row not in self._unreadable}
        return [rows[id] for id in chunk_ids if id in rows][:limit]

    async def _read_rows(
        self,
        rows: Sequence[int],
        budget: "_QuestionBudget",
        tell: TellProgress,
        *,
        is_counted: bool,
    ) -> Reading:
        """Read chunks, but for those that were read meanwhile or are being read for another question,
        which are waited for.
        """
        store = self._writer.store
        still_unread = await read(store, lambda view: view.chunks_by_rules(rows=rows))
        other_readings = [self._being_read[row] for row in rows if row in self._being_read]
        own = [row for row in rows if row in still_unread and row not in self._being_read]
        self._being_read |= {row: asyncio.Event() for row in own}
        reading = Reading()
        try:
            if own:
                reading = await self._read_and_commit(own, budget, tell, is_counted=is_counted)
        finally:
            for row in own:
                self._being_read.pop(row).set()
        for event in other_readings:
            await event.wait()
        if other_readings:  # whose question may have been cancelled, or at the end of its budget
            waited = await read(store, lambda view: view.chunks_by_rules(rows=rows))
            unread_rows = [
                row for row in rows if row in waited and row not in {*own, *self._unreadable}
            ]
            if unread_rows:
                reading += await self._read_rows(unread_rows, budget, tell, is_counted=False)
        return reading

    async def _read_and_commit(
        self,
        rows: Sequence[int],
        budget: "_QuestionBudget",
        tell: TellProgress,
        *,
        is_counted: bool,
    ) -> Reading:
        store = self._writer.store
        documents = await read(store, partial(documents_of_chunks, rows))
        extractions = await self._extractions(documents, budget, tell)
        if any(extraction.error for extraction in extractions.values()):
            budget.look_at_the_clock()
        failed = {
            row: extraction
            for row, extraction in extractions.items()
            if extraction.state == "failed"
        }
        if not budget.stopped:
            self._unreadable.update(failed)
        results = {row: extractions[row] for row in extractions if row not in failed}
        extracted = [with_extractions(document, results) for document in documents]
        extracted = [
            document_with_stated_names(document) for document in extracted if document.rows
        ]
        if extracted:
            async with self._commits:
                await self._writer.commit(partial(_plan_reading, extracted, is_counted))
        return Reading(
            chunk_ids=tuple([chunk.id for document in extracted for chunk in document.chunks]),
            problem=_problem_of_reading(
                budget, [extraction.error for extraction in failed.values()]
            ),
        )

    async def _extractions(
        self, documents: Sequence[IncomingDocument], budget: "_QuestionBudget", tell: TellProgress
    ) -> dict[int, Extraction]:
        """The extractions by row id of the chunk, as far as they come within the limits."""
        progress = ProgressCounter(None, meter=budget)
        reader = ChunkReader(self._extractor, budget, progress, most_unanswered=None)
        tasks: dict[int, asyncio.Task[Extraction | None]] = {}
        for document in documents:
            for row, chunk in zip(document.rows, document.chunks, strict=True):
                tasks[row] = asyncio.create_task(reader.read(chunk))
        unfinished = set(tasks.values())
        try:
            while unfinished:
                await tell(len(tasks) - len(unfinished), len(tasks))
                _, unfinished = await asyncio.wait(unfinished, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        await tell(len(tasks), len(tasks))
        results = {row: task.result() for row, task in tasks.items()}
        return {row: result for row, result in results.items() if result is not None}


class _QuestionBudget(Budget):
    """The budget of a question. When it ends, nothing is lost that was read: a conversation about a chunk ends
    as after a failed call, and keeps the answers before.
    """

    def __init__(
        self, options: IndexOptions, *, max_tokens: int, parent: UsageMeter, words: FixedWords
    ) -> None:
        super().__init__(options, max_tokens=max_tokens, parent=parent)
        self._words = words
        self._seconds = options.limits.read_seconds
        self.ends_at: float = asyncio.get_running_loop().time() + self._seconds

    def look_at_the_clock(self) -> None:
        """Make no further call if the time is over."""
        if asyncio.get_running_loop().time() >= self.ends_at:
            self.exhaust(BudgetError(self._words.unread_slow.format(self._seconds)))

    def check(self) -> None:
        try:
            super().check()
        except BudgetError as error:
            self.exhaust(BudgetError(self._words.unread_limit.format(error)))
            raise LLMError(str(error)) from error


class _SharedRight:
    """The right to write, shared by the questions that come while the first of them reads.

    Whoever comes later waits for the right anew, so that an insert is not kept out by a stream of questions.
    """

    @dataclass(slots=True)
    class _Holding:
        stack: AsyncExitStack
        questions: int = 0

    def __init__(self, writer: IndexWriter) -> None:
        self._writer = writer
        self._entrance = asyncio.Lock()
        self._open: _SharedRight._Holding | None = None  # what further questions may share

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Inside, this process has the right to write."""
        async with self._entrance:
            holding = self._open
            is_first = holding is None
            if holding is None:
                stack = AsyncExitStack()
                await stack.enter_async_context(self._writer.exclusive())
                holding = self._open = self._Holding(stack)
            holding.questions += 1
        try:
            yield
        finally:
            holding.questions -= 1
            if is_first:
                self._open = None
            if not holding.questions:
                await holding.stack.aclose()


def _plan_reading(
    documents: Sequence[IncomingDocument], is_counted: bool, view: StoreView
) -> IndexChange:
    """Put what a model read in the place of what rules read, and count the question."""
    change = plan_documents(documents, (), view)
    if is_counted:
        questions = int(view.settings().get(QUESTIONS_READ, "0"))
        change.settings[QUESTIONS_READ] = str(questions + 1)
    return change


def _problem_of_reading(budget: "_QuestionBudget", failures: Sequence[str]) -> str:
    """Why not everything was read, in words; "" if it was."""
    if budget.error is not None:
        return str(budget.error)
    return budget.stopped or next(iter(failures), "")


# ── what to read first ──────────────────────────────────────────────────────────


class _RetrievedChunks(msgspec.Struct):
    """The chunks that a recorded question has found."""

    retrieved_chunks: tuple[str, ...] = ()


def by_worth(rows: Collection[int], view: StoreView) -> list[int]:
    """The row ids of chunks, the most asked about first (by the recorded questions), then those whose
    names occur most often in these chunks.
    """
    question_counts: Counter[str] = Counter()
    for _, event in view.trace_events(stage="retrieval"):
        question_counts.update(msgspec.json.decode(event, type=_RetrievedChunks).retrieved_chunks)
    owners_by_chunk: dict[int, set[int]] = {row: set() for row in rows}
    for mention in view.entity_mentions(chunks=rows):
        if mention.owner is not None:
            owners_by_chunk[mention.chunk].add(mention.owner)
    mentions = Counter(owner for owners in owners_by_chunk.values() for owner in owners)
    names = view.chunk_names(rows)

    def worth(row: int) -> tuple[int, int, int]:
        further_mentions = sum(mentions[owner] - 1 for owner in owners_by_chunk[row])
        return -question_counts[names[row]], -further_mentions, row

    return sorted(rows, key=worth)
