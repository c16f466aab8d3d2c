"""What an index holds, for people: totals, and the state of each document."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.index_reports import DocumentStatus, ReadingState, Status
from lightrag_jsonl.core.types import ExtractionReport, Failure, Json, Kind
from lightrag_jsonl.storage.filters import (
    CONTENT_KEYWORDS,
    OWN_FIELDS,
    filter_words,
    parse_where,
)
from lightrag_jsonl.storage.rows import ChunkReport, DocumentLabel, PendingDocument, StoredDocument
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import first_words

UNNAMED = pattern_of(
    r"doc-(?:[0-9a-f]{16}){1,2}"
)  # id of a text without one; LightRAG's are longer
TITLE_LENGTH = 40  # characters, of a text without a title
STOPPED = "insert.stopped"  # the setting that holds why the last insert ended early, or ""
READ = (
    "read"  # the setting that says when a model reads chunks: "all" at an insert, or when "asked"
)
QUESTIONS_READ = "read.questions"  # the setting with the number of questions that had chunks read
NO_JOBS: Mapping[str, str] = MappingProxyType({})
READING_RATE = 3.6  # tokens of calls for each token of a text: 4,300 for a chunk of 1,200 tokens
NOT_EMBEDDED = "{} is found by words and by the graph only: {}"
REFUSED = "the embedder refused it"
CHUNKS_ADDED_UP = 4_096  # reports in a range of row ids: about 20 ms
ALL_REFUSED = "no line of the answer could be read as a record"


def titles(
    view: StoreView, documents: Collection[StoredDocument | DocumentLabel]
) -> dict[str, str | None]:
    """The documents' titles by id; the first sentence of documents that only a digest names."""
    untitled = [
        document.id
        for document in documents
        if not (document.title or document.source) and UNNAMED.fullmatch(document.id)
    ]
    first_pages = view.pages(untitled, 1)
    sentences = {page.document_id: first_words(page.text, TITLE_LENGTH) for page in first_pages}
    return {document.id: sentences.get(document.id, document.title) for document in documents}


def with_documents(view: StoreView, context: Context) -> Context:
    """The context with titles (or the like) and dates of the documents of the chunks and of their
    copies, and the ids of documents that have pages.
    """
    ids = {chunk.document_id for chunk in context.chunks}
    for chunk in context.chunks:
        ids.update(context.copies.get(chunk.id, ()))
    documents = view.documents(ids)
    titles_by_id = titles(view, documents)
    second_pages = view.pages([document.id for document in documents], 2)
    labels = {
        document.id: titles_by_id[document.id] or document.source or document.id
        for document in documents
    }
    is_ambiguous = len({*labels.values()}) < len(labels)
    return replace(
        context,
        documents=_distinct_labels(labels, documents) if is_ambiguous else labels,
        dates={document.id: document.date for document in documents if document.date},
        paged=frozenset([page.document_id for page in second_pages]),
    )


def _distinct_labels(
    labels: Mapping[str, str], documents: Collection[StoredDocument]
) -> dict[str, str]:
    """The labels by id of document; equal ones get the folder of the source, the file, or else the id."""
    sources = {document.id: document.source or "" for document in documents}
    ids_by_label: defaultdict[str, list[str]] = defaultdict(list)
    for id, label in labels.items():
        ids_by_label[label].append(id)
    distinct_labels = dict(labels)
    for label, ids in ids_by_label.items():
        if len(ids) > 1:
            paths = [PurePath(sources[id]) for id in ids]
            additions = (
                _telling_ends([path.parent for path in paths]) or _telling_ends(paths) or ids
            )
            for id, addition in zip(ids, additions, strict=True):
                distinct_labels[id] = f"{label} ({addition})"
    return distinct_labels


def _telling_ends(paths: Sequence[PurePath]) -> list[str]:
    """The last parts of each path, as many as it takes to tell the paths apart; none if some are the same."""
    most_parts = max(len(path.parts) for path in paths)
    for count in range(1, most_parts + 1):
        endings = [PurePath(*path.parts[-count:]).as_posix() for path in paths]
        if "." not in endings and len(set(endings)) == len(endings):
            return endings
    return []


