"""The rows of entities and relations, with the tallies to which claims are added."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from lightrag_jsonl.storage.bulk import delete_rows, put_rows
from lightrag_jsonl.types import Kind

# The tables whose rows have vectors, by kind.
OWNERS: dict[Kind, str] = {"entity": "entities", "relation": "relations", "chunk": "chunks"}


@dataclass(slots=True)
class EntityRow:
    """One entity; `names`, `types` and `attributes` are votes, counted over its mentions."""

    id: int
    key: str
    names: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    mentions: int = 0
    description: str = ""
    summary: str | None = None
    covered: int = 0
    covered_mentions: int = 0
    created_at: float = 0.0
    embedding: int | None = None
    name: str = ""
    type: str = ""


@dataclass(slots=True)
class RelationRow:
    """One pair of entities (`low` < `high`, row ids); `weight` is in millionths.

    `low_names` and `high_names` count the spellings of its ends in its own mentions. `forward`
    counts the mentions that lead from low to high, `backward` the others.
    """

    id: int
    low: int
    high: int
    keywords: dict[str, int] = field(default_factory=dict)
    low_names: dict[str, int] = field(default_factory=dict)
    high_names: dict[str, int] = field(default_factory=dict)
    forward: int = 0
    backward: int = 0
    weight: int = 0
    mentions: int = 0
    description: str = ""
    summary: str | None = None
    covered: int = 0
    covered_mentions: int = 0
    created_at: float = 0.0
    embedding: int | None = None
    reversed: bool = False


# ── reading ─────────────────────────────────────────────────────────────────────

_MERGED = "tally, mentions, description, summary, covered, covered_mentions, created_at, embedding"
ENTITY_COLUMNS = f"id, key, {_MERGED}, name, type"
RELATION_COLUMNS = f"id, low, high, {_MERGED}, reversed"


def all_ids(connection: sqlite3.Connection, kind: Kind) -> list[int]:
    """Every row id of a kind, ascending."""
    return [row[0] for row in connection.execute(f"SELECT id FROM {OWNERS[kind]} ORDER BY id")]


def entities_by_key(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, EntityRow]:
    """The stored entities among `keys`."""
    rows = connection.execute(
        f"SELECT {ENTITY_COLUMNS} FROM entities WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(keys), ensure_ascii=False),),
    )
    return {row.key: row for row in map(_entity, rows)}


def entities_by_id(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, EntityRow]:
    """The stored entities among `ids`."""
    rows = connection.execute(
        f"SELECT {ENTITY_COLUMNS} FROM entities WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    )
    return {row.id: row for row in map(_entity, rows)}


def relations_by_pair(
    connection: sqlite3.Connection, pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], RelationRow]:
    """The stored relations among `pairs` of entity ids, each with the lower id first."""
    rows = connection.execute(
        "WITH wanted AS (SELECT json_extract(value, '$[0]') AS low, "
        "json_extract(value, '$[1]') AS high FROM json_each(?)) "
        f"SELECT {RELATION_COLUMNS} FROM wanted CROSS JOIN relations USING (low, high)",
        (json.dumps(sorted(pairs)),),
    )
    return {(row.low, row.high): row for row in map(_relation, rows)}


def relations_by_id(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, RelationRow]:
    """The stored relations among `ids`."""
    rows = connection.execute(
        f"SELECT {RELATION_COLUMNS} FROM relations WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    )
    return {row.id: row for row in map(_relation, rows)}


def _entity(row: tuple[Any, ...]) -> EntityRow:
    id, key, tally, *rest = row
    return EntityRow(id, key, *orjson.loads(tally), *rest)


def _relation(row: tuple[Any, ...]) -> RelationRow:
    id, low, high, tally, *rest, reversed_ = row
    found = RelationRow(id, low, high, *orjson.loads(tally), *rest)
    found.reversed = bool(reversed_)
    return found


# ── writing ─────────────────────────────────────────────────────────────────────


def put_entities(connection: sqlite3.Connection, rows: Iterable[EntityRow]) -> None:
    """Insert or replace entities."""
    put_rows(
        connection,
        f"INSERT INTO entities ({ENTITY_COLUMNS})",
        [
            (
                row.id,
                row.key,
                packed([row.names, row.types, row.attributes]),
                row.mentions,
                row.description,
                row.summary,
                row.covered,
                row.covered_mentions,
                row.created_at,
                row.embedding,
                row.name,
                row.type,
            )
            for row in rows
        ],
        then=_replacing(f"{_MERGED}, name, type"),
    )


def put_relations(connection: sqlite3.Connection, rows: Iterable[RelationRow]) -> None:
    """Insert or replace relations."""
    put_rows(
        connection,
        f"INSERT INTO relations ({RELATION_COLUMNS}, keywords, weight)",
        [
            (
                row.id,
                row.low,
                row.high,
                _relation_tally(row),
                row.mentions,
                row.description,
                row.summary,
                row.covered,
                row.covered_mentions,
                row.created_at,
                row.embedding,
                int(row.reversed),
                packed(sorted(row.keywords)),
                row.weight / 1e6,
            )
            for row in rows
        ],
        then=_replacing(f"{_MERGED}, reversed, keywords, weight"),
    )


def _replacing(columns: str) -> str:
    """The end of an INSERT statement that updates these columns if the id exists already."""
    return "ON CONFLICT (id) DO UPDATE SET " + ", ".join(
        f"{column} = excluded.{column}" for column in columns.split(", ")
    )


def drop_rows(connection: sqlite3.Connection, kind: Kind, ids: Collection[int]) -> None:
    """Delete entities or relations with their earlier summaries; their claims and vectors stay."""
    delete_rows(connection, OWNERS[kind], "id", ids)
    connection.execute(
        "DELETE FROM earlier_summaries WHERE kind = ? AND owner IN (SELECT value FROM json_each(?))",
        (kind, json.dumps(sorted(ids))),
    )


def _relation_tally(row: RelationRow) -> str:
    sums = (row.forward, row.backward, row.weight)
    return packed([row.keywords, row.low_names, row.high_names, *sums])


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dump(value: object) -> str:
    """Compact JSON with non-ASCII text as it is."""
    return _ENCODER.encode(value)


def packed(value: object) -> str:
    """The same for tallies and lists: faster, but only for clean texts and 64-bit numbers."""
    return orjson.dumps(value).decode()
