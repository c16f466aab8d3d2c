"""The nouns: frozen values that the steps take and return."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from lightrag_jsonl.core.citation_markers import CITATION_MARKER
from lightrag_jsonl.core.display import html_table, short_repr
from lightrag_jsonl.core.text import clipped, digest
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import check_fields

Language: TypeAlias = Literal["en", "zh"]
Mode: TypeAlias = Literal["naive", "local", "global", "hybrid", "mix", "walk", "bypass"]
Kind: TypeAlias = Literal["entity", "relation", "chunk"]
ChunkState: TypeAlias = Literal["ok", "empty", "partial", "failed"]
Claim: TypeAlias = Literal["", "create", "edit", "delete"]  # what a person did; "": read in a text
DocumentState: TypeAlias = Literal["pending", "done", "partial", "failed"]
Finish: TypeAlias = Literal["stop", "length", "filter", "error"]

HEADING_SEPARATOR = " › "  # between the headings of a path
PERSON, PROVIDED = "person", "records"  # extractors: an edit by hand, and ready-made records
UNKNOWN_TYPE = "unknown"  # the type of an entity that no mention gives one

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Record: TypeAlias = dict[str, Json]
ResponseType: TypeAlias = Literal["text", "json", "jsonl"]
RejectionReason: TypeAlias = Literal[
    "repaired", "array", "multiline", "not_object", "not_json", "malformed", "truncated", "too_deep",
    "schema", "unknown_id", "duplicate_id", "self_relation", "empty_name", "ontology",
    "limit", "example", "repeated",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer.

    `finish` is "stop" if the answer is whole, "length" if it stopped at the token limit, "filter" if
    a content filter withheld the rest, and "error" if it was broken off for any other reason.
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()

    @property
    def broken_off(self) -> bool:
        """Whether the rest was withheld or lost, so that going on from there is of no use."""
        return self.finish in ("filter", "error")


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

    Without an `id` it is known by a digest of its content; without `pages`, form feeds in `text`
    separate them. `QueryParam.where` filters by `metadata`, which is plain JSON, and by `title`,
    `source` and `date`. `ConfigError` names a field whose value has the wrong type.
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

    `index` counts from 0 in its document. `title` is the document's, `heading` the headings above
    its beginning, such as "Report › Costs". `score` and `why` are set in search results only.
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
        """What a reader of the text should know: the document's title and the headings."""
        return HEADING_SEPARATOR.join(filter(None, (self.title, self.heading)))


def chunk_id(document_id: str, page: int, start: int, text: str) -> str:
    """The id of a chunk, derived from its position and text."""
    return "chunk-" + digest(document_id, str(page), str(start), text)


@dataclass(frozen=True, slots=True)
class EntityMention:
    """What one chunk says about one entity, `grounded` if it holds the name; `aliases` are others."""

    name: str
    type: str
    description: str
    grounded: bool = True
    attributes: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    claim: Claim = ""


@dataclass(frozen=True, slots=True)
class RelationMention:
    """What one chunk says about how two entities are related; `strength` is between 1 and 10.

    In an edit by hand it is the weight, and 0 if that does not change.
    """

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    strength: float = 1.0
    claim: Claim = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything that was read from one chunk, and how the model got there.

    `truncated` counts the answers that were cut off and `resumed` the times the model was asked to
    go on with one. `gleaned` holds how many new names and pairs each gleaning round brought.
    `error` says why the chunk, or the rest of it, could not be read, `extractor` what read it.
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
        """Whether a retry has something to do: the chunk, or the end of it, was not read."""
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


