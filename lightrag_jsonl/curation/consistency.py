"""Checks derived data: merges stored mentions again, and compares with the stored rows."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.types import (
    PERSON,
    PROVIDED,
    Chunk,
    Document,
    ExtractionReport,
    Kind,
    Page,
    chunk_id,
)
from lightrag_jsonl.indexing import merging
from lightrag_jsonl.indexing.commits import PERSON_POSITION, index_texts
from lightrag_jsonl.indexing.embedding import PassageEmbedder
from lightrag_jsonl.indexing.incoming import content_digest
from lightrag_jsonl.indexing.merging import GraphChange, IndexChange
from lightrag_jsonl.storage.opening import copy_of_state, open_store
from lightrag_jsonl.storage.rows import (
    ChunkReport,
    EntityMentionRow,
    EntityRow,
    GraphRow,
    PendingDocument,
    RelationMentionRow,
    RelationRow,
    StoredDocument,
    document_position,
)
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import fingerprint

ROWS_CHECKED = 1_000  # rows of each kind
TIME_TOLERANCE = 1e-5  # seconds
LENGTH_TOLERANCE = 0.02  # between the length of a stored vector and 1

# Not functions of the mentions alone.
WRITTEN_FIELDS = frozenset(
    {"description", "summary", "summarized_to", "summarized_mentions", "created_at"}
)


def check_derived(embedder: PassageEmbedder, full: bool, view: StoreView) -> list[str]:
    """The differences between stored rows and the mentions or texts behind, in words.

    A random sample of the rows of each kind is checked, or with `full` all rows.
    """
    ids = view.next_ids()
    entities = view.entity_rows(ids=_sample(ids.entities, full))
    relations = view.relation_rows(ids=_sample(ids.relations, full))
    chunks = view.chunks(_sample(ids.chunks, full))
    return [
        *_graph_problems(view, entities, relations),
        *_chunk_problems(view, chunks),
        *_vector_problems(view, embedder, GraphChange(entities, relations), chunks),
    ]


def check_snapshots(store: Store, embedder: PassageEmbedder) -> list[str]:
    """The problems of each snapshot, read from a temporary copy."""
    with store.view() as view:
        states = view.saved_states()
    problems: list[str] = []
    for state in states:
        try:
            with copy_of_state(store, state.name) as address:
                findings = _problems_at(address, embedder)
        except StorageError as error:
            findings = [str(error)]
        problems += [f"snapshot {state.name!r}: {problem}" for problem in findings]
    return problems


def _problems_at(address: Address, embedder: PassageEmbedder) -> list[str]:
    with closing(open_store(address)) as store:
        problems = store.check(full=True)
        if problems:
            return problems
        with store.view() as view:
            return check_derived(embedder, True, view)


def _sample(end: int, full: bool) -> Collection[int] | None:
    """Some row ids below `end`; None for all."""
    if full or end <= ROWS_CHECKED:
        return None
    return random.sample(range(1, end), ROWS_CHECKED)


# ── entities and relations ──────────────────────────────────────────────────────


def _graph_problems(
    view: StoreView, entities: dict[int, EntityRow], relations: dict[int, RelationRow]
) -> Iterator[str]:
    entity_mentions = view.entity_mentions(entities=entities)
    relation_mentions = view.relation_mentions(relations=relations)
    mention_ids = [row.id for row in entity_mentions] + [row.id for row in relation_mentions]
    owners = _owners(entity_mentions, relation_mentions)
    graph = merging.remerged(view, entities, relations, entity_mentions, relation_mentions)
    if owners != _owners(entity_mentions, relation_mentions):
        yield "mentions belong to other entities or relations than those of their names"
    rows_by_kind: dict[Kind, Mapping[int, GraphRow]] = {"entity": entities, "relation": relations}
    for kind, rows in rows_by_kind.items():
        summarized = Counter(
            row
            for (owner_kind, row, _), mention_id in zip(owners, mention_ids, strict=True)
            if owner_kind == kind and row in rows and mention_id <= rows[row].summarized_to
        )
        texts = view.descriptions(kind, {id: row.summarized_to for id, row in rows.items()})
        computed_rows = graph.rows(kind)
        for id, row in rows.items():
            wrong = _wrong_fields(row, computed_rows.get(id), texts[id], summarized[id])
            if wrong:
                yield f"{kind} {id} has another {', '.join(wrong)} than its mentions give"
    yield from _alias_problems(view, entities)


def _owners(
    entity_mentions: Sequence[EntityMentionRow], relation_mentions: Sequence[RelationMentionRow]
) -> list[tuple[Kind, int, bool]]:
    """The kind and the row of each mention, and for a relation the direction of the statement."""
    return [
        *[("entity", row.owner or 0, True) for row in entity_mentions],
        *[("relation", row.owner or 0, row.forward) for row in relation_mentions],
    ]


def _wrong_fields(
    row: GraphRow,
    computed: GraphRow | None,
    texts: Iterable[tuple[int, str]],
    summarized_mentions: int,
) -> list[str]:
    """The names of the stored fields different from the mentions."""
    wrong = ["number of mentions"] if computed is None else _differences(row, computed)
    if row.summarized_mentions != summarized_mentions:
        wrong.append("summary")
    if not _may_describe(row, texts):
        wrong.append("description")
    return wrong


def _differences(stored: GraphRow, computed: GraphRow) -> list[str]:
    """The names of the different fields, except for description and summary."""
    names = [name for name in stored.__struct_fields__ if name not in WRITTEN_FIELDS]
    wrong = [name for name in names if getattr(stored, name) != getattr(computed, name)]
    if abs(stored.created_at - computed.created_at) >= TIME_TOLERANCE:
        wrong.append("created_at")
    return wrong


def _may_describe(row: GraphRow, texts: Iterable[tuple[int, str]]) -> bool:
    """Whether the description is the summary with later texts; how many depends on options.

    Of a relation, any of the texts may lead, since texts without the name of an end come last.
    """
    if "description" in row.edited:
        return bool(row.description == row.edited["description"])
    lines = list(dict.fromkeys(text for _, text in sorted(texts)))
    if row.summary:
        lines.insert(0, row.summary)
    longest = "\n".join(lines)
    if isinstance(row, EntityRow):
        is_possible = f"{longest}\n".startswith(f"{row.description}\n")
    else:
        is_possible = set(row.description.split("\n")) <= {*longest.split("\n"), ""}
    return is_possible and bool(longest) == bool(row.description)


def _alias_problems(view: StoreView, entities: Mapping[int, EntityRow]) -> Iterator[str]:
    stored = {(id, key) for id, key in view.alias_claims(entities=entities) if id in entities}
    expected = {(id, name_key(alias)) for id, row in entities.items() for alias in row.aliases}
    if stored != expected:
        yield "stated aliases are not those of the entities"


# ── chunks and vectors ──────────────────────────────────────────────────────────


def _chunk_problems(view: StoreView, checked_chunks: Mapping[int, Chunk]) -> Iterator[str]:
    fingerprints = view.fingerprints(checked_chunks)
    for document in view.documents({chunk.document_id for chunk in checked_chunks.values()}):
        pages = view.pages([document.id])
        texts = {page.number: page.text for page in pages}
        chunks = view.chunks(documents=[document.id])
        reports = view.chunk_reports([document.id])
        yield from _document_problems(document, pages, chunks.values(), reports)
        for row, chunk in chunks.items():
            if row in checked_chunks and not _is_text_of(chunk, texts, document):
                yield f"chunk {chunk.id} is not the text of its document"
            if row in checked_chunks and fingerprints[row] != fingerprint(chunk.text):
                yield f"chunk {chunk.id} has not the fingerprint of its text"
        yield from _position_problems(view, document, chunks, reports)


def _document_problems(
    document: StoredDocument,
    pages: Sequence[Page],
    chunks: Collection[Chunk],
    reports: Sequence[ChunkReport],
) -> Iterator[str]:
    """Whether a document fits the stored pages and chunks."""
    if sum(len(page.text) for page in pages) != document.characters:
        yield f"document {document.id!r} does not have {document.characters} characters"
    if [page.number for page in pages] != list(range(1, len(pages) + 1)):
        yield f"document {document.id!r} lacks a page"
    is_from_texts = not {report.extractor for report in reports} & {"", PERSON, PROVIDED}
    if is_from_texts and document.content != _content_of(document, pages):
        yield f"document {document.id!r} has other texts or properties than its digest"
    if document.state != _state_of(reports):
        yield f"document {document.id!r} is not {document.state}, by the states of its chunks"
    by_place = sorted(chunks, key=lambda chunk: (chunk.page, chunk.start))
    if [chunk.index for chunk in by_place] != list(range(len(by_place))):
        yield f"the chunks of document {document.id!r} are not in the order of its text"
    for report in reports:
        if report.state not in _counted_states(report.report):
            yield f"chunk {report.chunk_id} is not {report.state}, by its report"


def _content_of(document: StoredDocument, pages: Sequence[Page]) -> str:
    """The digest of a document, computed from the texts."""
    texts = [page.text for page in pages]
    pending = PendingDocument(
        document=Document(
            "",
            id=document.id,
            title=document.title,
            source=document.source,
            date=document.date,
            metadata=document.metadata,
        ),
        created_at=document.created_at,
        seen_pictures=document.seen_pictures,
    )
    return content_digest(pending, texts)


def _state_of(reports: Sequence[ChunkReport]) -> str:
    failed = sum(report.state == "failed" for report in reports)
    if not failed and not any(report.error for report in reports):
        return "done"
    return "failed" if failed == len(reports) else "partial"


def _counted_states(report: ExtractionReport) -> set[str]:
    """The states counted in a report; all states for a chunk without any."""
    counts = {
        "ok": report.ok,
        "empty": report.empty,
        "partial": report.partial,
        "failed": report.failed,
    }
    return {state for state, count in counts.items() if count} or set(counts)


def _position_problems(
    view: StoreView,
    document: StoredDocument,
    chunks: Mapping[int, Chunk],
    reports: Sequence[ChunkReport],
) -> Iterator[str]:
    """Mentions with positions different from the chunk's, since positions decide the order of citations."""
    extractors = {report.row: report.extractor for report in reports}
    first_position = document_position(document.id, document.date)
    mentions_by_chunk: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    rows_by_kind: dict[str, Sequence[EntityMentionRow | RelationMentionRow]] = {
        "entity": view.entity_mentions(chunks=chunks),
        "relation": view.relation_mentions(chunks=chunks),
    }
    for kind, mentions in rows_by_kind.items():
        for mention in mentions:
            mentions_by_chunk[kind, mention.chunk].append((mention.id, mention.position))
    for (kind, row), places in mentions_by_chunk.items():
        position = first_position + chunks[row].index
        if extractors[row] == PERSON:
            position = PERSON_POSITION
        expected = merging.mention_positions(position, len(places))
        if [position for _, position in sorted(places)] != expected:
            yield f"the {kind} mentions of chunk {chunks[row].id} have wrong positions"


