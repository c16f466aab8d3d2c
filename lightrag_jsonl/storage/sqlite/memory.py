"""The graph and the vectors of an index in SQLite, in memory or mapped from files."""

from collections.abc import Collection

import numpy as np

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.memory import GraphMemory, ascending
from lightrag_jsonl.storage.sqlite.memory_files import MemoryFiles, SavedMemory
from lightrag_jsonl.storage.tables.base import TABLE_NAMES
from lightrag_jsonl.storage.vector_index import HALF, Halves, Ids, VectorBlock, VectorIndex
from lightrag_jsonl.storage.views import StoreView

# Bytes of vectors from which on files are worth it; fewer are read in a tenth of a second.
SMALLEST_FILES = 16_000_000


class SQLiteMemory(GraphMemory):
    """The graph and the vectors of one generation."""

    def __init__(self, files: MemoryFiles) -> None:
        super().__init__()
        self.vectors: dict[Kind, VectorIndex] = {}
        self._files = files
        self._saved_blocks: list[VectorBlock] = []

    def restore(self, view: StoreView) -> int:
        """Map the graph and the vectors from files."""
        saved = self._files.read(view)
        if saved is None:
            return super().restore(view)
        self._take_over(saved)
        return saved.generation

    def save(self, generation: int) -> None:
        """Write files, if no file holds most of the vectors."""
        indexes = self.vectors.values()
        total_bytes = sum(2 * len(index) * index.dim for index in indexes)
        are_saved = all(index.base in self._saved_blocks for index in indexes)
        if total_bytes >= SMALLEST_FILES and not are_saved:
            self._saved_blocks = [index.base for index in indexes]  # also if they cannot be written
            saved = self._files.write(generation, self.graph, self.vectors)
            if saved is not None:
                self._take_over(saved)

    def _take_over(self, saved: SavedMemory) -> None:
        self.graph = saved.graph
        self.vectors = saved.vectors
        self._saved_blocks = [index.base for index in saved.vectors.values()]

    def load(self, view: StoreView) -> None:
        """Read all rows and all vectors."""
        super().load(view)
        for kind in TABLE_NAMES:
            self._load_vectors(view, kind)

    def update(self, view: StoreView, touched: dict[Kind, set[int]]) -> None:
        """Read the rows and the vectors that were touched."""
        super().update(view, touched)
        for kind in TABLE_NAMES:
            index = self.vectors[kind]
            if index.dim != view.dialect.vector_length(kind):
                self._load_vectors(view, kind)
                continue
            rows = touched[kind]
            ids, halves = stored_vectors(view, kind, index.dim, rows)
            if rows:
                self.vectors[kind] = index.updated(ascending(rows), ids, halves)

    def _load_vectors(self, view: StoreView, kind: Kind) -> None:
        ids, halves = stored_vectors(view, kind, view.dialect.vector_length(kind))
        self.vectors[kind] = VectorIndex.of(VectorBlock.of(ids, halves))


def stored_vectors(
    view: StoreView, kind: Kind, dim: int, rows: Collection[int] | None = None
) -> tuple[Ids, Halves]:
    """Row ids (n,), ascending, and vectors (n, dim) of all or some rows; other lengths are left out."""
    dialect = view.dialect
    test = f"length(data) = {2 * dim} AND data <> {dialect.NO_VECTOR}"
    statement = f"SELECT id, data FROM {kind}_vectors WHERE {test}"
    parameters: list[object] = []
    if rows is not None:
        statement += f" AND id {dialect.among()}"
        parameters.append(dialect.array(rows))
    ids: list[int] = []
    data = bytearray()
    for id, vector in dialect.execute(f"{statement} ORDER BY id", parameters):
        ids.append(id)
        data += vector
    return np.array(ids, np.int64), np.frombuffer(data, HALF).reshape(len(ids), dim)
