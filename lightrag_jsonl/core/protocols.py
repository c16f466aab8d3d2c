"""The ports for models, embedders and the like, with one or two methods each; and the port to a recorder."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.answers import Answer, Context, Keywords, Reading
from lightrag_jsonl.core.edges import EdgeSelection
from lightrag_jsonl.core.types import Chunk, Relation

Vectors = npt.NDArray[np.float32]


class LLM(Protocol):
    """A chat model. `name` is part of cache keys and of provenance.

    Five attributes are optional:

    - `max_retries`: the repetitions of a call after a passing error, default 2.
    - `requests_per_minute`, `tokens_per_minute`: limits that an index keeps.
    - `first_concurrent_calls`: the calls in flight at first, default 8; more if that helps.
    - `context_tokens`: the model's window, the tokens of a request and of its answer together.
    """

    @property
    def name(self) -> str:
        """A name that no other model has."""

    async def complete(
        self,
        messages: Sequence[t.Message],
        *,
        response_type: t.ResponseType = "text",
        max_tokens: int | None = None,
    ) -> t.Completion:
        """Answer the conversation; raise `LLMError` for a failure."""


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A chat model that can stream its answers."""

    def stream(
        self, messages: Sequence[t.Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        """The answer piece by piece; raises `LLMError` for a failure.

        After a transient error `stream` is called again, unless a piece has been yielded already.
        The iterator may have two attributes, read after the last piece: `usage` (a `Usage`, the cost
        of the answer) and `finish` (as in `Completion`).
        """


@runtime_checkable
class ConstrainedLLM(LLM, Protocol):
    """A chat model with constrained decoding: the server enforces a schema."""

    async def complete_records(
        self,
        messages: Sequence[t.Message],
        *,
        schema: Mapping[str, t.Json],
        names: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> t.Completion:
        """Like `complete` for JSONL; every line obeys `schema`, entity names are among `names`."""


@runtime_checkable
class VisionLLM(LLM, Protocol):
    """A chat model that sees pictures, for the task "see"."""

    async def see(
        self,
        messages: Sequence[t.Message],
        picture: t.Picture,
        *,
        max_tokens: int | None = None,
    ) -> t.Completion:
        """Like `complete`, about a picture that goes with the last message."""


class Embedder(Protocol):
    """Texts to vectors: float32, shape (len(texts), dim), rows of unit length.

    Three attributes are optional:

    - `lexical`: True if the vectors only count words; passages are then ranked mainly by the
      full-text search.
    - `clip`: a function from a text to the part within the model's limit; texts with equal parts
      share a vector.
    - `remote`: True if vectors cost money or a request; each batch is then stored on arrival.
    """

    @property
    def name(self) -> str:
        """A name that no other embedder has; an index always uses the same embedder."""

    @property
    def dim(self) -> int:
        """The length of the vectors."""

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """A row for each text, in order; raises `EmbeddingError` for a failure."""


class Tokenizer(Protocol):
    """Counts tokens and cuts texts.

    A `count` that raises or is no integer becomes a `ConfigError`. If `truncate` gives no prefix of
    the text, the longest prefix within the limit is found by `count`. Two attributes are optional:

    - `error`: the largest relative error of counts, default 0.
    - `additive`: True if a text never has more tokens than all parts and line breaks together; a
      prompt's parts are then counted instead of the whole.
    """

    @property
    def name(self) -> str:
        """A name that no other tokenizer has; an index always uses the same tokenizer."""

    def count(self, text: str) -> int:
        """How many tokens a text has."""

    def truncate(self, text: str, limit: int) -> str:
        """The longest prefix of the text, or nearly, of at most `limit` tokens."""


class Chunker(Protocol):
    """Divides a page into chunks: a function, such as `split_text` of a text splitter."""

    def __call__(self, text: str, /) -> Iterable[str | tuple[int, int]]:
        """The chunks in order, as pieces of the text or as (start, end) in characters.

        Each begins and ends after the one before, and together they hold every visible character;
        they may overlap. Anything else becomes a `ConfigError`.
        """


class Reranker(Protocol):
    """Scores texts against a query: one score for each text, higher is better."""

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A finite number for each text, in the order of the texts."""


class Extractor(Protocol):
    """Reads the entities and relations of one chunk.

    One attribute is optional: `is_trusted`, True if results need no check, and calls no time limit.
    """

    @property
    def name(self) -> str:
        """A name that no other extractor has."""

    async def extract(self, chunk: t.Chunk) -> t.Extraction:
        """The entities and relations; both ends of every relation are among the entities."""


class KeywordExtractor(Protocol):
    """Finds the keywords of a question."""

    async def keywords(self, question: str, history: Sequence[t.Message] = ()) -> Keywords:
        """The themes and the named things; `history` holds the earlier turns, oldest first.

        `Keywords.question` may hold a follow-up question reworded to be understood without history.
        """


class Answerer(Protocol):
    """Writes an answer with `[n]` citations from a context, without a model."""

    async def answer(self, question: str, context: Context) -> str:
        """The text; `[n]` counts the context's entities, relations and chunks together, from 1."""


# ── a query and its recorder ──────────────────────────────────────────────────


class QueryObserver:
    """Called after each step of a query; the methods of the base class do nothing."""

    async def keywords_found(self, keywords: Keywords) -> None:
        """The question's keywords."""

    async def reading(self, chunks_done: int, chunks_known: int) -> None:
        """The chunks that a model has read for the question, of those to read."""

    async def chunks_read(self, reading: Reading) -> None:
        """All that a model has read for the question so far, before the index is searched again."""

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """All retrieved relations and chunks, best first."""

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """The selected relations, and the context for the model."""

    async def piece(self, text: str) -> None:
        """A piece of the answer."""

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """The complete answer."""
