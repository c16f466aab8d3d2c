"""Stores the vectors of texts, sixteen in a row, found by the hash of their text.

A vector rarely fills whole pages of the database: with one in a row, a tenth to a quarter of the
pages would be empty space. Vector `id` is at place `id % 16` of row `id // 16`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby

import numpy as np

from lightrag_jsonl.errors import CorruptError
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.sorting import firsts
from lightrag_jsonl.storage.bulk import put_rows
from lightrag_jsonl.storage.rows import OWNERS, dump
from lightrag_jsonl.types import Kind

BLOCK = 16  # vectors in one row; the column `places` has a bit for each
KEY_BYTES = 16
PREFIX_BYTES = 6  # the first bytes of a key; as a number they are the index's primary key
LOOKED_UP = 500  # keys looked up in one statement
READ = 256  # rows read at a time

Ids = np.ndarray[tuple[int], np.dtype[np.int64]]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def text_key(embedder: str, text: str) -> bytes:
    """The key of a passage's vector: the hash of embedder and text (16 bytes)."""
    return sha256(f"{embedder}\0{text}".encode()).digest()[:KEY_BYTES]


def prefix(key: bytes) -> int:
    """The number by which a key is looked up."""
    return int.from_bytes(key[:PREFIX_BYTES], "big")


# ── by text ─────────────────────────────────────────────────────────────────────


def embedding_ids(connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, int]:
    """The ids of those `keys` whose vectors are stored."""
    found: dict[bytes, int] = {}
    waiting = [(prefix(key), key) for key in dict.fromkeys(keys)]
    while waiting:
        entries = _entries(connection, [number for number, _ in waiting])
        later = []
        for number, key in waiting:
            if number in entries:
                id, stored = entries[number]
                if stored == key:
                    found[key] = id
                else:  # the number is taken by another key: try the next number
                    later.append((number + 1, key))
        waiting = later
    return found


def put_embeddings(
    connection: sqlite3.Connection, vectors: Mapping[bytes, Vectors]
) -> dict[bytes, int]:
    """Store vectors (float32, shape (dim,), all of one length) by their keys; returns their ids.

    Vectors that are stored already are not changed.
    """
    query = f"SELECT (coalesce(max(block), 0) + 1) * {BLOCK} FROM vectors"
    first, before = connection.execute(query).fetchone()[0], connection.total_changes
    ids = {key: first + place for place, key in enumerate(vectors)}
    entries = [(prefix(key), id) for key, id in ids.items()]
    put_rows(connection, "INSERT OR IGNORE INTO vector_keys", entries)
    if connection.total_changes - before < len(ids):  # some are stored, or share a number
        connection.execute(
            "DELETE FROM vector_keys WHERE id >= ? AND prefix IN (SELECT value FROM json_each(?))",
            (first, dump([number for number, _ in entries])),
        )
        ids |= embedding_ids(connection, vectors)
        _enter(connection, [(id, key) for key, id in ids.items() if id >= first])
    _put_vectors(connection, [(id, key, vectors[key]) for key, id in ids.items() if id >= first])
    return ids