class ReportTotals:
    """The sum of the extraction reports of all chunks, added up by ranges of row ids: after a change,
    only the ranges with a changed chunk are added up anew.
    """

    def __init__(self) -> None:
        self._generation = -1
        self._totals: dict[int, ExtractionReport] = {}  # by the number of the range
        self._lock = Lock()

    def total(self, view: StoreView) -> ExtractionReport:
        """The sum in the state of a view."""
        with self._lock:
            generation = view.generation
            touched = view.touched_since(self._generation)
            if touched is None:
                self._totals = {}
                changed_ranges = set(range(view.last_chunk() // CHUNKS_ADDED_UP + 1))
            else:
                changed_ranges = {row // CHUNKS_ADDED_UP for row in touched["chunk"]}
            for number in sorted(changed_ranges):
                first_row = number * CHUNKS_ADDED_UP
                rows = range(first_row, first_row + CHUNKS_ADDED_UP)
                self._totals[number] = view.extraction_totals(rows)
            self._generation = generation
            return sum(self._totals.values(), ExtractionReport())


def index_status(view: StoreView, totals: ReportTotals) -> Status:
    """The totals; what the database does not know (model, size on the disk) is left empty."""
    counts = view.counts()
    settings = view.settings()
    states = Counter(counts.documents)
    for document in view.documents(_failures_by_document(view)):
        if document.state == "done":
            states["done"] -= 1
            states["partial"] += 1
    extraction = totals.total(view)
    return Status(
        working_dir="",
        documents={state: count for state, count in states.items() if count},
        chunks=counts.chunks,
        entities=counts.entities,
        relations=counts.relations,
        language=settings.get("language", ""),
        llm="",
        embedder=settings.get("embedder", ""),
        dim=int(settings.get("dim", 0)),
        tokenizer=settings.get("tokenizer", ""),
        format=int(settings.get("format", 0)),
        bytes_on_disk=0,
        extraction=extraction,
        reading=reading_state(view, extraction),
    )


def reading_state(view: StoreView, extraction: ExtractionReport) -> ReadingState:
    """How much of an index a model has read; the cost as in the sum of all reports of extraction."""
    settings = view.settings()
    all_chunks, all_tokens = view.text_tokens()
    unread_chunks, unread_tokens = view.text_tokens(by_rules=True)
    usage = extraction.usage
    tokens = usage.input_tokens + usage.output_tokens
    read_tokens = all_tokens - unread_tokens
    rate = tokens / read_tokens if tokens and read_tokens else READING_RATE
    return ReadingState(
        read="asked" if reads_when_asked(settings) else "all",
        chunks_read=all_chunks - unread_chunks,
        chunks_unread=unread_chunks,
        questions=int(settings.get(QUESTIONS_READ, "0")),
        tokens=tokens,
        tokens_for_rest=round(rate * unread_tokens),
    )


def reads_when_asked(settings: Mapping[str, str]) -> bool:
    """Whether an index with these settings is read when questions find its chunks."""
    return settings.get(READ) == "asked"


class Unread(NamedTuple):
    """Documents of which a query finds nothing, and why: waiting documents, and failed documents."""

    pending: int
    failed: int
    pending_reason: str
    failed_reason: str


def unread_documents(view: StoreView) -> Unread | None:
    """Why an index holds nothing that was read; None if a document was read, in whole or in part."""
    counts = view.counts().documents
    if counts.get("done", 0) or counts.get("partial", 0):
        return None
    reports = view.chunk_reports() if counts.get("failed", 0) else ()
    reasons = [report.error for report in reports if report.error]
    return Unread(
        pending=counts.get("pending", 0),
        failed=counts.get("failed", 0),
        pending_reason=view.settings().get(STOPPED, ""),
        failed_reason=reasons[0] if reasons else "",
    )


class FilterOutcome(Struct, frozen=True):
    """A filter in words, and how many documents pass it. If none does: the fields of the filter that no document
    has, and if there are such fields, those that there are.
    """

    where: str = ""
    documents: int = 0
    unknown_fields: Sequence[str] = ()
    fields: Sequence[str] = ()


def filter_outcome(view: StoreView, where: Mapping[str, Json]) -> FilterOutcome:
    """What a filter lets through, if there is one; `ConfigError` for one that makes no sense."""
    if not where:
        return FilterOutcome()
    words = filter_words(where)
    chunks = view.matching_chunks(parse_where(where))
    if chunks:
        documents = {document for document, _ in view.chunk_documents(chunks).values()}
        return FilterOutcome(where=words, documents=len(documents))
    fields = {*OWN_FIELDS, CONTENT_KEYWORDS, *view.metadata_fields()}
    unknown_fields = sorted(where.keys() - fields)
    known_fields = sorted(fields) if unknown_fields else ()
    return FilterOutcome(where=words, unknown_fields=unknown_fields, fields=known_fields)


def failures_without_vector(
    reasons: Mapping[Kind, Mapping[int, str]], view: StoreView
) -> list[Failure]:
    """Rows without a vector as failures of chunks; the failure of an entity or a relation is that of
    the first chunk that states it.
    """
    messages: list[tuple[str, str]] = []  # id of the chunk, and what is wrong
    for row, chunk in view.chunks(reasons.get("chunk", ())).items():
        messages.append((chunk.id, NOT_EMBEDDED.format("the text", reasons["chunk"][row])))
    for row, entity in view.entities(reasons.get("entity", ())).items():
        message = NOT_EMBEDDED.format(f"the entity {entity.name!r}", reasons["entity"][row])
        messages += [(chunk_id, message) for chunk_id in entity.chunk_ids[:1]]
    for row, relation in view.relations(reasons.get("relation", ())).items():
        ends = f"the relation of {relation.source!r} and {relation.target!r}"
        message = NOT_EMBEDDED.format(ends, reasons["relation"][row])
        messages += [(chunk_id, message) for chunk_id in relation.chunk_ids[:1]]
    chunks = view.chunks(ids={chunk_id for chunk_id, _ in messages}).values()
    documents = {chunk.id: chunk.document_id for chunk in chunks}
    failures = [Failure(documents[chunk_id], chunk_id, message) for chunk_id, message in messages]
    return sorted(failures, key=lambda failure: (failure.document_id, failure.chunk_id or ""))


def _failures_by_document(view: StoreView) -> dict[str, list[Failure]]:
    """What the embedder refused, by the ids of documents."""
    kinds: tuple[Kind, ...] = ("chunk", "entity", "relation")
    reasons = {kind: dict.fromkeys(view.refused_rows(kind), REFUSED) for kind in kinds}
    failures: defaultdict[str, list[Failure]] = defaultdict(list)
    if any(reasons.values()):
        for failure in failures_without_vector(reasons, view):
            failures[failure.document_id].append(failure)
    return failures


def document_statuses(
    view: StoreView,
    limit: int | None = None,
    offset: int = 0,
    failed_jobs: Mapping[str, str] = NO_JOBS,
) -> tuple[DocumentStatus, ...]:
    """A page of the documents, first the visible, then the waiting ones.

    `failed_jobs` has the reasons of failed jobs by id: what they brought waits, and has failed.
    """
    visible = view.documents(limit=limit, offset=offset)
    statuses = _visible_statuses(view, visible)
    if limit is None or len(statuses) < limit:
        counts = view.counts().documents
        first = max(0, offset - (sum(counts.values()) - counts.get("pending", 0)))
        end = None if limit is None else first + limit - len(statuses)
        for pending in view.pending(view.new_pending_ids()[first:end]):
            statuses.append(_waiting_status(pending, failed_jobs))
    return tuple(statuses)


def document_status(
    view: StoreView, id: str, failed_jobs: Mapping[str, str]
) -> DocumentStatus | None:
    """The document with an id, visible or waiting, or None; `failed_jobs` as for `document_statuses`."""
    for visible in _visible_statuses(view, view.documents([id])):
        return visible
    for pending in view.pending([id]):
        return _waiting_status(pending, failed_jobs)
    return None


def find_documents(
    view: StoreView,
    text: str,
    state: str,
    *,
    limit: int,
    offset: int = 0,
    failed_jobs: Mapping[str, str] = NO_JOBS,
) -> tuple[int, tuple[DocumentStatus, ...]]:
    """The number of documents in a state (any for "") with a text in id, title or source, and a page
    of them; `failed_jobs` as for `document_statuses`.
    """
    if not (text or state):
        total = view.counts().documents
        count = sum(total.values()) - total.get("pending", 0) + len(view.new_pending_ids())
        return count, document_statuses(view, limit, offset, failed_jobs)
    labels = [*_visible_labels(view), *_waiting_labels(view, failed_jobs)]
    folded = text.casefold()
    ids = [
        label.id
        for label in labels
        if state in ("", label.state)
        and any(
            folded in (field or "").casefold() for field in (label.id, label.title, label.source)
        )
    ]
    page = ids[offset : offset + limit]
    visible = _visible_statuses(view, view.documents(page))
    waiting_ids = set(page) - {status.id for status in visible}
    waiting = [_waiting_status(pending, failed_jobs) for pending in view.pending(waiting_ids)]
    return len(ids), (*visible, *waiting)


def _visible_labels(view: StoreView) -> Iterator[DocumentLabel]:
    """The labels of the visible documents, with the titles and states that people see."""
    labels = view.document_labels()
    refused = _failures_by_document(view)
    titles_by_id = titles(view, labels)
    for label in labels:
        is_partial = label.state == "done" and label.id in refused
        state = "partial" if is_partial else label.state
        yield label._replace(title=titles_by_id[label.id], state=state)


def _waiting_labels(view: StoreView, failed_jobs: Mapping[str, str]) -> Iterator[DocumentLabel]:
    for pending in view.pending(view.new_pending_ids()):
        document = pending.document
        yield DocumentLabel(
            id=pending.name,
            title=document.title,
            source=document.source,
            state="failed" if pending.job in failed_jobs else "pending",
        )


def _visible_statuses(view: StoreView, documents: Sequence[StoredDocument]) -> list[DocumentStatus]:
    titles_by_id = titles(view, documents)
    reports: defaultdict[str, list[ChunkReport]] = defaultdict(list)
    for report in view.chunk_reports([document.id for document in documents]):
        reports[report.document_id].append(report)
    refused = _failures_by_document(view)
    return [
        _visible_status(
            document,
            title=titles_by_id[document.id],
            reports=reports[document.id],
            refused=refused.get(document.id, []),
        )
        for document in documents
    ]


def _visible_status(
    document: StoredDocument,
    *,
    title: str | None,
    reports: Sequence[ChunkReport],
    refused: Sequence[Failure],
) -> DocumentStatus:
    unread = [
        Failure(document.id, report.chunk_id, report.error or ALL_REFUSED)
        for report in reports
        if report.unfinished
    ]
    extraction = sum((report.report for report in reports), ExtractionReport())
    keyword_counts = Counter(extraction.content_keywords)
    return DocumentStatus(
        id=document.id,
        title=title,
        source=document.source,
        date=document.date,
        state="partial" if refused and document.state == "done" else document.state,
        chunks=len(reports),
        characters=document.characters,
        created_at=datetime.fromtimestamp(document.created_at, UTC),
        extraction=extraction,
        failures=(*unread, *refused),
        metadata=document.metadata,  # type: ignore[arg-type]
        content_keywords=tuple([keyword for keyword, _ in keyword_counts.most_common()]),
    )


def _waiting_status(
    pending: PendingDocument, failed_jobs: Mapping[str, str] = NO_JOBS
) -> DocumentStatus:
    document = pending.document
    has_failed = pending.job in failed_jobs
    reason = failed_jobs.get(pending.job or "", "")
    return DocumentStatus(
        id=pending.name,
        title=document.title,
        source=document.source,
        date=document.date,
        state="failed" if has_failed else "pending",
        chunks=0,
        characters=len(document.text),
        created_at=datetime.fromtimestamp(pending.created_at, UTC),
        failures=(Failure(pending.name, None, reason),) if has_failed else (),
        metadata=document.metadata,
    )