@dataclass(frozen=True, slots=True)
class Entity:
    """All mentions of one name, merged; `degree` is the number of its relations.

    `attributes` are (name, value) pairs, `aliases` the other names that texts give for it. `score`
    and `why` are set in search results only.
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


@dataclass(frozen=True, slots=True)
class Relation:
    """All mentions of one pair of entities, merged; `weight` is the sum of their strengths.

    `keywords` say what leads from source to target, `reverse_keywords` what leads back. `score` and
    `why` are set in search results only.
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
    for one in relations:
        yield "relation", f"{one.source} → {one.predicate} → {one.target}", one.description


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a question is about: themes (`high_level`) and named things (`low_level`).

    `question` is what is searched for in place of a question that leans on the conversation: one
    that can be understood without it. It is empty where the question's own words will do.
    """

    high_level: tuple[str, ...] = ()
    low_level: tuple[str, ...] = ()
    question: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many ranked items the token budget left out of a context."""

    entities: int = 0
    relations: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What was retrieved for a question, best first, and the text the model reads.

    A description leaves out what a passage shown says word for word; `entities.get` has all of it.
    `tokens` is the length of `prompt`, or of its parts together. `documents` maps document ids to
    the titles (or sources) that readers are shown, `dates` to their dates, if they have one;
    `paged` are those with more than one page. `language` is the index's. With `none_selected`, the
    model was asked to choose relations and chose none: the remaining items were found by the question's
    text. `response_type` is the form of the answer that was asked for.
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

    @property
    def empty(self) -> bool:
        """Whether nothing at all was found."""
        return not self.items

    @property
    def items(self) -> int:
        """The number of chunks, entities and relations."""
        return len(self.chunks) + len(self.entities) + len(self.relations)

    def _repr_html_(self) -> str:
        titles = self.documents
        return html_table(
            f"{self.question} ({self.mode}, {self.tokens:,} tokens)",
            [
                *(("chunk", titles.get(one.document_id, ""), one.text) for one in self.chunks),
                *(("entity", one.name, one.description) for one in self.entities),
                *_relation_rows(self.relations),
            ],
        )


