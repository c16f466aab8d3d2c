"""What a query reads: entities, relations and the chunks they were found in, by row id."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.storage.claims import TABLES
from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Entity, Json, Kind, Relation

UNBOUNDED = 1 << 60
NameChunks = Callable[[Iterable[int]], dict[int, str]]


def entities(
    connection: sqlite3.Connection,
    ids: Iterable[int],
    *,
    chunk_limit: int = UNBOUNDED,
    name_chunks: NameChunks | None = None,
) -> dict[int, Entity]:
    """Entities by row id, each with the ids of (at most `chunk_limit` of) its chunks.

    Their degrees are left at 0: the graph knows them.
    """
    ids = list(ids)
    chunks = _sources(connection, "entity", ids, chunk_limit, name_chunks)
    rows = connection.execute(
        "SELECT e.id, e.name, e.type, e.description, e.created_at, e.tally "
        "FROM json_each(?) AS wanted JOIN entities e ON e.id = wanted.value",
        (json.dumps(ids),),
    )
    return {
        row[0]: Entity(
            name=row[1],
            type=row[2],
            description=row[3],
            chunk_ids=chunks.get(row[0], ()),
            created_at=datetime.fromtimestamp(row[4], UTC),
            attributes=_attributes(row[5]),
        )
        for row in rows
    }


def relations(
    connection: sqlite3.Connection,
    ids: Iterable[int],
    *,
    chunk_limit: int = UNBOUNDED,
    name_chunks: NameChunks | None = None,
) -> dict[int, Relation]:
    """Relations by row id, each with the ids of (at most `chunk_limit` of) its chunks."""
    ids = list(ids)
    chunks = _sources(connection, "relation", ids, chunk_limit, name_chunks)
    rows = connection.execute(
        "SELECT r.id, a.name, b.name, r.reversed, r.keywords, r.description, r.weight, "
        "r.created_at FROM json_each(?) AS wanted JOIN relations r ON r.id = wanted.value "
        "JOIN entities a ON a.id = r.low JOIN entities b ON b.id = r.high",
        (json.dumps(ids),),
    )
    return {
        row[0]: Relation(
            source=row[2] if row[3] else row[1],
            target=row[1] if row[3] else row[2],
            keywords=tuple(json.loads(row[4])),
            description=row[5],
            weight=row[6],
            chunk_ids=chunks.get(row[0], ()),
            created_at=datetime.fromtimestamp(row[7], UTC),
        )
        for row in rows
    }


def entity_ids(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, int]:
    """Row ids of the entities with these name keys, aliases followed."""
    rows = connection.execute(
        "SELECT wanted.value, e.id FROM json_each(?) AS wanted "
        "LEFT JOIN aliases a ON a.key = wanted.value "
        "JOIN entities e ON e.key = coalesce(a.target, wanted.value)",
        (dump(sorted(set(keys))),),
    )
    return dict(rows.fetchall())


def relation_between(connection: sqlite3.Connection, one: int, other: int) -> int | None:
    """The row id of the relation of two entities (row ids), or None."""
    row = connection.execute(
        "SELECT id FROM relations WHERE low = ? AND high = ?", (min(one, other), max(one, other))
    ).fetchone()
    return None if row is None else int(row[0])


def mention_chunks(
    connection: sqlite3.Connection, kind: Kind, ids: Iterable[int]
) -> list[tuple[int, int]]:
    """(entity or relation, chunk) row ids, each pair once, in the order of the arguments and of place."""
    rows = connection.execute(
        f"SELECT m.{kind}, m.chunk FROM json_each(?) AS wanted "
        f"JOIN {TABLES[kind]} m ON m.{kind} = wanted.value ORDER BY wanted.key, m.place",
        (json.dumps(list(ids)),),
    )
    return list(dict.fromkeys(rows.fetchall()))


def mentioned(connection: sqlite3.Connection, kind: Kind, chunks: Iterable[int]) -> list[int]:
    """Row ids of the entities or relations that these chunks mention, in the order of the chunks."""
    rows = connection.execute(
        f"SELECT m.{kind} FROM json_each(?) AS wanted JOIN {TABLES[kind]} m "
        f"ON m.chunk = wanted.value GROUP BY m.{kind} ORDER BY min(wanted.key), min(m.place), m.{kind}",
        (json.dumps(list(chunks)),),
    )
    return [row[0] for row in rows]


def chunk_names(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """The public ids of chunks by row id."""
    rows = connection.execute(
        "SELECT id, name FROM chunks WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    )
    return dict(rows.fetchall())


def entity_names(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """The display names of entities by row id."""
    rows = connection.execute(
        "SELECT id, name FROM entities WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    )
    return dict(rows.fetchall())


def fragments(
    connection: sqlite3.Connection, kind: Kind, ids: Iterable[int], chunks: Iterable[int]
) -> dict[int, list[str]]:
    """What the given chunks alone say of entities or relations: distinct descriptions by row id."""
    rows = connection.execute(
        f"SELECT m.{kind}, m.description FROM json_each(?) AS wanted "
        f"JOIN {TABLES[kind]} m ON m.{kind} = wanted.value "
        "WHERE m.chunk IN (SELECT value FROM json_each(?)) AND m.description <> '' "
        "ORDER BY m.place",
        (json.dumps(list(ids)), json.dumps(sorted(chunks))),
    )
    found: dict[int, dict[str, None]] = {}
    for owner, description in rows:
        found.setdefault(owner, {})[description] = None
    return {owner: list(texts) for owner, texts in found.items()}


def document_labels(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """What to call documents when showing them: title, or source, or id."""
    rows = connection.execute(
        "SELECT name, coalesce(nullif(title, ''), nullif(source, ''), name) FROM documents "
        "WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name",
        (dump(sorted(set(ids))),),
    )
    return dict(rows.fetchall())


# ── filters ─────────────────────────────────────────────────────────────────────

COLUMNS = {"id": "d.name", "title": "d.title", "source": "d.source", "date": "d.date"}
ESCAPED = re.compile(r'["\\\x00-\x1f]')  # stands in JSON in another form than in a text
LARGEST = 2**63 - 1
FINITE = int(sys.float_info.max)
COMPARISONS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$ne": "<>"}


def allowed_chunks(connection: sqlite3.Connection, where: dict[str, Json]) -> list[int]:
    """Row ids, ascending, of the chunks whose documents meet every condition.

    A key is `id`, `title`, `source`, `date` or a metadata name. A value is equal to what is
    wanted, a list of such values, or a mapping such as {"$gte": "2024-01-01"}.
    """
    clauses, values = [], list[object]()
    for field, wanted in where.items():
        clause, found = _condition(field, wanted)
        clauses.append(clause)
        values += found
    rows = connection.execute(
        "SELECT c.id FROM documents d JOIN chunks c ON c.document = d.id "
        f"WHERE {' AND '.join(clauses) or '1'} ORDER BY c.id",
        values,
    )
    return [row[0] for row in rows]


def _column(field: str) -> tuple[str, list[object]]:
    """What holds a field's value, and what it is asked with."""
    if field in COLUMNS:
        return COLUMNS[field], []
    name = sanitize(field)
    if ESCAPED.search(name):  # no path of SQLite leads there
        return "(SELECT value FROM json_each(d.metadata) WHERE key = ?)", [name]
    return "json_extract(d.metadata, ?)", [f'$."{name}"']


