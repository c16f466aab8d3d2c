"""How to index (`IndexOptions`) and how to ask (`QueryParam`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.kinds import check_fields, plain_json
from lightrag_jsonl.types import Json, Message, Mode

ExtractionPrompt = Literal["extract-graph", "agent-kg-extract", "extract-with-ontologies"]
Ranking = Literal["relevance", "degree"]
Fusion = Literal["rrf", "round_robin"]
Selection = Literal["llm", "score", "all"]
Turn = Message | Mapping[str, str]
Role = Literal["system", "user", "assistant"]

OVERLAP = 100  # tokens; a twelfth of a chunk

MODES: tuple[Mode, ...] = get_args(Mode)

ENTITY_TYPES = {
    "en": (
        "person",
        "organization",
        "place",
        "event",
        "work",
        "product",
        "concept",
        "method",
        "creature",
        "date",
        "quantity",
    ),
    "zh": ("人物", "组织", "地点", "事件", "作品", "产品", "概念", "方法", "生物", "时间", "数量"),
}


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Settings of indexing. Sizes are in tokens; invalid values raise `ConfigError`.

    - `chunk_tokens`, `chunk_overlap`: the size of chunks, and how much of the previous chunk each
      repeats. The default overlap shrinks with chunks that are smaller than it.
    - `extraction`: the prompt that reads chunks. `ontology`: a file or a mapping, for
      "extract-with-ontologies".
    - `entity_types`: empty for the language's own list.
    - `max_gleanings`: how often a chunk is asked about again for what was missed. Chunks below
      `glean_min_tokens` are asked about only once.
    - `max_resumes`: how often the model is asked to go on with an answer that was cut off.
    - `max_extract_tokens`: the longest answer about a chunk; None sets no limit.
    - `max_concurrent_calls`: model calls in flight at a time.
    - `embed_batch_size`: texts embedded in one call.
    - `summarize_fragments`, `summarize_tokens`: an entity or relation gets a summary once it has so
      many descriptions, or several that are longer than this together. One call reads at most
      `summarize_group_tokens` of them.
    - `max_calls`, `max_input_tokens`, `max_output_tokens`: limits of one insert. It stops between
      two chunks, and everything read until then is kept; only calls that are in flight by then, or
      repeated by the model's own client, may exceed them.
    - `lock_timeout`: how many seconds to wait while another process writes.
    """

    chunk_tokens: int = 1200
    chunk_overlap: int = OVERLAP
    extraction: ExtractionPrompt = "extract-graph"
    ontology: Path | str | Mapping[str, Json] | None = None
    entity_types: tuple[str, ...] = ()
    max_gleanings: int = 1
    max_resumes: int = 2
    glean_min_tokens: int = 50
    max_extract_tokens: int | None = 8_192
    max_concurrent_calls: int = 16
    embed_batch_size: int = 64
    summarize_fragments: int = 8
    summarize_tokens: int = 1200
    summarize_group_tokens: int = 12_000
    max_calls: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    lock_timeout: float = 10.0

    def __post_init__(self) -> None:
        check_fields(self)
        _require(self.chunk_tokens >= 1, "chunk_tokens must be at least 1")
        if self.chunk_overlap == OVERLAP >= self.chunk_tokens:
            object.__setattr__(self, "chunk_overlap", self.chunk_tokens // 12)
        _require(
            0 <= self.chunk_overlap < self.chunk_tokens,
            f"chunk_overlap ({self.chunk_overlap}) must be at least 0 and below "
            f"chunk_tokens ({self.chunk_tokens})",
        )
        _require(
            self.extraction in get_args(ExtractionPrompt),
            f"extraction must be one of {', '.join(get_args(ExtractionPrompt))}",
        )
        _require(self.max_gleanings >= 0, "max_gleanings must be at least 0")
        _require(self.max_resumes >= 0, "max_resumes must be at least 0")
        _require(self.max_concurrent_calls >= 1, "max_concurrent_calls must be at least 1")
        _require(self.embed_batch_size >= 1, "embed_batch_size must be at least 1")
        _require(self.summarize_fragments >= 1, "summarize_fragments must be at least 1")
        _require(self.summarize_tokens >= 1, "summarize_tokens must be at least 1")
        _require(self.summarize_group_tokens >= 1, "summarize_group_tokens must be at least 1")
        _require(self.lock_timeout >= 0, "lock_timeout must be at least 0")
        most = self.max_extract_tokens
        _require(most is None or most >= 1, "max_extract_tokens must be at least 1, or None")
        for name in ("max_calls", "max_input_tokens", "max_output_tokens"):
            limit = getattr(self, name)
            _require(limit is None or limit >= 0, f"{name} must be at least 0, or None")


@dataclass(frozen=True, slots=True)
class QueryParam:
    """Settings of one question. Budgets are in tokens; invalid values raise `ConfigError`.

    - `mode`: how the index is searched; see the README's table.
    - `top_k`, `chunk_top_k`: how many entities and relations, and how many chunks, to look for.
    - `max_entity_tokens`, `max_relation_tokens`, `max_total_tokens`: budgets of the context.
      `chunk_share` is the part of the total that is reserved for chunks.
    - `response_type`, `user_prompt`: the form of the answer, and further wishes; both are told to
      the model. `fail_response`: the answer where nothing was found. None: the language's own
      words.
    - `hl_keywords`, `ll_keywords`: high- and low-level keywords; if either is given, the model is
      not asked for any.
    - `conversation_history`: `Message`s, or mappings with "role" and "content".
    - `enable_rerank`: use the reranker, if the index has one.
    - `ranking`: order the relations of found entities by likeness to the question or by degree.
    - `fusion`: how ranked lists are merged: reciprocal rank fusion ("rrf") or taking turns.
    - `selection`: relations are chosen by "score" or by the model ("llm"); "all" shows all found.
    - `lexical`: search the full text, too.
    - `where`: filter documents by `id`, `title`, `source`, `date` or their metadata. A condition is
      a value, a list of alternatives, or comparisons such as {"$gte": "2024-01-01"} (`$gt`, `$gte`,
      `$lt`, `$lte`, `$eq`, `$in`, `$ne`, `$nin`). Where the metadata is a list, one matching member
      is enough.
    - `similarity_reuse`: give the stored answer of an earlier question that is at least this
      similar (cosine); None: never. `similarity_check`: only if the model agrees that both mean the
      same.
    """

    mode: Mode = "mix"
    top_k: int = 40
    chunk_top_k: int = 20
    max_entity_tokens: int = 6_000
    max_relation_tokens: int = 8_000
    max_total_tokens: int = 30_000
    chunk_share: float = 0.5
    response_type: str | None = None
    hl_keywords: Sequence[str] = ()
    ll_keywords: Sequence[str] = ()
    conversation_history: Sequence[Turn] = ()
    user_prompt: str = ""
    enable_rerank: bool = True
    ranking: Ranking = "relevance"
    fusion: Fusion = "rrf"
    selection: Selection = "score"
    lexical: bool = True
    where: Mapping[str, Any] = field(default_factory=dict)
    fail_response: str | None = None
    similarity_reuse: float | None = None
    similarity_check: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        _require(
            self.mode in MODES, f"unknown mode {self.mode!r}; the modes are {', '.join(MODES)}"
        )
        _require(self.ranking in get_args(Ranking), "ranking must be 'relevance' or 'degree'")
        _require(self.fusion in get_args(Fusion), "fusion must be 'rrf' or 'round_robin'")
        _require(self.selection in get_args(Selection), "selection must be 'llm', 'score' or 'all'")
        _require(
            self.top_k >= 0 and self.chunk_top_k >= 0, "top_k and chunk_top_k must not be negative"
        )
        _require(
            self.max_entity_tokens >= 0 and self.max_relation_tokens >= 0,
            "max_entity_tokens and max_relation_tokens must not be negative",
        )
        _require(self.max_total_tokens >= 1, "max_total_tokens must be at least 1")
        _require(0.0 <= self.chunk_share <= 1.0, "chunk_share must be between 0 and 1")
        _require(
            self.similarity_reuse is None or -1.0 <= self.similarity_reuse <= 1.0,
            "similarity_reuse must be a cosine, between -1 and 1, or None",
        )
        if self.where:
            plain = {name: plain_json(self.where[name], f"where[{name!r}]") for name in self.where}
            _require(all(isinstance(name, str) for name in plain), "where: fields have names")
            object.__setattr__(self, "where", plain)
        _require(
            isinstance(self.conversation_history, Iterable),
            f"conversation_history must be a tuple of turns, not {self.conversation_history!r}",
        )
        object.__setattr__(self, "conversation_history", self.turns)

    @property
    def turns(self) -> tuple[Message, ...]:
        """The conversation so far, as `Message`s."""
        return tuple(map(_message, self.conversation_history))


def _message(turn: Turn) -> Message:
    """One turn as a `Message`; mappings, as other libraries write turns, are converted."""
    if isinstance(turn, Mapping) and isinstance(turn.get("content"), str):
        turn = Message(str(turn.get("role")), turn["content"])
    if isinstance(turn, Message) and turn.role in get_args(Role):
        return turn
    raise ConfigError(
        f'a turn of conversation_history is {{"role": {" | ".join(get_args(Role))}, "content": '
        f"text}}, not {turn!r}"
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)
