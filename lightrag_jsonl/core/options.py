"""How to index (`IndexOptions`) and how to ask (`QueryParam`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypedDict, get_args

from msgspec import Meta

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.modes import Mode
from lightrag_jsonl.core.types import Json, Message
from lightrag_jsonl.core.validation import (
    check_fields,
    from_mapping,
    repr_start,
    with_replacements,
)
from lightrag_jsonl.text.dates import YEAR_LAST, half_width, iso_date

ExtractionPrompt = Literal[
    "extract-graph", "extract-small", "agent-kg-extract", "extract-with-ontologies"
]
Tagger = Literal["auto", "lac", "rules"]
Ranking = Literal["relevance", "degree"]
Fusion = Literal["rrf", "round_robin"]
Selection = Literal["llm", "score", "all"]
ReadMode = Literal["all", "asked"]
Turn = Message | Mapping[str, str]
Role = Literal["system", "user", "assistant"]


OVERLAP = 100  # tokens; a twelfth of a chunk
MOST_OVERLAP = 0.75  # of a chunk; beyond, no whole sentence would fit beside it

MOST = 2**53  # what every JSON and SQLite can hold
Natural: TypeAlias = Annotated[int, Meta(ge=0, le=MOST)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=MOST)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Cosine: TypeAlias = Annotated[float, Meta(ge=-1, le=1)]

LANGUAGE_NAMES = {  # in prompts; other languages are named there as they are given
    "en": "English", "zh": "中文", "ar": "Arabic", "de": "German", "es": "Spanish", "fr": "French",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "pt": "Portuguese", "ru": "Russian",
}  # fmt: skip
ENTITY_TYPES = {
    "en": (
        "person", "organization", "place", "event", "work", "product", "concept", "method",
        "creature", "date", "quantity",
    ),
    "zh": ("人物", "组织", "地点", "事件", "作品", "产品", "概念", "方法", "生物", "时间", "数量"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one answer of a model; everything cut off or refused is reported.

    Wrong values raise `ConfigError`.

    - `call_seconds`: a longer call fails, whatever timeout the model itself has.
    - `answer_characters`: a longer answer counts as cut off there.
    - `records_per_token`: the records of a chunk, for each of its tokens, but always a hundred;
      more are refused.
    - `name_characters`: an entity or relation with a longer name is refused, a longer keyword dropped.
    - `rejections`: how many refused lines of a chunk are stored; the rest is counted.
    - `read_tokens`, `read_seconds`: what the reading of chunks for one question may cost (no further
      call is made then), and how long the question waits for it.
    """

    call_seconds: Annotated[float, Meta(gt=0)] = 900.0
    answer_characters: Positive = 4_000_000
    records_per_token: Annotated[float, Meta(gt=0)] = 1.0
    name_characters: Positive = 500
    rejections: Positive = 200
    read_tokens: Positive = 100_000
    read_seconds: Annotated[float, Meta(gt=0)] = 120.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Settings of indexing. Sizes are in tokens; invalid values raise `ConfigError`.

    - `chunk_tokens`, `chunk_overlap`: the size of a chunk, and how much of the previous chunk is
      repeated, at most three quarters. The default overlap shrinks with very small chunks.
    - `extraction`: the prompt for chunks. `ontology`: a file or a mapping, for
      "extract-with-ontologies".
    - `entity_types`: empty for the language's own list.
    - `tagger`: what finds the names in Chinese texts where no model extracts: the trained tagger LAC
      (extra `lac`), or "rules", the parts of speech of a segmenter; "auto" takes LAC where it is
      installed. Questions are always read by rules.
    - `max_gleanings`: how often the model is asked again for missed entities and relations of a
      chunk, except in chunks below `glean_min_tokens`. None asks once, and a chunk of less than 600
      tokens only if the answer was cut off, or if no record has one of the names in the chunk.
      `glean_check`: first ask in a word whether anything was missed, if as much was read as the model
      declared.
    - `max_resumes`: how often the model is asked to go on with a cut-off answer.
    - `max_extract_tokens`: the longest answer about a chunk. The limit of an answer is four tokens
      for each token of the chunk, at least 1,024 and at most this number; None sets no maximum.
    - `max_concurrent_calls`: the most calls of a model in flight at a time; fewer if its server gains
      nothing by more, or is overloaded.
    - `embed_batch_size`: texts embedded in one call.
    - `relation_vectors`: whether relations have vectors of their own.
    - `summarize_fragments`, `summarize_tokens`: an entity or relation gets a summary if it has so
      many descriptions, or several that are longer than this together. One call reads at most
      `summarize_group_tokens` tokens of descriptions.
    - `max_calls`, `max_input_tokens`, `max_output_tokens`: limits of one insert. The insert stops
      between two chunks and keeps everything read so far; only calls in flight, or repetitions by
      the model's own client, may exceed the limits.
    - `keep_traces`: how many traces of queries are kept, the newest; 0 records no traces.
    - `functional_kinds`: predicates of which a subject has one value at a time, such as "price", or
      "^head of" if the object has one subject at a time; others are learned. For contradictions.
    - `lock_timeout`: how many seconds to wait while another process writes.
    - `read_chunks`: how many chunks a question may have read, in an index that is read when it is
      asked (`insert(…, read="asked")`); `QueryParam.read_chunks` is for a single question.
    - `limits`: limits of one answer, `Limits` or a mapping of field names.
    """

    chunk_tokens: Positive = 1200
    chunk_overlap: Natural = OVERLAP
    extraction: ExtractionPrompt = "extract-graph"
    ontology: Path | str | Mapping[str, Json] | None = None
    entity_types: tuple[str, ...] = ()
    tagger: Tagger = "auto"
    max_gleanings: Natural | None = None
    max_resumes: Natural = 2
    glean_min_tokens: Natural = 50
    glean_check: bool = False
    max_extract_tokens: Positive | None = 8_192
    max_concurrent_calls: Positive = 16
    embed_batch_size: Positive = 64
    relation_vectors: bool = True
    summarize_fragments: Positive = 8
    summarize_tokens: Positive = 1200
    summarize_group_tokens: Positive = 12_000
    max_calls: Natural | None = None
    max_input_tokens: Natural | None = None
    max_output_tokens: Natural | None = None
    keep_traces: Natural = 1_000
    functional_kinds: tuple[str, ...] = ()
    lock_timeout: Annotated[float, Meta(ge=0)] = 10.0
    read_chunks: Natural = 8
    limits: Limits = Limits()
    unchecked: ClassVar = ("ontology", "limits")

    @classmethod
    def from_mapping(cls, source: object) -> Self:
        """The options in untrusted input; `ConfigError` for wrong names and values."""
        return from_mapping(cls, source)

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.ontology, Path | str | Mapping | None):
            raise ConfigError(
                f"ontology must be a file or a mapping, not {repr_start(self.ontology)}"
            )
        object.__setattr__(self, "limits", from_mapping(Limits, self.limits))
        most_overlap = int(MOST_OVERLAP * self.chunk_tokens)
        if self.chunk_overlap == OVERLAP > most_overlap:
            object.__setattr__(self, "chunk_overlap", self.chunk_tokens // 12)
        if self.chunk_overlap > most_overlap:
            raise ConfigError(
                f"chunk_overlap ({self.chunk_overlap}) must be at most {most_overlap}, three quarters of "
                f"chunk_tokens ({self.chunk_tokens}): the rest of a chunk is for new text"
            )


def checked_date(text: str, name: str) -> str:
    """A user's date in our form; `ConfigError` names the setting of a text without a date."""
    iso = iso_date(text)
    if not iso or ("-" not in iso and YEAR_LAST.fullmatch(half_width(text).strip())):
        raise ConfigError(
            f"{name} must be a date such as 2021, 2021-06, 2021-06-15, June 2021 or 2021年6月, "
            f"not {repr_start(text)}"
        )
    return iso


