"""Entities and relations as plain values; under a filter, as the visible documents alone say.

Without a filter, a value is the stored row. With a filter, a value is made anew of the mentions in
visible chunks: no name, description or weight comes from a hidden document.

Descriptions come in the order in which one reads the documents, and entities that are certainly one
become one value.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TypeVar

import numpy as np
from msgspec import structs

from lightrag_jsonl.core.types import UNKNOWN_TYPE, Chunk, Entity, Kind, Relation
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.question_names import alias_pairs
from lightrag_jsonl.retrieval.task import Fact, SearchTask
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.graph_index import distinct_rows
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    EntityRow,
    GraphRow,
    RelationMentionRow,
    RelationRow,
    reading_order,
    stored_at,
)
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.storage.views import Snapshot

MENTION_LIMIT = 20  # mentions that describe an entity or a relation: bounds the length and the time
DESCRIPTION_LIMIT = 50  # stored descriptions that are put in order for reading: bounds the time
MOST_FACTS = 5_000  # of a kind that are kept in memory as they are stored

AnyMention = TypeVar("AnyMention", EntityMentionRow, RelationMentionRow)


def with_filter(task: SearchTask) -> SearchTask:
    """The task with the rows that the user's filter lets through, in the visible part of the index."""
    if task.filtered is not None or not (task.param.where or task.part):
        return task
    chunks = task.snapshot.matching_chunks(parse_where(task.param.where))
    if task.part is not None:
        chunks = [chunk for chunk in chunks if chunk not in task.part.hidden_chunks]
        task = structs.replace(task, snapshot=task.part.snapshot)
    chunk_rows = column(chunks)
    rows_by_kind: dict[Kind, Ids] = {
        "chunk": chunk_rows,
        "entity": distinct_rows(task.snapshot.graph.entities_of(chunk_rows)[1]),
        "relation": column(sorted(task.snapshot.mentioned_relations(chunks))),
    }
    return structs.replace(task, filtered=rows_by_kind, filtered_entities={})


def load_entities(task: SearchTask, rows: Ids) -> dict[int, Entity]:
    """Entities by row id."""
    if task.filtered is None:
        return _stored_facts(task, "entity", rows.tolist(), task.snapshot.entities)
    return _visible_entities(task, rows.tolist())


def load_relations(task: SearchTask, rows: Ids) -> dict[int, Relation]:
    """Relations by row id."""
    if task.filtered is None:
        return _stored_facts(task, "relation", rows.tolist(), task.snapshot.relations)
    return _visible_relations(task, rows)


def entity_names(task: SearchTask, rows: Collection[int]) -> dict[int, str]:
    """The names of entities by row id."""
    if task.filtered is None:
        return task.snapshot.entity_names(rows)
    entities = load_entities(task, column(sorted(rows)))
    return {row: entity.name for row, entity in entities.items()}


def names_with_types(task: SearchTask, rows: Ids) -> dict[int, tuple[str, str]]:
    """The name and the type of entities by row id."""
    if task.filtered is None:
        return task.snapshot.entity_names_with_types(rows.tolist())
    return {row: (entity.name, entity.type) for row, entity in load_entities(task, rows).items()}


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
    if task.filtered is None:
        return task.snapshot.graph.degrees(entities)
    positions, relations = task.snapshot.graph.relations_of(entities)
    visible = task.inside("relation", relations)
    return np.bincount(positions[visible], minlength=len(entities))


# ── stored values, and the order of their descriptions ───────────────────────────────────────────────────


def _stored_facts(
    task: SearchTask, kind: Kind, rows: Sequence[int], load: Callable[[list[int]], dict[int, Fact]]
) -> dict[int, Fact]:
    """Facts as they are stored, in the order of rows; each is loaded once in a state of the index."""
    loaded: dict[int, Fact] = task.snapshot.state_memory.facts[kind]
    missing = [row for row in rows if row not in loaded]
    if missing:
        if len(loaded) + len(missing) > MOST_FACTS:
            loaded = task.snapshot.state_memory.facts[kind] = {}
            missing = [*rows]
        loaded.update(_in_reading_order(task, kind, load(missing)))
    return {row: loaded[row] for row in rows if row in loaded}


def _in_reading_order(task: SearchTask, kind: Kind, facts: Mapping[int, Fact]) -> dict[int, Fact]:
    """Facts with the lines of each description in the order of dates and of insertion.

    Stored descriptions are in the order of positions, that is of digests where there are no dates: the
    graph must not depend on the order in which documents came.
    """
    rows = [row for row, fact in facts.items() if "\n" in fact.description]
    texts_by_row = task.snapshot.descriptions_as_they_came(kind, rows, DESCRIPTION_LIMIT)
    ordered_facts = dict(facts)
    for row, texts in texts_by_row.items():
        description = _ordered_lines(facts[row].description, texts)
        if description != facts[row].description:
            ordered_facts[row] = replace(facts[row], description=description)
    return ordered_facts


