"""The nouns: frozen values, arguments and results of the steps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from lightrag_jsonl.core.display import html_table, with_short_repr
from lightrag_jsonl.core.languages import Language as Language
from lightrag_jsonl.core.languages import known_language as known_language
from lightrag_jsonl.core.sources import source_lines as source_lines
from lightrag_jsonl.core.sources import unique_labels as unique_labels
from lightrag_jsonl.core.sources import unsupported_lines as unsupported_lines
from lightrag_jsonl.core.text import digest
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import check_fields

Mode: TypeAlias = Literal["naive", "local", "global", "hybrid", "mix", "walk", "overview", "bypass"]
Excerpt: TypeAlias = tuple[int, int]  # start and end, in characters
Kind: TypeAlias = Literal["entity", "relation", "chunk"]
ChunkState: TypeAlias = Literal["ok", "empty", "partial", "failed"]
EditAction: TypeAlias = Literal["create", "edit", "delete"]  # of a person
DocumentState: TypeAlias = Literal["pending", "done", "partial", "failed"]
Finish: TypeAlias = Literal["stop", "length", "filter", "error"]

HEADING_SEPARATOR = " › "  # between the headings of a path
PERSON = "person"  # the extractor of edits by hand
PROVIDED = "records"  # the extractor of ready-made records
UNKNOWN_TYPE = "unknown"  # the type of an entity that no mention gives one

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Record: TypeAlias = dict[str, Json]
ResponseType: TypeAlias = Literal["text", "json", "jsonl"]
RejectionReason: TypeAlias = Literal[
    "repaired", "array", "multiline", "not_object", "not_json", "malformed", "truncated", "too_deep",
    "schema", "unknown_id", "duplicate_id", "self_relation", "empty_name", "ontology",
    "limit", "example", "repeated",
]  # fmt: skip


@with_short_repr
@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@with_short_repr
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
class Rejection:
    """A line of model output, counted from 1, that is no record, or was a record after repair."""

    line: int
    text: str
    reason: RejectionReason
    detail: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True)
class JsonlResult:
    """The records of a JSONL answer; `truncated` if it broke off inside a record, array or thought."""

    records: tuple[Record, ...] = ()
    line_numbers: tuple[int, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    truncated: bool = False


@with_short_repr
@dataclass(frozen=True, slots=True)
class Document:
    """A text to index.

    The default `id` is a digest of the content. Without `pages`, form feeds in `text` separate
    pages. `QueryParam.where` filters by `metadata`, which is plain JSON, and by `title`, `source` and
    `date`. `ConfigError` names a field with a value of the wrong type.
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


@with_short_repr
@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document; `number` counts from 1."""

    document_id: str
    number: int
    text: str


@with_short_repr
@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a page: `page.text[start:end] == text`, in characters.

    `index` counts from 0 in the document. `title` is the document's, `heading` the path of headings
    above the start, such as "Report › Costs". `score` and `why` are set in search results only.
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

    @property
    def background(self) -> str:
        """The document's title and the headings, for readers of the text."""
        return HEADING_SEPARATOR.join(filter(None, (self.title, self.heading)))


def chunk_id(document_id: str, page: int, start: int, text: str) -> str:
    """The id of a chunk, derived from position and text."""
    return "chunk-" + digest(document_id, str(page), str(start), text)


@with_short_repr
@dataclass(frozen=True, slots=True)
class EntityMention:
    """What one chunk says about an entity; `grounded` if the chunk holds the name.

    `aliases` are further names of the entity.
    """

    name: str
    type: str
    description: str
    grounded: bool = True
    attributes: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True)
class RelationMention:
    """What one chunk says about the relation of two entities; `strength` is between 1 and 10.

    In an edit by hand, `strength` is the weight, and 0 leaves the weight unchanged.
    """

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    strength: float = 1.0


@with_short_repr
@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities and relations of one chunk, with an account of the extraction.

    `truncated` counts cut-off answers, `resumed` the requests to go on with a cut-off answer.
    `gleaned` holds the number of new names and pairs of each gleaning round. `error` says why the
    chunk, or the rest of it, could not be read; `extractor` names the model or the extractor.
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

    @property
    def unfinished(self) -> bool:
        """Whether the chunk, or the end of the chunk, was not read and a retry makes sense."""
        return self.state == "failed" or bool(self.error)

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
        )


@with_short_repr
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
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


