"""Records how a question is answered: makes the events, stores them, and passes them on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import TypeAlias

from lightrag_jsonl.core.edges import Edge, EdgeSelection, SelectedEdge, candidate_edges
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.observer import QueryObserver
from lightrag_jsonl.core.text import on_one_line
from lightrag_jsonl.core.types import Answer, Chunk, Context, Keywords, Relation, TraceSummary
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.store import Store, write
from lightrag_jsonl.storage.views import Transaction
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.events import Event, Shown

Listener: TypeAlias = Callable[[Event], Awaitable[None] | None]

log = logging.getLogger(__name__)


@dataclass
class Recorder(QueryObserver):
    """Records one query (the `QueryObserver` of the query pipeline).

    With a `listener`, each event is stored before the listener gets it; without one, all but the
    question are stored at the end. If a listener raises, or an event cannot be stored, that is
    logged once and no further events go there; the answer is given anyway.
    """

    store: Store
    session: events.Session
    meter: UsageMeter
    _: KW_ONLY
    listener: Listener | None
    clock: Callable[[], datetime]
    keep: int  # queries that stay recorded, the newest
    stored_trace_id: str | None = None  # from the beginning until an event cannot be stored
    _edges: dict[tuple[str, str], Edge] = field(default_factory=dict)
    _retrieved: tuple[str, ...] = ()
    _unstored: list[Event] = field(default_factory=list)
    _ended: bool = False

    async def begin(self) -> None:
        """Record that the question was asked, before anything is paid for."""
        is_kept = self.keep and not self.store.read_only
        self.stored_trace_id = self.session.trace_id if is_kept else None
        await self._record(self.session)

    async def keywords_found(self, keywords: Keywords) -> None:
        """Record the keywords."""
        await self._record(events.KeywordsFound(self.session.trace_id, keywords))

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Record everything that was found, best first."""
        edges, mode = candidate_edges(relations), self.session.mode
        self._edges = {(edge.source, edge.target): edge for edge in edges}
        self._retrieved = tuple([chunk.id for chunk in chunks])
        await self._record(events.Retrieval(self.session.trace_id, mode, edges, self._retrieved))

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """Record what was chosen, and what the model reads."""
        chosen: list[SelectedEdge] = []
        for one in context.relations:
            edge = self._edges[one.source, one.target]
            reason = selection.reasons.get((one.source, one.target))
            chosen.append(SelectedEdge(edge, reason, None if reason else edge.score))
        shown = tuple(numbered_items(context, self._edges))
        direct = self._retrieved if MODES[context.mode].chunks else ()
        chunks = [item.id for item in shown if item.kind == "chunk" and item.id in direct]
        failed = selection.rejections, selection.fallback, selection.error
        found = tuple(chosen), tuple(chunks), shown, *failed
        await self._record(events.Selection(self.session.trace_id, selection.method, *found))

    async def piece(self, text: str) -> None:
        """Pass on a piece of the answer; the whole answer is stored at the end."""
        await self._notify(events.AnswerChunk(self.session.trace_id, text))

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """Record the whole answer, and the end."""
        self._ended = True
        await self._notify(events.AnswerChunk(self.session.trace_id, "", end_of_stream=True))
        cited = dict.fromkeys([citation.document for citation in answer.citations])
        sources = tuple(cited or answer.context.documents.values())
        found = answer.text, answer.citations, answer.invented, reused, answer.truncated
        await self._record(
            events.Answered(self.session.trace_id, *found, answer.prompt_numbers),
            events.End(self.session.trace_id, self.clock(), sources, usage=answer.usage),
        )

    async def failed(self, error: BaseException) -> None:
        """Record the error that ended the query, once; a cancelled query stays incomplete."""
        if self._ended or isinstance(error, asyncio.CancelledError | GeneratorExit):
            return
        self._ended = True
        message, now = str(error) or type(error).__name__, self.clock()
        spent = self.meter.spent
        await self._record(events.End(self.session.trace_id, now, error=message, usage=spent))

    async def _record(self, *new: Event) -> None:
        self._unstored += new
        if self.listener is None and not isinstance(new[-1], events.Session | events.End):
            return
        try:
            if self.stored_trace_id is not None:
                await write(self.store, self._append, durable=False)
        except StorageError as error:
            self.stored_trace_id = None
            log.warning("trace %s is not stored to its end: %s", self.session.trace_id, error)
        self._unstored = []
        for event in new:
            await self._notify(event)

    def _append(self, transaction: Transaction) -> None:
        """Append what is not stored yet to the trace, unless it was deleted meanwhile."""
        id, first, last = self.session.trace_id, self._unstored[0], self._unstored[-1]
        if first is not self.session and not list(transaction.trace_events(trace_id=id)):
            return
        status = last.status if isinstance(last, events.End) else "incomplete"
        started_at = self.session.started_at.timestamp()
        summary = TraceSummary(id, status, self.session.mode, self.session.question, started_at)
        transaction.put_trace(summary, [*map(events.event_to_json, self._unstored)])
        if first is self.session:
            transaction.delete_traces(keep=self.keep)

    async def _notify(self, event: Event) -> None:
        if self.listener is None:
            return
        try:
            waiting = self.listener(event)
            if waiting is not None:
                await waiting
        except Exception:  # a user's own callback
            words = "a listener of trace %s failed and gets no more"
            log.warning(words, self.session.trace_id, exc_info=True)
            self.listener = None


async def replay(answer: Answer, recorder: Recorder) -> None:
    """Record the trace of a reused answer: what it was based on is still in the index."""
    context = answer.context
    await recorder.keywords_found(context.keywords)
    await recorder.retrieved(context.relations, context.chunks)
    await recorder.selected(EdgeSelection("all", context.relations), context)
    await recorder.piece(answer.text)
    await recorder.answered(answer, reused=True)


def numbered_items(context: Context, edges: Mapping[tuple[str, str], Edge]) -> list[Shown]:
    """The items of a context, numbered as in its prompt; relations have the ids of their edges."""
    found: list[Shown] = []
    for chunk in context.chunks:
        label = context.documents.get(chunk.document_id, chunk.document_id)
        span = chunk.start, chunk.end
        found.append(Shown(len(found) + 1, "chunk", chunk.id, label, (chunk.id,), "", *span))
    for entity in context.entities:
        name, text = entity.name, on_one_line(entity.description)
        found.append(Shown(len(found) + 1, "entity", name, name, entity.chunk_ids, text))
    for relation in context.relations:
        edge = edges.get((relation.source, relation.target))
        label = f"{relation.source} — {relation.predicate} → {relation.target}"
        text, id = on_one_line(relation.description), edge.id if edge else ""
        found.append(Shown(len(found) + 1, "relation", id, label, relation.chunk_ids, text))
    return found
