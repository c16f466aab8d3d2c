"""Makes changes visible: describes what they touch, embeds, and writes in one transaction."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from msgspec import structs

from lightrag_jsonl.core.aio import Result, in_thread
from lightrag_jsonl.core.errors import SettingsError
from lightrag_jsonl.core.telemetry import span
from lightrag_jsonl.core.types import BY_RULES, PERSON, Chunk, Failure, Kind
from lightrag_jsonl.indexing import merging
from lightrag_jsonl.indexing.bearers import DocumentMentions
from lightrag_jsonl.indexing.embedding import PassageEmbedder, TextsByKind, embedded_text
from lightrag_jsonl.indexing.incoming import IncomingDocument
from lightrag_jsonl.indexing.merging import (
    GRAPH_KINDS,
    GraphChange,
    GraphKey,
    GraphMerger,
    IndexChange,
)
from lightrag_jsonl.indexing.overrides import (
    HandValues,
    deleted_subjects,
    hand_values,
    mentions_to_merge_again,
)
from lightrag_jsonl.indexing.summaries import Describer, DueSummary
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    NextIds,
    RelationMentionRow,
    StoredChunk,
    document_position,
    purge_marks,
    stored_at,
)
from lightrag_jsonl.storage.status import failures_without_vector
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import StoreView, Transaction

CommitProgress: TypeAlias = Callable[[str, int, int], None]  # the step, items done, all items

PERSON_POSITION = 0  # of an edit by hand, so that it is cited first


@dataclass(frozen=True, slots=True)
class IndexWriter:
    """The one place for changes of what queries see.

    `settings` returns the parts that the index is built with, to be recorded. `lock_timeout` is the
    time in seconds to wait for another writing process.
    """

    store: Store
    describer: Describer
    embedder: PassageEmbedder
    relation_vectors: bool
    settings: Callable[[], Mapping[str, str]]
    lock_timeout: float
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Mapping[str, str]]:
        """The right to write, with the settings of the index: for one task of this instance, and for one
        process, at a time.

        `LockedError` after `lock_timeout`; `SettingsError` if another writer has meanwhile built
        the index with other parts.
        """
        process_lock = self.store.writer_lock(self.lock_timeout)
        async with self._lock:
            with ExitStack() as stack:
                await in_thread(stack.enter_context, process_lock)
                await self.embedder.load()
                recorded = await read(self.store, lambda view: view.settings())
                for name, value in self.settings().items():
                    if recorded.get(name, value) != value:
                        problem = (
                            f"{self.store.location} was built with {name} {recorded[name]!r}, "
                            f"not {value!r}"
                        )
                        if name in ("embedder", "dim"):
                            problem += ": open it with that embedder, or move it to another one with reembed"
                        raise SettingsError(problem, path=self.store.location)
                yield recorded

    async def write_alone(self, work: Callable[[Transaction], Result]) -> Result:
        """The result of work in a transaction of its own, with the right to write for it only."""
        async with self.exclusive():
            return await write(self.store, work)

    async def commit_alone(
        self,
        plan: Callable[[StoreView], IndexChange],
        *,
        meter: UsageMeter | None = None,
        deferred: set[GraphKey] | None = None,
    ) -> IndexChange:
        """`commit`, with the right to write for this plan only."""
        async with self.exclusive():
            return await self.commit(plan, meter=meter, deferred=deferred)

    async def commit(
        self,
        plan: Callable[[StoreView], IndexChange],
        *,
        meter: UsageMeter | None = None,
        deferred: set[GraphKey] | None = None,
        step: CommitProgress = lambda name, items_done, items_total: None,
    ) -> IndexChange:
        """Carry out a plan in one transaction, with descriptions and vectors; inside `exclusive`.

        Entities and relations in `deferred` get no summary; with `None`, nothing gets a summary.
        Failed summaries are added to `deferred`. `BudgetError` if a limit is reached on the way:
        then nothing was written.
        """

        def prepare(view: StoreView) -> tuple[IndexChange, list[DueSummary]]:
            change = plan(view)
            return change, self.describer.describe(view, change.graph, deferred)

        with span("lightrag_jsonl.commit") as open_span:
            step("merging", 0, 1)
            change, due = await read(self.store, prepare)
            step("merging", 1, 1)
            if deferred is not None and due:
                meter = meter or UsageMeter()
                deferred |= await self.describer.summarize(due, meter, partial(step, "summarizing"))
            texts = index_texts(change, with_relations=self.relation_vectors)
            await self.embedder.embed(texts, change, partial(step, "embedding"))
            step("writing", 0, 1)
            await write(self.store, partial(self._write, change), repeatable=True)
            step("writing", 1, 1)
            documents = len(change.documents)
            open_span.add(
                {"lightrag_jsonl.documents": documents, "lightrag_jsonl.summaries": len(due)}
            )
        return change

    async def embed_refused(self) -> list[Failure]:
        """Ask the embedder again for the vectors of refused texts; returns the repeated refusals."""
        texts = await read(self.store, refused_texts)
        if not any(texts.values()):
            return []
        change = IndexChange()
        await self.embedder.embed(texts, change, again=True)
        for kind, refusals in change.refusals.items():
            for row in refusals:
                del change.vectors[kind][row]
        if any(change.vectors.values()):
            await write(self.store, partial(self._write, change))
        return await read(self.store, partial(failures_without_vector, change.refusals))

    def _write(self, change: IndexChange, writer: Transaction) -> None:
        graph = change.graph
        writer.delete_pending(change.pending)  # first, so that their pages of the file serve again
        if change.cached_vectors:
            writer.delete_cached_vectors(change.cached_vectors)
        if change.old_documents:
            writer.delete_documents(change.old_documents)
        for kind in GRAPH_KINDS:
            writer.put_graph_rows(kind, list(graph.rows(kind).values()))
            if gone_rows := graph.rows(kind, gone=True):
                writer.delete_graph_rows(kind, list(gone_rows))
            unstated = [id for id, row in graph.rows(kind).items() if not row.states_something]
            if unstated:
                writer.delete_vectors(kind, writer.vector_digests(kind, unstated))
        if change.documents:
            writer.put_documents(change.documents)
            if writer.purge_marks():
                for document, pages in change.documents:
                    writer.delete_purge_marks(purge_marks(document.id, pages))
        if chunks := [*change.chunks, *change.read_again]:
            writer.put_chunks(chunks)
        if change.overrides:
            writer.put_overrides(change.overrides)
        if graph.entity_mentions or graph.relation_mentions:
            writer.put_mentions(graph.entity_mentions, graph.relation_mentions)
        for kind, vectors in change.vectors.items():
            writer.put_vectors(kind, vectors)
        writer.put_settings({**self.settings(), **change.settings})
        if change.aliases is not None:
            writer.put_aliases(change.aliases)
        if change.rebuilt:
            writer.rebuild_terms()
        if gone_ids := set(change.replaced) - {document.id for document, _ in change.documents}:
            writer.outdate_answers(gone_ids)
        for rewritten in change.rewritten_states:
            writer.rewrite_state(rewritten.state, rewritten.rows_by_table)
        if change.purge is not None:
            change.purged = writer.purge(change.purge)
            writer.purge_jobs()
            writer.put_purge_marks(change.purge_marks)


# ── texts for vectors ───────────────────────────────────────────────────────────


def index_texts(change: IndexChange, *, with_relations: bool) -> TextsByKind:
    """The texts of the rows in need of vectors: of entities and relations only those that state something."""
    texts: dict[Kind, Mapping[int, str]] = {"chunk": change.chunk_texts}
    for kind in GRAPH_KINDS if with_relations else GRAPH_KINDS[:1]:
        rows = change.graph.rows(kind).items()
        texts[kind] = {id: embedded_text(row) for id, row in rows if row.states_something}
    return texts


def refused_texts(view: StoreView) -> TextsByKind:
    """The texts of the rows without a vector, as refused by the embedder."""
    entities = view.entity_rows(ids=view.refused_rows("entity"))
    relations = view.relation_rows(ids=view.refused_rows("relation"))
    chunks = view.chunks(view.refused_rows("chunk"))
    return {
        "chunk": {row: chunk.text for row, chunk in chunks.items()},
        "entity": {row: embedded_text(entity) for row, entity in entities.items()},
        "relation": {row: embedded_text(relation) for row, relation in relations.items()},
    }


def all_texts(with_relations: bool, view: StoreView) -> TextsByKind:
    """The texts of all rows; of relations also if only earlier options asked for the vectors."""
    graph = GraphChange(view.entity_rows(), view.relation_rows())
    chunks = view.chunks()
    texts = {row: chunk.text for row, chunk in chunks.items()}
    has_vectors = bool(view.vector_digests("relation", graph.relations))
    change = IndexChange(graph, chunk_texts=texts)
    return index_texts(change, with_relations=with_relations or has_vectors)


# ── plan: documents come and go ─────────────────────────────────────────────────


def plan_documents(
    documents: Sequence[IncomingDocument], delete: Collection[str], view: StoreView
) -> IndexChange:
    """Make documents visible in place of earlier versions, and delete others."""
    ids = view.next_ids()
    aliases = view.aliases()
    targets = aliases.targets
    change = _document_change(documents, delete, ids, view)
    stored_overrides = view.overrides()
    old_chunks = set(change.old_chunks)
    overrides = {row: stored_overrides[row] for row in stored_overrides if row not in old_chunks}
    overrides |= change.overrides
    values = hand_values(overrides.values(), targets)
    merger = GraphMerger(view, ids, targets, values)
    changed_chunks = {*change.old_chunks, *[chunk.row for chunk in change.read_again]}
    if changed_chunks:
        merger.remove(
            view.entity_mentions(chunks=changed_chunks),
            view.relation_mentions(chunks=changed_chunks),
        )
    if documents:
        entities, relations, times = _mentions(documents, merger, change, ids, view, aliases.apart)
    if overrides != stored_overrides:
        _apply_hand_values(
            merger,
            view,
            before=hand_values(stored_overrides.values(), targets),
            after=values,
            targets=targets,
            without=changed_chunks | merger.change.without,
        )
    if documents:
        merger.add(entities, relations, times)
    change.graph = merger.finish(aliases.displays)
    return change


def _document_change(
    documents: Sequence[IncomingDocument], delete: Collection[str], ids: NextIds, view: StoreView
) -> IndexChange:
    """The documents and chunks of the plan: new, read again, and old."""
    change = IndexChange(replaced=list(delete))
    if delete:
        change.pending = view.pending_rows(delete)
    for document in documents:
        if document.rows:
            # Of a document that was only retried, a newer version may be pending: it is kept.
            change.read_again += _better_chunks(document, view)
        else:
            change.replaced.append(document.document.id)
            if document.pending_row is not None:
                change.pending.append(document.pending_row)
            _add_document(change, document, ids)
    change.old_documents = [document.row for document in view.documents(change.replaced)]
    if change.old_documents:
        change.old_chunks = list(view.chunks(documents=change.replaced))
    return change


def _add_document(change: IndexChange, document: IncomingDocument, ids: NextIds) -> None:
    """Give a new document and the chunks their row ids."""
    stored_document = structs.replace(document.document, row=ids.documents)
    ids.documents += 1
    change.documents.append((stored_document, document.pages))
    for chunk, extraction in zip(document.chunks, document.extractions, strict=True):
        stored_chunk = StoredChunk(
            row=ids.chunks,
            document=stored_document.row,
            chunk=chunk,
            created_at=stored_document.created_at,
            extraction=extraction,
        )
        change.chunks.append(stored_chunk)
        change.chunk_texts[stored_chunk.row] = chunk.text
        if document.override is not None:
            change.overrides[stored_chunk.row] = document.override
        ids.chunks += 1


def _better_chunks(document: IncomingDocument, view: StoreView) -> Iterator[StoredChunk]:
    """The chunks of a retried document with a better result than before; others stay as they are."""
    reports = {report.row: report for report in view.chunk_reports([document.document.id])}
    for row, chunk, extraction in zip(
        document.rows, document.chunks, document.extractions, strict=True
    ):
        before = reports[row]
        is_hardly_read = before.state == "failed" or before.extractor.startswith(BY_RULES)
        is_better = is_hardly_read and extraction.state != "failed"
        if is_better or not extraction.unfinished:
            usage = before.report.usage + extraction.usage
            yield StoredChunk(
                row=row,
                document=document.document.row,
                chunk=chunk,
                created_at=document.document.created_at,
                extraction=replace(extraction, usage=usage),
            )


def _apply_hand_values(
    merger: GraphMerger,
    view: StoreView,
    *,
    before: HandValues,
    after: HandValues,
    targets: Mapping[str, str],
    without: Collection[int],
) -> None:
    """Merge again the mentions of deleted and restored subjects, and touch all changed subjects."""
    entity_mentions, relation_mentions = mentions_to_merge_again(
        view,
        deleted_subjects(before) ^ deleted_subjects(after),
        targets,
        without=without,
    )
    merger.remove(entity_mentions, relation_mentions, rows_go=True)
    subjects = {*before, *after}
    merger.touch({subject for subject in subjects if before.get(subject) != after.get(subject)})
    created = merging.stored_times(view, entity_mentions, relation_mentions)
    merger.add(entity_mentions, relation_mentions, created)


def _mentions(
    documents: Sequence[IncomingDocument],
    merger: GraphMerger,
    change: IndexChange,
    ids: NextIds,
    view: StoreView,
    apart: Collection[str],
) -> tuple[list[EntityMentionRow], list[RelationMentionRow], dict[int, float]]:
    """The mentions of entities and of relations in chunks that are new or read again, and the time of each chunk.

    Names are joined to bearers in each document, in its stored chunks too, but for those with keys in `apart`.
    """
    starts = {source.id: document_position(source.id, source.document.date) for source in documents}
    mentions_by_document: dict[int, DocumentMentions] = defaultdict(DocumentMentions)
    entity_mentions: list[EntityMentionRow] = []
    relation_mentions: list[RelationMentionRow] = []
    created: dict[int, float] = {}
    for stored in (*change.chunks, *change.read_again):
        by_hand = stored.extraction.extractor == PERSON
        position = starts[stored.chunk.document_id] + stored.chunk.index
        number = partial(
            merging.mention_rows,
            chunk=stored.row,
            chunk_position=PERSON_POSITION if by_hand else position,
        )
        chunk_entities = number(stored.extraction.entities, first_id=ids.entity_mentions)
        chunk_relations = number(stored.extraction.relations, first_id=ids.relation_mentions)
        ids.entity_mentions += len(chunk_entities)
        ids.relation_mentions += len(chunk_relations)
        created[stored.row] = stored.created_at
        if by_hand:
            entity_mentions += chunk_entities
            relation_mentions += chunk_relations
        else:
            mentions_by_document[stored.document].add(
                [stored.chunk.text], chunk_entities, chunk_relations
            )
    read_again = {stored.document: stored.chunk.document_id for stored in change.read_again}
    for document, mentions in mentions_by_document.items():
        if document in read_again:
            chunks = view.chunks(documents=[read_again[document]])
            joined = _joined_with_stored(mentions, chunks, created, merger, view, apart)
        else:
            joined = mentions.with_bearers(apart)
        entity_mentions += joined.entities
        relation_mentions += joined.relations
    return entity_mentions, relation_mentions, created


def _joined_with_stored(
    mentions: DocumentMentions,
    chunks: Mapping[int, Chunk],
    created: dict[int, float],
    merger: GraphMerger,
    view: StoreView,
    apart: Collection[str],
) -> DocumentMentions:
    """The mentions of a document of which some `chunks` were read again, by their bearers; with those of its other
    chunks that now have another bearer. The times of these chunks are added to `created`.
    """
    earlier_chunks = {row: chunk for row, chunk in chunks.items() if row not in created}
    mentions.add_stored(view, earlier_chunks)
    joined = mentions.with_bearers(apart)
    changed = mentions.chunks_changed_in(joined) & earlier_chunks.keys()
    if changed:
        merger.remove(*mentions.of_chunks(changed))
    created |= {row: stored_at(chunk) for row, chunk in earlier_chunks.items()}
    unchanged = earlier_chunks.keys() - changed
    return DocumentMentions(*joined.of_chunks({*chunks} - unchanged))


# ── plans: the same mentions again ──────────────────────────────────────────────


def plan_summaries(view: StoreView) -> IndexChange:
    """Describe all entities and relations again, so that all due summaries are written."""
    graph = GraphChange(view.entity_rows(), view.relation_rows())
    for entity_mention in view.entity_mentions():
        graph.last_mentions["entity", entity_mention.owner or 0] = entity_mention.id
    for relation_mention in view.relation_mentions():
        graph.last_mentions["relation", relation_mention.owner or 0] = relation_mention.id
    return IndexChange(graph)


def plan_rebuilding(view: StoreView) -> IndexChange:
    """Merge all mentions again; the summaries that are due then are asked for again."""
    chunks = view.chunks()
    graph = merging.remerged(
        view,
        entities=view.entity_rows(),
        relations=view.relation_rows(),
        entity_mentions=view.entity_mentions(),
        relation_mentions=view.relation_mentions(),
    )
    graph.without.update(chunks)  # stored mentions do not count beside the added ones
    return IndexChange(
        graph=graph,
        chunk_texts={row: chunk.text for row, chunk in chunks.items()},
        rebuilt=True,
    )