def _ordered_lines(description: str, texts: Sequence[str]) -> str:
    """The lines of a description in the order of texts; a summary stays before, and lines without
    a text after.
    """
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, place)
    lines = description.split("\n")
    first_text = next((number for number, line in enumerate(lines) if line in places), len(lines))
    ordered = sorted(lines[first_text:], key=lambda line: places.get(line, len(places)))
    return "\n".join([*lines[:first_text], *ordered])


# ── several entities that are one ───────────────────────────────────────────────


def joined_entities(task: SearchTask, entities: Mapping[int, Entity]) -> list[Entity]:
    """Entities by row id, best first, as values; entities that are certainly the same by the
    texts, through an alias of no further entity, become the value of the best, with all
    descriptions.

    Entities of different types are not joined: an alias may be no more than a part of a name.
    """
    pairs = alias_pairs(task, column(sorted(entities))).tolist()
    shown_pairs = [pair for pair in pairs if entities.keys() >= {*pair}]
    return _joined_by_alias(entities, shown_pairs) if shown_pairs else [*entities.values()]


def _joined_by_alias(
    entities: Mapping[int, Entity], pairs: Iterable[Sequence[int]]
) -> list[Entity]:
    """The values of entities, best first; one value for all that the pairs lead to each other."""
    leaders = {row: row for row in entities}
    ranking = list(entities)
    for row, namesake in pairs:
        if _may_be_one(entities[row], entities[namesake]):
            _share_leader(leaders, ranking, (row, namesake))
    groups: defaultdict[int, list[Entity]] = defaultdict(list)
    for row, entity in entities.items():
        leader = leaders[row]
        groups[leader].append(entity)
    return [_as_one(group) for group in groups.values()]


def _may_be_one(entity: Entity, namesake: Entity) -> bool:
    types = {entity.type.casefold(), namesake.type.casefold()} - {"", UNKNOWN_TYPE}
    return len(types) < 2


def _share_leader(leaders: dict[int, int], ranking: Sequence[int], pair: Sequence[int]) -> None:
    """Give the groups of two rows one leader, the row that is ranked best."""
    pair_leaders = {leaders[row] for row in pair}
    best = min(pair_leaders, key=ranking.index)
    for row, leader in leaders.items():
        if leader in pair_leaders:
            leaders[row] = best


def _as_one(group: Sequence[Entity]) -> Entity:
    """One value of several rows of the same entity; all rows are cited, the best first."""
    best = group[0]
    if len(group) == 1:
        return best
    types: list[str] = []
    aliases: list[str] = []
    attributes: set[tuple[str, str]] = set()
    descriptions: list[str] = []
    for entity in group:
        if entity.type != UNKNOWN_TYPE:
            types.append(entity.type)
        aliases += [entity.name, *entity.aliases]
        attributes.update(entity.attributes)
        descriptions += entity.description.split("\n")
    chunk_ids = chain.from_iterable(zip_longest(*[entity.chunk_ids for entity in group]))
    return replace(
        best,
        type=types[0] if types else best.type,
        description="\n".join(filter(None, dict.fromkeys(descriptions))),
        chunk_ids=tuple(filter(None, dict.fromkeys(chunk_ids))),
        attributes=tuple(sorted(attributes)),
        aliases=tuple([name for name in dict.fromkeys(aliases) if name != best.name]),
    )


# ── values made of visible mentions ─────────────────────────────────────────────


def _visible_entities(task: SearchTask, rows: Sequence[int]) -> dict[int, Entity]:
    """Entities by row id as their visible mentions say; each is made once in a search."""
    entities = task.filtered_entities
    missing = set(rows) - entities.keys()
    mentions = _visible_mentions(task, task.snapshot.entity_mentions(entities=missing))
    chunks = _chunks_of_mentions(task.snapshot, mentions)
    for id, mention_rows in mentions.items():
        row = EntityRow(id, "")
        entities[id] = row.entity(_fill(row, mention_rows, chunks))
    return {row: entities[row] for row in rows if row in entities}


def _visible_relations(task: SearchTask, rows: Ids) -> dict[int, Relation]:
    """Relations by row id as their visible mentions say."""
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


def _visible_mentions(task: SearchTask, rows: Iterable[AnyMention]) -> dict[int, list[AnyMention]]:
    """The first mentions in visible chunks by entity or relation, in the order for reading."""
    visible = set(task.filtered["chunk"].tolist()) if task.filtered else set[int]()
    mentions: dict[int, list[AnyMention]] = {}
    for row in sorted(rows, key=lambda row: row.position):
        if row.owner is not None and row.chunk in visible:
            mentions.setdefault(row.owner, []).append(row)
    return {
        id: sorted(
            mention_rows[:MENTION_LIMIT], key=lambda row: reading_order(row.position, row.chunk)
        )
        for id, mention_rows in mentions.items()
    }


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
