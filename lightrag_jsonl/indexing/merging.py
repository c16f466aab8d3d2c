"""Folds the claims of chunks into entities and relations, and takes them out again.

Everything a row holds is a sum or a vote, so adding and removing claims in any order gives the
same row: the graph is a function of the set of claims (laws *fold* and *undo*).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lightrag_jsonl.indexing.tallies import (
    count_entity,
    count_relation,
    settle_entity,
    settle_relation,
)
from lightrag_jsonl.storage import claims, rows
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.storage.claims import (
    EntityClaim,
    RelationClaim,
    Row,
    entity_row,
    relation_row,
)
from lightrag_jsonl.storage.documents import chunk_times
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Extraction, Kind, RelationMention

GRAPH_KINDS: tuple[Kind, ...] = ("entity", "relation")
NO_RELATION = 0  # in place of a relation's id, for claims whose two ends an alias has merged
PLACE_BITS = 10  # of a place: room for 1,023 claims of a kind in one chunk; more share the last


@dataclass(slots=True)
class NextIds:
    """The next free row id of each table."""

    documents: int
    chunks: int
    entities: int
    relations: int
    entity_mentions: int
    relation_mentions: int

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> NextIds:
        """Look up the next ids; valid while this is the only writer."""
        query = "SELECT coalesce(max(id), 0) + 1 FROM "
        return cls(*(connection.execute(query + t).fetchone()[0] for t in cls.__slots__))


@dataclass(frozen=True, slots=True)
class Said:
    """What one chunk (a row id) said; `place` orders chunks, `at` is when the chunk was stored.

    If a stored chunk is folded again, `entity_claims` and `relation_claims` hold the row ids of its
    claims, which they keep.
    """

    chunk: int
    place: int
    at: float
    extraction: Extraction
    entity_claims: Sequence[int] = ()
    relation_claims: Sequence[int] = ()


Fragment = tuple[int, str]  # place, description


@dataclass(slots=True)
class Plan:
    """The change that adding and removing chunks makes to the graph.

    - `entities`, `relations`: all touched rows by row id. `entity_claims`, `relation_claims`: new
      rows for the tables of claims. `removed`: chunks whose claims are deleted.
    - `last_claims`: for each touched owner, the row id of its last new claim. `fragments`: the
      descriptions in its new claims.
    - `again`: for each owner, its claims that were folded again, by row id.
    - `uncovered`: for each owner whose summary covered a removed claim, the first such claim.
    """

    entities: dict[int, EntityRow] = field(default_factory=dict)
    relations: dict[int, RelationRow] = field(default_factory=dict)
    entity_claims: list[Row] = field(default_factory=list)
    relation_claims: list[Row] = field(default_factory=list)
    removed: frozenset[int] = frozenset()
    last_claims: dict[tuple[Kind, int], int] = field(default_factory=dict)
    fragments: dict[tuple[Kind, int], list[Fragment]] = field(default_factory=dict)
    again: dict[tuple[Kind, int], dict[int, Fragment]] = field(default_factory=dict)
    uncovered: dict[tuple[Kind, int], int] = field(default_factory=dict)

    def row(self, kind: Kind, id: int) -> EntityRow | RelationRow:
        """A touched row; `KeyError` if it was not touched."""
        return self.entities[id] if kind == "entity" else self.relations[id]

    def touched(self, kind: Kind) -> Sequence[EntityRow | RelationRow]:
        """All touched rows of a kind."""
        return tuple((self.entities if kind == "entity" else self.relations).values())

    def alive(self, kind: Kind) -> list[EntityRow | RelationRow]:
        """The touched rows of a kind that have mentions left."""
        return [row for row in self.touched(kind) if row.mentions]

    def gone(self, kind: Kind) -> list[int]:
        """The touched rows of a kind that lost their last mention."""
        return sorted(row.id for row in self.touched(kind) if not row.mentions)


def fold(
    connection: sqlite3.Connection,
    added: Sequence[Said],
    removed: Collection[int],
    ids: NextIds,
    aliases: Aliases,
) -> Plan:
    """The rows after adding the chunks in `added` and removing those in `removed` (row ids)."""
    plan = Plan(removed=frozenset(removed))
    _take_out(connection, plan)
    keys = _Keys(aliases.targets)
    by_key = _named_entities(connection, plan, added, keys, ids)
    _add_entity_claims(plan, added, keys, by_key, ids)
    _add_relation_claims(connection, plan, added, keys, by_key, ids)
    for entity in plan.entities.values():
        settle_entity(entity, aliases.displays)
    for relation in plan.relations.values():
        settle_relation(relation)
    return plan


class _Keys:
    """Name keys with aliases resolved, computed once for each name."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        key = self._known.get(name)
        if key is None:
            key = name_key(name)
            key = self._known[name] = self._aliases.get(key, key)
        return key