@with_replacements
@dataclass(frozen=True, slots=True)
class QueryParam:
    """Settings of one question. Budgets are in tokens; invalid values raise `ConfigError`.

    - `mode`: how the index is searched; see the README's table.
    - `top_k`, `chunk_top_k`: how many entities and relations, and how many chunks, to look for
      (an overview has as many as the budget holds).
    - `max_entity_tokens`, `max_relation_tokens`, `max_total_tokens`: budgets of the context.
      `chunk_share` is the part of the total reserved for chunks.
    - `response_type`, `user_prompt`: the form of the answer, and further wishes, for the model.
      `fail_response`: the answer if nothing was found; None for the language's own words.
    - `hl_keywords`, `ll_keywords`: high- and low-level keywords, in place of the model's keywords.
    - `conversation_history`: `Message`s, or mappings with "role" and "content".
    - `enable_rerank`: use the reranker, if the index has one. `rerank_weight`: how much the
      reranker's order of the chunks counts against the order before; with 1 the reranker decides,
      with 0 it is not asked.
    - `ranking`: order the relations of the entities by likeness to the question or by degree.
    - `fusion`: merge ranked lists by reciprocal rank fusion ("rrf"; what vectors and words find in
      the text, by the scores of both) or by taking turns.
    - `selection`: relations are chosen by "score" or by the model ("llm"); "all" shows all.
    - `lexical`: search the full text, too.
    - `relevance_floor`: leave out an entity, with the relations of the entity, if the walk around
      the question visits the entity too seldom: less than this share of the visits of the most
      visited entity that is no start of the walk. The ten relations nearest to the question, and
      the entities at both ends, stay: the facts of a hub are visited seldom one by one.
    - `coverage`: show only the best chunks that together hold this part of the visits of the best
      `chunk_top_k`, but at least ten; 1 shows all.
    - `least_likeness`: nothing counts as found if the question names no entity, has words of which
      more than a quarter are in no document, does not ask about all documents ("Summarize the book."), and resembles no
      passage clearly more than unrelated texts resemble each other: by this many standard
      deviations. 0 turns the check off. With an embedder that only counts words, nothing counts as
      found if no word of the question occurs.
    - `where`: filter documents by `id`, `title`, `source`, `date`, `content_keywords` or metadata. A condition is a
      value, a list of alternatives, or comparisons such as {"$gte": "2024-01-01"} (`$gt`, `$gte`,
      `$lt`, `$lte`, `$eq`, `$in`, `$ne`, `$nin`; for texts `$contains`, `$not_contains`,
      `$starts_with`, `$ends_with`). For a list in metadata, one match is enough.
    - `as_of`: a date such as "2021", "2021-06" or "June 2021": documents written later, and claims that
      did not hold then, do not count.
    - `ask_again`: where the index has a checker (`check`) and it finds claims unsupported, ask the model
      once more, with these claims; the cost is in the answer's usage. Not for streamed answers.
    - `read_chunks`: in an index that is read when it is asked, how many of the best chunks a model
      reads before the answer, if none has read them yet; None for the number in the index's options.
    - `similarity_reuse`: give the stored answer of an earlier question with at least this
      similarity (cosine); `similarity_check`: only if the model agrees that both questions mean the
      same.
    """

    mode: Mode = "mix"
    top_k: Natural = 40
    chunk_top_k: Natural = 20
    max_entity_tokens: Natural = 6_000
    max_relation_tokens: Natural = 8_000
    max_total_tokens: Positive = 30_000
    chunk_share: Share = 0.5
    response_type: str | None = None
    hl_keywords: Sequence[str] = ()
    ll_keywords: Sequence[str] = ()
    conversation_history: Sequence[Turn] = ()
    user_prompt: str = ""
    enable_rerank: bool = True
    rerank_weight: Share = 1.0
    ranking: Ranking = "relevance"
    fusion: Fusion = "rrf"
    selection: Selection = "score"
    lexical: bool = True
    relevance_floor: Share = 0.6
    coverage: Share = 0.97
    least_likeness: Annotated[float, Meta(ge=0)] = 1.5
    where: Mapping[str, Any] = field(default_factory=dict)
    as_of: str | None = None
    fail_response: str | None = None
    ask_again: bool = False
    read_chunks: Natural | None = None
    similarity_reuse: Cosine | None = None
    similarity_check: bool = False
    unchecked: ClassVar = ("conversation_history",)

    @classmethod
    def from_mapping(cls, source: object) -> Self:
        """The settings in untrusted input; `ConfigError` for wrong names and values."""
        return from_mapping(cls, source)

    def __post_init__(self) -> None:
        check_fields(self)
        history = self.conversation_history
        if isinstance(history, str | Mapping) or not isinstance(history, Iterable):
            raise ConfigError(f"conversation_history must hold turns, not {repr_start(history)}")
        object.__setattr__(self, "conversation_history", self.turns)
        if self.as_of is not None:
            object.__setattr__(self, "as_of", checked_date(self.as_of, "as_of"))

    @property
    def turns(self) -> tuple[Message, ...]:
        """The conversation so far, as `Message`s."""
        return tuple(map(_message, self.conversation_history))


