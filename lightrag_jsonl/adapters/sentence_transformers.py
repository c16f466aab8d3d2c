"""Embedders and rerankers that run on this machine, with the package `sentence-transformers`."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lightrag_jsonl.adapters.faults import transport_failures
from lightrag_jsonl.adapters.threads import Threads
from lightrag_jsonl.errors import ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.units import unit_rows

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

HUB_SNAPSHOT = re.compile(r"models--(?P<owner>.+?)--(?P<model>.+)")
PLAIN_FOLDERS = frozenset({"model", "models", "final", "checkpoint", "export", "onnx"})
PROMPT_NAMES = {"query": ("query",), "passage": ("document", "passage", "corpus")}
LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, ImportError)
HUB_SECONDS = 10.0  # the time for the hub to answer, as in its own client


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
        dim: int | None = None,
        name: str | None = None,
    ) -> None:
        if batch_size < 1 or (max_length is not None and max_length < 1):
            raise ConfigError("batch_size and max_length must be at least 1")
        self._source = str(model_name_or_path)
        self._device = device
        self._batch_size = batch_size
        self._prompts = {"query": query_prompt, "passage": passage_prompt}
        self._max_length = max_length
        suffix = f" + {passage_prompt!r}" if passage_prompt else ""
        self._name = name or _model_name(self._source) + suffix
        self._dim = dim
        self._model: SentenceTransformer | None = None
        self._clip: Callable[[str], str] | None = None
        self._loading = threading.Lock()
        self._thread = Threads(1)  # models are not safe for concurrent use

    @property
    def name(self) -> str:
        """The given name, or else the hub's or the folder's."""
        return self._name

    @property
    def dim(self) -> int:
        """The length of a vector, read from the model's folder or, if that fails, from the loaded model."""
        if self._dim is None:
            self._dim = _dim_on_disk(Path(self._source)) or _dim_of(self._loaded())
        return self._dim

    @property
    def max_tokens(self) -> int | None:
        """The longest text the model reads, in its own tokens; loads the model."""
        length = self._loaded().max_seq_length
        return length if isinstance(length, int) else None

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length."""
        return await self._thread.run(partial(self._encode, [*map(sanitize, texts)], kind))

    def clip(self, text: str) -> str:
        """The part of a passage that the model reads, in whole characters; loads the model."""
        model = self._loaded()
        if self._clip is None:
            self._clip = _clipper(model, self._prompt(model, "passage"))
        return self._clip(sanitize(text))

    def _encode(self, texts: list[str], kind: Literal["query", "passage"]) -> Vectors:
        model = self._loaded()
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        try:
            rows = model.encode(
                texts,
                prompt=self._prompt(model, kind),
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise EmbeddingError(
                f"{self.name} could not embed {len(texts)} texts: {error}"
            ) from error
        vectors = unit_rows(rows, count=len(texts), dim=self._dim, source=self.name)
        self._dim = vectors.shape[1]
        return vectors

    def _prompt(self, model: SentenceTransformer, kind: Literal["query", "passage"]) -> str:
        given = self._prompts[kind]
        if given is not None:
            return given
        brought = model.prompts or {}
        return next((brought[name] for name in PROMPT_NAMES[kind] if brought.get(name)), "")

    def _loaded(self) -> SentenceTransformer:
        with self._loading:
            if self._model is None:
                self._model = _load(
                    "SentenceTransformer", self._source, EmbeddingError, device=self._device
                )
                if self._max_length is not None:
                    self._model.max_seq_length = self._max_length
            return self._model


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
        self._source = str(model_name_or_path)
        self._device = device
        self._batch_size = batch_size
        self._max_length = max_length
        self._name = name or _model_name(self._source)
        self._model: CrossEncoder | None = None
        self._thread = Threads(1)

    @property
    def name(self) -> str:
        """The given name, or else the hub's or the folder's."""
        return self._name

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One score for each text, higher is better."""
        if not texts:
            return ()
        pairs = [(sanitize(query), sanitize(text)) for text in texts]
        return await self._thread.run(partial(self._score, pairs))

    def _score(self, pairs: list[tuple[str, str]]) -> tuple[float, ...]:
        model = self._loaded()
        try:
            scores = model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False)
        except (RuntimeError, ValueError, IndexError) as error:
            raise LLMError(f"{self.name} could not score: {error}") from error
        table = np.asarray(scores, dtype=np.float64)
        if table.shape != (len(pairs),):
            raise LLMError(
                f"{self.name} gives {table.shape[1:]} numbers a text: "
                "a reranker has one output, is this a classifier?"
            )
        return tuple(float(score) for score in table)

    def _loaded(self) -> CrossEncoder:
        if self._model is None:
            self._model = _load(
                "CrossEncoder",
                self._source,
                LLMError,
                device=self._device,
                max_length=self._max_length,
            )
        return self._model


