"""What was paid for: model completions and text embeddings, by the hash of their input."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import sha256

import numpy as np

from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.storage.bulk import put_rows
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
    """Keep a completion."""
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
    """Forget answers that turned out to be unusable, so that a retry asks anew."""
    connection.executemany("DELETE FROM completions WHERE key = ?", [(key,) for key in keys])


# ── embeddings ──────────────────────────────────────────────────────────────────


LOOKED_UP = 500  # vectors in one statement


def text_key(embedder: str, text: str) -> bytes:
    """What identifies a passage's vector: the embedder and the text, hashed (16 bytes)."""
    return sha256(f"{embedder}\0{text}".encode()).digest()[:16]


def embedding_ids(connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, int]:
    """The row ids of the vectors that are stored among `keys`."""
    wanted, found = list(keys), dict[bytes, int]()
    for start in range(0, len(wanted), LOOKED_UP):
        some = wanted[start : start + LOOKED_UP]
        marks = ", ".join("?" * len(some))
        query = f"SELECT digest, id FROM embeddings WHERE digest IN ({marks})"
        found.update(connection.execute(query, some).fetchall())
    return found


def put_embeddings(
    connection: sqlite3.Connection, vectors: Mapping[bytes, Vectors]
) -> dict[bytes, int]:
    """Store vectors (float32, shape (dim,)); their row ids."""
    query = "SELECT coalesce(max(id), 0) + 1 FROM embeddings"
    first, before = connection.execute(query).fetchone()[0], connection.total_changes
    ids = {key: first + place for place, key in enumerate(vectors)}
    put_rows(
        connection,
        "INSERT OR IGNORE INTO embeddings (id, digest, vector)",
        [
            (ids[key], key, row.astype(np.float32, copy=False).tobytes())
            for key, row in vectors.items()
        ],
    )
    all_new = connection.total_changes - before == len(ids)
    return ids if all_new else embedding_ids(connection, vectors)