class Neighbourhood(NamedTuple):
    """An entity and its relations, strongest first."""

    entity: Entity
    relations: tuple[Relation, ...]

    def __repr__(self) -> str:
        return f"Neighbourhood({self.entity!r}, {len(self.relations):,} relations)"

    def _repr_html_(self) -> str:
        title = f"{self.entity.name} ({self.entity.type}): {self.entity.description}"
        return html_table(title, _relation_rows(self.relations))


def _relation_rows(relations: Iterable[Relation]) -> Iterator[tuple[str, ...]]:
    for relation in relations:
        arrow = f"{relation.source} → {relation.predicate} → {relation.target}"
        yield "relation", arrow, relation.description


@with_short_repr
@dataclass(frozen=True, slots=True)
class Keywords:
    """The themes (`high_level`) and named things (`low_level`) of a question.

    `question` rewords a follow-up question to be understood without the conversation, and is
    searched for instead; empty if the question needs no conversation. `whole` says that the question
    asks about a text or a collection as a whole.
    """

    high_level: tuple[str, ...] = ()
    low_level: tuple[str, ...] = ()
    question: str = ""
    whole: bool = False


@with_short_repr
@dataclass(frozen=True, slots=True)
class Dropped:
    """How many ranked items the token budget left out of a context."""

    entities: int = 0
    relations: int = 0
    chunks: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True)
class Community:
    """A part of the graph whose entities have more to do with each other than with the rest.

    `title` and `entities` (the most central first) are names; `chunk_ids` are the passages, in the
    order of the text. Each passage belongs to a single community of a level. `level` is 0 for the
    communities of the whole graph, 1 for their parts, and so on. `report` is a model's text with
    numbers of passages, if reports were written; `key` identifies the content.
    """

    title: str
    entities: tuple[str, ...] = ()
    chunk_ids: tuple[str, ...] = ()
    level: int = 0
    report: str = ""
    key: str = ""


@with_short_repr
@dataclass(frozen=True, slots=True)
class Context:
    """The retrieved items for a question, best first, and the `prompt` for the model.

    Descriptions leave out sentences of the passages in the same context; `entities.get` has the full
    description. `tokens` is the length of `prompt`, or of all parts together. `documents` maps
    document ids to titles (or sources) for readers, `dates` to dates; `paged` holds the ids of
    documents with more than one page. `language` is the index's. With `none_selected`, the model was
    asked to choose relations and chose nothing: the remaining items match the question's text.
    `response_type` is the requested form of the answer. An overview has `communities`, chunks in the
    order of the text, and in `excerpts`, by chunk id, the places in the chunk's text that the prompt
    shows.
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
    dates: Mapping[str, str] = field(default_factory=dict)
    paged: frozenset[str] = frozenset()
    language: str = "en"
    none_selected: bool = False
    response_type: str = ""
    communities: tuple[Community, ...] = ()
    excerpts: Mapping[str, tuple[Excerpt, ...]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not self.items

    @property
    def items(self) -> int:
        """The number of chunks, entities and relations."""
        return len(self.chunks) + len(self.entities) + len(self.relations)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, ...]] = []
        for chunk in self.chunks:
            rows.append(("chunk", self.documents.get(chunk.document_id, ""), chunk.text))
        for entity in self.entities:
            rows.append(("entity", entity.name, entity.description))
        rows += _relation_rows(self.relations)
        return html_table(f"{self.question} ({self.mode}, {self.tokens:,} tokens)", rows)


@with_short_repr
@dataclass(frozen=True, slots=True)
class Citation:
    """One `[number]` of an answer, resolved to the text behind the number.

    `text` is the sentence in support of the answer, at characters `start` to `end` of the page.
    Without such a sentence, `supported` is false, `text` is empty, and `start` and `end` are the
    start of the chunk. An entity or a relation has a citation for each supporting chunk, or else for
    the first chunk, all with the same number. `heading` is the path of headings above the chunk;
    `paged` says whether the document has more than one page.
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
    supported: bool = True
    heading: str = ""
    date: str | None = None
    paged: bool = False


