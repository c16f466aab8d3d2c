"""Entities and relations as plain values; under a filter, as the visible documents alone say.

Without a filter, a value is the stored row. With a filter, a value is made anew of the mentions in
visible chunks: no name, description or weight comes from a hidden document.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from lightrag_jsonl.core.types import Chunk, Entity, Kind, Relation
from lightrag_jsonl.retrieval.hits import column, distinct_rows
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    EntityRow,
    GraphRow,
    RelationMentionRow,
    RelationRow,
    stored_at,
)
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.storage.views import Snapshot

MENTION_LIMIT = 20  # mentions that describe an entity or a relation: bounds the length and the time

AnyMention = TypeVar("AnyMention", EntityMentionRow, RelationMentionRow)


def with_filter(task: SearchTask) -> SearchTask:
    """The task with the rows that the user's filter lets through."""
    if not task.param.where:
        return task
    chunks = task.snapshot.matching_chunks(parse_where(task.param.where))
    chunk_rows = column(chunks)
    rows_by_kind: dict[Kind, Ids] = {
        "chunk": chunk_rows,
        "entity": distinct_rows(task.snapshot.graph.entities_of(chunk_rows)[1]),
        "relation": column(sorted(task.snapshot.mentioned_relations(chunks))),
    }
    return replace(task, filtered=rows_by_kind)


def load_entities(task: SearchTask, rows: Ids) -> dict[int, Entity]:
    """Entities by row id."""
    if task.filtered is None:
        return task.snapshot.entities(rows.tolist())
    mentions = _visible_mentions(task, task.snapshot.entity_mentions(entities=rows.tolist()))
    chunks = _chunks_of_mentions(task.snapshot, mentions)
    entities: dict[int, Entity] = {}
    for id, mention_rows in mentions.items():
        row = EntityRow(id, "")
        chunk_ids = _fill(row, mention_rows, chunks)
        entities[id] = row.entity(chunk_ids)
    return entities


def load_relations(task: SearchTask, rows: Ids) -> dict[int, Relation]:
    """Relations by row id."""
    if task.filtered is None:
        return task.snapshot.relations(rows.tolist())
    ends = task.snapshot.graph.ends(rows)
    names = entity_names(task, distinct_rows(ends.ravel()).tolist())
    ends_by_relation = dict(zip(rows.tolist(), ends.tolist(), strict=True))
    mentions = _visible_mentions(task, task.snapshot.relation_mentions(relations=rows.tolist()))
    chunks = _chunks_of_mentions(task.snapshot, mentions)
    relations: dict[int, Relation] = {}
    for id, mention_rows in mentions.items():
        low, high = ends_by_relation[id]
        row = RelationRow(id, low, high)
        chunk_ids = _fill(row, mention_rows, chunks)
        relations[id] = row.relation(names, chunk_ids)
    return relations


def entity_names(task: SearchTask, rows: Collection[int]) -> dict[int, str]:
    """The names of entities by row id."""
    if task.filtered is None:
        return task.snapshot.entity_names(rows)
    entities = load_entities(task, column(sorted(rows)))
    return {row: entity.name for row, entity in entities.items()}


def names_in_chunks(task: SearchTask, chunks: Ids) -> dict[int, dict[int, str]]:
    """For each chunk, the names of the entities mentioned there, by row id."""
    positions, entities = task.snapshot.graph.entities_of(chunks)
    names = entity_names(task, distinct_rows(entities).tolist())
    names_by_chunk: dict[int, dict[int, str]] = defaultdict(dict)
    for position, entity in zip(positions.tolist(), entities.tolist(), strict=True):
        names_by_chunk[int(chunks[position])][entity] = names[entity]
    return names_by_chunk


def visible_degrees(task: SearchTask, entities: Ids) -> Ids:
    """The number of visible relations of each entity."""
    positions, relations = task.snapshot.graph.relations_of(entities)
    visible = task.inside("relation", relations)
    return np.bincount(positions[visible], minlength=len(entities))


# ── values made of visible mentions ─────────────────────────────────────────────


def _visible_mentions(task: SearchTask, rows: Iterable[AnyMention]) -> dict[int, list[AnyMention]]:
    """The first mentions in visible chunks by entity or relation, in the order of the text."""
    visible = set(task.filtered["chunk"].tolist()) if task.filtered else set[int]()
    mentions: dict[int, list[AnyMention]] = {}
    for row in sorted(rows, key=lambda row: row.position):
        if row.owner is not None and row.chunk in visible:
            mentions.setdefault(row.owner, []).append(row)
    return {id: mention_rows[:MENTION_LIMIT] for id, mention_rows in mentions.items()}


def _chunks_of_mentions(
    snapshot: Snapshot, mentions: Mapping[int, Sequence[AnyMention]]
) -> dict[int, Chunk]:
    """The chunks of some mentions."""
    return snapshot.chunks({row.chunk for rows in mentions.values() for row in rows})


def _fill(
    row: GraphRow, mentions: Sequence[AnyMention], chunks: Mapping[int, Chunk]
) -> tuple[str, ...]:
    """Make a row of these mentions alone; returns the ids of the mentions' chunks."""
    for mention_row in mentions:
        row.count(mention_row, 1)  # type: ignore[arg-type]  # both are of one kind
    row.decide()
    sources = [chunks[mention_row.chunk] for mention_row in mentions]
    descriptions = dict.fromkeys([mention_row.mention.description for mention_row in mentions])
    row.description = "\n".join(filter(None, descriptions))
    row.created_at = min(map(stored_at, sources))
    return tuple(dict.fromkeys([chunk.id for chunk in sources]))
