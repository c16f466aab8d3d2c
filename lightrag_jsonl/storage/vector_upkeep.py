"""Maintains the stored vectors: removes unused ones, damaged rows and wrong keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import numpy as np

from lightrag_jsonl.storage.bulk import delete_rows
from lightrag_jsonl.storage.embeddings import (
    BLOCK,
    KEY_BYTES,
    has_vector,
    ids_at,
    prefix,
    stored_keys,
    write_keys,
)
from lightrag_jsonl.storage.rows import OWNERS
from lightrag_jsonl.storage.settings import MOVING
from lightrag_jsonl.units import are_units

IN_USE = (
    "SELECT embedding FROM chunks UNION SELECT embedding FROM entities "
    "UNION SELECT embedding FROM relations"
)


def count_embeddings(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many vectors are stored, and how many of them belong to no text of the index."""
    query = f"SELECT coalesce(sum(length(digests)), 0) / {KEY_BYTES} FROM vectors"
    (stored,) = connection.execute(query).fetchone()
    (used,) = connection.execute(f"SELECT count(embedding) FROM ({IN_USE})").fetchone()
    return stored, max(0, stored - used)


def clear_unused_embeddings(connection: sqlite3.Connection) -> int:
    """Delete vectors that belong to no text of the index; returns how many.

    Nothing is deleted while documents wait or a move to another embedder is unfinished: their
    vectors look unused, too.
    """
    if _are_awaited(connection):
        return 0
    used: dict[int, int] = {}
    for (id,) in connection.execute(f"{IN_USE} EXCEPT SELECT NULL"):
        used[id // BLOCK] = used.get(id // BLOCK, 0) | 1 << id % BLOCK
    unused = 0
    for block, places in connection.execute("SELECT block, places FROM vectors").fetchall():
        if going := places & ~used.get(block, 0):
            unused += going.bit_count()
            _shrink(connection, block, places & ~going)
    if unused:
        write_keys(connection)
    return unused


def _are_awaited(connection: sqlite3.Connection) -> bool:
    query = "SELECT EXISTS (SELECT 1 FROM pending) OR EXISTS (SELECT 1 FROM settings WHERE key = ?)"
    return bool(connection.execute(query, (MOVING,)).fetchone()[0])


def _shrink(connection: sqlite3.Connection, block: int, keep: int) -> None:
    """Keep only some of a row's vectors."""
    if not keep:
        connection.execute("DELETE FROM vectors WHERE block = ?", (block,))
        return
    query = "SELECT places, digests, data FROM vectors WHERE block = ?"
    places, digests, data = connection.execute(query, (block,)).fetchone()
    present = ids_at(0, places)
    kept = [number for number, place in enumerate(present) if keep >> place & 1]
    connection.execute(
        "UPDATE vectors SET places = ?, digests = ?, data = ? WHERE block = ?",
        (keep, _some(digests, kept, len(present)), _some(data, kept, len(present)), block),
    )


def _some(data: bytes, kept: Iterable[int], count: int) -> bytes:
    """The kept ones of `count` parts of equal length."""
    size = len(data) // count
    return b"".join(data[size * number : size * (number + 1)] for number in kept)


# ── what is wrong with them ─────────────────────────────────────────────────────


def mend_embeddings(connection: sqlite3.Connection, dim: int) -> int:
    """Delete rows of vectors that are damaged or of the wrong length, and index the others anew.

    Rows whose vector is gone lose its id, which might otherwise be given to another vector. Returns
    how many there are.
    """
    damaged = damaged_blocks(connection) + other_lengths(connection, dim)
    delete_rows(connection, "vectors", "block", damaged)
    write_keys(connection)
    return sum(
        connection.execute(
            f"UPDATE {table} AS o SET embedding = NULL "
            f"WHERE embedding IS NOT NULL AND NOT {has_vector('o')}"
        ).rowcount
        for table in OWNERS.values()
    )


def damaged_blocks(connection: sqlite3.Connection) -> list[int]:
    """Rows of vectors whose columns contradict each other, or whose numbers are not unit vectors."""
    rows = connection.execute("SELECT block, places, length(digests), data FROM vectors")
    return [
        block
        for block, places, digests, data in rows
        if not places
        or places >> BLOCK
        or digests != KEY_BYTES * places.bit_count()
        or len(data) % (4 * places.bit_count())
        or not are_units(np.frombuffer(data, np.float32).reshape(places.bit_count(), -1))
    ]


def other_lengths(connection: sqlite3.Connection, dim: int) -> list[int]:
    """Rows of vectors in use whose length is not the index's."""
    rows = connection.execute(
        f"SELECT block FROM vectors WHERE length(data) * {KEY_BYTES} <> length(digests) * 4 * ? "
        f"AND block IN (SELECT embedding / {BLOCK} FROM ({IN_USE}))",
        (dim,),
    )
    return [row[0] for row in rows]


def wrong_keys(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many vectors the index of keys does not find, and how many of its entries are wrong."""
    keys = dict(stored_keys(connection))
    query = "SELECT prefix, id FROM vector_keys"
    index: dict[int, int] = dict(connection.execute(query).fetchall())
    lost, met = 0, set()
    for key in keys.values():
        number = prefix(key)
        while number in index and keys.get(index[number]) != key:
            number += 1
        lost += number not in index
        met.add(number)
    return lost, len(index.keys() - met)
