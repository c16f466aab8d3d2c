"""The tables of the database, and the migrations that lead from older formats to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from itertools import groupby

FORMAT = 4
MOVED = 512  # vectors that a migration rewrites at a time

TABLES = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Documents that were handed in and are not yet visible; a killed insert resumes from here.
CREATE TABLE pending (
    id TEXT PRIMARY KEY, document TEXT NOT NULL, records TEXT, created_at REAL NOT NULL
);

CREATE TABLE documents (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, title TEXT, source TEXT, date TEXT,
    metadata TEXT NOT NULL, content TEXT NOT NULL, state TEXT NOT NULL,
    characters INTEGER NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE pages (
    document INTEGER NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (document, number)
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, document INTEGER NOT NULL,
    position INTEGER NOT NULL, page INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    text TEXT NOT NULL, tokens INTEGER NOT NULL, created_at REAL NOT NULL,
    embedding INTEGER, state TEXT NOT NULL, report TEXT NOT NULL
);
CREATE INDEX chunks_document ON chunks (document, position);
CREATE TABLE rejections (
    chunk INTEGER NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL,
    reason TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX rejections_chunk ON rejections (chunk);

-- What was said: one row a claim of a chunk. `place` orders the claims by document and position.
CREATE TABLE entity_mentions (
    id INTEGER PRIMARY KEY, entity INTEGER NOT NULL, chunk INTEGER NOT NULL, place INTEGER NOT NULL,
    name TEXT NOT NULL, type TEXT NOT NULL,
    description TEXT NOT NULL, grounded INTEGER NOT NULL, attributes TEXT
);
CREATE INDEX entity_mentions_entity ON entity_mentions (entity, place, chunk);
CREATE INDEX entity_mentions_chunk ON entity_mentions (chunk, entity);
CREATE TABLE relation_mentions (
    id INTEGER PRIMARY KEY, relation INTEGER NOT NULL, chunk INTEGER NOT NULL, place INTEGER NOT NULL,
    source TEXT NOT NULL, target TEXT NOT NULL,
    keywords TEXT NOT NULL, description TEXT NOT NULL, strength REAL NOT NULL,
    forward INTEGER NOT NULL
);
CREATE INDEX relation_mentions_relation ON relation_mentions (relation, place, chunk);
CREATE INDEX relation_mentions_chunk ON relation_mentions (chunk, relation);

-- The fold over the claims. `tally` holds the counts that a claim is added to or taken from;
-- `summary` was written from the descriptions of all claims up to row `covered`, so many of them
-- as `covered_mentions`.
CREATE TABLE entities (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, type TEXT NOT NULL,
    description TEXT NOT NULL, tally TEXT NOT NULL, mentions INTEGER NOT NULL, summary TEXT,
    covered INTEGER NOT NULL DEFAULT 0, covered_mentions INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL, embedding INTEGER
);
CREATE TABLE relations (
    id INTEGER PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, reversed INTEGER NOT NULL,
    keywords TEXT NOT NULL, description TEXT NOT NULL, weight REAL NOT NULL, tally TEXT NOT NULL,
    mentions INTEGER NOT NULL, summary TEXT, covered INTEGER NOT NULL DEFAULT 0,
    covered_mentions INTEGER NOT NULL DEFAULT 0, created_at REAL NOT NULL, embedding INTEGER,
    UNIQUE (low, high)
);
-- Summaries that a later one took the place of: they come back where what that one covers goes.
CREATE TABLE earlier_summaries (
    kind TEXT NOT NULL, owner INTEGER NOT NULL, covered INTEGER NOT NULL,
    covered_mentions INTEGER NOT NULL, summary TEXT NOT NULL, PRIMARY KEY (kind, owner, covered)
) WITHOUT ROWID;
-- Names that stand for another entity; `display` is how that one is to be called.
CREATE TABLE aliases (
    key TEXT PRIMARY KEY, target TEXT NOT NULL, display TEXT NOT NULL
) WITHOUT ROWID;

-- Vectors by content: one is shared by all that have its text, and is the embedding cache. Vector
-- `id` is in row `id / 16`, where bit `id % 16` of `places` is set; `digests` (16 bytes each) and
-- `data` (float32) hold those that are there, in order. Their digests are found by the number
-- that their first 6 bytes are, or the next one that is free.
CREATE TABLE vectors (
    block INTEGER PRIMARY KEY, places INTEGER NOT NULL, digests BLOB NOT NULL, data BLOB NOT NULL
);
CREATE TABLE vector_keys (prefix INTEGER PRIMARY KEY, id INTEGER NOT NULL);

CREATE VIRTUAL TABLE chunk_terms USING fts5 (
    terms, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE chunk_vocabulary USING fts5vocab (chunk_terms, row);

CREATE TABLE completions (
    key BLOB PRIMARY KEY, model TEXT NOT NULL, prompt TEXT NOT NULL, text TEXT NOT NULL,
    finish TEXT NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, created_at REAL NOT NULL
);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, signature TEXT NOT NULL,
    question TEXT NOT NULL, vector BLOB NOT NULL, answer TEXT NOT NULL
);
CREATE INDEX answers_signature ON answers (signature, generation);

CREATE TABLE traces (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, mode TEXT NOT NULL, question TEXT NOT NULL,
    started_at REAL NOT NULL
);
CREATE INDEX traces_started ON traces (started_at);
CREATE TABLE trace_events (
    trace TEXT NOT NULL, position INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (trace, position)
);

-- One row a visible change: the rows it touched, so that derived indexes catch up.
CREATE TABLE commits (generation INTEGER PRIMARY KEY AUTOINCREMENT, touched TEXT NOT NULL);
"""

