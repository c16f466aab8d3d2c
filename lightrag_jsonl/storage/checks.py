"""Checks that the database is sound: references, counts, spans, vectors, full text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from lightrag_jsonl.storage import documents, fulltext, tables, values, vector_upkeep
from lightrag_jsonl.storage.claims import TABLES
from lightrag_jsonl.storage.embeddings import has_vector
from lightrag_jsonl.storage.rows import OWNERS, all_ids
from lightrag_jsonl.storage.settings import dimension

SETTINGS = ("dim", "embedder", "language", "tokenizer")  # every index with a document has them

# (what is wrong with rows, the query that counts them)
COUNTS: tuple[tuple[str, str], ...] = (
    (
        "pages have no document",
        "pages p WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = p.document)",
    ),
    (
        "chunks have no document",
        "chunks c WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = c.document)",
    ),
    (
        "chunks are not what their page has at their place",
        "chunks c LEFT JOIN pages p ON p.document = c.document AND p.number = c.page "
        "WHERE c.text IS NOT substr(p.text, c.start + 1, c.stop - c.start)",
    ),
    (
        "documents have no chunk",
        "documents d WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.document = d.id)",
    ),
    (
        "documents have another state than their chunks",
        f"(SELECT d.state AS state, {documents.STATE} AS due "
        "FROM documents d JOIN chunks c ON c.document = d.id GROUP BY d.id) WHERE state <> due",
    ),
    (
        "rejections have no chunk",
        "rejections r WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.id = r.chunk)",
    ),
    (
        "entity claims have no chunk",
        "entity_mentions m WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.id = m.chunk)",
    ),
    (
        "relation claims have no chunk",
        "relation_mentions m WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.id = m.chunk)",
    ),
    (
        "entity claims have no entity",
        "entity_mentions m WHERE NOT EXISTS (SELECT 1 FROM entities e WHERE e.id = m.entity)",
    ),
    (
        "relation claims have no relation",
        "relation_mentions m WHERE m.relation <> 0 "
        "AND NOT EXISTS (SELECT 1 FROM relations r WHERE r.id = m.relation)",
    ),
    (
        "entities count other claims than they have",
        "entities e WHERE e.mentions < 1 OR e.mentions <> "
        "(SELECT count(*) FROM entity_mentions m WHERE m.entity = e.id)",
    ),
    (
        "relations count other claims than they have",
        "relations r WHERE r.mentions < 1 OR r.mentions <> "
        "(SELECT count(*) FROM relation_mentions m WHERE m.relation = r.id)",
    ),
    *(
        (
            f"{OWNERS[kind]} have a summary of other claims than it covers",
            f"{OWNERS[kind]} o WHERE o.covered_mentions <> (SELECT count(*) FROM {claims} m "
            f"WHERE m.{kind} = o.id AND m.id <= o.covered)",
        )
        for kind, claims in TABLES.items()
    ),
    (
        "earlier summaries are of nothing, or of other claims than they cover",
        "earlier_summaries s WHERE NOT ("
        + " OR ".join(
            f"(s.kind = '{kind}' AND EXISTS (SELECT 1 FROM {OWNERS[kind]} o WHERE o.id = s.owner "
            "AND s.covered < o.covered AND s.covered_mentions = "
            f"(SELECT count(*) FROM {claims} m WHERE m.{kind} = o.id AND m.id <= s.covered)))"
            for kind, claims in TABLES.items()
        )
        + ")",
    ),
    (
        "relations lack an end",
        "relations r WHERE r.low >= r.high "
        "OR NOT EXISTS (SELECT 1 FROM entities e WHERE e.id = r.low) "
        "OR NOT EXISTS (SELECT 1 FROM entities e WHERE e.id = r.high)",
    ),
    *(
        (
            f"{table} have no vector",
            f"{table} o WHERE NOT {has_vector('o')}",
        )
        for table in OWNERS.values()
    ),
    (
        "events have no trace",
        "trace_events e WHERE NOT EXISTS (SELECT 1 FROM traces t WHERE t.id = e.trace)",
    ),
)


def problems(connection: sqlite3.Connection) -> list[str]:
    """Everything that is wrong with the stored rows, in words; empty if all is sound.

    If tables are missing or values unreadable, nothing further is checked.
    """
    return [*_damage(connection), *_unreadable(connection)] or [
        *(f"the setting {key} is not recorded" for key in missing_settings(connection)),
        *_dangling(connection),
        *_embeddings(connection),
        *_fulltext(connection),
    ]


def is_damaged(connection: sqlite3.Connection) -> bool:
    """Whether SQLite finds the file, or an index of its tables, damaged."""
    return next(_damage(connection), None) is not None


def _damage(connection: sqlite3.Connection) -> Iterator[str]:
    for (line,) in connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield f"SQLite: {line}"


def _unreadable(connection: sqlite3.Connection) -> Iterator[str]:
    for name in tables.missing(connection):
        yield f"the {tables.ours()[name].kind} {name} is missing or another"
    for name in tables.triggers(connection):
        yield f"the trigger {name} is none of ours"
    yield from map(str, values.wrong_values(connection))


def missing_settings(connection: sqlite3.Connection) -> list[str]:
    """The settings that are not recorded although there is a document."""
    if connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None:
        return []
    recorded = {row[0] for row in connection.execute("SELECT key FROM settings")}
    return [key for key in SETTINGS if key not in recorded]


def _dangling(connection: sqlite3.Connection) -> Iterator[str]:
    for what, source in COUNTS:
        number = connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0]
        if number:
            yield f"{number} {what}"


def _embeddings(connection: sqlite3.Connection) -> Iterator[str]:
    """Problems of the rows of vectors, and of the index that leads from texts to vectors."""
    lost, astray = vector_upkeep.wrong_keys(connection)
    for what, number in (
        ("rows of vectors are damaged", len(vector_upkeep.damaged_blocks(connection))),
        (
            "rows of vectors in use have another length than the index's",
            len(vector_upkeep.other_lengths(connection, dimension(connection))),
        ),
        ("vectors are not found by their texts", lost),
        ("texts find no vector, or another's", astray),
    ):
        if number:
            yield f"{number} {what}"


def _fulltext(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        yield from _wrong_terms(connection)
    except sqlite3.DatabaseError as error:  # the full text's own tables are damaged, not the rest
        yield f"the full text cannot be read: {error}"


def _wrong_terms(connection: sqlite3.Connection) -> Iterator[str]:
    """Problems of the full-text index, compared with one newly made from the chunks."""
    chunks = all_ids(connection, "chunk")
    indexed = [
        row[0] for row in connection.execute("SELECT id FROM chunk_terms_docsize ORDER BY id")
    ]
    if chunks != indexed:
        yield f"the full text has {len(indexed)} chunks, the database {len(chunks)}, or others"
        return
    with tables.new() as fresh:
        fulltext.put_terms(fresh, connection.execute("SELECT id, text FROM chunks ORDER BY id"))
        query = "SELECT term, doc, cnt FROM chunk_vocabulary ORDER BY term"
        if fresh.execute(query).fetchall() != connection.execute(query).fetchall():
            yield "the full text has other terms than the chunks"