@with_short_repr
@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim of an answer, with one of the cited numbers.

    `start` and `end` are the characters of the claim in the answer, `marker` is the place of the
    bracket with the number. `citations` are places in `Answer.citations`: of the sentences in support
    of the claim or, unless `supported`, of the cited passage. The same number may support one claim
    and not another.
    """

    number: int
    start: int
    end: int
    marker: int
    supported: bool
    citations: tuple[int, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True)
class Cited:
    """The citations and claims of an answer, and the `invented` numbers of no item of the prompt."""

    citations: tuple[Citation, ...] = ()
    claims: tuple[CitedClaim, ...] = ()
    invented: tuple[int, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with citations and context.

    Citations are numbered in the order of first use; citation n has the number
    `prompt_numbers[n - 1]` in `context.prompt`. `claims` says whether the cited passage supports the
    claim before each number. `invented` holds the cited numbers of no item of the prompt.
    `truncated` means an incomplete answer: the model stopped at the token limit, or a content filter
    or an error cut the answer off. `str(answer)` is the text, followed by the sources, each place
    once, and by the claims without support; documents with the same title are distinguished by id.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    context: Context = field(default_factory=Context)
    trace_id: str | None = None
    usage: Usage = Usage()
    invented: tuple[int, ...] = ()
    truncated: bool = False
    prompt_numbers: tuple[int, ...] = ()
    claims: tuple[CitedClaim, ...] = ()

    def __str__(self) -> str:
        if not self.citations:
            return self.text
        return "\n".join([self.text, "", *self._lines()])

    def _repr_html_(self) -> str:
        return html_table(self.text, ([line] for line in self._lines()))

    def _lines(self) -> Iterator[str]:
        language = self.context.language
        yield from source_lines(self.citations, language)
        yield from unsupported_lines(self.text, self.claims, language)


@with_short_repr
@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk that could not be read to its end, and why; with `chunk_id` None, a whole document."""

    document_id: str
    chunk_id: str | None
    reason: str


@with_short_repr
@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file in a given folder that is not read, and why: a link, a pipe or a device."""

    path: str
    reason: str


@with_short_repr
@dataclass(frozen=True, slots=True)
class FileNote:
    """A part of a file that is not in its text, such as bytes that cannot be decoded."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """The numbers of an extraction, added up over many chunks, to judge a model by.

    `ok`, `empty`, `partial` and `failed` count chunks by state, `rejections` refused lines by reason,
    `repaired` repaired records, `ungrounded` entity mentions with a name that does not occur in the
    chunk. The remaining fields are sums of the fields of `Extraction`.
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

    def __add__(self, report: "ExtractionReport") -> "ExtractionReport":
        names = [field.name for field in fields(self)]
        sums = {
            name: getattr(self, name) + getattr(report, name)
            for name in names
            if name not in ("rejections", "gleaned")
        }
        rejections = Counter(self.rejections) + Counter(report.rejections)
        gleaned = zip_longest(self.gleaned, report.gleaned, fillvalue=0)
        return ExtractionReport(
            **sums,
            rejections=dict(sorted(rejections.items())),
            gleaned=tuple(map(sum, gleaned)),
        )


@with_short_repr
@dataclass(frozen=True, slots=True)
class InsertReport:
    """The result of an insert; `entities` and `relations` count created and changed ones.

    - `documents`: the ids of new or changed documents, now visible to searches.
    - `unchanged`: the ids of documents already in the index.
    - `deleted`: the ids of documents whose files are gone.
    - `skipped`: the unread files in the folders: links, pipes and devices.
    - `shortened`: the chunks that are too long for the embedder, which reads only the beginning;
      these are no failures, since a retry would not help.
    - `notes`: the parts of read files that are not in the texts.
    - `stopped`: empty, or the reason for an early end.
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
    deleted: tuple[str, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    shortened: tuple[Failure, ...] = ()
    notes: tuple[FileNote, ...] = ()


@with_short_repr
@dataclass(frozen=True, slots=True)
class MergeReport:
    """The result of a merge of indexes; `entities` and `relations` as in `InsertReport`.

    - `documents`: the ids of new documents; `unchanged`: of documents already in this index.
    - `pending`: the number of waiting documents in the merged indexes, which are not taken over.
    - `answers`: the number of cached answers.
    - `summaries_due`: the number of entities and relations whose summary nobody has paid for yet.
    """

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    pending: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    answers: int = 0
    summaries_due: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True)
class DeleteReport:
    """The result of a deletion: the ids of the documents, and the numbers of everything removed.

    Cached answers and traces are only removed by a purge.
    """

    documents: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    answers: int = 0
    traces: int = 0


@with_short_repr
@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """A document and the state of extraction; the title of an untitled text is the first sentence."""

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


@with_short_repr
@dataclass(frozen=True, slots=True)
class Status:
    """The index as a whole; `documents` maps states to counts, `dim` is the length of vectors."""

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


@with_short_repr
@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One query on record; `started_at` in seconds since 1970."""

    id: str
    status: Literal["complete", "failed", "incomplete"]
    mode: Mode
    question: str
    started_at: float