Migration = Callable[[sqlite3.Connection], None]


def _from_1(connection: sqlite3.Connection) -> None:
    """Drop an unused index; store how many claims each summary covers."""
    connection.execute("DROP INDEX relations_high")
    for table, kind in (("entities", "entity"), ("relations", "relation")):
        connection.execute(
            f"ALTER TABLE {table} ADD COLUMN covered_mentions INTEGER NOT NULL DEFAULT 0"
        )
        connection.execute(
            f"UPDATE {table} SET covered_mentions = (SELECT count(*) FROM {kind}_mentions m "
            f"WHERE m.{kind} = {table}.id AND m.id <= covered) WHERE summary IS NOT NULL"
        )


def _from_2(connection: sqlite3.Connection) -> None:
    """Store vectors sixteen in a row instead of one; they keep their ids.

    Vectors of another length than the index's belong to no row (another embedder was tried). They
    get new ids, so that all vectors in a row have the same length. Copied vectors are deleted at
    once, so that the file need not grow.
    """
    connection.execute(
        "CREATE TABLE vectors (block INTEGER PRIMARY KEY, places INTEGER NOT NULL, "
        "digests BLOB NOT NULL, data BLOB NOT NULL)"
    )
    connection.execute("CREATE TABLE vector_keys (prefix INTEGER PRIMARY KEY, id INTEGER NOT NULL)")
    columns = "SELECT id, substr(digest, 1, 16), vector FROM embeddings"
    fitting = (
        "id BETWEEN ? AND ? AND length(vector) = "
        "4 * (SELECT CAST(value AS INTEGER) FROM settings WHERE key = 'dim')"
    )
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM embeddings").fetchone()
    for start in range(0, last + 1, MOVED):
        some = (start, start + MOVED - 1)
        found = connection.execute(f"{columns} WHERE {fitting} ORDER BY id", some).fetchall()
        _put_together(connection, found)
        connection.execute(f"DELETE FROM embeddings WHERE {fitting}", some)
    others = connection.execute(f"{columns} ORDER BY length(vector), id")
    for _, same in groupby(others, key=lambda row: len(row[2])):
        (free,) = connection.execute(
            "SELECT coalesce(max(block) + 1, 1) * 16 FROM vectors"
        ).fetchone()
        _put_together(connection, [(id, *row[1:]) for id, row in enumerate(same, free)])
    connection.execute("DROP TABLE embeddings")


def _from_3(connection: sqlite3.Connection) -> None:
    """Make a table that keeps summaries when they are replaced."""
    connection.execute(
        "CREATE TABLE earlier_summaries (kind TEXT NOT NULL, owner INTEGER NOT NULL, "
        "covered INTEGER NOT NULL, covered_mentions INTEGER NOT NULL, summary TEXT NOT NULL, "
        "PRIMARY KEY (kind, owner, covered)) WITHOUT ROWID"
    )


def _put_together(
    connection: sqlite3.Connection, vectors: Iterable[tuple[int, bytes, bytes]]
) -> None:
    """Write vectors of format 2 (id, digest, data), in order of ids, as rows of format 3."""
    keys = []
    for block, some in groupby(vectors, key=lambda row: row[0] // 16):
        ids, digests, data = zip(*some, strict=True)
        places = sum(1 << id % 16 for id in ids)
        row = (block, places, b"".join(digests), b"".join(data))
        connection.execute("INSERT INTO vectors VALUES (?, ?, ?, ?)", row)
        keys += [(int.from_bytes(key[:6], "big"), id) for key, id in zip(digests, ids, strict=True)]
    for prefix, id in sorted(keys):
        while not connection.execute(
            "INSERT OR IGNORE INTO vector_keys VALUES (?, ?)", (prefix, id)
        ).rowcount:
            prefix += 1  # taken by another key


# MIGRATIONS[n] leads from format n to format n + 1.
MIGRATIONS: dict[int, Migration] = {1: _from_1, 2: _from_2, 3: _from_3}


def create(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database, inside the caller's transaction."""
    for statement in _statements(TABLES):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def migrate(connection: sqlite3.Connection, found: int) -> None:
    """Migrate a database of format `found` to the current one, inside the caller's transaction."""
    for number in range(found, FORMAT):
        MIGRATIONS[number](connection)
        connection.execute(f"PRAGMA user_version = {number + 1}")


def _statements(script: str) -> list[str]:
    statements, pending = [], ""
    for line in script.split("\n"):
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
