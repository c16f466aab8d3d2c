"""Embedders and rerankers on this machine, by the package `sentence-transformers`."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from lightrag_jsonl.core.errors import EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.user_code import normalize_vectors
from lightrag_jsonl.text.strings import sanitize

Output = TypeVar("Output")

_ENTAILED = 0.5  # the least score of a model with a single one


class _LocalModel:
    """A model by hub name or folder, loaded once, with a single thread for all calls."""

    kind: str  # the class of the package
    failure: type[Exception]

    def __init__(self, model_name_or_path: str | Path, *, device: str | None = None) -> None:
        folder = Path(model_name_or_path).resolve()
        self._source = str(model_name_or_path)
        self.name = f"{folder.parent.name}/{folder.name}" if folder.is_dir() else self._source
        self._device = device
        self._thread = ThreadPoolExecutor(1)  # models are not safe for concurrent use

    async def _run(self, call: Callable[..., Output], *args: object) -> Output:
        return await asyncio.wrap_future(self._thread.submit(call, *args))

    @cached_property
    def _model(self) -> Any:
        import sentence_transformers

        try:
            return getattr(sentence_transformers, self.kind)(self._source, device=self._device)
        except Exception as error:  # whatever a model's own files and code do
            raise self.failure(
                f"cannot load the model {self._source!r}: give the name of a model of the hub "
                f"(the first use downloads it) or the path of its folder ({error})"
            ) from error


class SentenceTransformerEmbedder(_LocalModel):
    """A model by hub name or folder, loaded at first use (in a thread, once).

    `device=None` chooses the best available. The prompts are put before queries and passages;
    `None` uses the model's own prompts, "" no prompt. `spec` is the name that makes the embedder
    again; "" if a name is not enough. Raises `EmbeddingError` if the model cannot be loaded.
    """

    kind = "SentenceTransformer"
    failure = EmbeddingError

    def __init__(
        self,
        model_name_or_path: str | Path,
        *,
        device: str | None = None,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
    ) -> None:
        super().__init__(model_name_or_path, device=device)
        self._prompts = {"query": query_prompt, "passage": passage_prompt}
        self.name += f" + {passage_prompt!r}" if passage_prompt else ""
        folder = Path(self._source).resolve()
        path = folder if folder.is_dir() else self._source
        self.spec = f"st:{path}" if query_prompt is passage_prompt is None else ""

    @property
    def dim(self) -> int:
        """The length of a vector; loads the model."""
        loaded = self._thread.submit(lambda: self._model)
        return int(loaded.result().get_embedding_dimension())

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        return await self._run(self._encode, [*map(sanitize, texts)], kind)

    def _encode(self, texts: list[str], kind: Literal["query", "passage"]) -> Vectors:
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        rows = encode(texts, prompt=self._prompts[kind], show_progress_bar=False)
        dim = self._model.get_embedding_dimension()
        return normalize_vectors(rows, count=len(texts), dim=dim, source=self.name)


class CrossEncoderReranker(_LocalModel):
    """A cross-encoder by hub name or folder; `LLMError` if the model cannot be loaded."""

    kind = "CrossEncoder"
    failure = LLMError

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, higher is better."""
        pairs = [(sanitize(query), sanitize(text)) for text in texts]
        return await self._run(self._score, pairs) if pairs else ()

    def _score(self, pairs: list[tuple[str, str]]) -> tuple[float, ...]:
        return tuple(map(float, self._model.predict(pairs, show_progress_bar=False)))


class EntailmentChecker(_LocalModel):
    """A cross-encoder that judges whether a text entails a claim, by hub name or folder; `LLMError`
    if the model cannot be loaded.

    A model with labels must have a label that begins with "entail"; of a model with a single score,
    0.5 or more means entailment.
    """

    kind = "CrossEncoder"
    failure = LLMError

    async def check(self, pairs: Sequence[tuple[str, str]], meter: object) -> list[bool | None]:
        """Whether the text of each pair, claim and text, entails the claim."""
        return await self._run(self._told, list(pairs))

    def _told(self, pairs: list[tuple[str, str]]) -> list[bool | None]:
        inputs = [(sanitize(text), sanitize(claim)) for claim, text in pairs]
        scores = np.asarray(self._model.predict(inputs, show_progress_bar=False))
        if scores.ndim == 1:
            return [bool(score >= _ENTAILED) for score in scores]
        labels = [str(label).casefold() for label in self._model.config.id2label.values()]
        entailing = [place for place, label in enumerate(labels) if label.startswith("entail")]
        if len(entailing) != 1:
            raise LLMError(
                f"the model {self._source!r} has the labels {', '.join(labels)}: a checker needs one for "
                "entailment"
            )
        return [bool(place == entailing[0]) for place in scores.argmax(axis=1)]
