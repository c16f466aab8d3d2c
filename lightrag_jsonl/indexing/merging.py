"""Merges mentions into entities and relations, and takes them out again.

Everything a row holds is a sum or a vote, so adding and removing mentions in any order gives the
same row: the graph is a function of the set of mentions (laws *fold* and *undo*).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from lightrag_jsonl.core.text import name_key
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Chunk, Extraction, Kind
from lightrag_jsonl.indexing.changes import GRAPH_KINDS, GraphChange, GraphRow, winner
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    EntityRow,
    NextIds,
    RelationMentionRow,
    RelationRow,
)
from lightrag_jsonl.storage.store import Reader

MILLIONTHS = 1_000_000  # weights are summed as integers, so that subtracting is exact
MOST_CHUNKS = 1 << 40  # no limit
POSITION_BITS = 10  # room for 1,023 mentions of a kind in one chunk; more share the last position


class GraphMerger:
    """Works out the rows after mentions were added and removed; nothing is written.

    `targets` maps name keys to the keys they are merged into.
    """

    def __init__(self, reader: Reader, ids: NextIds, targets: Mapping[str, str]) -> None:
        self.change = GraphChange()
        self._reader = reader
        self._ids = ids
        self._targets = targets
        self._by_key: dict[str, EntityRow] = {}
        self._by_pair: dict[tuple[int, int], RelationRow] = {}

    def start_with(self, entities: Iterable[EntityRow], relations: Iterable[RelationRow]) -> None:
        """Change these rows, in place of the stored ones."""
        for entity in entities:
            self._by_key[entity.key] = self.change.entities[entity.id] = entity
        for relation in relations:
            self._by_pair[relation.low, relation.high] = relation
            self.change.relations[relation.id] = relation

    def remove(
        self, entities: Sequence[EntityMentionRow], relations: Sequence[RelationMentionRow]
    ) -> None:
        """Take stored mentions out of their rows. The mentions of a row in one chunk go together."""
        counted = {one.relation for one in relations if one.relation is not None}
        self.start_with(
            self._reader.entity_rows(ids={one.entity for one in entities}).values(),
            self._reader.relation_rows(ids=counted).values(),
        )
        for one in entities:
            entity = self.change.entities[one.entity]
            count_entity(entity, one, -1)
            _drop_summary(entity, one.id)
        for other in relations:
            if other.relation is not None:
                relation = self.change.relations[other.relation]
                count_relation(relation, other, -1)
                _drop_summary(relation, other.id)
        self.change.without.update([one.chunk for one in entities])
        self._update_created()

    def add(
        self,
        entities: Sequence[EntityMentionRow],
        relations: Sequence[RelationMentionRow],
        created: Mapping[int, float],
    ) -> None:
        """Add mentions to the rows of their names; `created` is when each chunk was stored."""
        keys = list(map(self._key, map(attrgetter("mention.name"), entities)))
        sources = list(map(self._key, map(attrgetter("mention.source"), relations)))
        targets = list(map(self._key, map(attrgetter("mention.target"), relations)))
        unknown = {*keys, *sources, *targets} - self._by_key.keys()
        for row in self._reader.entity_rows(keys=unknown).values():
            self._by_key[row.key] = row
        for one, key in zip(entities, keys, strict=True):
            entity = self._by_key.get(key)
            if entity is None:
                entity = self._by_key[key] = EntityRow(self._ids.entities, key)
                self._ids.entities += 1
            self._touch("entity", entity, one, created)
            count_entity(entity, one, 1)
            self.change.entities[entity.id] = entity
            one.entity = entity.id
        self.change.entity_mentions += entities
        pairs, unread = [], set()
        for source, target in zip(sources, targets, strict=True):
            ends = self._by_key[source].id, self._by_key[target].id
            pairs.append(ends)
            unread.add((min(ends), max(ends)))
        unread -= self._by_pair.keys()
        for found in self._reader.relation_rows(pairs=unread).values():
            self._by_pair[found.low, found.high] = found
        for other, (source_id, target_id) in zip(relations, pairs, strict=True):
            self._add_relation(other, source_id, target_id, created)
        self.change.relation_mentions += relations

    def finish(self, displays: Mapping[str, str]) -> GraphChange:
        """The whole change; `displays` holds names that a person chose, by key."""
        for row in self.change.entities.values():
            row.name = displays.get(row.key) or winner(row.names)
            known = {**row.types}
            known.pop(UNKNOWN_TYPE, None)
            row.type = winner(known) or UNKNOWN_TYPE
        for one in self.change.relations.values():
            low, high = winner(one.low_names), winner(one.high_names)
            one.reversed = (one.forward, high) < (one.backward, low)
        return self.change

    def _key(self, name: str) -> str:
        key = name_key(name)
        return self._targets.get(key, key)

    def _add_relation(
        self, one: RelationMentionRow, source: int, target: int, created: Mapping[int, float]
    ) -> None:
        one.relation, one.forward = None, source < target
        if source == target:  # a merge of names made both ends one entity
            return
        pair = min(source, target), max(source, target)
        row = self._by_pair.get(pair)
        if row is None:
            row = self._by_pair[pair] = RelationRow(self._ids.relations, *pair)
            self._ids.relations += 1
        one.relation = row.id
        self._touch("relation", row, one, created)
        count_relation(row, one, 1)
        self.change.relations[row.id] = row

    def _touch(
        self,
        kind: Kind,
        row: GraphRow,
        one: EntityMentionRow | RelationMentionRow,
        created: Mapping[int, float],
    ) -> None:
        """Note an added mention: when it was first stored, and its description."""
        at = created[one.chunk]
        row.created_at = min(row.created_at, at) if row.mentions else at
        self.change.last_mentions[kind, row.id] = one.id
        if one.mention.description:
            description = one.position, one.mention.description
            self.change.descriptions.setdefault((kind, row.id), []).append(description)

    def _update_created(self) -> None:
        """Find the first mention of rows anew, where it may have been removed."""
        reader = self._reader
        gone = {chunk.id: stored_at(chunk) for chunk in reader.chunks(self.change.without).values()}
        for kind in GRAPH_KINDS:
            rows = self.change.rows(kind)
            due = [id for id, row in rows.items() if round(row.created_at, 6) in gone.values()]
            load = reader.entities if kind == "entity" else reader.relations
            found = load(due, chunk_limit=MOST_CHUNKS).items()
            left = {id: set(one.chunk_ids) - gone.keys() for id, one in found}
            chunks = reader.chunks_by_id(set().union(*left.values()))
            for id, ids in left.items():
                rows[id].created_at = min(stored_at(chunks[one]) for one in ids)


def stored_at(chunk: Chunk) -> float:
    """When a chunk was stored, in seconds, exact to the microsecond."""
    return round(chunk.created_at.timestamp(), 6) if chunk.created_at else 0.0


def mention_rows(
    extraction: Extraction, chunk: int, position: int, ids: NextIds
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The mentions of a new chunk, numbered; their entities and relations are not known yet.

    `position` orders the chunk among all others, whenever they are inserted.
    """
    first, last = position << POSITION_BITS, (1 << POSITION_BITS) - 1
    entities, relations = [], []
    for number, entity in enumerate(extraction.entities):
        at = first + min(number, last)
        entities.append(EntityMentionRow(ids.entity_mentions, 0, chunk, at, entity))
        ids.entity_mentions += 1
    for number, relation in enumerate(extraction.relations):
        at = first + min(number, last)
        relations.append(RelationMentionRow(ids.relation_mentions, None, chunk, at, relation, True))
        ids.relation_mentions += 1
    return entities, relations


