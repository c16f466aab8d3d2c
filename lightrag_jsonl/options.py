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
    """Settings of indexing. Sizes are tokens of the index's tokenizer unless said otherwise.

    `chunk_overlap` shrinks with chunks that it does not fit into, unless it was chosen.
    `extraction` names the prompt; `ontology` is a file or a mapping for the one that needs it.
    `entity_types` empty means the language's own list. `max_gleanings` is how often a chunk is
    asked about again for what was missed (never one shorter than `glean_min_tokens`),
    `max_resumes` how often an answer that was cut is gone on with, `max_extract_tokens` what one
    answer may have before it is cut; None sets no limit. An entity or relation gets a summary
    once it has `summarize_fragments` descriptions, or several of more than `summarize_tokens`
    together; one call reads at most `summarize_group_tokens` of them. `max_calls`,
    `max_input_tokens` and `max_output_tokens` stop an insert between chunks, everything kept; only
    what is in flight then, or is sent again by a model's own client, may go beyond.
    `lock_timeout` is how many seconds a writer waits for another one. `ConfigError` where a
    value makes no sense.
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
    """Settings of one question. Budgets are tokens; `top_k` counts entities and relations.

    `chunk_top_k` counts chunks; `chunk_share` is the part of `max_total_tokens` that facts cannot
    take from them. `hl_keywords` and `ll_keywords`, if either is given, replace the keyword call.
    `conversation_history` are `Message`s or mappings with "role" and "content".
    `response_type`, the form of the answer, and `user_prompt` are told to the model; `fail_response`
    is said where nothing was found. Where one of them is `None`, the language's own words stand in.
    `ranking` orders the relations of found entities by likeness to the question or by degree, and
    `fusion` says how ranked lists become one. `selection` lets the score, a model ("llm") or nobody
    ("all") choose among relations. `lexical` adds full-text search, and `enable_rerank` uses the
    reranker, where there is one.
    `where` filters documents by `id`, `title`, `source`, `date` or their metadata: each a value, a
    list of them, or comparisons such as {"$gte": "2024-01-01"} (`$gt`, `$gte`, `$lt`, `$lte`, `$eq`,
    `$in`, `$ne`, `$nin`); of metadata that is a list, one member will do.
    `similarity_reuse`: reuse the answer of a question at least this similar (cosine), `None` never;
    with `similarity_check` only if the model, too, takes the two for the same. `ConfigError`
    where a value makes no sense.
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
        """The conversation so far."""
        return tuple(map(_message, self.conversation_history))


def _message(turn: Turn) -> Message:
    """A turn as other libraries write it, a mapping, as ours."""
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
