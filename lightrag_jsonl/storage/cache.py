"""The cache of model answers, by the hash of the request."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from lightrag_jsonl.types import Completion, Usage


def completion(connection: sqlite3.Connection, key: bytes) -> Completion | None:
    """The stored completion of a request, if there is one."""
    row = connection.execute(
        "SELECT text, finish, input_tokens, output_tokens, cached_tokens FROM completions "
        "WHERE key = ?",
        (key,),
    ).fetchone()
    return None if row is None else Completion(row[0], row[1], Usage(*row[2:]))


def put_completion(
    connection: sqlite3.Connection,
    key: bytes,
    done: Completion,
    *,
    model: str,
    prompt: str,
    at: float,
) -> None:
    """Store a completion."""
    usage = done.usage
    connection.execute(
        "INSERT OR REPLACE INTO completions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            model,
            prompt,
            done.text,
            done.finish,
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            at,
        ),
    )


def drop_completions(connection: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Delete answers that turned out to be unusable, so that a retry asks again."""
    connection.executemany("DELETE FROM completions WHERE key = ?", [(key,) for key in keys])
