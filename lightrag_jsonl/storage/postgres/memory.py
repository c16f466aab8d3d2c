"""The graph in memory, and the vectors of kinds that have few."""

from collections.abc import Collection

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.memory import VectorMemory
from lightrag_jsonl.storage.postgres.vectors import has_many_vectors
from lightrag_jsonl.storage.views import StoreView


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
