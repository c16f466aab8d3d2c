"""The graph in memory, and the vectors of kinds that have few."""

from collections.abc import Collection

import numpy as np

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.memory import VectorMemory
from lightrag_jsonl.storage.postgres.vectors import has_many_vectors
from lightrag_jsonl.storage.vector_index import HALF, Halves, Ids
from lightrag_jsonl.storage.views import StoreView

VECTORS = """SELECT id, data FROM {kind}_vectors WHERE vector_dims(data) = ?1 AND data <> {no_vector}
    AND (?2::bigint[] IS NULL OR id = ANY(?2)) ORDER BY id"""


class PostgresMemory(VectorMemory):
    """The graph of one generation, and the vectors of each kind that has no HNSW index.

    To compare 8,800 vectors of 1,024 numbers with a question takes 14 ms of the server and 1 ms here.
    """

    def load_vectors(self, view: StoreView, kind: Kind) -> None:
        """Read all vectors of a kind, unless there are many."""
        self.vectors.pop(kind, None)
        if not has_many_vectors(view.dialect, kind):
            super().load_vectors(view, kind)

    def update_vectors(self, view: StoreView, kind: Kind, rows: Collection[int]) -> None:
        """Read the vectors of the touched rows of a kind, unless there are many."""
        if not rows:
            return
        if kind in self.vectors and not has_many_vectors(view.dialect, kind):
            super().update_vectors(view, kind, rows)
        else:
            self.load_vectors(view, kind)

    def read_vectors(
        self, view: StoreView, kind: Kind, dim: int, rows: Collection[int] | None = None
    ) -> tuple[Ids, Halves]:
        statement = VECTORS.format(kind=kind, no_vector=view.dialect.NO_VECTOR)
        some_rows = None if rows is None else list(rows)
        ids: list[int] = []
        halves: list[Halves] = []
        for id, vector in view.dialect.execute(statement, dim, some_rows):
            ids.append(id)
            halves.append(vector.to_numpy())
        matrix = np.array(halves, HALF).reshape(len(ids), dim)
        return np.array(ids, np.int64), matrix