def said_again(connection: sqlite3.Connection, chunks: Collection[int]) -> list[Said]:
    """What stored chunks (row ids) said, with the row ids of the claims, to be folded under other aliases."""
    entities: dict[int, list[EntityClaim]] = {chunk: [] for chunk in sorted(chunks)}
    relations: dict[int, list[RelationClaim]] = {chunk: [] for chunk in entities}
    for claim in claims.entity_claims(connection, chunks):
        entities[claim.chunk].append(claim)
    for relation in claims.relation_claims(connection, chunks):
        relations[relation.chunk].append(relation)
    times = chunk_times(connection, chunks)
    return [
        Said(
            chunk,
            found[-1].place >> PLACE_BITS if found else 0,
            times[chunk],
            Extraction(
                tuple(claim.mention for claim in found),
                tuple(claim.mention for claim in relations[chunk]),
            ),
            [claim.id for claim in found],
            [claim.id for claim in relations[chunk]],
        )
        for chunk, found in entities.items()
    ]


def with_both_ends(said: Iterable[Said], aliases: Aliases) -> tuple[list[Said], int]:
    """`said` without the relations of which a chunk does not name both ends, and the number of these.

    There are some only if claims about entities were lost: such relations have no entity to join.
    """
    keys, kept, loose = _Keys(aliases.targets), [], 0
    for one in said:
        named = {keys[mention.name] for mention in one.extraction.entities}
        whole = [
            number
            for number, mention in enumerate(one.extraction.relations)
            if {keys[mention.source], keys[mention.target]} <= named
        ]
        loose += len(one.extraction.relations) - len(whole)
        relations = tuple(one.extraction.relations[number] for number in whole)
        extraction = replace(one.extraction, relations=relations)
        ids = [one.relation_claims[number] for number in whole]
        kept.append(replace(one, extraction=extraction, relation_claims=ids))
    return kept, loose


# ── taking out ──────────────────────────────────────────────────────────────────


def _take_out(connection: sqlite3.Connection, plan: Plan) -> None:
    if not plan.removed:
        return
    gone_entities = claims.entity_claims(connection, plan.removed)
    gone_relations = [
        claim
        for claim in claims.relation_claims(connection, plan.removed)
        if claim.relation != NO_RELATION
    ]
    plan.entities = rows.entities_by_id(connection, {c.entity for c in gone_entities})
    plan.relations = rows.relations_by_id(connection, {c.relation for c in gone_relations})
    for claim in gone_entities:
        count_entity(plan.entities[claim.entity], claim.mention, -1)
        _uncover(plan, "entity", claim.entity, claim.id)
    for relation_claim in gone_relations:
        row = plan.relations[relation_claim.relation]
        count_relation(row, relation_claim.mention, -1, forward=relation_claim.forward)
        _uncover(plan, "relation", row.id, relation_claim.id)
    times = set(chunk_times(connection, plan.removed).values())
    for kind in GRAPH_KINDS:
        for touched in plan.alive(kind):
            if (
                touched.created_at in times
            ):  # the chunk that first mentioned it may be among the removed
                since = claims.first_seen(connection, kind, touched.id, without=plan.removed)
                touched.created_at = touched.created_at if since is None else since


def _uncover(plan: Plan, kind: Kind, owner: int, claim: int) -> None:
    """Drop a summary that covered a removed claim. Claims come in order of row ids."""
    row = plan.row(kind, owner)
    if claim <= row.covered:
        plan.uncovered[kind, owner] = claim
        row.summary, row.covered, row.covered_mentions = None, 0, 0