def _condition(field: str, wanted: Json) -> tuple[str, list[object]]:
    column, path = _column(field)
    if isinstance(wanted, dict):
        unknown = wanted.keys() - COMPARISONS.keys()
        if unknown or not wanted:
            raise ConfigError(
                f"where[{field!r}]: unknown comparison {', '.join(sorted(unknown)) or '{}'}; "
                f"known are {', '.join(COMPARISONS)}"
            )
        parts = [f"{column} {COMPARISONS[name]} ?" for name in wanted]
        values = [item for value in wanted.values() for item in [*path, _plain(value)]]
        return " AND ".join(parts), values
    choices = wanted if isinstance(wanted, list) else [wanted]
    if any(isinstance(choice, dict | list) for choice in choices):
        raise ConfigError(f"where[{field!r}]: values must be texts or numbers")
    marks = ", ".join("?" * len(choices))
    return f"{column} IN ({marks})", [*path, *map(_plain, choices)]


def _plain(value: Json) -> object:
    """A value as the database compares it; integers past its own are floats to it."""
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        return float(min(max(value, -FINITE), FINITE))
    return int(value) if isinstance(value, bool) else value


def _sources(
    connection: sqlite3.Connection,
    kind: Kind,
    ids: list[int],
    limit: int,
    name_chunks: NameChunks | None,
) -> dict[int, tuple[str, ...]]:
    rows = connection.execute(
        "SELECT wanted.value, (SELECT json_group_array(chunk) FROM (SELECT chunk FROM "
        f"{TABLES[kind]} WHERE {kind} = wanted.value ORDER BY place LIMIT ?)) "
        "FROM json_each(?) AS wanted",  # the index alone answers this
        (limit, json.dumps(ids)),
    )
    chunks = {owner: dict.fromkeys(json.loads(found)) for owner, found in rows}
    name_chunks = name_chunks or partial(chunk_names, connection)
    names = name_chunks(set().union(*chunks.values()))
    return {owner: tuple(names[chunk] for chunk in found) for owner, found in chunks.items()}


def _attributes(tally: str) -> tuple[tuple[str, str], ...]:
    if tally.endswith(",{}]"):
        return ()
    attributes = json.loads(tally)[2]
    return tuple(
        sorted((name, value) for name, _, value in (a.partition("\0") for a in attributes))
    )
