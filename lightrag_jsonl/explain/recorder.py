"""Records how a question is answered: makes the events, and stores each as it happens."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime

from lightrag_jsonl.candidates import Edge, SelectedEdge, candidate_edges
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.explain.events import (
    AnswerChunk,
    Answered,
    End,
    Event,
    KeywordsFound,
    Retrieval,
    Selection,
    Session,
    Shown,
)
from lightrag_jsonl.explain.prov import WITH_CHUNKS
from lightrag_jsonl.explain.trace import event_to_json
from lightrag_jsonl.querying.edges import EdgeSelection
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import traces
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.types import Answer, Chunk, Context, Keywords, Relation

Listener = Callable[[Event], Awaitable[None] | None]

log = logging.getLogger(__name__)


class Recorder:
    """Records one query (the `Observer` of the query pipeline).

    Events go to the writing thread as they happen. With a `listener`, each event is on disk before
    the listener gets it; without one, only the end is waited for. If a listener raises, that is
    logged once and it gets no further events. If an event cannot be stored, that is logged, no
    further ones are stored, and the trace stays incomplete. The answer is given in any case.
    """

    def __init__(
        self,
        database: Database,
        session: Session,
        spending: Spending,
        *,
        listener: Listener | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._session = session
        self._spending = spending
        self._listener = listener
        self._clock = clock
        self._position = 0

        self._by_labels: dict[tuple[str, str, str], Edge] = {}
        self._retrieved: frozenset[str] = frozenset()
        self._sources: tuple[str, ...] = ()
        self._ended = False
        self._lost = False  # whether an event could not be stored

    @property
    def trace_id(self) -> str:
        """The id under which the trace is stored."""
        return self._session.trace_id

    @property
    def generation(self) -> int:
        """The number of the index's last change when the question was asked."""
        return self._session.generation

    async def begin(self) -> None:
        """Store that the question was asked, before anything is paid for.

        Raises `StorageError` if there is a listener and this cannot be stored.
        """
        session = self._session
        await self._store(
            session,
            lambda connection: traces.begin(
                connection,
                session.trace_id,
                mode=session.mode,
                question=session.question,
                at=session.started_at.timestamp(),
                event=event_to_json(session),
            ),
            needed=True,
        )

    # ── what the pipeline tells ─────────────────────────────────────────────────

    async def keywords_found(self, keywords: Keywords) -> None:
        """Record the keywords."""
        await self._add(KeywordsFound(self.trace_id, keywords))

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Record everything that was found, best first."""
        edges = candidate_edges(relations)
        self._by_labels = {edge.labels: edge for edge in edges}
        names = tuple(chunk.id for chunk in chunks)
        self._retrieved = frozenset(names)
        await self._add(Retrieval(self.trace_id, self._session.mode, edges, names))

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """Record what was chosen, and what the model reads."""
        names = (chunk.id for chunk in context.chunks if chunk.id in self._retrieved)
        self._sources = tuple(
            dict.fromkeys(
                context.documents.get(chunk.document_id, chunk.document_id)
                for chunk in context.chunks
            )
        )
        await self._add(
            Selection(
                self.trace_id,
                selection.method,
                tuple(self._selected_edges(selection)),
                tuple(names) if context.mode in WITH_CHUNKS else (),
                tuple(self._shown(context)),
                selection.rejections,
                selection.fallback,
                error=selection.error,
            )
        )

    async def piece(self, text: str) -> None:
        """Pass on a piece of the answer without storing it; the whole answer is stored at the end."""
        await self._tell(AnswerChunk(self.trace_id, text))

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """Record the whole answer, and the end."""
        await self._tell(AnswerChunk(self.trace_id, "", end_of_stream=True))
        told = answer.text, answer.citations, answer.invented, answer.usage
        await self._add(Answered(self.trace_id, *told, reused, answer.truncated))
        cited = tuple(dict.fromkeys(citation.document for citation in answer.citations))
        await self._end(End(self.trace_id, self._clock(), cited or self._sources))

    async def failed(self, error: BaseException) -> None:
        """Record the error that ended the query; a cancelled query stays incomplete."""
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            return
        text = str(error) or type(error).__name__
        spent = self._spending.spent
        await self._end(End(self.trace_id, self._clock(), (), text, spent))

    # ── storing and telling ─────────────────────────────────────────────────────

    def _edge(self, relation: Relation) -> Edge:
        return self._by_labels[(relation.source, relation.predicate, relation.target)]

    def _selected_edges(self, selection: EdgeSelection) -> Iterator[SelectedEdge]:
        for relation, reason in zip(selection.relations, selection.reasons, strict=True):
            edge = self._edge(relation)
            yield SelectedEdge(edge, reason, None if reason else edge.score)

    def _shown(self, context: Context) -> Iterator[Shown]:
        number = itertools.count(1)
        for entity in context.entities:
            name, text = entity.name, _line(entity.description)
            yield Shown(next(number), "entity", name, name, entity.chunk_ids, text)
        for relation in context.relations:
            edge, text = self._edge(relation), _line(relation.description)
            label = f"{edge.source} — {edge.predicate} → {edge.target}"
            yield Shown(next(number), "relation", edge.id, label, edge.chunk_ids, text)
        for chunk in context.chunks:
            label = context.documents.get(chunk.document_id, chunk.document_id)
            place = chunk.start, chunk.end
            yield Shown(next(number), "chunk", chunk.id, label, (chunk.id,), "", *place)

    async def _add(self, event: Event) -> None:
        self._position += 1
        position, id = self._position, self.trace_id
        await self._store(
            event,
            lambda connection: traces.add(connection, id, position, event_to_json(event)),
            single=True,
        )

    async def _end(self, event: End) -> None:
        if self._ended:
            return
        self._ended = True
        self._position += 1
        position, id = self._position, self.trace_id
        await self._store(
            event,
            lambda connection: traces.end(
                connection, id, position, event_to_json(event), event.status
            ),
            wait=True,
        )

    async def _store(
        self,
        event: Event,
        job: Callable[..., None],
        *,
        needed: bool = False,
        wait: bool = False,
        single: bool = False,
    ) -> None:
        if not self._database.takes_notes():
            await self._tell(event)
            return
        written = self._database.submit(self._unless_lost(job), flush=False, single=single)
        written.add_done_callback(self._note_loss)
        if wait or self._listener is not None:
            try:
                await asyncio.wrap_future(written)
            except StorageError:
                if needed:
                    raise
        await self._tell(event)

    def _unless_lost(self, job: Callable[..., None]) -> Callable[[sqlite3.Connection], None]:
        return lambda connection: None if self._lost else job(connection)

    def _note_loss(self, written: Future[None]) -> None:
        error = written.exception()
        if error is not None and not self._lost:
            self._lost = True
            log.warning("trace %s is not stored to its end: %s", self.trace_id, error)

    async def _tell(self, event: Event) -> None:
        if self._listener is None:
            return
        try:
            told = self._listener(event)
            if told is not None:
                await told
        except Exception:  # a user's own callback
            log.warning(
                "a listener of trace %s failed and is no longer told", self.trace_id, exc_info=True
            )
            self._listener = None


def _line(text: str) -> str:
    """A description as the prompt shows it: on one line."""
    return " ".join(text.split())
