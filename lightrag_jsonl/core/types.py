"""The nouns of documents and of the graph: frozen values, from the text to entities and relations.

What an insert, a deletion or a merge reports is in `core/index_reports.py`; the nouns of a question, from
the keywords to the answer, are in `core/answers.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from lightrag_jsonl.core.display import html_table, with_short_repr
from lightrag_jsonl.core.languages import STATING_NOTHING
from lightrag_jsonl.core.modes import Mode
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import check_fields
from lightrag_jsonl.text.strings import counted, digest

Excerpt: TypeAlias = tuple[int, int]  # start and end, in characters
Kind: TypeAlias = Literal["entity", "relation", "chunk"]
ChunkState: TypeAlias = Literal["ok", "empty", "partial", "failed"]
EditAction: TypeAlias = Literal["create", "edit", "delete"]  # of a person
DocumentState: TypeAlias = Literal["pending", "done", "partial", "failed"]
Finish: TypeAlias = Literal["stop", "length", "filter", "error"]

HEADING_SEPARATOR = " › "  # between the headings of a path
MOST_STRENGTH = 1_000_000.0  # of a relation; sums are stored in millionths
PERSON = "person"  # the extractor of edits by hand
PROVIDED = "records"  # the extractor of ready-made records
BY_RULES = "offline-"  # the names of extractors without a model begin with it
UNKNOWN_TYPE = "unknown"  # the type of an entity that no mention gives one

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Record: TypeAlias = dict[str, Json]
ResponseType: TypeAlias = Literal["text", "json", "jsonl"]
ModelTask: TypeAlias = Literal[
    "extract", "summarize", "keywords", "select", "answer", "judge", "see"
]  # fmt: skip
MODEL_TASKS: tuple[ModelTask, ...] = get_args(ModelTask)
RejectionReason: TypeAlias = Literal[
    "repaired", "array", "multiline", "not_object", "not_json", "malformed", "truncated", "too_deep",
    "schema", "unknown_id", "duplicate_id", "self_relation", "empty_name", "ontology",
    "limit", "example", "repeated", "unsupported",
]  # fmt: skip


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Completion:
    """A model's answer.

    `finish` is "stop" for a whole answer, "length" at the token limit, "filter" if a content filter
    withheld the rest, and "error" if the answer was broken off for any other reason.
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()

    @property
    def broken_off(self) -> bool:
        """Whether the rest was withheld or lost, and asking for more is of no use."""
        return self.finish in ("filter", "error")


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Rejection:
    """A line of model output, counted from 1, that is no record, or a repaired one.

    With the reason "repaired" the record is kept.
    """

    line: int
    text: str
    reason: RejectionReason
    detail: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class JsonlResult:
    """The records of a JSONL answer; `truncated` if it broke off inside a record, array or thought."""

    records: tuple[Record, ...] = ()
    line_numbers: tuple[int, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a document, for a vision model: a scanned page, a photo, a chart, a formula.

    `data` are the bytes of a file of the type `media_type` ("image/jpeg"). `box` is the place on the
    page: left, bottom, right and top, in points from the lower left corner. The text of a page
    without any other text is `whole_page`. The text read on the picture is put before the character
    `offset` of the page, or at the end of the page.
    """

    page: int
    box: tuple[float, float, float, float]
    data: bytes
    media_type: str
    whole_page: bool = False
    offset: int | None = None

    def __repr__(self) -> str:
        return f"Picture(page={self.page}, box={self.box}, {len(self.data):,} bytes)"


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A text to index.

    The default `id` is a digest of the content. Without `pages`, form feeds in `text` separate
    pages. `date` is when the text was written, such as "2021-06-15", "2021-06", "June 2021" or
    "2021年6月"; questions compare it as time. `QueryParam.where` filters by `metadata`, which is plain
    JSON, and by `title`, `source` and `date`. What the model for the task "see" reads on `pictures` is
    added to their pages; without such a model, pictures are left out. `ConfigError` names a field with a
    value of the wrong type.
    """

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    date: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[str, ...] | None = None
    pictures: tuple[Picture, ...] = ()
    unchecked: ClassVar[tuple[str, ...]] = ("pictures",)

    def __post_init__(self) -> None:
        check_fields(self)


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """One page of a document; `number` counts from 1."""

    document_id: str
    number: int
    text: str


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Chunk:
    """A piece of a page: `page.text[start:end] == text`, in characters.

    `index` counts from 0 in the document. `title` and `date` are the document's, `heading` is the path
    of headings above the start, such as "Report › Costs"; within a table it ends with the header of the
    table. `score` and `why` are set in search results only. `preface` and `continuation` are set for
    extractors only: the parts of the first and the last sentence on the neighbouring pages. So are
    `linked_names`: what the links of the document to other notes are called.
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
    heading: str = ""
    title: str = ""
    date: str = ""
    preface: str = ""
    continuation: str = ""
    linked_names: tuple[str, ...] = ()

    @property
    def whole_text(self) -> str:
        """The text with whole sentences at both ends, for extractors."""
        text = self.text
        if self.preface:
            text = self.preface + text.lstrip()
        if self.continuation:
            text = text.rstrip() + self.continuation
        return text

    @property
    def background(self) -> str:
        """The document's title and the headings, for readers of the text."""
        begins_with_title = self.heading.split(HEADING_SEPARATOR)[0] == self.title
        title = "" if begins_with_title else self.title
        return HEADING_SEPARATOR.join(filter(None, (title, self.heading)))


def chunk_id(document_id: str, page: int, start: int, text: str) -> str:
    """The id of a chunk, derived from position and text."""
    return "chunk-" + digest(document_id, str(page), str(start), text)


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False, order=True)
class EntityMention:
    """What one chunk says about an entity; `grounded` if the chunk holds the name, `quoted` if the
    description only quotes the chunk.

    `aliases` are further names of the entity. `valid_from` and `valid_to` say from when and until when
    the statement holds, as "2021", "2021-06" or "2021-06-15"; "" leaves that end open.
    """

    name: str
    type: str
    description: str
    grounded: bool = True
    attributes: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    valid_from: str = ""
    valid_to: str = ""
    quoted: bool = False


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False, order=True)
class RelationMention:
    """What one chunk says about the relation of two entities; `strength` is between 1 and 10.

    In an edit by hand, `strength` is the weight, and 0 leaves the weight unchanged. `valid_from` and
    `valid_to` are as in `EntityMention`.
    """

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    strength: Annotated[float, msgspec.Meta(ge=0, le=MOST_STRENGTH)] = 1.0
    valid_from: str = ""
    valid_to: str = ""

    @property
    def states_something(self) -> bool:
        """Whether the names are more than mentioned together."""
        return not self.keywords or not STATING_NOTHING.issuperset(self.keywords)


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Extraction:
    """The entities and relations of one chunk, with an account of the extraction.

    `truncated` counts cut-off answers, `resumed` the requests to go on with a cut-off answer.
    `gleaned` holds the number of new names and pairs of each gleaning round. `error` says why the
    chunk, or the rest of it, could not be read; `extractor` names the model or the extractor.
    `content_keywords` are the themes of the whole text.
    """

    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    state: ChunkState = "ok"
    records: int = 0
    rejections: tuple[Rejection, ...] = ()
    truncated: int = 0
    resumed: int = 0
    gleaned: tuple[int, ...] = ()
    usage: Usage = Usage()
    error: str = ""
    extractor: str = ""
    content_keywords: tuple[str, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether the chunk, or the end of the chunk, was not read and a retry makes sense."""
        return self.state == "failed" or bool(self.error)

    def as_records(self, chunk: int = 0) -> list[Record]:
        """The mentions as records for `insert_records`, of the chunk with this index."""
        entities = [entity_record(mention) for mention in self.entities]
        relations = [relation_record(mention) for mention in self.relations]
        records = [*entities, *relations]
        if self.content_keywords:
            records.append({"type": "content_keywords", "keywords": [*self.content_keywords]})
        place: Record = {"chunk": chunk}
        return [record | place for record in records]

    @property
    def report(self) -> "ExtractionReport":
        """How the extraction went, in numbers."""
        reasons = Counter[str](rejection.reason for rejection in self.rejections)
        return ExtractionReport(
            **{self.state: 1},
            records=self.records,
            rejections=dict(sorted(reasons.items())),
            repaired=reasons["repaired"],
            ungrounded=sum(not mention.grounded for mention in self.entities),
            truncated=self.truncated,
            resumed=self.resumed,
            gleaned=self.gleaned,
            usage=self.usage,
            content_keywords=dict.fromkeys(sorted(self.content_keywords), 1),
        )


def entity_record(mention: EntityMention) -> Record:
    """The mention as a record of `extract-graph`."""
    record: Record = {
        "type": "entity",
        "name": mention.name,
        "entity_type": mention.type,
        "description": mention.description,
    }
    if mention.quoted:
        record["quoted"] = True
    if mention.aliases:
        record["aliases"] = [*mention.aliases]
    for name, value in mention.attributes:
        record["attribute"] = [name, value]
    return record | _dates_of_mention(mention)


def relation_record(mention: RelationMention) -> Record:
    """The mention as a record of `extract-graph`."""
    return {
        "type": "relationship",
        "source": mention.source,
        "target": mention.target,
        "keywords": list(mention.keywords),
        "description": mention.description,
        "strength": mention.strength,
        **_dates_of_mention(mention),
    }


def _dates_of_mention(mention: EntityMention | RelationMention) -> Record:
    """From when and until when a mention holds, as far as a text says so."""
    dates: Record = {"valid_from": mention.valid_from, "valid_to": mention.valid_to}
    return {name: date for name, date in dates.items() if date}


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Entity:
    """All mentions of one name, merged; `degree` is the number of its relations.

    `attributes` are (name, value) pairs, `aliases` further names in the texts. `score` and `why` are
    set in search results only.
    """

    name: str
    type: str
    description: str
    chunk_ids: tuple[str, ...] = ()
    degree: int = 0
    created_at: datetime | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    score: float = 0.0
    why: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Relation:
    """All mentions of one pair of entities, merged; `weight` is the sum of all strengths.

    `keywords` describe the relation from source to target, `reverse_keywords` the relation from
    target to source. `score` and `why` are set in search results only.
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
    reverse_keywords: tuple[str, ...] = ()

    @property
    def predicate(self) -> str:
        """The relation's keywords joined, or "related to" (specification 2, section 4)."""
        return ", ".join(self.keywords) or "related to"

    @property
    def states_something(self) -> bool:
        """Whether the names are more than mentioned together: only then the relation has a direction."""
        return not self.keywords or not STATING_NOTHING.issuperset(self.keywords)


# What exports have of an entity beside its name and type, and of a relation.
NODE_FIELDS = ("description", "chunk_ids", "created_at", "attributes", "aliases")
EDGE_FIELDS = (
    "source", "target", "keywords", "reverse_keywords", "description", "weight", "chunk_ids",
    "created_at",
)  # fmt: skip


class Neighbourhood(NamedTuple):
    """An entity and its relations, strongest first."""

    entity: Entity
    relations: tuple[Relation, ...]

    def __repr__(self) -> str:
        return f"Neighbourhood({self.entity!r}, {counted(len(self.relations), 'relations')})"

    def _repr_html_(self) -> str:
        title = f"{self.entity.name} ({self.entity.type}): {self.entity.description}"
        return html_table(title, relation_rows(self.relations))


def relation_rows(relations: Iterable[Relation]) -> Iterator[tuple[str, ...]]:
    """The rows of relations in a table for notebooks."""
    for relation in relations:
        arrow = f"{relation.source} → {relation.predicate} → {relation.target}"
        yield "relation", arrow, relation.description


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class Failure:
    """A chunk that could not be read to its end, and why; with `chunk_id` None, a whole document."""

    document_id: str
    chunk_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """The numbers of an extraction, added up over many chunks, to judge a model by.

    `ok`, `empty`, `partial` and `failed` count chunks by state, `rejections` refused lines by reason,
    `repaired` repaired records, `ungrounded` entity mentions with a name that does not occur in the
    chunk. `content_keywords` counts the chunks of a document with each theme; a whole index has none.
    The remaining fields are sums of the fields of `Extraction`.
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
    content_keywords: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, report: "ExtractionReport") -> "ExtractionReport":
        gleaned = zip_longest(self.gleaned, report.gleaned, fillvalue=0)
        return ExtractionReport(
            ok=self.ok + report.ok,
            empty=self.empty + report.empty,
            partial=self.partial + report.partial,
            failed=self.failed + report.failed,
            records=self.records + report.records,
            rejections=_summed_counts(self.rejections, report.rejections),
            repaired=self.repaired + report.repaired,
            ungrounded=self.ungrounded + report.ungrounded,
            truncated=self.truncated + report.truncated,
            resumed=self.resumed + report.resumed,
            gleaned=tuple(map(sum, gleaned)),
            usage=self.usage + report.usage,
            content_keywords=_summed_counts(self.content_keywords, report.content_keywords),
        )


def _summed_counts(counts: Mapping[str, int], more_counts: Mapping[str, int]) -> Mapping[str, int]:
    """The sums of counts by name, in the order of the names."""
    if not counts or not more_counts:
        return counts or more_counts
    sums = Counter(counts) + Counter(more_counts)
    return dict(sorted(sums.items()))


@with_short_repr
@dataclass(frozen=True, slots=True, repr=False)
class TraceSummary:
    """One query on record; `started_at` in seconds since 1970."""

    id: str
    status: Literal["complete", "failed", "incomplete"]
    mode: Mode
    question: str
    started_at: float
