"""Maintenance of the database: statistics, clearing of caches, rebuilding of derived rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from lightrag_jsonl.storage import fulltext, tables
from lightrag_jsonl.storage.claims import TABLES
from lightrag_jsonl.storage.embeddings import has_vector
from lightrag_jsonl.storage.rows import OWNERS
from lightrag_jsonl.storage.vector_upkeep import count_embeddings
from lightrag_jsonl.types import Kind

BATCH = 500  # chunks indexed at a time


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What the caches hold; `unused_embeddings` are vectors that belong to no text of the index now."""

    completions: int
    completion_characters: int
    input_tokens: int
    output_tokens: int
    embeddings: int
    unused_embeddings: int


def cache_stats(connection: sqlite3.Connection) -> CacheStats:
    """Count what the caches hold."""
    completions = connection.execute(
        "SELECT count(*), coalesce(sum(length(text)), 0), coalesce(sum(input_tokens), 0), "
        "coalesce(sum(output_tokens), 0) FROM completions"
    ).fetchone()
    number, characters, tokens_in, tokens_out = completions
    return CacheStats(number, characters, tokens_in, tokens_out, *count_embeddings(connection))


def clear_completions(connection: sqlite3.Connection) -> int:
    """Delete all model answers (they would have to be paid for again); returns how many."""
    connection.execute("DELETE FROM answers")
    return connection.execute("DELETE FROM completions").rowcount


def rebuild_terms(connection: sqlite3.Connection) -> int:
    """Rebuild the full-text index from the chunks; returns how many there are."""
    tables.empty_fulltext(connection)
    count = 0
    rows = connection.execute("SELECT id, text FROM chunks ORDER BY id")
    while batch := rows.fetchmany(BATCH):
        fulltext.put_terms(connection, batch)
        count += len(batch)
    return count


def drop_orphans(connection: sqlite3.Connection) -> int:
    """Delete rows whose owner is missing: claims, pages, earlier summaries and events of traces."""
    count = 0
    for table, column, owner in (
        ("pages", "document", "documents"),
        ("chunks", "document", "documents"),
        ("rejections", "chunk", "chunks"),
        ("entity_mentions", "chunk", "chunks"),
        ("relation_mentions", "chunk", "chunks"),
        ("trace_events", "trace", "traces"),
    ):
        count += connection.execute(
            f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM {owner})"
        ).rowcount
    owners = " UNION ALL ".join(f"SELECT '{kind}', id FROM {OWNERS[kind]}" for kind in TABLES)
    count += connection.execute(
        f"DELETE FROM earlier_summaries WHERE (kind, owner) NOT IN ({owners})"
    ).rowcount
    return count


def chunks_without_vector(connection: sqlite3.Connection) -> list[int]:
    """The row ids, ascending, of chunks without a stored vector."""
    rows = connection.execute(f"SELECT id FROM chunks c WHERE NOT {has_vector('c')} ORDER BY id")
    return [row[0] for row in rows]


def use_embeddings(
    connection: sqlite3.Connection, kind: Kind, pairs: Iterable[tuple[int, int]]
) -> None:
    """Point rows (entities, relations or chunks) at other vectors, given as (vector id, row id) pairs."""
    connection.executemany(f"UPDATE {OWNERS[kind]} SET embedding = ? WHERE id = ?", pairs)
