"""The graph and the vectors of an index in SQLite, in memory or mapped from files."""

from lightrag_jsonl.storage.memory import VectorMemory
from lightrag_jsonl.storage.sqlite.memory_files import MemoryFiles, SavedMemory
from lightrag_jsonl.storage.vector_index import VectorBlock
from lightrag_jsonl.storage.views import StoreView

# Bytes of vectors from which on files are worth it; fewer are read in a tenth of a second.
SMALLEST_FILES = 16_000_000


class SQLiteMemory(VectorMemory):
    """The graph and the vectors of one generation, in files if there are many vectors."""

    def __init__(self, files: MemoryFiles) -> None:
        super().__init__()
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
