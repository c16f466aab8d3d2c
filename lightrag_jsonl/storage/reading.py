"""What a query reads: entities, relations and their chunks, by row id."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.storage.claims import TABLES
from lightrag_jsonl.storage.rows import dump
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Entity, Json, Kind, Relation

UNBOUNDED = 1 << 60
NameChunks = Callable[[Iterable[int]], dict[int, str]]
Row = tuple[Any, ...]

# The chunks that mention the wanted rows, in order of place; a covering index answers this.
_FIRST_CHUNKS: dict[Kind, str] = {
    kind: f"(SELECT json_group_array(chunk) FROM (SELECT chunk FROM {table} "
    f"WHERE {kind} = wanted.value ORDER BY place LIMIT ?))"
    for kind, table in TABLES.items()
}


def entities(
    connection: sqlite3.Connection,
    ids: Iterable[int],
    *,
    chunk_limit: int = UNBOUNDED,
    name_chunks: NameChunks | None = None,
) -> dict[int, Entity]:
    """Entities by row id, each with the public ids of its first `chunk_limit` chunks.

    Their degrees are 0: the graph in memory knows those.
    """
    rows = connection.execute(
        f"SELECT e.id, {_FIRST_CHUNKS['entity']}, e.name, e.type, e.description, e.created_at, "
        "e.tally FROM json_each(?) AS wanted JOIN entities e ON e.id = wanted.value",
        (chunk_limit, json.dumps(list(ids))),
    ).fetchall()
    sources = _sources(connection, rows, name_chunks)
    return {
        id: Entity(name, kind, text, chunks, 0, _time(created_at), _attributes(tally))
        for (id, _, name, kind, text, created_at, tally), chunks in zip(rows, sources, strict=True)
    }


def relations(
    connection: sqlite3.Connection,
    ids: Iterable[int],
    *,
    chunk_limit: int = UNBOUNDED,
    name_chunks: NameChunks | None = None,
) -> dict[int, Relation]:
    """Relations by row id, each with the public ids of its first `chunk_limit` chunks."""
    rows = connection.execute(
        f"SELECT r.id, {_FIRST_CHUNKS['relation']}, r.reversed, a.name, b.name, r.description, "
        "r.weight, r.created_at, r.keywords "
        "FROM json_each(?) AS wanted JOIN relations r ON r.id = wanted.value "
        "JOIN entities a ON a.id = r.low JOIN entities b ON b.id = r.high",
        (chunk_limit, json.dumps(list(ids))),
    ).fetchall()
    sources, words = _sources(connection, rows, name_chunks), _parsed(row[-1] for row in rows)
    return {
        id: Relation(
            high if turned else low,
            low if turned else high,
            tuple(keywords),
            text,
            weight,
            chunks,
            _time(created_at),
        )
        for (id, _, turned, low, high, text, weight, created_at, _), keywords, chunks in zip(
            rows, words, sources, strict=True
        )
    }


def entity_ids(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, int]:
    """Row ids of the entities with these name keys, with aliases resolved."""
    rows = connection.execute(
        "SELECT wanted.value, e.id, a.target FROM json_each(?) AS wanted "
        "LEFT JOIN aliases a ON a.key = wanted.value "
        "LEFT JOIN entities e ON e.key = coalesce(a.target, wanted.value) "
        "WHERE e.id IS NOT NULL OR a.target <> a.key",
        (dump(sorted(set(keys))),),
    ).fetchall()
    found = {key: id for key, id, _ in rows if id is not None}
    if len(found) < len(rows):  # some were merged into names that are merged, too
        led = {key: target for key, id, target in rows if id is None}
        ends = entity_ids(connection, led.values())
        found |= {key: ends[target] for key, target in led.items() if target in ends}
    return found


def relation_between(connection: sqlite3.Connection, one: int, other: int) -> int | None:
    """The row id of the relation of two entities (row ids), or None."""
    row = connection.execute(
        "SELECT id FROM relations WHERE low = ? AND high = ?", (min(one, other), max(one, other))
    ).fetchone()
    return None if row is None else int(row[0])


def mention_chunks(
    connection: sqlite3.Connection, kind: Kind, ids: Iterable[int]
) -> list[tuple[int, int]]:
    """(entity or relation, chunk) row ids without repetitions, in the order of `ids`, then of place."""
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


def document_labels(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    """What to call documents for readers: title, or else source, or else id."""
    rows = connection.execute(
        "SELECT name, coalesce(nullif(title, ''), nullif(source, ''), name) FROM documents "
        "WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name",
        (dump(sorted(set(ids))),),
    )
    return dict(rows.fetchall())


# ── filters ─────────────────────────────────────────────────────────────────────

COLUMNS = {"id": "d.name", "title": "d.title", "source": "d.source", "date": "d.date"}
ESCAPED = re.compile(r'["\\\x00-\x1f]')  # characters that JSON escapes
LARGEST = 2**63 - 1
FINITE = int(sys.float_info.max)
COMPARISONS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
EQUALITIES = {"$eq": "", "$in": "", "$ne": "NOT ", "$nin": "NOT "}
MEMBER = """EXISTS (
    SELECT 1 FROM json_each(d.metadata) fact,
        json_each(CASE fact.type WHEN 'array' THEN fact.value ELSE '[]' END) member
    WHERE fact.key = ? AND member.value IN ({}))"""


def allowed_chunks(connection: sqlite3.Connection, where: dict[str, Json]) -> list[int]:
    """Row ids, ascending, of the chunks whose documents meet every condition.

    A key is `id`, `title`, `source`, `date` or a name in the metadata. A condition is a value, a
    list of alternatives, or a mapping of comparisons such as {"$gte": "2024-01-01"}; {"$ne": […]}
    excludes all values of a list. None stands for an absent field; an absent field meets no
    comparison. A metadata list matches if one of its members does.
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
    """The SQL expression of a field's value, and its parameters."""
    if field in COLUMNS:
        return COLUMNS[field], []
    name = sanitize(field)
    if ESCAPED.search(name):  # a JSON path of SQLite cannot express such names
        return "(SELECT value FROM json_each(d.metadata) WHERE key = ?)", [name]
    return "json_extract(d.metadata, ?)", [f'$."{name}"']


