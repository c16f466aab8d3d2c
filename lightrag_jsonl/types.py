"""The nouns: frozen values that the steps take and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record: TypeAlias = dict[str, Json]
ResponseType: TypeAlias = Literal["text", "json", "jsonl"]
Language: TypeAlias = Literal["en", "zh"]
Mode: TypeAlias = Literal["naive", "local", "global", "hybrid", "mix", "walk", "bypass"]
Kind: TypeAlias = Literal["entity", "relation", "chunk"]
DocumentState: TypeAlias = Literal["pending", "done", "partial", "failed"]
ChunkState: TypeAlias = Literal["ok", "empty", "partial", "failed"]
RejectionReason: TypeAlias = Literal[
    "repaired",
    "array",
    "multiline",
    "not_object",
    "not_json",
    "malformed",
    "truncated",
    "too_deep",
    "schema",
    "unknown_id",
    "duplicate_id",
    "self_relation",
    "empty_name",
    "ontology",
]


# ── models ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls; `cached_tokens` are those the provider had cached."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer; `finish` is "length" where it stopped at the token limit."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = Usage()


# ── reading model output ────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line of model output that did not become a record (or did so only after repair).

    `line` counts from 1 in the model's text; `detail` says where and why in words.
    """

    line: int
    text: str
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class JsonlResult:
    """What a JSONL answer held: whole records, the line each began on, and what was refused."""

    records: tuple[Record, ...] = ()
    line_numbers: tuple[int, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    truncated: bool = False


# ── texts ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Document:
    """A text to index.

    `id` is derived from the content where none is given. `pages` are the texts of its
    pages where the caller has them; otherwise form feeds in `text` divide it.
    """

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    date: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    pages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document; `number` counts from 1."""

    document_id: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a page: `page.text[start:end] == text`, in characters.

    `index` counts a document's chunks from 0; `tokens` is their number by the index's tokenizer.
    `score` and `why` are set where the chunk is a search result.
    """

    id: str
    document_id: str
    index: int
    page: int
    start: int
    end: int
    text: str
    tokens: int = 0
    created_at: datetime | None = None
    score: float = 0.0
    why: str = ""


# ── claims ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class EntityMention:
    """What one chunk says about one entity."""

    name: str
    type: str
    description: str
    grounded: bool = True
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RelationMention:
    """What one chunk says about how two entities are related."""

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything one chunk yielded, and how the model got there.

    `gleaned` holds the number of new records each gleaning round brought.
    """

    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    keywords: tuple[str, ...] = ()
    state: ChunkState = "ok"
    records: int = 0
    rejections: tuple[Rejection, ...] = ()
    truncated: int = 0
    resumed: int = 0
    gleaned: tuple[int, ...] = ()
    usage: Usage = Usage()
    error: str = ""


# ── the merged graph ────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Entity:
    """All mentions of one name, merged."""

    name: str
    type: str
    description: str
    chunk_ids: tuple[str, ...] = ()
    degree: int = 0
    created_at: datetime | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    score: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """All mentions of one pair of entities, merged; `weight` sums their strengths."""

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    weight: float = 1.0
    chunk_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    score: float = 0.0
    why: str = ""

    @property
    def predicate(self) -> str:
        """The relation's keywords joined, or "related to" (specification 2, section 4)."""
        return ", ".join(self.keywords) or "related to"


# ── questions and answers ───────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a question is about: themes (`high_level`) and named things (`low_level`)."""

    high_level: tuple[str, ...] = ()
    low_level: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many ranked items the token budget left out of a context."""

    entities: int = 0
    relations: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What was retrieved for a question, best first, and the text the model reads.

    `tokens` is what `prompt` has by the index's tokenizer, or a little more where the tokens of
    its parts were added up. `documents` maps document ids to
    titles (or sources), for showing.
    """

    question: str = ""
    mode: Mode = "mix"
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    keywords: Keywords = Keywords()
    tokens: int = 0
    dropped: Dropped = Dropped()
    prompt: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not (self.entities or self.relations or self.chunks)


@dataclass(frozen=True, slots=True)
class Citation:
    """One `[number]` of an answer, resolved.

    For a chunk, `start` and `end` are characters in its page, narrowed to the sentence
    where it can be found. An entity or relation cites the chunks it was read from, one
    citation a chunk, all under its number.
    """

    number: int
    kind: Kind
    label: str
    document_id: str
    document: str
    page: int
    chunk_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and where it came from; `invented` are cited numbers that were not shown."""

    text: str
    citations: tuple[Citation, ...] = ()
    context: Context = field(default_factory=Context)
    trace_id: str | None = None
    usage: Usage = Usage()
    invented: tuple[int, ...] = ()

    def __str__(self) -> str:
        sources = []
        for citation in self.citations:
            where = f"{citation.document}, page {citation.page}, characters {citation.start}–{citation.end}"
            sources.append(f"[{citation.number}] {where}")
        return "\n".join([self.text, *(["", *dict.fromkeys(sources)] if sources else [])])


# ── reports ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk (or, with no chunk, a document) that could not be indexed, and why."""

    document_id: str
    chunk_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """Counts that let a person judge a model: chunks by state, records, what was refused."""

    ok: int = 0
    empty: int = 0
    partial: int = 0
    failed: int = 0
    records: int = 0
    rejections: Mapping[str, int] = field(default_factory=dict)
    repaired: int = 0
    ungrounded: int = 0
    truncated: int = 0
    resumed: int = 0
    gleaned: tuple[int, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class InsertReport:
    """What an insert did; `entities` and `relations` count those created or changed."""

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    failures: tuple[Failure, ...] = ()
    usage: Usage = Usage()
    extraction: ExtractionReport = ExtractionReport()
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What a deletion removed."""

    documents: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document of the index and how its extraction went."""

    id: str
    title: str | None
    source: str | None
    date: str | None
    state: DocumentState
    chunks: int
    characters: int
    created_at: datetime
    extraction: ExtractionReport = ExtractionReport()
    failures: tuple[Failure, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """The index as a whole."""

    working_dir: str
    documents: Mapping[str, int]
    chunks: int
    entities: int
    relations: int
    language: str
    llm: str
    embedder: str
    dim: int
    tokenizer: str
    format: int
    bytes_on_disk: int
    extraction: ExtractionReport = ExtractionReport()


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One query on record; `started_at` in seconds since 1970."""

    id: str
    status: Literal["complete", "failed", "incomplete"]
    mode: Mode
    question: str
    started_at: float
