"""Checks that stored data still follows from what it was derived from: chunk ids, and the graph's rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lightrag_jsonl.indexing.merging import NO_RELATION
from lightrag_jsonl.indexing.spans import chunk_id
from lightrag_jsonl.indexing.tallies import (
    count_entity,
    count_relation,
    settle_entity,
    settle_relation,
)
from lightrag_jsonl.storage import aliases, documents, rows
from lightrag_jsonl.storage.aliases import Aliases
from lightrag_jsonl.storage.claims import EntityClaim, RelationClaim, entity_claims, relation_claims
from lightrag_jsonl.storage.documents import chunk_times
from lightrag_jsonl.storage.rows import EntityRow, RelationRow
from lightrag_jsonl.text import name_key

SHOWN = 5  # at most so many wrong rows are named
BATCH = 1_000
ENTITY_FIELDS = ("key", "names", "types", "attributes", "mentions", "name", "type", "created_at")
RELATION_FIELDS = (
    "low",
    "high",
    "keywords",
    "low_names",
    "high_names",
    "forward",
    "backward",
    "weight",
    "mentions",
    "reversed",
    "created_at",
)


@dataclass(slots=True)
class _Fold:
    """The graph as a fresh fold of its claims gives it, without the descriptions (models write those)."""

    entities: dict[int, EntityRow]
    relations: dict[int, RelationRow]
    strays: int = 0


def id_problems(connection: sqlite3.Connection) -> list[str]:
    """Chunks whose id does not follow from their document and place, in words; empty if there are none."""
    wrong = 0
    for document in documents.documents(connection):
        for chunk in documents.chunks_of(connection, [document.row]).values():
            wrong += chunk.id != chunk_id(document.id, chunk.page, chunk.start, chunk.text)
    return [f"{wrong} chunks have another id than their document and place give"] if wrong else []


def fold_problems(connection: sqlite3.Connection) -> list[str]:
    """Entities and relations that differ from a fresh fold of their claims, in words; empty if none do."""
    fold = _fresh(connection)
    found = []
    if fold.strays:
        found.append(f"{fold.strays} claims belong to another entity or relation than they name")
    stored_entities = rows.entities_by_id(connection, rows.all_ids(connection, "entity"))
    stored_relations = rows.relations_by_id(connection, rows.all_ids(connection, "relation"))
    entities = _different(stored_entities, fold.entities, ENTITY_FIELDS)
    found += _summary("entities", [f"{stored_entities[id].name} ({why})" for id, why in entities])
    relations = _different(stored_relations, fold.relations, RELATION_FIELDS)
    found += _summary("relations", [f"row {id} ({why})" for id, why in relations])
    return found


def _fresh(connection: sqlite3.Connection) -> _Fold:
    fold = _Fold({}, {})
    known_as = aliases.read(connection)
    ends: dict[int, dict[str, int]] = {}
    every = rows.all_ids(connection, "chunk")
    for start in range(0, len(every), BATCH):
        chunks = every[start : start + BATCH]
        times = chunk_times(connection, chunks)
        for claim in entity_claims(connection, chunks):
            key = _key(claim.mention.name, known_as)
            ends.setdefault(claim.chunk, {})[key] = claim.entity
            _count_entity(fold, claim, key, times[claim.chunk])
        for relation in relation_claims(connection, chunks):
            known = ends.get(relation.chunk, {})
            source = known.get(_key(relation.mention.source, known_as))
            target = known.get(_key(relation.mention.target, known_as))
            _count_relation(fold, relation, source, target, times[relation.chunk])
        ends.clear()
    for entity in fold.entities.values():
        settle_entity(entity, known_as.displays)
    for row in fold.relations.values():
        settle_relation(row)
    return fold


def _count_entity(fold: _Fold, claim: EntityClaim, key: str, at: float) -> None:
    row = fold.entities.setdefault(claim.entity, EntityRow(claim.entity, key, created_at=at))
    fold.strays += row.key != key
    row.created_at = min(row.created_at, at)
    count_entity(row, claim.mention, 1)


def _count_relation(
    fold: _Fold, claim: RelationClaim, source: int | None, target: int | None, at: float
) -> None:
    if source is None or target is None:
        fold.strays += 1
        return
    if claim.relation == NO_RELATION or source == target:
        fold.strays += (source == target) != (claim.relation == NO_RELATION)
        return
    pair = (min(source, target), max(source, target))
    new = RelationRow(claim.relation, *pair, created_at=at)
    row = fold.relations.setdefault(claim.relation, new)
    fold.strays += (row.low, row.high) != pair or claim.forward != (source < target)
    row.created_at = min(row.created_at, at)
    count_relation(row, claim.mention, 1, forward=claim.forward)


def _different(
    stored: Mapping[int, EntityRow] | Mapping[int, RelationRow],
    fresh: Mapping[int, EntityRow] | Mapping[int, RelationRow],
    fields: tuple[str, ...],
) -> Iterator[tuple[int, str]]:
    """Stored rows that differ from the fresh fold, each with the fields that differ."""
    for id in sorted(stored):
        if id not in fresh:
            yield id, "no claim"
            continue
        wrong = [f for f in fields if getattr(stored[id], f) != getattr(fresh[id], f)]
        if wrong:
            yield id, ", ".join(wrong)


def _summary(kind: str, wrong: list[str]) -> list[str]:
    if not wrong:
        return []
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return [f"{len(wrong)} {kind} differ from their claims: {'; '.join(wrong[:SHOWN])}{more}"]


def _key(name: str, known_as: Aliases) -> str:
    key = name_key(name)
    return known_as.targets.get(key, key)
