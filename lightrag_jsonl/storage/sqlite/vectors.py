"""Vectors in the database, as float16: one table for each kind, and one of those not used yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.sqlite.connection import (
    AMONG,
    ConnectionReader,
    ConnectionWriter,
    json_text,
)
from lightrag_jsonl.storage.vector_index import Ids

HALF = "<f2"  # float16, little endian


class VectorReader(ConnectionReader):
    """Reads vectors."""

    def vector_digests(self, kind: Kind, rows: Collection[int]) -> dict[int, bytes]:
        """For each row that has a vector, the digest of the text it was made from."""
        return dict(self._select("id, digest", f"{kind}_vectors", "id", rows))

    def vectors(self, kind: Kind, rows: Collection[int]) -> dict[int, Vectors]:
        """Stored vectors by row id: float32 of shape (dim,), rounded to float16."""
        found = {}
        for row, data in self._select("id, data", f"{kind}_vectors", "id", rows):
            found[row] = _unpacked(data)
        return found

    def cached_vectors(self, digests: Collection[bytes]) -> dict[bytes, Vectors]:
        """Vectors that were paid for and not used yet, by the digest of their text."""
        found = {}
        for digest in digests:
            query = "SELECT data FROM cached_vectors WHERE digest = ?"
            for (data,) in self._rows(query, digest):
                found[digest] = _unpacked(data)
        return found

    def dimension(self, kind: Kind) -> int:
        """The length of the vectors of a kind; 0 if there is none."""
        query = f"SELECT coalesce((SELECT length(data) / 2 FROM {kind}_vectors LIMIT 1), 0)"
        return int(self._value(query))

    def vector_rows(
        self, kind: Kind, dim: int, rows: Collection[int] | None = None
    ) -> tuple[Ids, npt.NDArray[np.float16]]:
        """Row ids, ascending, and vectors of all rows that have one of this length, or of some.

        Shapes (n,) and (n, dim), float16 as they are stored.
        """
        query = f"SELECT id, data FROM {kind}_vectors WHERE length(data) = ?"
        values: list[object] = [2 * dim]
        if rows is not None:
            query += f" AND id {AMONG}"
            values.append(json_text(sorted(rows)))
        cursor = self.connection.execute(query + " ORDER BY id", values)
        found = cursor.fetchall()
        matrix: npt.NDArray[np.float16] = np.frombuffer(b"".join([row[1] for row in found]), HALF)
        return np.array([row[0] for row in found], np.int64), matrix.reshape(len(found), dim)


class VectorWriter(VectorReader, ConnectionWriter):
    """Writes vectors."""

    def put_vectors(self, kind: Kind, vectors: Mapping[int, tuple[bytes, Vectors]]) -> None:
        """Store vectors by row id, each with the digest of its text, in place of earlier ones."""
        query = (
            f"INSERT INTO {kind}_vectors VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "digest = excluded.digest, data = excluded.data"
        )
        for row in sorted(vectors):
            digest, vector = vectors[row]
            self.connection.execute(query, (row, digest, vector.astype(HALF).tobytes()))
        self._touch(kind, vectors)

    def put_cached_vectors(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep vectors that were paid for until they are used."""
        query = "INSERT INTO cached_vectors (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING"
        for digest, vector in vectors.items():
            self.connection.execute(query, (digest, vector.astype(HALF).tobytes()))

    def delete_cached_vectors(self, digests: Collection[bytes] | None = None) -> int:
        """Delete kept vectors, all or those of these digests; returns how many."""
        if digests is None:
            return self.connection.execute("DELETE FROM cached_vectors").rowcount
        query = "DELETE FROM cached_vectors WHERE digest = ?"
        return self.connection.executemany(query, zip(digests, strict=True)).rowcount


def _unpacked(data: bytes) -> Vectors:
    return np.frombuffer(data, HALF).astype(np.float32)
