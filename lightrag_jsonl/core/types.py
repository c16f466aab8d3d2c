"""The nouns: frozen values that the steps take and return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import check_fields

Language: TypeAlias = Literal["en", "zh"]
Mode: TypeAlias = Literal["naive", "local", "global", "hybrid", "mix", "walk", "bypass"]
Kind: TypeAlias = Literal["entity", "relation", "chunk"]
ChunkState: TypeAlias = Literal["ok", "empty", "partial", "failed"]
DocumentState: TypeAlias = Literal["pending", "done", "partial", "failed"]

UNKNOWN_TYPE = "unknown"  # the type of an entity that no mention gives one

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record: TypeAlias = dict[str, Json]
ResponseType: TypeAlias = Literal["text", "json", "jsonl"]
RejectionReason: TypeAlias = Literal[
    "repaired", "array", "multiline", "not_object", "not_json", "malformed", "truncated", "too_deep",
    "schema", "unknown_id", "duplicate_id", "self_relation", "empty_name", "ontology",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer; `finish` is "length" if it stopped at the token limit."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line of model output, counted from 1, that is no record, or one only after repair."""

    line: int
    text: str
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class JsonlResult:
    """What a JSONL answer held; `truncated` if it broke off inside a record, array or thought."""

    records: tuple[Record, ...] = ()
    line_numbers: tuple[int, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A text to index.

    Without an `id` the document is known by a digest of its content. Without `pages`, form feeds in
    `text` separate the pages. `metadata` is plain JSON; `QueryParam.where` filters by it, and by
    `title`, `source` and `date`. `ConfigError` names a field whose value has the wrong type.
    """

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    date: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document; `number` counts from 1."""

    document_id: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a page: `page.text[start:end] == text`, in characters.

    `index` numbers the chunks of a document from 0. `created_at` is when it was stored. `score` and
    `why` are set in search results only.
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


@dataclass(frozen=True, slots=True)
class EntityMention:
    """What one chunk says about one entity; `grounded` if its text holds the name.

    `attributes` are (name, value) pairs.
    """

    name: str
    type: str
    description: str
    grounded: bool = True
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RelationMention:
    """What one chunk says about how two entities are related; `strength` is between 1 and 10."""

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything that was read from one chunk, and how the model got there.

    `truncated` counts the answers that were cut off and `resumed` the times the model was asked to
    go on with one. `gleaned` holds how many new names and pairs each gleaning round brought.
    `error` says why the chunk, or the rest of it, could not be read.
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

    @property
    def unfinished(self) -> bool:
        """Whether a retry has something to do: the chunk, or the end of it, was not read."""
        return self.state == "failed" or bool(self.error)

    @property
    def report(self) -> ExtractionReport:
        """How the extraction went, in numbers."""
        reasons = Counter[str](map(attrgetter("reason"), self.rejections))
        grounded = sum(map(attrgetter("grounded"), self.entities))
        return ExtractionReport(
            **{self.state: 1},
            records=self.records,
            rejections=dict(sorted(reasons.items())),
            repaired=reasons["repaired"],
            ungrounded=len(self.entities) - grounded,
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=self.gleaned,
            usage=self.usage,
        )


@dataclass(frozen=True, slots=True)
class Entity:
    """All mentions of one name, merged; `degree` is the number of its relations.

    `created_at` is when it was first stored. `score` and `why` are set in search results only.
    """

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
    """All mentions of one pair of entities, merged; `weight` is the sum of their strengths.

    `created_at` is when it was first stored. `score` and `why` are set in search results only.
    """

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

    `tokens` is the length of `prompt`, or of its parts together. `documents` maps document ids to
    the titles (or sources) that readers are shown. `language` is the index's.
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
    language: str = "en"

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not (self.entities or self.relations or self.chunks)


@dataclass(frozen=True, slots=True)
class Citation:
    """One `[number]` of an answer, resolved to the text behind it.

    `start` and `end` are characters of the page: those of the sentence that supports the answer, or
    of the whole chunk. An entity or a relation is cited by the chunks it was read from: one
    `Citation` for each chunk, all with the same number.
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
    """An answer and where it came from.

    `invented` holds the cited numbers that the model was never shown. `truncated` says that the
    model stopped at its token limit. `str(answer)` is the text followed by its sources, one a line;
    documents that share a title are told apart by their ids.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    context: Context = field(default_factory=Context)
    trace_id: str | None = None
    usage: Usage = Usage()
    invented: tuple[int, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        if not self.citations:
            return self.text
        labels = unique_labels((one.document_id, one.document) for one in self.citations)
        sources = []
        for one in self.citations:
            where = labels[one.document_id], one.page, one.start, one.end
            sources.append(f"[{one.number}] {format_position(*where, self.context.language)}")
        return "\n".join([self.text, "", *dict.fromkeys(sources)])


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk that could not be read to its end, and why; with `chunk_id` None, a whole document."""

    document_id: str
    chunk_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """How extraction went, added up over many chunks, to judge a model by.

    `ok`, `empty`, `partial` and `failed` count chunks by their state, `rejections` refused lines by
    reason, `repaired` the records that were repaired, `ungrounded` the entity mentions whose name
    does not occur in their chunk. The other fields are those of `Extraction`, added up.
    """

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

    def __add__(self, other: ExtractionReport) -> ExtractionReport:
        added = {one: getattr(self, one) + getattr(other, one) for one in _ADDED}
        gleaned = zip_longest(self.gleaned, other.gleaned, fillvalue=0)
        rejections = sorted((Counter(self.rejections) + Counter(other.rejections)).items())
        return ExtractionReport(
            **added, rejections=dict(rejections), gleaned=tuple(map(sum, gleaned))
        )


_ADDED = [one.name for one in fields(ExtractionReport) if one.name not in ("rejections", "gleaned")]


@dataclass(frozen=True, slots=True)
class InsertReport:
    """What an insert did; `entities` and `relations` count those that were created or changed.

    `documents` lists the ids of documents that became visible, `unchanged` those that were there
    already. `stopped` is empty, or says why the insert ended early.
    """

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
    """What a deletion removed: the ids of its documents, and the numbers of other things."""

    documents: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document of the index and how its extraction went; `created_at` is when it was inserted."""

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
    """The index as a whole; `documents` maps states to counts, `dim` is the length of its vectors."""

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


# ── words for people ────────────────────────────────────────────────────────────

_POSITIONS: Mapping[Language, str] = {
    "en": "{}, page {}, characters {}–{}",
    "zh": "{}，第 {} 页，第 {}–{} 字",
}


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for all others."""
    return "zh" if name.casefold().startswith("zh") else "en"


def format_position(document: str, page: int, start: int, end: int, language: str) -> str:
    """A position in a document for people; in English if the language has no words here."""
    return _POSITIONS[known_language(language)].format(document, page, start, end)


def unique_labels(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Labels by id, given (id, label) pairs; a label that several ids share gets the id added."""
    sharing: dict[str, set[str]] = {}
    for id, label in labels:
        sharing.setdefault(label, set()).add(id)
    return {
        id: label if len(ids) == 1 else f"{label} ({id})"
        for label, ids in sharing.items()
        for id in sorted(ids)
    }