@dataclass(frozen=True, slots=True)
class Citation:
    """One `[number]` of an answer, resolved to the text behind it.

    `start` and `end` are characters of the page, those of the sentence that supports the answer, and
    `text` is this sentence. If no sentence does, `supported` is false, `text` is empty, and both are
    the start of the chunk. An entity or a relation is cited by the chunks that support the answer,
    or else by the first one it was read from: all with the same number. `heading` is the path of
    headings above the chunk; `paged` says that the document has more than one page.
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


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A claim of an answer, and one number that it cites.

    `start` and `end` are the characters of the claim in the answer, `marker` the place of the bracket
    with the number. `citations` are the places in `Answer.citations` of the sentences that support
    this claim, or of the passage that does not: `supported` says which. The same number can support
    one claim and not another.
    """

    number: int
    start: int
    end: int
    marker: int
    supported: bool
    citations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cited:
    """The citations of an answer, its claims, and the cited numbers that the model was never shown."""

    citations: tuple[Citation, ...] = ()
    claims: tuple[CitedClaim, ...] = ()
    invented: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and where it came from.

    Citations are numbered in the order of their first use; citation n has the number
    `prompt_numbers[n - 1]` in `context.prompt`. `claims` says of each cited number in the text whether
    its passage supports the claim before it. `invented` holds the cited numbers that the model was
    never shown. `truncated` says that the answer is not whole: the model stopped at its token limit,
    or a content filter or an error cut it off. `str(answer)` is the text followed by its sources,
    each place once, and by the claims without support; documents that share a title are distinguished
    by their ids.
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


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk that could not be read to its end, and why; with `chunk_id` None, a whole document."""

    document_id: str
    chunk_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file in a given folder that is not read, and why: a link, a pipe or a device."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FileNote:
    """A part of a file that is not in its text, such as bytes that cannot be decoded."""

    path: str
    text: str


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

    def __add__(self, other: "ExtractionReport") -> "ExtractionReport":
        sums = {one.name: getattr(self, one.name) for one in fields(self)}
        rejections = Counter(sums.pop("rejections")) + Counter(other.rejections)
        gleaned = zip_longest(sums.pop("gleaned"), other.gleaned, fillvalue=0)
        return ExtractionReport(
            **{name: value + getattr(other, name) for name, value in sums.items()},
            rejections=dict(sorted(rejections.items())),
            gleaned=tuple(map(sum, gleaned)),
        )


@dataclass(frozen=True, slots=True)
class InsertReport:
    """What an insert did; `entities` and `relations` count those that were created or changed.

    `documents` lists the ids of documents that became visible, `unchanged` those that were there
    already, `deleted` those whose files are gone. `skipped` are files in the given folders that are
    not read since they are links, pipes or devices. `shortened` lists the chunks that are too long
    for the embedder, which reads only their beginning; they are no failures, since a retry would not
    change that. `notes` say of files that were read which parts are not in their texts. `stopped` is
    empty, or the reason why the insert ended early.
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


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What a merge of indexes took over; `entities` and `relations` as in `InsertReport`.

    `documents` lists the ids of those that are new here, `unchanged` those that were here already;
    `pending` counts waiting ones of the others, which are not taken over. `answers` are cached ones. `summaries_due` counts
    the entities and relations whose summary nobody has paid for yet.
    """

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    pending: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    answers: int = 0
    summaries_due: int = 0


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What a deletion removed: the ids of its documents, and the numbers of other things.

    Cached answers and traces are only removed by a purge.
    """

    documents: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    answers: int = 0
    traces: int = 0


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """A document and how its extraction went. An untitled text has its first sentence for a title."""

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


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for all others."""
    return "zh" if name.casefold().startswith("zh") else "en"


QUOTE_LENGTH = 160  # characters of a quoted sentence


def source_lines(citations: Iterable[Citation], language: str = "en") -> Iterator[str]:
    """The list of sources, each place once: its numbers, the title, the heading path, the page of a
    document that has pages, the date, and the sentences that support the answer.
    """
    cited = tuple(citations)
    labels = unique_labels((one.document_id, one.document) for one in cited)
    page, colon, quoted, comma, unsupported, partly = _SOURCE_WORDS[known_language(language)]
    places: dict[tuple[int, str], dict[str, None]] = {}
    for one in sorted(cited, key=lambda one: one.number):
        pages = page.format(one.page) if one.paged else ""
        parts = labels[one.document_id], one.heading, pages, one.date or ""
        where = " ".join(comma.join(filter(None, dict.fromkeys(parts))).split())
        quote = quoted.format(clipped(one.text, QUOTE_LENGTH)) if one.supported else ""
        places.setdefault((one.number, where), {})[quote] = None
    lines: dict[str, list[int]] = {}
    for (number, where), quotes in places.items():
        shown = " ".join(filter(None, quotes))
        end = f"{colon}{shown}" if shown else ""
        note = (partly if shown else unsupported) if "" in quotes else ""
        lines.setdefault(f"{where}{end}{note}", []).append(number)
    for line, numbers in lines.items():
        yield f"{''.join(f'[{number}]' for number in numbers)} {line}"


_SOURCE_WORDS: Mapping[Language, tuple[str, str, str, str, str, str]] = {
    "en": ("page {}", ": ", "“{}”", ", ", " (unsupported: no sentence here supports this)",
           " (another claim that cites this is unsupported)"),
    "zh": ("第 {} 页", "：", "“{}”", "，", "（未获支持：此处没有这样说的句子）",
           "（另有引用此处的说法未获支持）"),
}  # fmt: skip


def unsupported_lines(
    text: str, claims: Iterable[CitedClaim], language: str = "en"
) -> Iterator[str]:
    """The claims of an answer that a cited passage does not support, each with the numbers."""
    numbers: dict[str, dict[int, None]] = {}
    for claim in claims:
        if not claim.supported:
            words = CITATION_MARKER.sub(" ", text[claim.start : claim.end]).replace("**", "")
            quote = clipped(" ".join(words.split()).strip(_CLAIM_BORDER), QUOTE_LENGTH)
            numbers.setdefault(quote, {})[claim.number] = None
    for quote, cited in numbers.items():
        marks = "".join(f"[{number}]" for number in sorted(cited))
        yield _UNSUPPORTED_CLAIM[known_language(language)].format(marks, quote)


_CLAIM_BORDER = " ,，、;；:：-–—.。*#|"
_UNSUPPORTED_CLAIM: Mapping[Language, str] = {
    "en": "(!) not supported by {}: “{}”",
    "zh": "(!) {}不支持此说法：“{}”",
}


def unique_labels(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Labels by id, given (id, label) pairs; a label that several ids share gets the id added."""
    known = dict(labels)
    sharing = Counter(known.values())
    return {id: f"{one} ({id})" if sharing[one] > 1 else one for id, one in known.items()}


for _noun in [*vars().values()]:
    if is_dataclass(_noun):
        _noun.__repr__ = short_repr  # type: ignore[method-assign]
