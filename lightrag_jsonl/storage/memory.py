"""The index in memory, of one generation, shared by all searches."""

from collections.abc import Collection
from threading import Condition

import numpy as np

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.tables.base import TABLE_NAMES
from lightrag_jsonl.storage.vector_index import VectorBlock, VectorIndex
from lightrag_jsonl.storage.views import StateMemory, StoreView


class VectorMemory:
    """The graph and the vectors of one generation.

    Each commit, of any process, records the touched rows; from these the memory catches up, while
    nobody searches.
    """

    def __init__(self) -> None:
        self.graph: GraphIndex  # loaded by the first search, as the vectors are
        self.vectors: dict[Kind, VectorIndex] = {}
        self.state_memory = StateMemory()
        self._generation = -1
        self._searches = 0
        self._free = Condition()

    def begin_search(self, view: StoreView) -> bool:
        """Catch up with the generation of a view; False if that is in the past already."""
        generation = view.generation
        with self._free:
            while self._generation < generation and self._searches:
                self._free.wait()
            if self._generation < generation:
                self._catch_up(view, generation)
            if self._generation > generation:
                return False
            self._searches += 1
            return True

    def end_search(self) -> None:
        """Note that a search is done."""
        with self._free:
            self._searches -= 1
            self._free.notify_all()

    def _catch_up(self, view: StoreView, generation: int) -> None:
        if self._generation < 0:
            self._generation = self.restore(view)
        touched = view.touched_since(self._generation)
        self._generation = -1  # if this fails, everything is loaded anew next time
        if touched is None:
            self.load(view)
        elif any(touched.values()):
            self.update(view, touched)
        self.save(generation)
        self.state_memory = StateMemory()
        self._generation = generation

    def restore(self, view: StoreView) -> int:
        """Take over what was saved; returns the generation, -1 if there is nothing."""
        return -1

    def save(self, generation: int) -> None:
        """Save what is worth it, for the next process."""

    def load(self, view: StoreView) -> None:
        """Read all rows and all vectors."""
        self.graph = GraphIndex.of(view.graph_rows())
        for kind in TABLE_NAMES:
            self.load_vectors(view, kind)

    def update(self, view: StoreView, touched: dict[Kind, set[int]]) -> None:
        """Read the rows and the vectors that were touched."""
        self.graph = self.graph.updated(
            entities=ascending(touched["entity"]),
            relations=ascending(touched["relation"]),
            chunks=ascending(touched["chunk"]),
            rows=view.graph_rows(touched),
        )
        for kind in TABLE_NAMES:
            self.update_vectors(view, kind, touched[kind])

    def load_vectors(self, view: StoreView, kind: Kind) -> None:
        """Read all vectors of a kind."""
        ids, halves = view.vector_matrix(kind, view.vector_length(kind))
        self.vectors[kind] = VectorIndex.of(VectorBlock.of(ids, halves))

    def update_vectors(self, view: StoreView, kind: Kind, rows: Collection[int]) -> None:
        """Read the vectors of the touched rows of a kind."""
        index = self.vectors[kind]
        if index.dim != view.vector_length(kind):
            self.load_vectors(view, kind)
        elif rows:
            ids, halves = view.vector_matrix(kind, index.dim, rows)
            self.vectors[kind] = index.updated(ascending(rows), ids, halves)


def ascending(rows: Collection[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Row ids as an array, ascending."""
    return np.array(sorted(rows), np.int64)
