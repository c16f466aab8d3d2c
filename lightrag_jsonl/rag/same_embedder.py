"""An embedder that was compared with the one that an index was built with, before its first use."""

import asyncio
import base64
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from lightrag_jsonl.core.errors import SettingsError
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.user_code import normalize_vectors
from lightrag_jsonl.indexing.embedding import SAMPLE_SETTING
from lightrag_jsonl.storage.store import Store, read, write

SAMPLE_TEXT = "The lighthouse keeper writes down the weather. 灯塔看守人记录天气。"
LEAST_LIKENESS = 0.9  # cosine; a quantized copy of a model is as like, another model is not
SAMPLE_TYPE = np.dtype("<f2")


class SameEmbedder:
    """The embedder of an index; `SettingsError` at its first use if it is another one of the same name.

    The length of the vectors is compared; of a remote embedder, behind whose name any model may stand,
    also the vector of a short text, which the first insert stores. The other attributes are those of the
    embedder.
    """

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._store = store
        self._is_remote = bool(getattr(embedder, "remote", False))
        self._is_checked = False
        self._checking = asyncio.Lock()

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self._embedder.dim

    def __getattr__(self, name: str) -> Any:
        """The optional attributes of the embedder, such as `max_retries` and `url`."""
        return getattr(self._embedder, name)

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """The vectors of the embedder."""
        if not self._is_checked:
            async with self._checking:
                await self._check(may_record=kind == "passage")
        return await self._embedder.embed(texts, kind=kind)

    async def _check(self, *, may_record: bool) -> None:
        if self._is_checked:
            return
        recorded = await read(self._store, lambda view: view.settings())
        dim = recorded.get("dim")
        if dim is not None and self._embedder.dim != int(dim):
            raise self._error(f"vectors of {dim} numbers, and now gives {self._embedder.dim}")
        if self._is_remote:
            sample = recorded.get(SAMPLE_SETTING, "")
            if sample or may_record:
                await self._compare(sample)
        self._is_checked = may_record or dim is not None

    async def _compare(self, sample: str) -> None:
        """Compare the vector of the sample with the stored one, or store it."""
        rows = await self._embedder.embed([SAMPLE_TEXT], kind="passage")
        (vector,) = normalize_vectors(rows, count=1, dim=None, source=self.name)
        if not sample:
            sample_bytes = vector.astype(SAMPLE_TYPE).tobytes()
            data = base64.b64encode(sample_bytes).decode()
            settings = {SAMPLE_SETTING: data}
            if not self._store.read_only:
                await write(self._store, lambda writer: writer.put_settings(settings))
            return
        stored_bytes = base64.b64decode(sample)
        stored = np.frombuffer(stored_bytes, SAMPLE_TYPE).astype(np.float32)
        if stored.shape != vector.shape:
            raise self._error(f"vectors of {len(stored)} numbers, and now gives {len(vector)}")
        likeness = float(stored @ vector)
        if likeness < LEAST_LIKENESS:
            raise self._error(
                f"other vectors (the same text now has a vector with a cosine of {likeness:.2f} to the "
                "stored one: the server has another model under this name)"
            )

    def _error(self, difference: str) -> SettingsError:
        location = self._store.location
        return SettingsError(
            f"{location} was built when the embedder {self.name!r} gave {difference}; open it with the "
            "embedder that it was built with, or move it to another one with reembed",
            path=location,
        )
