"""Embedders and rerankers that run on this machine, with the package `sentence-transformers`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.vectors import normalize_vectors

Result = TypeVar("Result")

_PROMPT_NAMES = {"query": ("query",), "passage": ("document", "passage", "corpus")}
_LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, ImportError)
_RUN_ERRORS = (RuntimeError, ValueError, IndexError)
_HUB_SECONDS = 10.0  # the time for the hub to answer, as in its own client


class SentenceTransformerEmbedder:
    """A model by its hub name or folder, loaded at first use (in a thread, once).

    `device=None` chooses the best available. The prompts are put before queries and passages;
    `None` uses the model's own, "" none. `max_length` (tokens) shortens what the model reads.
    `name` is the hub name or the folder's name. Raises `EmbeddingError` if the model cannot be
    loaded or run.
    """

    def __init__(
        self,
        model_name_or_path: str | Path,
        *,
        device: str | None = None,
        batch_size: int = 32,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        max_length: int | None = None,
        name: str | None = None,
    ) -> None:
        if batch_size < 1 or (max_length is not None and max_length < 1):
            raise ConfigError("batch_size and max_length must be at least 1")
        self._local = _LocalModel(
            "SentenceTransformer", model_name_or_path, EmbeddingError, {"device": device}
        )
        self._batch_size = batch_size
        self._prompts = {"query": query_prompt, "passage": passage_prompt}
        self._max_length = max_length
        suffix = f" + {passage_prompt!r}" if passage_prompt else ""
        self.name = name or _model_name(str(model_name_or_path)) + suffix

    @cached_property
    def dim(self) -> int:
        """The length of a vector; loads the model."""
        get = getattr(self._model, "get_embedding_dimension", None)  # its name since version 5.2
        return int(get() if get else self._model.get_sentence_embedding_dimension())

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        return await self._local.run(partial(self._encode, [*map(sanitize, texts)], kind))

    def clip(self, text: str) -> str:
        """The part of a passage that the model reads, in whole characters; loads the model."""
        whole = self._prompt("passage") + sanitize(text)
        offsets = self._tokenizer(
            whole,
            truncation=True,
            max_length=self._model.max_seq_length,
            return_offsets_mapping=True,
        )["offset_mapping"]
        return whole[: max(end for _, end in offsets)].removeprefix(self._prompt("passage"))

    @property
    def _model(self) -> Any:
        model = self._local.load()
        if self._max_length is not None:
            model.max_seq_length = self._max_length
        return model

    @cached_property
    def _tokenizer(self) -> Any:
        return deepcopy(self._model.tokenizer)  # the model's own may be in use in another thread

    def _prompt(self, kind: Literal["query", "passage"]) -> str:
        given = self._prompts[kind]
        own = self._model.prompts or {}
        if given is not None:
            return given
        return next((own[name] for name in _PROMPT_NAMES[kind] if own.get(name)), "")

    def _encode(self, texts: list[str], kind: Literal["query", "passage"]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        try:
            rows = self._model.encode(
                texts,
                prompt=self._prompt(kind),
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        except _RUN_ERRORS as error:
            failed = f"{self.name} could not embed {len(texts)} texts: {error}"
            raise EmbeddingError(failed) from error
        return normalize_vectors(rows, count=len(texts), dim=self.dim, source=self.name)


class CrossEncoderReranker:
    """A cross-encoder by its hub name or folder as a `Reranker`, loaded at first use.

    `max_length` (tokens of query and text together) shortens what the model reads. Raises
    `LLMError` if the model cannot be loaded or run.
    """

    def __init__(
        self,
        model_name_or_path: str | Path,
        *,
        device: str | None = None,
        batch_size: int = 32,
        max_length: int | None = None,
        name: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise ConfigError("batch_size must be at least 1")
        settings = {"device": device, "max_length": max_length}
        self._local = _LocalModel("CrossEncoder", model_name_or_path, LLMError, settings)
        self._batch_size = batch_size
        self.name = name or _model_name(str(model_name_or_path))

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One score for each text, higher is better."""
        if not texts:
            return ()
        pairs = [(sanitize(query), sanitize(text)) for text in texts]
        return await self._local.run(partial(self._score, pairs))

    def _score(self, pairs: list[tuple[str, str]]) -> tuple[float, ...]:
        model = self._local.load()
        try:
            scores = model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False)
        except _RUN_ERRORS as error:
            raise LLMError(f"{self.name} could not score: {error}") from error
        table = np.asarray(scores, dtype=np.float64)
        if table.shape != (len(pairs),):
            raise LLMError(
                f"{self.name} gives {table.shape[1:]} numbers a text: "
                "a reranker has one output, is this a classifier?"
            )
        return tuple(float(score) for score in table)


class _LocalModel:
    """A model of a class of the package, loaded once, that runs in a thread of its own."""

    def __init__(
        self, kind: str, source: str | Path, failure: type[Exception], settings: dict[str, Any]
    ) -> None:
        self._kind = kind
        self._source = str(source)
        self._failure = failure
        self._settings = settings
        self._loading = threading.Lock()
        self._thread = ThreadPoolExecutor(1)  # models are not safe for concurrent use
        self._model: Any = None

    async def run(self, call: Callable[[], Result]) -> Result:
        return await asyncio.wrap_future(self._thread.submit(call))

    def load(self) -> Any:
        """The model; raises the failure it was given if it cannot be loaded."""
        with self._loading:
            if self._model is None:
                self._model = self._loaded()
            return self._model

    def _loaded(self) -> Any:
        cut_off = False
        try:
            import sentence_transformers

            make = getattr(sentence_transformers, self._kind)
            cut_off = _is_cut_off(self._source)
            return make(self._source, local_files_only=cut_off, **self._settings)
        except _LOAD_ERRORS as error:
            reason = shorten(str(error), 200, placeholder=" …")
            hub = "the hub cannot be reached, and its cache here does not have it whole: "
            raise self._failure(
                f"cannot load the model {self._source!r}: {hub if cut_off else ''}give the name of "
                f"a model of the hub (the first use downloads it) or the path of its folder ({reason})"
            ) from error


def _is_cut_off(source: str) -> bool:
    """Whether a model of the hub can only come from the cache, since the hub does not answer.

    The hub's own client would try each of several files for a minute.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or Path(source).is_dir():
        return constants.HF_HUB_OFFLINE
    try:
        urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=_HUB_SECONDS).close()
    except HTTPError:
        return False
    except OSError:
        return True
    return False


def _model_name(source: str) -> str:
    """A stable name: the hub's, or those of the folder and its parent."""
    folder = Path(source).resolve()
    return f"{folder.parent.name}/{folder.name}" if folder.is_dir() else source