def _clipper(model: SentenceTransformer, prompt: str) -> Callable[[str], str]:
    """A function that cuts passages where the model's tokenizer would, without using the model's instance."""
    from tokenizers import Tokenizer

    fast, length = getattr(model.tokenizer, "backend_tokenizer", None), model.max_seq_length
    if not isinstance(fast, Tokenizer) or not isinstance(length, int):
        return str
    own = Tokenizer.from_str(fast.to_str())
    own.no_truncation()
    own.no_padding()
    room = length - own.num_special_tokens_to_add(is_pair=False)

    def clip(text: str) -> str:
        whole = prompt + text
        offsets = own.encode(whole, add_special_tokens=False).offsets
        if len(offsets) <= room:
            return text
        return whole[len(prompt) : offsets[room - 1][1] if room > 0 else 0]

    return clip


def _model_name(source: str) -> str:
    """A stable name: the hub's, or the folder's (with its parent's if that says little)."""
    folder = Path(source)
    if not folder.is_dir():
        return source
    folder = folder.resolve()
    for part in folder.parts:
        if cached := HUB_SNAPSHOT.fullmatch(part):
            return f"{cached['owner']}/{cached['model']}"
    plain = folder.name.lower() in PLAIN_FOLDERS
    return f"{folder.parent.name}/{folder.name}" if plain else folder.name


def _dim_on_disk(folder: Path) -> int | None:
    """The output width of the model's last layer, from its folder; None if that is not obvious."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        for module in reversed(modules):
            kind = module["type"].rpartition(".")[2]
            if kind not in ("Pooling", "Dense"):
                continue
            config = folder / module["path"] / "config.json"
            settings = json.loads(config.read_text(encoding="utf-8"))
            width = settings.get("out_features" if kind == "Dense" else "word_embedding_dimension")
            plain = kind == "Dense" or sum(_pooling_modes(settings)) == 1
            return width if isinstance(width, int) and plain else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None


def _pooling_modes(settings: dict[str, object]) -> list[bool]:
    """The active pooling modes; several are concatenated, which makes vectors longer."""
    return [value is True for key, value in settings.items() if key.startswith("pooling_mode_")]


def _dim_of(model: SentenceTransformer) -> int:
    asked = getattr(model, "get_embedding_dimension", None)  # its name since version 5.2
    dim = asked() if asked is not None else model.get_sentence_embedding_dimension()
    if not isinstance(dim, int):
        raise EmbeddingError("the model does not tell how long its vectors are: give dim=")
    return dim


def _load(kind: str, source: str, failure: type[Exception], **settings: object) -> Any:
    """A model of a class of the package, by its hub name or folder; raises `failure` if that fails."""
    cut_off = False
    try:
        import sentence_transformers

        cut_off = _is_cut_off(source)
        make = getattr(sentence_transformers, kind)
        return make(source, local_files_only=cut_off, **settings)
    except LOAD_ERRORS as error:
        raise failure(_cannot_load(source, error, cut_off)) from error


def _is_cut_off(source: str) -> bool:
    """Whether a model of the hub can only come from the cache, since the hub does not answer.

    The hub's own client would try six times, half a minute, for each of several files.
    """
    from huggingface_hub import HfApi, get_session

    if Path(source).is_dir():
        return False
    unreachable: tuple[type[Exception], ...] = (OSError, *transport_failures())
    try:
        get_session().head(HfApi().endpoint, timeout=HUB_SECONDS)
    except unreachable:  # HF_HUB_OFFLINE also raises an OSError
        return True
    return False


def _cannot_load(source: str, error: Exception, cut_off: bool) -> str:
    if isinstance(error, ImportError):
        return f"the model {source!r} needs a package: {error} (pip install sentence-transformers)"
    reason = shorten(str(error), 200, placeholder=" …")
    if cut_off:
        return (
            f"cannot load the model {source!r}: the hub cannot be reached (or HF_HUB_OFFLINE is set), "
            "and its cache here does not have it whole: give the path of its folder, use it once "
            f"where there is a network, or do without it ({reason})"
        )
    return (
        f"cannot load the model {source!r}: give the name of a model of the hub (the first use "
        f"downloads it and needs a network) or the path of its folder ({reason})"
    )