def _is_text_of(chunk: Chunk, pages: Mapping[int, str], document: StoredDocument) -> bool:
    """Whether the text, the offsets and the id of a chunk fit the pages of the document."""
    text = pages.get(chunk.page, "")[chunk.start : chunk.start + len(chunk.text)]
    return (
        text == chunk.text
        and chunk.end == chunk.start + len(text)
        and chunk.id == chunk_id(document.id, chunk.page, chunk.start, chunk.text)
    )


def _vector_problems(
    view: StoreView, embedder: PassageEmbedder, graph: GraphChange, chunks: Mapping[int, Chunk]
) -> Iterator[str]:
    chunk_texts = {row: chunk.text for row, chunk in chunks.items()}
    change = IndexChange(graph, chunk_texts=chunk_texts)
    for kind, texts in index_texts(change, with_relations=True).items():
        expected = embedder.digests(texts)
        stored = view.vector_digests(kind, expected)
        vectors = view.vectors(kind, expected)
        for row, (digest, _) in expected.items():
            vector = vectors.get(row)
            is_needed = vector is not None or kind != "relation"
            if is_needed and stored.get(row) != digest:
                yield f"the vector of {kind} {row} is not that of its text"
                continue
            length = 0.0 if vector is None else float(np.linalg.norm(vector))
            if length and not abs(length - 1) < LENGTH_TOLERANCE:  # also if it is not a number
                yield f"the vector of {kind} {row} has the length {length:.2f}, not 1: reembed"
