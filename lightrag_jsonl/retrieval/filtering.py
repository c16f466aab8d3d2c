"""Entities and relations as the documents that a filter lets through describe them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from lightrag_jsonl.core.types import Chunk, Entity, Relation
from lightrag_jsonl.retrieval.fusion import FilterResult, among, column, distinct
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.rows import EntityMentionRow, RelationMentionRow
from lightrag_jsonl.storage.store import Snapshot
from lightrag_jsonl.storage.vector_index import Ids

SOURCES = 20  # mentions that an entity or a relation is described by

Row = TypeVar("Row", EntityMentionRow, RelationMentionRow)


def find_filter(snapshot: Snapshot, where: Mapping[str, Any]) -> FilterResult | None:
    """The rows that the filter lets through; None without a filter."""
    if not where:
        return None
    chunks = snapshot.matching_chunks(parse_where(where))
    entities = distinct(snapshot.graph.entities_of(column(chunks))[1])
    relations = snapshot.mentioned_relations(chunks)
    return FilterResult(column(chunks), entities, column(sorted(relations)))


def filtered_facts(
    snapshot: Snapshot, entities: Ids, relations: Ids, filtered: FilterResult
) -> tuple[dict[int, Entity], dict[int, Relation]]:
    """Entities and relations by row id, made of their mentions in the documents that the filter
    lets through, so that nothing of other documents is seen.
    """
    ends = snapshot.graph.ends(relations)
    wanted = distinct(entities, ends.ravel()).tolist()
    allowed = frozenset(filtered.chunk.tolist())
    by_entity = _grouped(snapshot.entity_mentions(entities=wanted), "entity", allowed)
    stated = snapshot.relation_mentions(relations=relations.tolist())
    by_relation = _grouped(stated, "relation", allowed)
    read = {row.chunk for rows in by_entity.values() for row in rows}
    read |= {row.chunk for rows in by_relation.values() for row in rows}
    chunks = snapshot.chunks(read)
    merged = {id: _entity(rows, chunks) for id, rows in by_entity.items()}
    pairs = dict(zip(relations.tolist(), ends.tolist(), strict=True))
    return merged, {
        id: _relation(rows, [merged[end].name for end in pairs[id]], chunks)
        for id, rows in by_relation.items()
    }


def filtered_degrees(snapshot: Snapshot, entities: Ids, filtered: FilterResult) -> Ids:
    """How many relations of each entity the filter lets through."""
    which, relations = snapshot.graph.relations_of(entities)
    inside = which[among(relations, filtered.relation)]
    return np.bincount(inside, minlength=len(entities))


def _grouped(rows: Iterable[Row], field: str, allowed: Collection[int]) -> dict[int, list[Row]]:
    """The first mentions in allowed chunks by entity or relation, in the order of the text."""
    groups: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.position):
        if row.chunk in allowed:
            groups.setdefault(getattr(row, field), []).append(row)
    return {id: mentions[:SOURCES] for id, mentions in groups.items()}


def _entity(rows: Sequence[EntityMentionRow], chunks: Mapping[int, Chunk]) -> Entity:
    mentions, sources = [row.mention for row in rows], [chunks[row.chunk] for row in rows]
    return Entity(
        name=_most_frequent([mention.name for mention in mentions]),
        type=_most_frequent([mention.type for mention in mentions]),
        description=_joined([mention.description for mention in mentions]),
        chunk_ids=tuple(dict.fromkeys([chunk.id for chunk in sources])),
        created_at=min([one.created_at for one in sources if one.created_at], default=None),
        attributes=tuple(sorted({pair for mention in mentions for pair in mention.attributes})),
    )


def _relation(
    rows: Sequence[RelationMentionRow], ends: Sequence[str], chunks: Mapping[int, Chunk]
) -> Relation:
    mentions, sources = [row.mention for row in rows], [chunks[row.chunk] for row in rows]
    backward = 2 * sum([row.forward for row in rows]) < len(rows)
    return Relation(
        source=ends[backward],
        target=ends[not backward],
        keywords=tuple(sorted({word for mention in mentions for word in mention.keywords})),
        description=_joined([mention.description for mention in mentions]),
        weight=sum([mention.strength for mention in mentions]),
        chunk_ids=tuple(dict.fromkeys([chunk.id for chunk in sources])),
        created_at=min([one.created_at for one in sources if one.created_at], default=None),
    )


def _most_frequent(values: Sequence[str]) -> str:
    votes = Counter(values)
    return min(votes, key=lambda value: (-votes[value], value))


def _joined(descriptions: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys([text for text in descriptions if text]))