# ── adding ──────────────────────────────────────────────────────────────────────


def _named_entities(
    connection: sqlite3.Connection, plan: Plan, added: Sequence[Said], keys: _Keys, ids: NextIds
) -> dict[str, EntityRow]:
    first_seen: dict[str, float] = {}
    for said in added:
        for mention in said.extraction.entities:
            first_seen.setdefault(keys[mention.name], said.at)
    by_key = {row.key: row for row in plan.entities.values()}
    stored = rows.entities_by_key(connection, first_seen.keys() - by_key.keys())
    for key, at in first_seen.items():
        row = by_key.get(key) or stored.get(key)
        if row is None:
            row = EntityRow(ids.entities, key, created_at=at)
            ids.entities += 1
        by_key[key] = plan.entities[row.id] = row
    return by_key


def _add_entity_claims(
    plan: Plan,
    added: Sequence[Said],
    keys: _Keys,
    by_key: Mapping[str, EntityRow],
    ids: NextIds,
) -> None:
    for said in added:
        for position, mention in enumerate(said.extraction.entities):
            row = by_key[keys[mention.name]]
            _since(row, said.at)
            count_entity(row, mention, 1)
            place = _place(said, position)
            fragment = place, mention.description
            if said.entity_claims:
                id = said.entity_claims[position]
                plan.again.setdefault(("entity", row.id), {})[id] = fragment
            else:
                id = ids.entity_mentions
                ids.entity_mentions += 1
            plan.entity_claims.append(entity_row(id, row.id, said.chunk, place, mention))
            plan.last_claims["entity", row.id] = id
            _note(plan, "entity", row.id, fragment)


def _add_relation_claims(
    connection: sqlite3.Connection,
    plan: Plan,
    added: Sequence[Said],
    keys: _Keys,
    by_key: Mapping[str, EntityRow],
    ids: NextIds,
) -> None:
    by_pair = {(row.low, row.high): row for row in plan.relations.values()}
    wanted: set[tuple[int, int]] = set()
    found: list[tuple[Said, int, int, RelationMention, int, int]] = []
    for said in added:
        for position, mention in enumerate(said.extraction.relations):
            source, target = by_key[keys[mention.source]].id, by_key[keys[mention.target]].id
            if said.relation_claims:
                id = said.relation_claims[position]
            else:
                id = ids.relation_mentions
                ids.relation_mentions += 1
            if (
                source == target
            ):  # an alias has merged both ends: the claim is kept in case that is undone
                plan.relation_claims.append(
                    relation_row(id, NO_RELATION, said.chunk, 0, mention, forward=True)
                )
                continue
            wanted.add((min(source, target), max(source, target)))
            found.append((said, _place(said, position), id, mention, source, target))
    by_pair |= rows.relations_by_pair(connection, wanted - by_pair.keys())
    for said, place, id, mention, source, target in found:
        pair = (min(source, target), max(source, target))
        row = by_pair.get(pair)
        if row is None:
            row = by_pair[pair] = RelationRow(ids.relations, *pair, created_at=said.at)
            ids.relations += 1
        plan.relations[row.id] = row
        _since(row, said.at)
        count_relation(row, mention, 1, forward=source < target)
        plan.relation_claims.append(
            relation_row(id, row.id, said.chunk, place, mention, forward=source < target)
        )
        plan.last_claims["relation", row.id] = id
        fragment = place, mention.description
        _note(plan, "relation", row.id, fragment)
        if said.relation_claims:
            plan.again.setdefault(("relation", row.id), {})[id] = fragment


def _since(row: EntityRow | RelationRow, at: float) -> None:
    row.created_at = min(row.created_at, at) if row.mentions else at


def _place(said: Said, position: int) -> int:
    return said.place << PLACE_BITS | min(position, (1 << PLACE_BITS) - 1)


def _note(plan: Plan, kind: Kind, owner: int, fragment: Fragment) -> None:
    if fragment[1]:
        plan.fragments.setdefault((kind, owner), []).append(fragment)
