"""Looking after the database: what the caches hold, clearing them, giving space back, rebuilding."""

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

BATCH = 500  # chunks whose terms are rebuilt at a time


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What was paid for and is kept; `unused_embeddings` belong to no text of the index now."""

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
    """Forget all model answers (they will be paid for again); tells how many."""
    connection.execute("DELETE FROM answers")
    return connection.execute("DELETE FROM completions").rowcount


def rebuild_terms(connection: sqlite3.Connection) -> int:
    """Write the full-text index anew from the chunks; tells how many there are."""
    tables.empty_fulltext(connection)
    count = 0
    rows = connection.execute("SELECT id, text FROM chunks ORDER BY id")
    while batch := rows.fetchmany(BATCH):
        fulltext.put_terms(connection, batch)
        count += len(batch)
    return count


def drop_orphans(connection: sqlite3.Connection) -> int:
    """Delete rows that belong to nothing: claims of missing chunks, pages of missing documents,
    summaries of missing entities and relations, events of forgotten queries.
    """
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
    """The row ids, ascending, of chunks that have no vector, or one that is gone."""
    rows = connection.execute(f"SELECT id FROM chunks c WHERE NOT {has_vector('c')} ORDER BY id")
    return [row[0] for row in rows]


def use_embeddings(
    connection: sqlite3.Connection, kind: Kind, pairs: Iterable[tuple[int, int]]
) -> None:
    """Point rows (entity, relation or chunk ids) at other vectors: (vector id, row id) pairs."""
    connection.executemany(f"UPDATE {OWNERS[kind]} SET embedding = ? WHERE id = ?", pairs)