def _condition(field: str, wanted: Json) -> tuple[str, list[object]]:
    if not isinstance(wanted, dict):
        return _among(field, _choices(field, wanted))
    unknown = wanted.keys() - COMPARISONS.keys() - EQUALITIES.keys()
    if unknown or not wanted:
        raise ConfigError(
            f"where[{field!r}]: unknown comparison {', '.join(sorted(unknown)) or '{}'}; "
            f"known are {', '.join([*COMPARISONS, *EQUALITIES])}"
        )
    parts = [_comparison(field, name, _choices(field, value)) for name, value in wanted.items()]
    return _joined(" AND ", parts)


def _comparison(field: str, name: str, choices: Sequence[Json]) -> tuple[str, list[object]]:
    if name in EQUALITIES:
        is_one, values = _among(field, choices)
        return EQUALITIES[name] + is_one, values
    if not choices or None in choices:
        raise ConfigError(f"where[{field!r}]: {name} needs a text or a number")
    return _joined(" OR ", [_compared(field, name, choice) for choice in choices])


def _compared(field: str, name: str, value: Json) -> tuple[str, list[object]]:
    """A comparison of texts with texts or numbers with numbers; for SQLite any text exceeds any number."""
    column, path = _column(field)
    clause, values = f"{column} {COMPARISONS[name]} ?", [*path, _plain(value)]
    if field in COLUMNS:  # always texts: numbers are compared as texts
        return clause, values
    kinds = "'text'" if isinstance(value, str) else "'integer', 'real'"
    return f"(typeof({column}) IN ({kinds}) AND {clause})", [*path, *values]


def _among(field: str, choices: Sequence[Json]) -> tuple[str, list[object]]:
    """The condition that a field has one of these values; None stands for an absent field."""
    column, path = _column(field)
    plain = [_plain(choice) for choice in choices if choice is not None]
    places = ", ".join("?" * len(plain))
    parts = [(f"{column} IN ({places})", [*path, *plain])]
    if field not in COLUMNS:
        parts.append((MEMBER.format(places), [sanitize(field), *plain]))
    if None in choices:
        parts.append((f"{column} IS NULL", path))
    return _joined(" OR ", parts)


def _choices(field: str, wanted: Json) -> Sequence[Json]:
    choices = wanted if isinstance(wanted, list) else [wanted]
    if any(isinstance(choice, dict | list) for choice in choices):
        raise ConfigError(f"where[{field!r}]: values must be texts or numbers")
    return choices


def _joined(word: str, parts: Sequence[tuple[str, list[object]]]) -> tuple[str, list[object]]:
    """Conditions as one, in brackets, with the parameters of all."""
    clauses, values = zip(*parts, strict=True)
    return f"({word.join(clauses)})", list(chain.from_iterable(values))


def _plain(value: Json) -> object:
    """A value as the database compares it; integers beyond 64 bits become floats."""
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        return float(min(max(value, -FINITE), FINITE))
    return int(value) if isinstance(value, bool) else value


def _sources(
    connection: sqlite3.Connection, rows: Sequence[Row], name_chunks: NameChunks | None
) -> list[tuple[str, ...]]:
    """The public ids of the chunks in the second column, without repetitions."""
    chunks = [dict.fromkeys(found) for found in _parsed(row[1] for row in rows)]
    names = (name_chunks or partial(chunk_names, connection))(set().union(*chunks))
    return [tuple([names[chunk] for chunk in found]) for found in chunks]


def _parsed(texts: Iterable[str]) -> list[list[Any]]:
    """Lists from their JSON, parsed all together: calls one by one would take most of the time."""
    found: list[list[Any]] = json.loads(f"[{','.join(texts)}]")
    return found


@lru_cache(1_000)
def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _attributes(tally: str) -> tuple[tuple[str, str], ...]:
    if tally.endswith(",{}]"):
        return ()
    attributes = json.loads(tally)[2]
    return tuple(
        sorted((name, value) for name, _, value in (a.partition("\0") for a in attributes))
    )
