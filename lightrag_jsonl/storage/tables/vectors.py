"""Vectors of entities, relations and chunks, and vectors that were paid for and not used yet."""

from collections.abc import Collection, Mapping

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.rows import RowIds
from lightrag_jsonl.storage.tables.base import Tables, only_column
from lightrag_jsonl.storage.tables.kept_rows import KeepingTables
from lightrag_jsonl.storage.vector_index import HALF, Halves, Ids


class VectorReads(Tables):
    """Reads vectors."""

    def vector_digests(self, kind: Kind, rows: Collection[int]) -> dict[int, bytes]:
        """The digest of the embedded text of each row with a vector."""
        return dict(self._select("id, digest", f"{kind}_vectors", "id", rows))

    def vectors(self, kind: Kind, rows: Collection[int]) -> dict[int, Vectors]:
        """Stored vectors by row id: float32 of shape (dim,), rounded to float16; or `NO_VECTOR`."""
        cursor = self._select("id, data", f"{kind}_vectors", "id", rows)
        return {id: self.dialect.unpack(data).astype(np.float32) for id, data in cursor}

    def vector_length(self, kind: Kind) -> int:
        """The length of the vectors of a kind; 0 if there are none."""
        table = f"{kind}_vectors WHERE data <> {self.dialect.NO_VECTOR}"
        statement = f"SELECT data FROM {table} ORDER BY id LIMIT 1"
        for data in only_column(self.dialect.execute(statement)):
            return len(self.dialect.unpack(data))
        return 0

    def vector_matrix(self, kind: Kind, dim: int, rows: RowIds = None) -> tuple[Ids, Halves]:
        """Row ids (n,), ascending, and vectors (n, dim) of all or some rows; other lengths are left out."""
        table = f"(SELECT * FROM {kind}_vectors WHERE data <> {self.dialect.NO_VECTOR}) v"
        ids: list[int] = []
        numbers = bytearray()
        for id, data in self._select("id, data", table, "id", rows):
            vector = self.dialect.unpack(data)
            if len(vector) == dim:
                ids.append(id)
                numbers += vector.tobytes()
        return np.array(ids, np.int64), np.frombuffer(numbers, HALF).reshape(len(ids), dim)

    def refused_rows(self, kind: Kind) -> list[int]:
        """The rows whose vector is `NO_VECTOR`, ascending: the embedder refused the text.

        No search by vectors finds such a row.
        """
        test = f"data = {self.dialect.NO_VECTOR}"
        return only_column(
            self.dialect.execute(f"SELECT id FROM {kind}_vectors WHERE {test} ORDER BY id")
        )

    def cached_vectors(self, digests: Collection[bytes] | None = None) -> dict[bytes, Vectors]:
        """Vectors that were paid for and not used yet, by the digest of the text: some by digest, or
        all, the oldest first.
        """
        statement = "SELECT digest, data FROM cached_vectors"
        vectors: dict[bytes, object] = {}
        if digests is None:
            vectors = dict(self.dialect.execute(f"{statement} ORDER BY id"))
        for digest in digests or ():
            vectors |= dict(self.dialect.execute(f"{statement} WHERE digest = ?", digest))
        return {
            digest: self.dialect.unpack(data).astype(np.float32) for digest, data in vectors.items()
        }


class VectorWrites(VectorReads, KeepingTables):
    """Writes vectors."""

    def put_vectors(self, kind: Kind, vectors: Mapping[int, tuple[bytes, Vectors]]) -> None:
        """Store vectors by row id, with digests of the texts, in place of earlier vectors."""
        rows = []
        for id, (digest, vector) in sorted(vectors.items()):
            rows.append({"id": id, "digest": digest, "data": self.dialect.pack(vector)})
        self.keep(vectors, f"{kind}_vectors")
        self._put(f"{kind}_vectors", rows)
        self.touched[kind].update(vectors)

    def delete_vectors(self, kind: Kind, rows: Collection[int]) -> None:
        """Delete the vectors of rows that stay."""
        self.keep(rows, f"{kind}_vectors")
        self._delete(f"{kind}_vectors", "id", rows)
        self.touched[kind].update(rows)

    def put_cached_vectors(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep vectors that were paid for until these are used."""
        rows = [
            {"digest": digest, "data": self.dialect.pack(vector)}
            for digest, vector in vectors.items()
        ]
        self._insert("cached_vectors", rows)

    def delete_cached_vectors(self, digests: Collection[bytes] | None = None) -> int:
        """Delete cached vectors, all or some by digest; returns the number."""
        if digests is None:
            return self._delete_all("cached_vectors")
        return self._delete("cached_vectors", "digest", digests)
