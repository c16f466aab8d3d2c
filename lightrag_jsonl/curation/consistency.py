"""Checks derived data: merges stored mentions again, and compares with the stored rows."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.types import Chunk, Kind, chunk_id
from lightrag_jsonl.indexing import merging
from lightrag_jsonl.indexing.commits import index_texts
from lightrag_jsonl.indexing.embedding import PassageEmbedder
from lightrag_jsonl.indexing.merging import GraphChange, IndexChange
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    EntityRow,
    GraphRow,
    RelationMentionRow,
    RelationRow,
    StoredDocument,
)
from lightrag_jsonl.storage.views import StoreView

ROWS_CHECKED = 1_000  # rows of each kind
TIME_TOLERANCE = 1e-5  # seconds
LENGTH_TOLERANCE = 0.02  # between the length of a stored vector and 1

# Not functions of the mentions alone.
WRITTEN_FIELDS = frozenset(
    {"description", "summary", "summarized_to", "summarized_mentions", "created_at"}
)


@dataclass(frozen=True, slots=True)
class _MentionOwner:
    """The row of a mention, and for a relation the direction of the statement."""

    kind: Kind
    row: int
    forward: bool


def check_derived(embedder: PassageEmbedder, full: bool, view: StoreView) -> list[str]:
    """The differences between stored rows and their mentions or texts, in words.

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
            owner.row
            for owner, mention_id in zip(owners, mention_ids, strict=True)
            if owner.kind == kind
            and owner.row in rows
            and mention_id <= rows[owner.row].summarized_to
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
) -> list[_MentionOwner]:
    owners = [_MentionOwner("entity", row.owner or 0, True) for row in entity_mentions]
    owners += [_MentionOwner("relation", row.owner or 0, row.forward) for row in relation_mentions]
    return owners


def _wrong_fields(
    row: GraphRow,
    computed: GraphRow | None,
    texts: Iterable[tuple[int, str]],
    summarized_mentions: int,
) -> list[str]:
    """The names of the stored fields that differ from the mentions."""
    wrong = ["number of mentions"] if computed is None else _differences(row, computed)
    if row.summarized_mentions != summarized_mentions:
        wrong.append("summary")
    if not _may_describe(row, texts):
        wrong.append("description")
    return wrong


def _differences(stored: GraphRow, computed: GraphRow) -> list[str]:
    """The names of the fields that differ, except for description and summary."""
    names = [field.name for field in fields(stored) if field.name not in WRITTEN_FIELDS]
    wrong = [name for name in names if getattr(stored, name) != getattr(computed, name)]
    if abs(stored.created_at - computed.created_at) >= TIME_TOLERANCE:
        wrong.append("created_at")
    return wrong


def _may_describe(row: GraphRow, texts: Iterable[tuple[int, str]]) -> bool:
    """Whether the description is the summary with later texts; how many depends on options.

    Of a relation, any of the texts may lead, since those that name neither end come last.
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


def _chunk_problems(view: StoreView, chunks: Mapping[int, Chunk]) -> Iterator[str]:
    for document in view.documents({chunk.document_id for chunk in chunks.values()}):
        pages = {page.number: page.text for page in view.pages([document.id])}
        if sum(map(len, pages.values())) != document.characters:
            yield f"document {document.id!r} does not have {document.characters} characters"
        for chunk in chunks.values():
            if chunk.document_id == document.id and not _is_text_of(chunk, pages, document):
                yield f"chunk {chunk.id} is not the text of its document"


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
