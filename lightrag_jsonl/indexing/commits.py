"""Makes changes visible: describes what they touch, embeds, and writes in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from lightrag_jsonl.core.aio import gather_all
from lightrag_jsonl.core.errors import BudgetError, LLMError
from lightrag_jsonl.core.text import digest
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.indexing.aliases import targets
from lightrag_jsonl.indexing.changes import (
    GRAPH_KINDS,
    ExtractedDocument,
    GraphChange,
    GraphKey,
    IndexChange,
    StepCallback,
)
from lightrag_jsonl.indexing.embedding import PassageEmbedder, Texts, embedded_text
from lightrag_jsonl.indexing.merging import GraphMerger, mention_rows, stored_at
from lightrag_jsonl.indexing.summaries import Describer, DueSummary
from lightrag_jsonl.llm.client import UsageMeter
from lightrag_jsonl.storage.rows import EntityRow, NextIds, RelationRow, StoredChunk
from lightrag_jsonl.storage.store import Reader, Store, Transaction, read, write

Step = Callable[[str, int, int], None]  # the step, items done, items known

CHUNK_BITS = 22  # of a position: room for the index of a chunk in its document


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
        plan: Callable[[Reader], IndexChange],
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
        deferred = deferred if self.describer.client.has_model else None

        def prepare(reader: Reader) -> tuple[IndexChange, list[DueSummary]]:
            change = plan(reader)
            return change, self.describer.describe(reader, change.graph, deferred)

        step("merging", 0, 1)
        change, due = await read(self.store, prepare)
        if deferred is not None and due:
            await self._summarize(
                due, meter or UsageMeter(), deferred, partial(step, "summarizing")
            )
        texts = _texts(change, with_relations=self.relation_vectors)
        await self.embedder.embed(texts, change, partial(step, "embedding"))
        step("writing", 0, 1)
        await write(self.store, partial(self._write, change))
        return change

    async def _summarize(
        self,
        due: Sequence[DueSummary],
        meter: UsageMeter,
        deferred: set[GraphKey],
        step: StepCallback,
    ) -> None:
        """Write the summaries that are due; when a limit is reached, those in flight are awaited."""
        ended: list[BudgetError] = []
        done = 0

        async def write_one(one: DueSummary) -> None:
            nonlocal done
            try:
                await self.describer.summarize(one, meter)
            except LLMError:  # the descriptions stand in; the next insert tries again
                deferred.add(one.key)
            except BudgetError as error:
                ended.append(error)
            done += 1
            step(done, len(due))

        step(0, len(due))
        await gather_all(map(write_one, due))
        if ended:
            raise ended[0]

    def _write(self, change: IndexChange, writer: Transaction) -> None:
        graph = change.graph
        writer.delete_documents(change.old_documents)
        writer.delete_mentions(list(map(attrgetter("row"), change.read_again)))
        writer.put_entities(list(filter(attrgetter("mentions"), graph.entities.values())))
        writer.put_relations(list(filter(attrgetter("mentions"), graph.relations.values())))
        for document, pages in change.documents:
            writer.put_document(document, pages)
        writer.put_chunks([*change.chunks, *change.read_again])
        writer.put_mentions(graph.entity_mentions, graph.relation_mentions)
        for kind, vectors in change.vectors.items():
            writer.put_vectors(kind, vectors)
        writer.delete_graph_rows("relation", list(graph.rows("relation", gone=True)))
        writer.delete_graph_rows("entity", list(graph.rows("entity", gone=True)))
        writer.set_document_state(change.states)
        writer.delete_pending(change.pending)
        writer.delete_cached_vectors(change.cached_vectors)
        writer.put_settings(self.settings())
        if change.aliases is not None:
            writer.put_aliases(change.aliases)
        if change.rebuilt:
            writer.rebuild_terms()


def _texts(change: IndexChange, *, with_relations: bool) -> Texts:
    """The texts of the rows that need vectors."""
    texts: dict[Kind, Mapping[int, str]] = {"chunk": change.chunk_texts}
    for kind in GRAPH_KINDS if with_relations else GRAPH_KINDS[:1]:
        texts[kind] = {id: embedded_text(row) for id, row in change.graph.rows(kind).items()}
    return texts


def all_texts(with_relations: bool, reader: Reader) -> Texts:
    """The texts of all rows; those of relations also if they have vectors although they need none."""
    graph = GraphChange(reader.entity_rows(), reader.relation_rows())
    chunks = reader.document_chunks([document.id for document in reader.documents()])
    texts = {row: chunk.text for row, chunk in chunks.items()}
    has_vectors = bool(reader.vector_digests("relation", graph.relations))
    change = IndexChange(graph, chunk_texts=texts)
    return _texts(change, with_relations=with_relations or has_vectors)


# ── plans ───────────────────────────────────────────────────────────────────────


def plan_documents(
    documents: Sequence[ExtractedDocument], delete: Collection[str], reader: Reader
) -> IndexChange:
    """Make documents visible, replacing earlier versions, and delete others."""
    known, ids = reader.aliases(), reader.next_ids()
    change = IndexChange(pending=list(delete))
    for one in documents:
        change.read_again += _read_again(reader, one) if one.rows else ()
        if not one.rows:
            change.pending.append(one.document.id)
            _number(change, one, ids)
    # of a document that was only retried, a newer version may be pending: it is kept
    change.old_documents = list(map(attrgetter("row"), reader.documents(change.pending)))
    change.old_chunks = list(reader.document_chunks(change.pending))
    merger = GraphMerger(reader, ids, targets(known))
    if gone := [*change.old_chunks, *map(attrgetter("row"), change.read_again)]:
        merger.remove(reader.entity_mentions(chunks=gone), reader.relation_mentions(chunks=gone))
    entities, relations, created = [], [], {}
    for stored in (*change.chunks, *change.read_again):
        position = int(digest(stored.chunk.document_id)[:7], 16) << CHUNK_BITS
        position += stored.chunk.index
        found = mention_rows(stored.extraction, stored.row, position, ids)
        entities += found[0]
        relations += found[1]
        created[stored.row] = stored.created_at
        change.states.add(stored.document)
    merger.add(entities, relations, created)
    change.graph = merger.finish(known.displays)
    return change


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


def _read_again(reader: Reader, one: ExtractedDocument) -> Iterator[StoredChunk]:
    """The chunks of a retried document that were read to their end, or at least in part for once;
    of others the earlier extraction stays.
    """
    reports = {report.row: report for report in reader.chunk_reports([one.document.id])}
    for row, chunk, extraction in zip(one.rows, one.chunks, one.extractions, strict=True):
        before = reports[row]
        in_part = before.state == "failed" and extraction.state != "failed"
        if in_part or not extraction.unfinished:
            extraction = replace(extraction, usage=before.report.usage + extraction.usage)
            yield StoredChunk(row, one.document.row, chunk, one.document.created_at, extraction)


def plan_summaries(reader: Reader) -> IndexChange:
    """Describe every entity and relation anew, so that summaries are written that are due."""
    graph = GraphChange(reader.entity_rows(), reader.relation_rows())
    graph.last_mentions = {("entity", one.entity): one.id for one in reader.entity_mentions()}
    for one in reader.relation_mentions():
        graph.last_mentions["relation", one.relation or 0] = one.id
    return IndexChange(graph)


def plan_rebuilding(reader: Reader) -> IndexChange:
    """Merge all mentions anew; the summaries that are due then are asked for again."""
    known, documents = reader.aliases(), reader.documents()
    merger = GraphMerger(reader, reader.next_ids(), targets(known))
    merger.start_with(
        [EntityRow(row.id, row.key) for row in reader.entity_rows().values()],
        [RelationRow(row.id, row.low, row.high) for row in reader.relation_rows().values()],
    )
    chunks = reader.document_chunks([document.id for document in documents])
    merger.change.without.update(chunks)  # stored mentions do not count beside the added ones
    created = {row: stored_at(chunk) for row, chunk in chunks.items()}
    merger.add(reader.entity_mentions(), reader.relation_mentions(), created)
    return IndexChange(
        graph=merger.finish(known.displays),
        chunk_texts={row: chunk.text for row, chunk in chunks.items()},
        states={document.row for document in documents},
        rebuilt=True,
    )