# ── sums and votes ──────────────────────────────────────────────────────────────


def count_entity(row: EntityRow, one: EntityMentionRow, times: int) -> None:
    """Add a mention to an entity (`times` 1) or remove it (-1)."""
    row.mentions += times
    _vote(row.names, one.mention.name, times)
    _vote(row.types, one.mention.type, times)
    for name, value in one.mention.attributes:
        _vote(row.attributes, f"{name}\0{value}", times)


def count_relation(row: RelationRow, one: RelationMentionRow, times: int) -> None:
    """Add a mention to a relation (`times` 1) or remove it (-1)."""
    mention = one.mention
    row.mentions += times
    row.weight += times * round(mention.strength * MILLIONTHS)
    for keyword in mention.keywords:
        _vote(row.keywords, keyword, times)
    if one.forward:
        row.forward += times
        low, high = mention.source, mention.target
    else:
        row.backward += times
        high, low = mention.source, mention.target
    _vote(row.low_names, low, times)
    _vote(row.high_names, high, times)


def _vote(votes: dict[str, int], choice: str, times: int) -> None:
    votes[choice] = votes.get(choice, 0) + times
    if not votes[choice]:
        del votes[choice]


def _drop_summary(row: GraphRow, removed: int) -> None:
    """Drop a summary that was written from a mention that is removed."""
    if removed <= row.summarized_to:
        row.summary, row.summarized_to, row.summarized_mentions = None, 0, 0
