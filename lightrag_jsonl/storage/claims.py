"""The claims: the mentions in each chunk, from which entities and relations are folded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import orjson

from lightrag_jsonl.storage.bulk import delete_rows, put_rows
from lightrag_jsonl.storage.rows import OWNERS, dump, packed
from lightrag_jsonl.types import EntityMention, Kind, RelationMention

Row = tuple[int | float | str | None, ...]  # values in the order of the table's columns

OWNERS_AT_ONCE = 1_000  # their descriptions are read as one text, of some MB at most
TABLES: dict[Kind, str] = {"entity": "entity_mentions", "relation": "relation_mentions"}


@dataclass(frozen=True, slots=True)
class EntityClaim:
    """A stored entity mention."""

    id: int
    entity: int
    chunk: int
    place: int
    mention: EntityMention


@dataclass(frozen=True, slots=True)
class RelationClaim:
    """A stored relation mention, its ends resolved to entities."""

    id: int
    relation: int
    chunk: int
    place: int
    mention: RelationMention
    forward: bool


def entity_row(id: int, entity: int, chunk: int, place: int, mention: EntityMention) -> Row:
    """An entity mention as a row of its table.

    Thousands of rows may wait for a commit. Tuples of plain values are not tracked by Python's
    garbage collector, which would otherwise scan them again and again.
    """
    said = (mention.name, mention.type, mention.description, int(mention.grounded))
    attributes = dump(mention.attributes) if mention.attributes else None
    return (id, entity, chunk, place, *said, attributes)


def relation_row(
    id: int, relation: int, chunk: int, place: int, mention: RelationMention, *, forward: bool
) -> Row:
    """A relation mention as a row of its table; see `entity_row`."""
    said = (packed(mention.keywords), mention.description, mention.strength, int(forward))
    return (id, relation, chunk, place, mention.source, mention.target, *said)


def put_claims(
    connection: sqlite3.Connection, entities: Iterable[Row], relations: Iterable[Row]
) -> None:
    """Store the mentions of new chunks."""
    put_rows(connection, "INSERT INTO entity_mentions", entities)
    put_rows(connection, "INSERT INTO relation_mentions", relations)


def entity_claims(connection: sqlite3.Connection, chunks: Iterable[int]) -> list[EntityClaim]:
    """The entity mentions of these chunks (row ids), in the order they were stored."""
    rows = connection.execute(
        "SELECT m.id, m.entity, m.chunk, m.place, m.name, m.type, m.description, m.grounded, "
        "m.attributes FROM json_each(?) AS wanted JOIN entity_mentions m ON m.chunk = wanted.value "
        "ORDER BY m.id",
        (json.dumps(sorted(chunks)),),
    )
    return [
        EntityClaim(
            id,
            entity,
            chunk,
            place,
            EntityMention(name, kind, text, bool(grounded), _attributes(more)),
        )
        for id, entity, chunk, place, name, kind, text, grounded, more in rows
    ]


def relation_claims(connection: sqlite3.Connection, chunks: Iterable[int]) -> list[RelationClaim]:
    """The relation mentions of these chunks (row ids), in the order they were stored."""
    rows = connection.execute(
        "SELECT m.id, m.relation, m.chunk, m.place, m.source, m.target, m.keywords, m.description, "
        "m.strength, m.forward FROM json_each(?) AS wanted "
        "JOIN relation_mentions m ON m.chunk = wanted.value ORDER BY m.id",
        (json.dumps(sorted(chunks)),),
    )
    return [
        RelationClaim(
            id,
            relation,
            chunk,
            place,
            RelationMention(source, target, tuple(json.loads(words)), text, strength),
            bool(forward),
        )
        for id, relation, chunk, place, source, target, words, text, strength, forward in rows
    ]


def owners(connection: sqlite3.Connection, kind: Kind) -> list[int]:
    """The entities or relations (row ids) with several mentions, in order of their ids."""
    rows = connection.execute(f"SELECT id FROM {OWNERS[kind]} WHERE mentions > 1 ORDER BY id")
    return [row[0] for row in rows]


def drop_claims(connection: sqlite3.Connection, chunks: Collection[int]) -> None:
    """Delete the claims of these chunks."""
    for table in TABLES.values():
        delete_rows(connection, table, "chunk", chunks)


def fragments(
    connection: sqlite3.Connection,
    kind: Kind,
    after: Mapping[int, int],
    *,
    without: Iterable[int],
    limit: int = -1,
) -> dict[int, list[tuple[int, str]]]:
    """The first descriptions of each owner as (place, description), in order of place.

    Only claims past the row id that `after` holds for the owner count, and none of the chunks in
    `without`. A negative `limit` means all. All of them are read as a single row, since Python's
    SQLite module releases the interpreter lock for each row (see `bulk`).
    """
    statement = (
        "SELECT json_group_array(json((SELECT json_group_array(json_array(place, description)) "
        f"FROM (SELECT place, description FROM {TABLES[kind]} WHERE {kind} = wanted.key "
        "AND id > wanted.value AND chunk NOT IN (SELECT value FROM json_each(?)) "
        "AND description <> '' ORDER BY place LIMIT ?)))) FROM json_each(?) AS wanted"
    )
    left_out = json.dumps(sorted(without))
    found: dict[int, list[tuple[int, str]]] = {}
    waiting = iter(after.items())
    while some := dict(islice(waiting, OWNERS_AT_ONCE)):
        (told,) = connection.execute(statement, (left_out, limit, json.dumps(some))).fetchone()
        for owner, texts in zip(some, orjson.loads(told), strict=True):
            found[owner] = [(place, text) for place, text in texts]
    return found


def last_claim(
    connection: sqlite3.Connection, kind: Kind, owner: int, *, without: Iterable[int]
) -> int:
    """The highest row id of an owner's claims, without those of some chunks; 0 if there is none."""
    row = connection.execute(
        f"SELECT coalesce(max(id), 0) FROM {TABLES[kind]} WHERE {kind} = ? "
        "AND chunk NOT IN (SELECT value FROM json_each(?))",
        (owner, json.dumps(sorted(without))),
    ).fetchone()
    return int(row[0])


def first_seen(
    connection: sqlite3.Connection, kind: Kind, owner: int, *, without: Iterable[int]
) -> float | None:
    """When the earliest chunk that mentions the owner was stored, without some chunks."""
    row = connection.execute(
        f"SELECT min(c.created_at) FROM {TABLES[kind]} m JOIN chunks c ON c.id = m.chunk "
        f"WHERE m.{kind} = ? AND m.chunk NOT IN (SELECT value FROM json_each(?))",
        (owner, json.dumps(sorted(without))),
    ).fetchone()
    return None if row[0] is None else float(row[0])


def _attributes(text: str | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in json.loads(text)) if text else ()
