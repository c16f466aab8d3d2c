"""The graph and the vectors of an index in SQLite: in memory, or in files mapped by all processes without a copy in each.

The files are derived from the database and never the truth: the database names the folder with
the valid files, and a missing or stale file is made anew.
"""

import contextlib
import json
import os
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lightrag_jsonl.core.errors import StorageError, required_packages
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.memory import VectorMemory
from lightrag_jsonl.storage.store import MEMORY_FILES
from lightrag_jsonl.storage.tables.base import TABLE_NAMES
from lightrag_jsonl.storage.vector_index import VectorBlock, VectorIndex
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.patterns import pattern_of

FOLDER = "memory-{}"
VALUE = pattern_of(r"([0-9a-f]{16}) (\d+)")  # of the setting: a random token, and the generation
GRAPH_COLUMNS = (
    "entities",
    "chunks",
    "relations",
    "weights",
    "relations_of",
    "chunks_of",
    "entities_of",
)
CHECKSUMS = "checksums.json"  # of each file
FAISS_KIND = b"IxSQ"  # how a file of a scalar quantizer begins; FAISS reads no other file


class SavedMemory(Struct, frozen=True):
    """The graph and the vectors of one generation, mapped from files."""

    generation: int
    graph: GraphIndex
    vectors: dict[Kind, VectorIndex]


class MemoryFiles:
    """The files of an index in a folder; `register` writes a setting into the database, None if
    the index can only be read.
    """

    def __init__(self, folder: Path, register: Callable[[Mapping[str, str]], None] | None) -> None:
        self._folder = folder
        self._register = register

    def read(self, view: StoreView) -> SavedMemory | None:
        """The saved graph and vectors of this or an earlier generation; None if there are none."""
        registered = VALUE.fullmatch(view.settings().get(MEMORY_FILES, ""))
        if registered is None:
            return None
        folder = self._folder / FOLDER.format(registered[1])
        return _read_folder(folder, int(registered[2]))

    def write(
        self, generation: int, graph: GraphIndex, vectors: Mapping[Kind, VectorIndex]
    ) -> SavedMemory | None:
        """Save the graph and the vectors, and map the files; None without the room or the right
        to write.
        """
        from shutil import rmtree

        if self._register is None:
            return None
        token = secrets.token_hex(8)
        folder = self._folder / FOLDER.format(token)
        earlier_folders = self._folders()
        try:
            folder.mkdir()
            for name, column in graph.columns.items():
                np.save(folder / f"{name}.npy", column)
            for kind, index in vectors.items():
                _write_block(folder, kind, index.joined())
            checksums = {path.name: _checksum(path) for path in folder.iterdir()}
            (folder / CHECKSUMS).write_text(json.dumps(checksums), encoding="utf-8")
            for path in folder.iterdir():
                _sync(path)
            self._register({MEMORY_FILES: f"{token} {generation}"})
        except (OSError, RuntimeError, StorageError):
            rmtree(folder, ignore_errors=True)
            return None
        for earlier in earlier_folders:  # who has mapped them keeps them until the end
            rmtree(earlier, ignore_errors=True)
        return _read_folder(folder, generation)

    def damaged(self) -> Iterator[str]:
        """The files, below the folder of the index, with other bytes than were written."""
        for folder in self._folders():
            try:
                checksums = _stored_checksums(folder)
            except (OSError, ValueError, TypeError):
                continue  # no process maps these files
            for name, expected in checksums.items():
                path = folder / name
                with contextlib.suppress(FileNotFoundError):  # a file without which none is mapped
                    if _checksum(path) != expected:
                        yield f"{folder.name}/{name}"

    def delete(self) -> None:
        """Delete all files; raises `OSError` where the system keeps mapped files."""
        from shutil import rmtree

        for folder in self._folders():
            with contextlib.suppress(FileNotFoundError):
                rmtree(folder)

    def size(self) -> int:
        """The bytes of all files."""
        sizes: list[int] = []
        for folder in self._folders():
            with contextlib.suppress(FileNotFoundError):  # deleted by another process
                sizes += [path.stat().st_size for path in folder.glob("*")]
        return sum(sizes)

    def _folders(self) -> list[Path]:
        return [path for path in self._folder.glob(FOLDER.format("*")) if path.is_dir()]


def _read_folder(folder: Path, generation: int) -> SavedMemory | None:
    """The graph and the vectors in the files of a folder; None for a missing or damaged file.

    All bytes are read once: at 3 GB a second, less than one search by vectors costs.
    """
    try:
        for name, checksum in _stored_checksums(folder).items():
            if _checksum(folder / name) != checksum:
                return None
        columns = {name: _mapped(folder / f"{name}.npy") for name in GRAPH_COLUMNS}
        vectors = {kind: VectorIndex.of(_read_block(folder, kind)) for kind in TABLE_NAMES}
    except (OSError, ValueError, TypeError, RuntimeError):  # FAISS raises RuntimeError
        return None
    return SavedMemory(generation, GraphIndex(columns), vectors)


def _stored_checksums(folder: Path) -> dict[str, int]:
    """The checksums of the files of a folder; `ValueError` if they are damaged themselves."""
    stored = json.loads((folder / CHECKSUMS).read_bytes())
    if not isinstance(stored, dict):
        raise ValueError(f"{folder / CHECKSUMS} holds no checksums")
    return {name: int(checksum) for name, checksum in stored.items()}


def _checksum(path: Path) -> int:
    """The CRC-32 of a file."""
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _write_block(folder: Path, kind: Kind, block: VectorBlock) -> None:
    import faiss

    np.save(folder / f"{kind}_ids.npy", block.ids)
    faiss.write_index(block.index, str(folder / f"{kind}.faiss"))


def _read_block(folder: Path, kind: Kind) -> VectorBlock:
    with required_packages():
        import faiss

    ids = _mapped(folder / f"{kind}_ids.npy")
    path = folder / f"{kind}.faiss"
    with path.open("rb") as file:
        if file.read(len(FAISS_KIND)) != FAISS_KIND:
            raise ValueError(f"{path} is no file of vectors")
    # FAISS before 1.11 reads the file into memory.
    index: Any = faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", 0))
    if index.ntotal != len(ids) or index.codes.size() != 2 * len(ids) * index.d:
        raise ValueError(f"{path} has another number of vectors than ids")
    return VectorBlock(ids, index)


def _mapped(path: Path) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    column: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return column.view(np.ndarray)  # a view of `np.memmap` costs each of its uses twice the time


def _sync(path: Path) -> None:
    """Wait until a file is on the disk: a power cut must not leave zeros under a valid name."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ── in memory or mapped ───────────────────────────────────────────────────────

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
