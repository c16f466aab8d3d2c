"""Makes changes visible: describes what they touch, embeds, and writes in one transaction."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from operator import attrgetter

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import digest
from lightrag_jsonl.core.types import PERSON, Failure, Kind
from lightrag_jsonl.indexing import aliases, merging
from lightrag_jsonl.indexing.claims import (
    Edits,
    edits_of,
    graph_keys,
    is_about,
    mentions_of,
    refolded,
    stored_claims,
    stored_edits,
)
from lightrag_jsonl.indexing.embedding import PassageEmbedder, embedded_text
from lightrag_jsonl.indexing.embedding import TextsByKind as Texts
from lightrag_jsonl.indexing.incoming import IncomingDocument as ExtractedDocument
from lightrag_jsonl.indexing.merging import (
    GRAPH_KINDS,
    GraphChange,
    GraphKey,
    GraphMerger,
    IndexChange,
)
from lightrag_jsonl.indexing.summaries import Describer, DueSummary
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.rows import (
    Aliases,
    EntityMentionRow,
    NextIds,
    RelationMentionRow,
    StoredChunk,
)
from lightrag_jsonl.storage.status import failures_without_vector
from lightrag_jsonl.storage.store import Store, read, write
from lightrag_jsonl.storage.views import StoreView, Transaction

Step = Callable[[str, int, int], None]  # the step, items done, items known

CHUNK_BITS = 18  # of a position: room for the index of a chunk in its document
DAY_SHIFT = 13  # bits of a position: room for documents of one day


@dataclass(frozen=True, slots=True)
class IndexWriter:
    """The one place that changes what queries see; used by one writer at a time.

    `settings` returns what the index is built with, to be recorded.
    """

    store: Store
    describer: Describer
    embedder: PassageEmbedder
    relation_vectors: bool
    settings: Callable[[], Mapping[str, str]]

    async def commit(
        self,
        plan: Callable[[StoreView], IndexChange],
        *,
        meter: UsageMeter | None = None,
        deferred: set[GraphKey] | None = None,
        step: Step = lambda step, done, known: None,
    ) -> IndexChange:
        """Carry out a plan in one transaction, with descriptions and vectors.

        No summary is written of the entities and relations that are `deferred`, and none at all if
        that is None; those that fail are added to it. `BudgetError` if a limit is reached on the
        way: then nothing was written.
        """

        def prepare(view: StoreView) -> tuple[IndexChange, list[DueSummary]]:
            change = plan(view)
            return change, self.describer.describe(view, change.graph, deferred)

        step("merging", 0, 1)
        change, due = await read(self.store, prepare)
        step("merging", 1, 1)
        if deferred is not None and due:
            meter = meter or UsageMeter()
            deferred |= await self.describer.summarize(due, meter, partial(step, "summarizing"))
        texts = index_texts(change, with_relations=self.relation_vectors)
        await self.embedder.embed(texts, change, partial(step, "embedding"))
        step("writing", 0, 1)
        await write(self.store, partial(self._write, change))
        step("writing", 1, 1)
        return change

    async def embed_refused(self) -> list[Failure]:
        """Ask the embedder again for what it refused; returns what it still refuses."""
        texts = await read(self.store, refused_texts)
        if not any(texts.values()):
            return []
        reasons, vectors = await self.embedder.embed_refused(texts)
        if any(vectors.values()):
            await write(self.store, partial(_put_vectors, vectors))
        return await read(self.store, partial(failures_without_vector, reasons))

    def _write(self, change: IndexChange, writer: Transaction) -> None:
        graph = change.graph
        writer.delete_documents(change.old_documents)
        for kind in GRAPH_KINDS:
            writer.put_graph_rows(kind, list(graph.rows(kind).values()))
        for document, pages in change.documents:
            writer.put_document(document, pages)
        writer.put_chunks([*change.chunks, *change.read_again])
        writer.put_mentions(graph.entity_mentions, graph.relation_mentions)
        _put_vectors(change.vectors, writer)
        writer.delete_graph_rows("relation", list(graph.rows("relation", gone=True)))
        writer.delete_graph_rows("entity", list(graph.rows("entity", gone=True)))
        writer.delete_pending(change.pending)
        writer.delete_cached_vectors(change.cached_vectors)
        writer.put_settings(self.settings())
        if change.aliases is not None:
            writer.put_aliases(change.aliases)
        if change.rebuilt:
            writer.rebuild_terms()
        if change.purge is not None:
            change.purged = writer.purge(change.purge)


def index_texts(change: IndexChange, *, with_relations: bool) -> Texts:
    """The texts of the rows that need vectors."""
    texts: dict[Kind, Mapping[int, str]] = {"chunk": change.chunk_texts}
    for kind in GRAPH_KINDS if with_relations else GRAPH_KINDS[:1]:
        texts[kind] = {id: embedded_text(row) for id, row in change.graph.rows(kind).items()}
    return texts


def _put_vectors(
    vectors: Mapping[Kind, Mapping[int, tuple[bytes, Vectors]]], writer: Transaction
) -> None:
    for kind, rows in vectors.items():
        writer.put_vectors(kind, rows)


def refused_texts(view: StoreView) -> Texts:
    """The texts of the rows that have no vector, since the embedder refused them."""
    entities = view.entity_rows(ids=view.refused_rows("entity"))
    relations = view.relation_rows(ids=view.refused_rows("relation"))
    chunks = view.chunks(view.refused_rows("chunk"))
    return {
        "chunk": {row: chunk.text for row, chunk in chunks.items()},
        "entity": {row: embedded_text(entity) for row, entity in entities.items()},
        "relation": {row: embedded_text(relation) for row, relation in relations.items()},
    }


def all_texts(with_relations: bool, view: StoreView) -> Texts:
    """The texts of all rows; those of relations also if they have vectors although they need none."""
    graph = GraphChange(view.entity_rows(), view.relation_rows())
    chunks = view.chunks()
    texts = {row: chunk.text for row, chunk in chunks.items()}
    has_vectors = bool(view.vector_digests("relation", graph.relations))
    change = IndexChange(graph, chunk_texts=texts)
    return index_texts(change, with_relations=with_relations or has_vectors)


# ── plans ───────────────────────────────────────────────────────────────────────


def plan_documents(
    documents: Sequence[ExtractedDocument], delete: Collection[str], view: StoreView
) -> IndexChange:
    """Make documents visible, replacing earlier versions, and delete others."""
    known, ids = view.aliases(), view.next_ids()
    change = IndexChange(pending=list(delete))
    for one in documents:
        change.read_again += _read_again(view, one) if one.rows else ()
        if not one.rows:
            change.pending.append(one.document.id)
            _number(change, one, ids)
    # of a document that was only retried, a newer version may be pending: it is kept
    change.old_documents = list(map(attrgetter("row"), view.documents(change.pending)))
    change.old_chunks = list(view.chunks(documents=change.pending))
    targets = aliases.targets(known)
    before, edits = stored_edits(view, targets), _edits_after(change, view, targets)
    merger = GraphMerger(view, ids, targets, edits)
    gone = {*change.old_chunks, *map(attrgetter("row"), change.read_again)}
    if gone:
        merger.remove(view.entity_mentions(chunks=gone), view.relation_mentions(chunks=gone))
    if before != edits:
        again = refolded(view, before, edits, targets, without=gone)
        merger.remove(*again, rows_go=True)
        merger.touch({key for key in {*before, *edits} if before.get(key) != edits.get(key)})
        merger.add(*again, merging.stored_times(view, *again))
    entities: list[EntityMentionRow] = []
    relations: list[RelationMentionRow] = []
    created: dict[int, float] = {}
    dates = {one.document.id: one.document.date for one in documents}
    for stored in (*change.chunks, *change.read_again):
        position = (_rank(stored.chunk.document_id, dates) << CHUNK_BITS) + stored.chunk.index
        if stored.extraction.extractor == PERSON:
            position = 0  # so that it is cited first
        found = merging.mention_rows(stored.extraction, stored.row, position, ids)
        entities += found[0]
        relations += found[1]
        created[stored.row] = stored.created_at
    merger.add(entities, relations, created)
    change.graph = merger.finish(known.displays)
    return change


def _edits_after(change: IndexChange, view: StoreView, targets: Mapping[str, str]) -> Edits:
    """What people changed, once the old chunks are gone and the new ones are there."""
    claims = stored_claims(view, change.old_chunks)
    for new in change.chunks:
        if new.extraction.extractor == PERSON:
            at, found = round(new.created_at, 6), new.extraction
            claims += [(at, new.chunk.id, one) for one in found.entities]
            claims += [(at, new.chunk.id, other) for other in found.relations]
    return edits_of(claims, targets)


def _rank(document_id: str, dates: Mapping[str, str | None]) -> int:
    """The place of a document among all others, whenever they are inserted: by its date ("2003",
    "2003-05", "2003-05-17…"), then by its id; without a date after all others.
    """
    number = int(digest(document_id)[:8], 16)
    try:
        day = date.fromisoformat(f"{dates.get(document_id)}-01-01"[:10]).toordinal()
    except ValueError:
        return ((date.max.toordinal() + 1) << DAY_SHIFT) + number
    return (day << DAY_SHIFT) + (number >> (32 - DAY_SHIFT))


def _number(change: IndexChange, one: ExtractedDocument, ids: NextIds) -> None:
    """Give a new document and its chunks their row ids."""
    document = replace(one.document, row=ids.documents)
    ids.documents += 1
    change.documents.append((document, one.pages))
    created_at = document.created_at
    for chunk, extraction in zip(one.chunks, one.extractions, strict=True):
        stored = StoredChunk(ids.chunks, document.row, chunk, created_at, extraction)
        change.chunks.append(stored)
        change.chunk_texts[ids.chunks] = chunk.text
        ids.chunks += 1


def _read_again(view: StoreView, one: ExtractedDocument) -> Iterator[StoredChunk]:
    """The chunks of a retried document that were read better than before; others stay as they are."""
    reports = {report.row: report for report in view.chunk_reports([one.document.id])}
    for row, chunk, extraction in zip(one.rows, one.chunks, one.extractions, strict=True):
        before = reports[row]
        in_part = before.state == "failed" and extraction.state != "failed"
        if in_part or not extraction.unfinished:
            extraction = replace(extraction, usage=before.report.usage + extraction.usage)
            yield StoredChunk(row, one.document.row, chunk, one.document.created_at, extraction)


def plan_renaming(new_aliases: Callable[[StoreView], Aliases], view: StoreView) -> IndexChange:
    """Change which names stand for which entity; only the mentions of these are merged anew."""
    before, after = view.aliases(), new_aliases(view)
    old, new = aliases.targets(before), aliases.targets(after)
    merger = GraphMerger(view, view.next_ids(), new)
    renamed = {key for key, _ in {*before.displays.items()} ^ {*after.displays.items()}}
    merger.start_with(view.entity_rows(keys=renamed).values(), ())
    moved = {key for key in {*old, *new} if old.get(key, key) != new.get(key, key)}
    ends = {old.get(key, key) for key in moved} | {new.get(key, key) for key in moved}
    entities = mentions_of(view, ends, old)
    names = {key for one in entities for key in graph_keys(one.mention, {})}
    chunks = {one.chunk for one in entities}
    relations = [
        one for one in view.relation_mentions(chunks=chunks) if is_about(one.mention, names, {})
    ]
    merger.remove(entities, relations)
    merger.add(entities, relations, merging.stored_times(view, entities, relations))
    return IndexChange(graph=merger.finish(after.displays), aliases=after)


def plan_summaries(view: StoreView) -> IndexChange:
    """Describe every entity and relation anew, so that summaries are written that are due."""
    graph = GraphChange(view.entity_rows(), view.relation_rows())
    graph.last_mentions = {("entity", one.owner or 0): one.id for one in view.entity_mentions()}
    for one in view.relation_mentions():
        graph.last_mentions["relation", one.owner or 0] = one.id
    return IndexChange(graph)


def plan_rebuilding(view: StoreView) -> IndexChange:
    """Merge all mentions anew; the summaries that are due then are asked for again."""
    chunks = view.chunks()
    rows = view.entity_rows(), view.relation_rows()
    graph = merging.remerged(view, *rows, view.entity_mentions(), view.relation_mentions())
    graph.without.update(chunks)  # stored mentions do not count beside the added ones
    return IndexChange(
        graph=graph,
        chunk_texts={row: chunk.text for row, chunk in chunks.items()},
        rebuilt=True,
    )