def _put_vectors(
    connection: sqlite3.Connection, vectors: Iterable[tuple[int, bytes, Vectors]]
) -> None:
    """Write the rows of new vectors (id, key, float32 of one length), in order of their ids."""
    rows = []
    for block, some in groupby(vectors, key=lambda one: one[0] // BLOCK):
        ids, keys, members = zip(*some, strict=True)
        data = np.array(members, dtype=np.float32).tobytes()
        rows.append((block, sum(1 << id % BLOCK for id in ids), b"".join(keys), data))
    put_rows(connection, "INSERT INTO vectors", rows)


def stored_keys(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    """Every stored vector's id and key, in order of the ids."""
    rows = connection.execute("SELECT block, places, digests FROM vectors ORDER BY block")
    for block, places, digests in rows:
        yield from _stored_keys(block, places, digests).items()


def write_keys(connection: sqlite3.Connection) -> None:
    """Rebuild the index of the keys."""
    connection.execute("DELETE FROM vector_keys")
    _enter(connection, sorted(stored_keys(connection), key=lambda one: one[1]))


def _enter(connection: sqlite3.Connection, keys: Iterable[tuple[int, bytes]]) -> None:
    """Add keys, as (id, key), to the index, each at the first free number from its own."""
    for id, key in keys:
        number = prefix(key)
        while not connection.execute(
            "INSERT OR IGNORE INTO vector_keys VALUES (?, ?)", (number, id)
        ).rowcount:
            number += 1


def _entries(
    connection: sqlite3.Connection, numbers: Sequence[int]
) -> dict[int, tuple[int, bytes | None]]:
    """For these numbers of the index, the vector's id and its whole key."""
    found = {}
    for start in range(0, len(numbers), LOOKED_UP):
        some = numbers[start : start + LOOKED_UP]
        rows = connection.execute(
            "SELECT k.prefix, k.id, v.block, v.places, v.digests FROM vector_keys k LEFT JOIN "
            f"vectors v ON v.block = k.id / {BLOCK} WHERE k.prefix IN ({', '.join('?' * len(some))})",
            some,
        )
        for number, id, *row in rows:
            found[number] = id, None if row[0] is None else _stored_keys(*row).get(id)
    return found


def _stored_keys(block: int, places: int, digests: bytes) -> dict[int, bytes]:
    """The ids and keys of the vectors in a row."""
    cut = range(0, len(digests), KEY_BYTES)
    keys = (digests[start : start + KEY_BYTES] for start in cut)
    return dict(zip(ids_at(block, places), keys, strict=False))


def ids_at(block: int, places: int) -> list[int]:
    """The ids of the vectors at these places (bits) of a row."""
    return [block * BLOCK + place for place in range(BLOCK) if places >> place & 1]


# ── by what they belong to ──────────────────────────────────────────────────────


def load_vectors(
    connection: sqlite3.Connection, kind: Kind, dim: int, ids: set[int] | None = None
) -> tuple[Ids, Matrix]:
    """Row ids, ascending, and vectors of all rows of a kind, or of those among `ids`.

    Shapes (n,) and (n, dim), float32. Rows without a stored vector are left out.
    """
    rows, vectors = _owners(connection, kind, ids)
    order = np.argsort(vectors, kind="stable")
    wanted = vectors[order]
    matrix = np.empty((len(rows), dim), np.float32)
    there = np.zeros(len(rows), np.bool_)
    blocks = wanted // BLOCK
    for found, members in _members(connection, blocks[firsts(blocks)].tolist(), dim):
        start, stop = np.searchsorted(wanted, (found[0], found[-1] + 1))
        at = np.searchsorted(found, wanted[start:stop])
        good = found[at] == wanted[start:stop]
        places = order[start:stop][good]
        matrix[places] = members[at[good]]
        there[places] = True
    return (rows, matrix) if there.all() else (rows[there], matrix[there])


def _owners(connection: sqlite3.Connection, kind: Kind, ids: set[int] | None) -> tuple[Ids, Ids]:
    """The row ids, ascending, of all rows of a kind or of some, and the ids of their vectors."""
    query = f"SELECT id, embedding FROM {OWNERS[kind]} WHERE embedding IS NOT NULL"
    if ids is None:
        cursor = connection.execute(query + " ORDER BY id")
    else:
        cursor = connection.execute(
            query + " AND id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (dump(sorted(ids)),),
        )
    pairs = np.array(cursor.fetchall(), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _members(
    connection: sqlite3.Connection, blocks: Sequence[int], dim: int
) -> Iterator[tuple[Ids, Matrix]]:
    """The vectors in some rows, read `READ` rows at a time: their ids, ascending, and components."""
    for start in range(0, len(blocks), READ):
        rows = connection.execute(
            "SELECT block, places, data FROM vectors "
            "WHERE block IN (SELECT value FROM json_each(?)) ORDER BY block",
            (dump(blocks[start : start + READ]),),
        ).fetchall()
        if rows:
            numbers, places, data = zip(*rows, strict=True)
            bits = np.unpackbits(np.array(places, "<u2").view(np.uint8), bitorder="little")
            row, place = np.nonzero(bits.reshape(-1, BLOCK))
            if sum(map(len, data)) != 4 * dim * len(row):
                path = connection.execute("PRAGMA database_list").fetchone()[2]
                raise CorruptError(
                    f"{path}: vectors are damaged; `lightrag-jsonl doctor --repair` makes them anew",
                    path=path,
                )
            matrix = np.frombuffer(b"".join(data), np.float32).reshape(-1, dim)
            yield np.array(numbers, np.int64)[row] * BLOCK + place, matrix


def has_vector(row: str) -> str:
    """The SQL condition that the vector of `row` (an alias of chunks, entities or relations) is stored."""
    return (
        f"EXISTS (SELECT 1 FROM vectors v WHERE v.block = {row}.embedding / {BLOCK} "
        f"AND (v.places >> ({row}.embedding % {BLOCK})) & 1)"
    )
