"""Rows as plain values, and what else they are called; under a filter, as the documents that it lets
through say.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.types import Chunk, Entity, Relation
from lightrag_jsonl.retrieval.fusion import NO_HITS, SearchTask, column, distinct
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    EntityRow,
    GraphRow,
    RelationMentionRow,
    RelationRow,
    stored_at,
)
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import Snapshot

SOURCES = 20  # mentions that an entity or a relation is described by

Row = TypeVar("Row", EntityMentionRow, RelationMentionRow)


def with_filter(task: SearchTask) -> SearchTask:
    """The task with the rows that its filter lets through."""
    if not task.param.where:
        return task
    chunks = task.snapshot.matching_chunks(parse_where(task.param.where))
    rows = column(chunks)
    entities = distinct(task.snapshot.graph.entities_of(rows)[1])
    relations = column(sorted(task.snapshot.mentioned_relations(chunks)))
    return task._replace(filtered={"chunk": rows, "entity": entities, "relation": relations})


def facts(
    task: SearchTask, entities: Ids, relations: Ids
) -> tuple[dict[int, Entity], dict[int, Relation]]:
    """Entities and relations by row id."""
    snapshot = task.snapshot
    if task.filtered is None:
        return snapshot.entities(entities.tolist()), snapshot.relations(relations.tolist())
    return _filtered_facts(
        snapshot, entities, relations, frozenset(task.filtered["chunk"].tolist())
    )


def names(task: SearchTask, rows: Collection[int]) -> dict[int, str]:
    """The names of entities by row id."""
    if task.filtered is None:
        return task.snapshot.entity_names(rows)
    entities, _ = facts(task, column(sorted(rows)), NO_HITS.ids)
    return {row: entity.name for row, entity in entities.items()}


def degrees(task: SearchTask, entities: Ids) -> Ids:
    """The number of relations of each entity."""
    which, relations = task.snapshot.graph.relations_of(entities)
    return np.bincount(which[task.inside("relation", relations)], minlength=len(entities))


# ── aliases that texts state ─────────────────────────────────────────────────────


def entities_called(task: SearchTask, keys: Collection[str]) -> dict[str, int]:
    """For each key that is an alias, the entity that states it; of several, the best connected."""
    stating: dict[str, list[int]] = defaultdict(list)
    for entity, key in _visible(task, task.snapshot.alias_claims(keys=keys)):
        stating[key].append(entity)
    degrees = task.snapshot.graph.degrees
    return {key: rows[degrees(column(rows)).argmax()] for key, rows in stating.items()}


def also_called(task: SearchTask, rows: Ids) -> tuple[Ids, Floats]:
    """Pairs of entities, shape (n, 2), of which one is in `rows` and one states the other's name; and
    how surely they are one: 1 over the number of entities that state it.
    """
    claims = _visible(task, task.snapshot.alias_claims(entities=rows.tolist()))
    ends = task.snapshot.entity_ids({key for _, key in claims})
    shared = Counter(key for _, key in task.snapshot.alias_claims(keys=ends))
    found = [(*sorted((one, ends[key])), 1 / shared[key]) for one, key in claims if key in ends]
    sure = {(low, high): part for low, high, part in sorted(found) if low < high}
    pairs = np.array([*sure], np.int64).reshape(-1, 2)
    kept = task.inside("entity", pairs.ravel()).reshape(-1, 2).all(axis=1)
    return pairs[kept], np.array([*sure.values()], np.float64)[kept]


def _visible(task: SearchTask, claims: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those that chunks state which the question's filter lets through."""
    if task.filtered is None or not claims:
        return claims
    allowed = set(task.filtered["chunk"].tolist())
    mentions = task.snapshot.entity_mentions(entities={entity for entity, _ in claims})
    seen = [one for one in mentions if one.chunk in allowed]
    stated = {(one.owner, name_key(name)) for one in seen for name in one.mention.aliases}
    return [claim for claim in claims if claim in stated]


# ── under a filter ──────────────────────────────────────────────────────────────


def _filtered_facts(
    snapshot: Snapshot, entities: Ids, relations: Ids, allowed: Collection[int]
) -> tuple[dict[int, Entity], dict[int, Relation]]:
    """Made of mentions in allowed chunks, so that nothing of other documents is seen."""
    ends = snapshot.graph.ends(relations)
    wanted = distinct(entities, ends.ravel()).tolist()
    by_entity = _grouped(snapshot.entity_mentions(entities=wanted), allowed)
    stated = snapshot.relation_mentions(relations=relations.tolist())
    by_relation = _grouped(stated, allowed)
    read = {row.chunk for rows in by_entity.values() for row in rows}
    read |= {row.chunk for rows in by_relation.values() for row in rows}
    chunks = snapshot.chunks(read)
    merged: dict[int, Entity] = {}
    for id, mentions in by_entity.items():
        entity = EntityRow(id, "")
        merged[id] = entity.entity(_count(entity, mentions, chunks))
    names = {id: one.name for id, one in merged.items()}
    pairs = dict(zip(relations.tolist(), ends.tolist(), strict=True))
    joined: dict[int, Relation] = {}
    for id, others in by_relation.items():
        relation = RelationRow(id, *pairs[id])
        joined[id] = relation.relation(names, _count(relation, others, chunks))
    return merged, joined


def _grouped(rows: Iterable[Row], allowed: Collection[int]) -> dict[int, list[Row]]:
    """The first mentions in allowed chunks by entity or relation, in the order of the text."""
    groups: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.position):
        if row.owner is not None and row.chunk in allowed:
            groups.setdefault(row.owner, []).append(row)
    return {id: mentions[:SOURCES] for id, mentions in groups.items()}


def _count(row: GraphRow, mentions: Sequence[Row], chunks: Mapping[int, Chunk]) -> tuple[str, ...]:
    """Make a row of these mentions alone; returns the ids of their chunks."""
    for one in mentions:
        row.count(one, 1)  # type: ignore[arg-type]  # they are mentions of what the row is
    row.decide()
    sources = [chunks[one.chunk] for one in mentions]
    texts = dict.fromkeys([one.mention.description for one in mentions])
    row.description = "\n".join(filter(None, texts))
    row.created_at = min(map(stored_at, sources))
    return tuple(dict.fromkeys([chunk.id for chunk in sources]))
