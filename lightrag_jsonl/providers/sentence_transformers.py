"""Embedders and rerankers that run on this machine, with the package `sentence-transformers`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from lightrag_jsonl.core.errors import EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.vectors import normalize_vectors

Result = TypeVar("Result")

_PROMPT_NAMES = {"query": ("query",), "passage": ("document", "passage", "corpus")}


class SentenceTransformerEmbedder:
    """A model by its hub name or folder, loaded at first use (in a thread, once).

    `device=None` chooses the best available. The prompts are put before queries and passages;
    `None` uses the model's own, "" none. Raises `EmbeddingError` if the model cannot be loaded.
    """

    def __init__(
        self,
        model_name_or_path: str | Path,
        *,
        device: str | None = None,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
    ) -> None:
        self._local = _LocalModel("SentenceTransformer", model_name_or_path, device, EmbeddingError)
        self._prompts = {"query": query_prompt, "passage": passage_prompt}
        self.name = self._local.name + (f" + {passage_prompt!r}" if passage_prompt else "")

    @cached_property
    def dim(self) -> int:
        """The length of a vector; loads the model."""
        return int(self._local.thread.submit(self._local.load).result().get_embedding_dimension())

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        return await self._local.run(self._encode, [*map(sanitize, texts)], kind)

    def _encode(self, texts: list[str], kind: Literal["query", "passage"]) -> Vectors:
        model, prompt = self._local.load(), self._prompts[kind]
        if prompt is None:
            own = model.prompts or {}
            prompt = next((own[name] for name in _PROMPT_NAMES[kind] if own.get(name)), "")
        rows = model.encode(texts, prompt=prompt, show_progress_bar=False)
        dim = model.get_embedding_dimension()
        return normalize_vectors(rows, count=len(texts), dim=dim, source=self.name)


class CrossEncoderReranker:
    """A cross-encoder by its hub name or folder as a `Reranker`, loaded at first use.

    Raises `LLMError` if the model cannot be loaded.
    """

    def __init__(self, model_name_or_path: str | Path, *, device: str | None = None) -> None:
        self._local = _LocalModel("CrossEncoder", model_name_or_path, device, LLMError)
        self.name = self._local.name

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One score for each text, higher is better."""
        pairs = [(sanitize(query), sanitize(text)) for text in texts]
        return await self._local.run(self._score, pairs) if pairs else ()

    def _score(self, pairs: list[tuple[str, str]]) -> tuple[float, ...]:
        return tuple(map(float, self._local.load().predict(pairs, show_progress_bar=False)))


class _LocalModel:
    """A model of a class of the package, loaded once; it runs in a thread of its own."""

    def __init__(
        self, kind: str, source: str | Path, device: str | None, failure: type[Exception]
    ) -> None:
        self._kind = kind
        self._source = str(source)
        self._device = device
        self._failure = failure
        self._model: Any = None
        self.thread = ThreadPoolExecutor(1)  # models are not safe for concurrent use

    @property
    def name(self) -> str:
        """A stable name: the hub's, or those of the folder and its parent."""
        folder = Path(self._source).resolve()
        return f"{folder.parent.name}/{folder.name}" if folder.is_dir() else self._source

    async def run(self, call: Callable[..., Result], *args: object) -> Result:
        return await asyncio.wrap_future(self.thread.submit(call, *args))

    def load(self) -> Any:
        """The model, in its thread; raises the failure it was given if it cannot be loaded."""
        if self._model is None:
            import sentence_transformers

            make = getattr(sentence_transformers, self._kind)
            try:
                self._model = make(self._source, device=self._device)
            except Exception as error:  # whatever a model's own files and code do
                raise self._failure(
                    f"cannot load the model {self._source!r}: give the name of a model of the hub "
                    f"(the first use downloads it) or the path of its folder ({error})"
                ) from error
        return self._model
