"""Records the steps of a query as events, for the store and for a listener."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import TypeAlias

from lightrag_jsonl.core.answers import Answer, Context, Keywords, Reading
from lightrag_jsonl.core.edges import Edge, EdgeSelection, SelectedEdge, candidate_edges
from lightrag_jsonl.core.errors import StorageError, error_text
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.protocols import QueryObserver
from lightrag_jsonl.core.types import Chunk, Relation, TraceSummary
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import Transaction
from lightrag_jsonl.text.strings import on_one_line
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.events import Event, PromptItem

Listener: TypeAlias = Callable[[Event], Awaitable[None] | None]

log = logging.getLogger(__name__)


@dataclass
class Recorder(QueryObserver):
    """Records one query (the `QueryObserver` of the query pipeline).

    With a `listener`, each event is stored before the listener is called; without a listener, all
    events but the question are stored at the end. A failure of the listener or of the store is
    logged once and ends only the recording there: the query goes on.
    """

    store: Store
    session: events.Session
    meter: UsageMeter
    _: KW_ONLY
    listener: Listener | None
    clock: Callable[[], datetime]
    keep: int  # queries that stay recorded, the newest
    generation: int = 0  # the number of the last change of the index before the answer
    stored_trace_id: str | None = None  # from the beginning until an event cannot be stored
    _edges: dict[tuple[str, str], Edge] = field(default_factory=dict)
    _retrieved: tuple[str, ...] = ()
    _unstored: list[Event] = field(default_factory=list)
    _ended: bool = False

    async def begin(self) -> None:
        """Record the question, before anything is paid for."""
        self.generation = self.session.generation
        is_stored = self.keep and not self.store.read_only
        self.stored_trace_id = self.session.trace_id if is_stored else None
        await self._record(self.session)

    async def keywords_found(self, keywords: Keywords) -> None:
        """Record the keywords."""
        await self._record(events.KeywordsFound(self.session.trace_id, keywords))

    async def reading(self, chunks_done: int, chunks_known: int) -> None:
        """Pass on how far the reading is."""
        await self._notify(events.ReadingProgress(self.session.trace_id, chunks_done, chunks_known))

    async def chunks_read(self, reading: Reading) -> None:
        """Record what was read; the answer is about the state of the index after it."""
        self.generation = await read(self.store, lambda view: view.generation)
        await self._record(events.ChunksRead(self.session.trace_id, reading))

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Record all retrieved relations and chunks, best first."""
        edges = candidate_edges(relations)
        self._edges = {(edge.source, edge.target): edge for edge in edges}
        self._retrieved = tuple([chunk.id for chunk in chunks])
        await self._record(
            events.Retrieval(
                trace_id=self.session.trace_id,
                mode=self.session.mode,
                candidates=edges,
                retrieved_chunks=self._retrieved,
            )
        )

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """Record the chosen edges and chunks, and all items of the prompt."""
        selected_edges: list[SelectedEdge] = []
        for relation in context.relations:
            edge = self._edges[relation.source, relation.target]
            reason = selection.reasons.get((relation.source, relation.target))
            selected_edges.append(SelectedEdge(edge, reason, None if reason else edge.score))
        prompt = context.prompt  # in which an entity of which nothing is said has no line
        items = numbered_items(context, self._edges)
        items = [item for item in items if item.kind != "entity" or f"\n[{item.number}] " in prompt]
        retrieved = self._retrieved if MODES[context.mode].chunks else ()
        chunk_ids = [item.id for item in items if item.kind == "chunk" and item.id in retrieved]
        await self._record(
            events.SelectionMade(
                trace_id=self.session.trace_id,
                method=selection.method,
                selected=tuple(selected_edges),
                selected_chunks=tuple(chunk_ids),
                shown=tuple(items),
                rejections=selection.rejections,
                fallback=selection.fallback,
                selection_error=selection.error,
            )
        )

    async def piece(self, text: str) -> None:
        """Pass on a piece of the answer; the whole answer is stored at the end."""
        await self._notify(events.AnswerChunk(self.session.trace_id, text))

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """Record the whole answer, and the end."""
        self._ended = True
        await self._notify(events.AnswerChunk(self.session.trace_id, "", end_of_stream=True))
        cited_titles = dict.fromkeys([citation.document for citation in answer.citations])
        sources = tuple(cited_titles or answer.context.documents.values())
        answered = events.Answered(
            trace_id=self.session.trace_id,
            answer=answer.text,
            citations=answer.citations,
            invented=answer.invented,
            reused=reused,
            truncated=answer.truncated,
            prompt_numbers=answer.prompt_numbers,
            claims=answer.claims,
            uncited=answer.uncited,
        )
        end = events.End(
            trace_id=self.session.trace_id,
            ended_at=self.clock(),
            sources=sources,
            usage=answer.usage,
        )
        await self._record(answered, end)

    async def failed(self, error: BaseException) -> None:
        """Record the error at the end of the query, once; a cancelled query stays incomplete."""
        if self._ended or isinstance(error, asyncio.CancelledError | GeneratorExit):
            return
        self._ended = True
        end = events.End(
            trace_id=self.session.trace_id,
            ended_at=self.clock(),
            error=error_text(error) or type(error).__name__,
            usage=self.meter.spent,
        )
        await self._record(end)

    async def _record(self, *recorded: Event) -> None:
        """Pass events on to the store (without a listener, at the end only) and to the listener."""
        self._unstored += recorded
        if self.listener is None and not isinstance(recorded[-1], events.Session | events.End):
            return
        try:
            if self.stored_trace_id is not None:
                await write(self.store, self._append, durable=False)
        except StorageError as error:
            self.stored_trace_id = None
            log.warning("trace %s is not stored to its end: %s", self.session.trace_id, error)
        self._unstored = []
        for event in recorded:
            await self._notify(event)

    def _append(self, transaction: Transaction) -> None:
        """Append the new events to the trace, unless the trace was deleted meanwhile."""
        id = self.session.trace_id
        begins = self._unstored[0] is self.session
        if not begins and not list(transaction.trace_events(trace_id=id)):
            return
        last_event = self._unstored[-1]
        summary = TraceSummary(
            id=id,
            status=last_event.status if isinstance(last_event, events.End) else "incomplete",
            mode=self.session.mode,
            question=self.session.question,
            started_at=self.session.started_at.timestamp(),
        )
        transaction.put_trace(summary, [events.event_to_json(event) for event in self._unstored])
        if begins:
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
    """Record the trace of a reused answer, whose context is still in the index."""
    context = answer.context
    await recorder.keywords_found(context.keywords)
    await recorder.retrieved(context.relations, context.chunks)
    await recorder.selected(EdgeSelection("all", context.relations), context)
    await recorder.piece(answer.text)
    await recorder.answered(answer, reused=True)


