"""Records how a question is answered: makes the events, stores them, and passes them on."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import Answer, Chunk, Context, Keywords, Relation, TraceSummary
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.retrieval.edge_selection import (
    Edge,
    EdgeSelection,
    SelectedEdge,
    candidate_edges,
)
from lightrag_jsonl.retrieval.pipeline import QueryObserver
from lightrag_jsonl.storage.store import Store, Transaction, write
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.events import Event, Shown

Listener: TypeAlias = Callable[[Event], Awaitable[None] | None]

log = logging.getLogger(__name__)


class Recorder(QueryObserver):
    """Records one query (the `QueryObserver` of the query pipeline).

    The question is stored at its beginning. With a `listener`, each further event is stored before
    the listener gets it; without one, all are stored together at the end. If a listener raises, or
    an event cannot be stored, that is logged once and no further events go there; the answer is
    given in any case, and the stored trace stays incomplete.
    """

    def __init__(
        self,
        store: Store,
        session: events.Session,
        meter: UsageMeter,
        *,
        listener: Listener | None,
        clock: Callable[[], datetime],
    ) -> None:
        self.trace_id = session.trace_id
        self.stored_trace_id: str | None = session.trace_id  # None once an event was not stored
        self._store = store
        self._session = session
        self._meter = meter
        self._listener = listener
        self._clock = clock
        self._edges: dict[tuple[str, str], Edge] = {}
        self._retrieved: frozenset[str] = frozenset()
        self._sources: tuple[str, ...] = ()
        self._unstored: list[Event] = []
        self._ended = False

    async def begin(self) -> None:
        """Record that the question was asked, before anything is paid for."""
        await self._record(self._session)

    async def keywords_found(self, keywords: Keywords) -> None:
        """Record the keywords."""
        await self._record(events.KeywordsFound(self.trace_id, keywords))

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Record everything that was found, best first."""
        edges = candidate_edges(relations)
        chunk_ids = tuple([chunk.id for chunk in chunks])
        self._edges = {(edge.source, edge.target): edge for edge in edges}
        self._retrieved = frozenset(chunk_ids)
        await self._record(events.Retrieval(self.trace_id, self._session.mode, edges, chunk_ids))

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """Record what was chosen, and what the model reads."""
        found = [chunk.id for chunk in context.chunks if chunk.id in self._retrieved]
        titles = [context.documents.get(c.document_id, c.document_id) for c in context.chunks]
        self._sources = tuple(dict.fromkeys(titles))
        chosen = zip(selection.relations, selection.reasons, strict=True)
        event = events.Selection(
            self.trace_id,
            selection.method,
            tuple([self._selected_edge(*one) for one in chosen]),
            tuple(found) if context.mode in events.MODES_WITH_CHUNKS else (),
            tuple(self._shown(context)),
            selection.rejections,
            selection.fallback,
            selection.error,
        )
        await self._record(event)

    async def piece(self, text: str) -> None:
        """Pass on a piece of the answer; the whole answer is stored at the end."""
        await self._notify(events.AnswerChunk(self.trace_id, text))

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """Record the whole answer, and the end."""
        self._ended = True
        await self._notify(events.AnswerChunk(self.trace_id, "", end_of_stream=True))
        cited = tuple(dict.fromkeys([citation.document for citation in answer.citations]))
        found = answer.text, answer.citations, answer.invented
        await self._record(
            events.Answered(self.trace_id, *found, reused=reused, truncated=answer.truncated),
            events.End(self.trace_id, self._clock(), cited or self._sources, usage=answer.usage),
        )

    async def failed(self, error: BaseException) -> None:
        """Record the error that ended the query, once; a cancelled query stays incomplete."""
        if self._ended or isinstance(error, asyncio.CancelledError | GeneratorExit):
            return
        self._ended = True
        message, usage = str(error) or type(error).__name__, self._meter.spent
        await self._record(events.End(self.trace_id, self._clock(), error=message, usage=usage))

    def _selected_edge(self, relation: Relation, reason: str | None) -> SelectedEdge:
        edge = self._edges[relation.source, relation.target]
        return SelectedEdge(edge, reason, None if reason else edge.score)

    def _shown(self, context: Context) -> Iterator[Shown]:
        """The context's items, numbered as in its prompt."""
        number = itertools.count(1)
        for entity in context.entities:
            name, text = entity.name, _on_one_line(entity.description)
            yield Shown(next(number), "entity", name, name, entity.chunk_ids, text)
        for relation in context.relations:
            edge = self._edges[relation.source, relation.target]
            text = _on_one_line(relation.description)
            label = f"{edge.source} — {edge.predicate} → {edge.target}"
            yield Shown(next(number), "relation", edge.id, label, edge.chunk_ids, text)
        for chunk in context.chunks:
            label = context.documents.get(chunk.document_id, chunk.document_id)
            span = chunk.start, chunk.end
            yield Shown(next(number), "chunk", chunk.id, label, (chunk.id,), "", *span)

    async def _record(self, *new: Event) -> None:
        self._unstored += new
        if self._listener is not None or isinstance(new[-1], events.Session | events.End):
            await self._store_events()
        for event in new:
            await self._notify(event)

    async def _store_events(self) -> None:
        job = partial(_append, self._session, self._unstored)
        self._unstored = []
        if self.stored_trace_id is None:  # an earlier event is missing
            return
        try:
            await write(self._store, job, durable=False)
        except StorageError as error:
            self.stored_trace_id = None
            log.warning("trace %s is not stored to its end: %s", self.trace_id, error)

    async def _notify(self, event: Event) -> None:
        if self._listener is None:
            return
        try:
            waiting = self._listener(event)
            if waiting is not None:
                await waiting
        except Exception:  # a user's own callback
            log.warning(
                "a listener of trace %s failed and gets no more", self.trace_id, exc_info=True
            )
            self._listener = None


async def replay(answer: Answer, recorder: Recorder) -> None:
    """Record the trace of a reused answer: what it was based on is still in the index."""
    context = answer.context
    unreasoned = (None,) * len(context.relations)
    await recorder.keywords_found(context.keywords)
    await recorder.retrieved(context.relations, context.chunks)
    await recorder.selected(EdgeSelection("all", context.relations, unreasoned), context)
    await recorder.piece(answer.text)
    await recorder.answered(answer, reused=True)


def _append(session: events.Session, new: Sequence[Event], transaction: Transaction) -> None:
    """Append events to the session's trace, unless it was deleted meanwhile."""
    id, at = session.trace_id, session.started_at.timestamp()
    row = TraceSummary(id, "incomplete", session.mode, session.question, at)
    if new[0] is session:
        transaction.put_trace(row)
    elif not transaction.trace_events(id):
        return
    transaction.add_trace_events(id, [events.event_to_json(event) for event in new])
    if isinstance(new[-1], events.End):
        transaction.put_trace(replace(row, status=new[-1].status))


def _on_one_line(text: str) -> str:
    """A description as the prompt shows it."""
    return text if text.isprintable() else " ".join(text.split())
