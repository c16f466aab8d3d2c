"""The graph and the vectors of an index in SQLite, in memory."""

from collections.abc import Collection

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.memory import GraphMemory, ascending
from lightrag_jsonl.storage.tables.base import TABLE_NAMES, by_name
from lightrag_jsonl.storage.vector_index import Ids, VectorIndex
from lightrag_jsonl.storage.views import StoreView


class SQLiteMemory(GraphMemory):
    """The graph and the vectors of one generation."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors: dict[Kind, VectorIndex] = {}

    def load(self, view: StoreView) -> None:
        """Read all rows and all vectors."""
        super().load(view)
        for kind in TABLE_NAMES:
            self._load_vectors(view, kind)

    def update(self, view: StoreView, touched: dict[Kind, set[int]]) -> None:
        """Read the rows and the vectors that were touched."""
        super().update(view, touched)
        for kind in TABLE_NAMES:
            vectors = self.vectors[kind]
            if vectors.dim != view.dialect.vector_length(kind):
                self._load_vectors(view, kind)
                continue
            rows = touched[kind]
            ids, matrix = stored_vectors(view, kind, vectors.dim, rows)
            vectors.remove(np.setdiff1d(ascending(rows), ids))
            vectors.update(ids, matrix)

    def _load_vectors(self, view: StoreView, kind: Kind) -> None:
        vectors = VectorIndex(view.dialect.vector_length(kind))
        ids, matrix = stored_vectors(view, kind, vectors.dim)
        vectors.update(ids, matrix)
        self.vectors[kind] = vectors


def stored_vectors(
    view: StoreView, kind: Kind, dim: int, rows: Collection[int] | None = None
) -> tuple[Ids, Vectors]:
    """Row ids (n,), ascending, and vectors (n, dim) of all or some rows; other lengths are left out."""
    dialect = view.dialect
    test = f"length(data) = {2 * dim} AND data <> {dialect.NO_VECTOR}"
    statement = f"SELECT id, data FROM {kind}_vectors WHERE {test}"
    parameters: list[object] = []
    if rows is not None:
        statement += f" AND id {dialect.among()}"
        parameters.append(dialect.array(rows))
    vectors = by_name(dialect.execute(f"{statement} ORDER BY id", parameters))
    ids = np.array([vector.id for vector in vectors], np.int64)
    matrix = dialect.unpack(b"".join([vector.data for vector in vectors]))
    return ids, matrix.reshape(len(ids), dim)