class QueryFields(TypedDict, total=False):
    """The fields of `QueryParam` as arguments of a question; None means the default."""

    mode: Mode | None
    top_k: int | None
    chunk_top_k: int | None
    max_entity_tokens: int | None
    max_relation_tokens: int | None
    max_total_tokens: int | None
    chunk_share: float | None
    response_type: str | None
    hl_keywords: Sequence[str] | None
    ll_keywords: Sequence[str] | None
    conversation_history: Sequence[Turn] | None
    user_prompt: str | None
    enable_rerank: bool | None
    rerank_weight: float | None
    ranking: Ranking | None
    fusion: Fusion | None
    selection: Selection | None
    lexical: bool | None
    relevance_floor: float | None
    coverage: float | None
    least_likeness: float | None
    where: Mapping[str, Any] | None
    as_of: str | None
    fail_response: str | None
    similarity_reuse: float | None
    similarity_check: bool | None
    ask_again: bool | None
    read_chunks: int | None


def _message(turn: Turn) -> Message:
    """A turn as a `Message`; a mapping, the usual form of a turn elsewhere, is converted."""
    if isinstance(turn, Mapping) and isinstance(turn.get("content"), str):
        turn = Message(str(turn.get("role")), turn["content"])
    if isinstance(turn, Message) and turn.role in get_args(Role):
        return turn
    form = f'{{"role": {" | ".join(get_args(Role))}, "content": text}}'
    raise ConfigError(f"a turn of conversation_history is {form}, not {repr_start(turn)}")