def numbered_items(context: Context, edges: Mapping[tuple[str, str], Edge]) -> list[PromptItem]:
    """The items of a context, numbered as in the prompt; a relation has the id of the edge."""
    items: list[PromptItem] = []
    for chunk in context.chunks:
        item = PromptItem(
            number=len(items) + 1,
            kind="chunk",
            id=chunk.id,
            label=context.documents.get(chunk.document_id, chunk.document_id),
            chunk_ids=(chunk.id,),
            start=chunk.start,
            end=chunk.end,
        )
        items.append(item)
    for entity in context.entities:
        item = PromptItem(
            number=len(items) + 1,
            kind="entity",
            id=entity.name,
            label=entity.name,
            chunk_ids=entity.chunk_ids,
            text=on_one_line(entity.description),
        )
        items.append(item)
    for relation in context.relations:
        edge = edges.get((relation.source, relation.target))
        item = PromptItem(
            number=len(items) + 1,
            kind="relation",
            id=edge.id if edge else "",
            label=f"{relation.source} — {relation.predicate} → {relation.target}",
            chunk_ids=relation.chunk_ids,
            text=on_one_line(relation.description),
        )
        items.append(item)
    for listed in context.listing.items if context.listing else ():
        item = PromptItem(
            number=len(items) + 1,
            kind=listed.kind,
            id=listed.chunk_id if listed.kind == "chunk" else listed.name,
            label=listed.name,
            chunk_ids=(listed.chunk_id,),
        )
        items.append(item)
    return items
