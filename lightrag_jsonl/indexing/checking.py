"""Checks what is derived: merges stored mentions again, and compares with the stored rows."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

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
)
from lightrag_jsonl.storage.views import StoreView

SAMPLE = 1_000  # rows of each kind
CLOSE = 1e-5  # seconds
UNIT = 0.02  # how far the length of a stored vector may be from 1
WRITTEN = {"description", "summary", "summarized_to", "summarized_mentions", "created_at"}


def check_derived(embedder: PassageEmbedder, full: bool, view: StoreView) -> list[str]:
    """What differs from what mentions and texts give, in words: of a random sample of the rows of
    each kind, or with `full` of all.
    """
    ids = view.next_ids()
    entities = view.entity_rows(ids=_sample(ids.entities, full))
    relations = view.relation_rows(ids=_sample(ids.relations, full))
    chunks = view.chunks(_sample(ids.chunks, full))
    found = [*_wrong_rows(view, entities, relations), *_wrong_chunks(view, chunks)]
    texts = {row: chunk.text for row, chunk in chunks.items()}
    change = IndexChange(GraphChange(entities, relations), chunk_texts=texts)
    for kind, rows in index_texts(change, with_relations=True).items():
        expected = embedder.digests(rows)
        stored, vectors = view.vector_digests(kind, expected), view.vectors(kind, expected)
        for row in expected:
            length = float(np.linalg.norm(vectors[row])) if row in vectors else 0.0
            needed = row in vectors or kind != "relation"
            if needed and stored.get(row) != expected[row][0]:
                found.append(f"the vector of {kind} {row} is not that of its text")
            elif length and not abs(length - 1) < UNIT:
                found.append(
                    f"the vector of {kind} {row} has the length {length:.2f}, not 1: reembed"
                )
    return found


def _sample(end: int, full: bool) -> Collection[int] | None:
    """Some row ids below `end`; None for all."""
    return None if full or end <= SAMPLE else random.sample(range(1, end), SAMPLE)


def _wrong_rows(
    view: StoreView, entities: dict[int, EntityRow], relations: dict[int, RelationRow]
) -> Iterator[str]:
    mentions = view.entity_mentions(entities=entities)
    others = view.relation_mentions(relations=relations)
    owners = _owners(mentions, others)
    ids = [one.id for one in mentions] + [one.id for one in others]
    graph = merging.remerged(view, entities, relations, mentions, others)
    if owners != _owners(mentions, others):
        yield "mentions belong to other entities or relations than those of their names"
    rows: dict[Kind, Mapping[int, GraphRow]] = {"entity": entities, "relation": relations}
    for kind, stored in rows.items():
        after = {id: row.summarized_to for id, row in stored.items()}
        texts, fresh = view.descriptions(kind, after), graph.rows(kind)
        summarized = Counter(
            id
            for (owner, id, _), mention in zip(owners, ids, strict=True)
            if owner == kind and mention <= after.get(id, 0)
        )
        for id, row in stored.items():
            wrong = _differences(row, fresh[id]) if id in fresh else ["number of mentions"]
            if row.summarized_mentions != summarized[id]:
                wrong.append("summary")
            if not _may_describe(row, texts[id]):
                wrong.append("description")
            if wrong:
                yield f"{kind} {id} has another {', '.join(wrong)} than its mentions give"
    claims = {claim for claim in view.alias_claims(entities=entities) if claim[0] in entities}
    if claims != {(id, name_key(one)) for id, row in entities.items() for one in row.aliases}:
        yield "stated aliases are not those of the entities"


def _owners(
    mentions: Sequence[EntityMentionRow], others: Sequence[RelationMentionRow]
) -> list[tuple[Kind, int, bool]]:
    """To which row each mention belongs; of a relation also in which direction it was read."""
    entities: list[tuple[Kind, int, bool]] = [("entity", one.owner or 0, True) for one in mentions]
    return [*entities, *[("relation", one.owner or 0, one.forward) for one in others]]


def _differences(stored: GraphRow, fresh: GraphRow) -> list[str]:
    """The names of the fields that differ, but for description and summary."""
    names = [field.name for field in fields(stored) if field.name not in WRITTEN]
    wrong = [name for name in names if getattr(stored, name) != getattr(fresh, name)]
    is_close = abs(stored.created_at - fresh.created_at) < CLOSE
    return wrong if is_close else [*wrong, "created_at"]


def _may_describe(row: GraphRow, pairs: Iterable[tuple[int, str]]) -> bool:
    """Whether the description is the summary and the texts since; how many depends on options."""
    if "description" in row.edited:
        return bool(row.description == row.edited["description"])
    texts = dict.fromkeys(text for _, text in sorted(pairs))
    shown = "\n".join([row.summary, *texts] if row.summary else texts)
    return f"{shown}\n".startswith(f"{row.description}\n") and bool(shown) == bool(row.description)


def _wrong_chunks(view: StoreView, chunks: dict[int, Chunk]) -> Iterator[str]:
    for document in view.documents({chunk.document_id for chunk in chunks.values()}):
        pages = {page.number: page.text for page in view.pages([document.id])}
        if sum(map(len, pages.values())) != document.characters:
            yield f"document {document.id!r} does not have {document.characters} characters"
        for one in (chunk for chunk in chunks.values() if chunk.document_id == document.id):
            key = chunk_id(document.id, one.page, one.start, one.text)
            text = pages.get(one.page, "")[one.start : one.start + len(one.text)]
            if one.id != key or text != one.text or one.end != one.start + len(text):
                yield f"chunk {one.id} is not the text of its document"
