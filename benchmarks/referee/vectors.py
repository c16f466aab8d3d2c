"""One embedder for all contestants; each text is embedded once, and its vector kept in a file."""

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.corpora import CachingEmbedder, make_embedder
from benchmarks.referee.contestants.base import DIMENSIONS
from benchmarks.referee.static_vectors import StaticEmbedder
from lightrag_jsonl.testing import HashEmbedder

Vectors = npt.NDArray[np.float32]
BATCH = 500  # texts that are looked up at a time


class CachedVectors:
    """The vectors of texts by an embedder (`minilm`, `wordllama` or `hash`); safe to use from threads."""

    def __init__(self, embedder_name: str, path: Path) -> None:
        self.embedder_name = embedder_name
        self._embedder: CachingEmbedder | None = None  # made when a text is not in the file
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, check_same_thread=False, timeout=600)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS v (k BLOB PRIMARY KEY, x BLOB) WITHOUT ROWID"
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, shape (len(texts), dimensions)."""
        keys = [hashlib.sha256(f"passage\0{text}".encode()).digest()[:16] for text in texts]
        with self._lock:
            vectors = self._cached(keys)
            missing = {
                key: text for key, text in zip(keys, texts, strict=True) if key not in vectors
            }
            if missing:
                vectors |= self._embedded(missing)
        return np.stack([vectors[key] for key in keys])

    def _cached(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        vectors: dict[bytes, Vectors] = {}
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            marks = ", ".join("?" * len(part))
            rows = self._database.execute(f"SELECT k, x FROM v WHERE k IN ({marks})", part)
            for key, blob in rows:
                vectors[key] = np.frombuffer(blob, np.float32)
        return vectors

    def _embedded(self, texts_by_key: dict[bytes, str]) -> dict[bytes, Vectors]:
        if self._embedder is None:
            self._embedder = _embedder(self.embedder_name)
        texts = list(texts_by_key.values())
        new = asyncio.run(self._embedder.embed(texts, kind="passage"))
        vectors = dict(zip(texts_by_key, np.asarray(new, np.float32), strict=True))
        self._database.executemany(
            "INSERT OR IGNORE INTO v VALUES (?, ?)",
            [(key, vector.tobytes()) for key, vector in vectors.items()],
        )
        self._database.commit()
        return vectors

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _embedder(name: str) -> CachingEmbedder:
    """All embedders give vectors of the same length, so that their costs compare."""
    if name == "hash":
        return CachingEmbedder(HashEmbedder(dim=DIMENSIONS))
    if name == "wordllama":
        return CachingEmbedder(StaticEmbedder(dim=DIMENSIONS))
    return make_embedder(name)
