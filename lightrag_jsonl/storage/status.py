"""What an index holds, for people: its totals, and its documents one by one."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from lightrag_jsonl.core.sentences import first_words
from lightrag_jsonl.core.types import (
    Context,
    DocumentStatus,
    ExtractionReport,
    Failure,
    Kind,
    Status,
)
from lightrag_jsonl.storage.rows import ChunkReport, PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Reader

UNNAMED = re.compile(r"doc-(?:[0-9a-f]{16}){1,2}")  # id of a text given none; LightRAG's are longer
TITLE_LENGTH = 40  # characters, of a text without a title
STOPPED = "insert.stopped"  # the setting that holds why the last insert ended early, or ""
NOT_EMBEDDED = "{} is found by words and by the graph only: {}"
REFUSED = "the embedder refused it"
ALL_REFUSED = "no line of the answer could be read as a record"


def titles(reader: Reader, documents: Collection[StoredDocument]) -> dict[str, str | None]:
    """The documents' titles by id; the first sentence of those that only a digest of the text names."""
    untitled = [
        one.id for one in documents if not (one.title or one.source) and UNNAMED.fullmatch(one.id)
    ]
    pages = reader.pages(untitled, 1)
    first = {page.document_id: first_words(page.text, TITLE_LENGTH) for page in pages}
    return {one.id: first.get(one.id, one.title) for one in documents}


def with_documents(reader: Reader, found: Context) -> Context:
    """The context with what readers know the documents of its chunks by: title or the like;
    their dates; and which of them have pages.
    """
    documents = reader.documents({chunk.document_id for chunk in found.chunks})
    named, second = titles(reader, documents), reader.pages([one.id for one in documents], 2)
    return replace(
        found,
        documents={one.id: named[one.id] or one.source or one.id for one in documents},
        dates={one.id: one.date for one in documents if one.date},
        paged=frozenset([page.document_id for page in second]),
    )


def index_status(reader: Reader) -> Status:
    """The totals; what the database does not know (model, size on the disk) is left empty."""
    counts, recorded = reader.counts(), reader.settings()
    states = Counter(counts.documents)
    for document in reader.documents(_without_vector(reader)):
        states.subtract([document.state])
        states["partial" if document.state == "done" else document.state] += 1
    reports = (chunk.report for chunk in reader.chunk_reports())
    return Status(
        working_dir="",
        documents={state: count for state, count in states.items() if count},
        chunks=counts.chunks,
        entities=counts.entities,
        relations=counts.relations,
        language=recorded.get("language", ""),
        llm="",
        embedder=recorded.get("embedder", ""),
        dim=int(recorded.get("dim", 0)),
        tokenizer=recorded.get("tokenizer", ""),
        format=int(recorded.get("format", 0)),
        bytes_on_disk=0,
        extraction=sum(reports, ExtractionReport()),
    )


class Unread(NamedTuple):
    """Documents of which a query finds nothing, and why: those that wait, and those that failed."""

    pending: int
    failed: int
    pending_reason: str
    failed_reason: str


def unread_documents(reader: Reader) -> Unread | None:
    """Why an index holds nothing that was read; None if a document was read, in whole or in part."""
    counts = reader.counts().documents
    if counts.get("done", 0) or counts.get("partial", 0):
        return None
    reports = reader.chunk_reports() if counts.get("failed", 0) else ()
    reasons = (report.error for report in reports if report.error)
    return Unread(
        pending=counts.get("pending", 0),
        failed=counts.get("failed", 0),
        pending_reason=reader.settings().get(STOPPED, ""),
        failed_reason=next(iter(reasons), ""),
    )


def failures_without_vector(
    reasons: Mapping[Kind, Mapping[int, str]], reader: Reader
) -> list[Failure]:
    """Rows without a vector as failures of their chunks; that of an entity or a relation is the one
    that states it first.
    """
    chunks = reader.chunks(reasons.get("chunk", ()))
    failures = [
        Failure(chunk.document_id, chunk.id, NOT_EMBEDDED.format("the text", reasons["chunk"][row]))
        for row, chunk in chunks.items()
    ]
    stated: list[tuple[str, str]] = []  # id of the chunk, and what is wrong
    for row, entity in reader.entities(reasons.get("entity", ())).items():
        words = NOT_EMBEDDED.format(f"the entity {entity.name!r}", reasons["entity"][row])
        stated += [(id, words) for id in entity.chunk_ids[:1]]
    for row, relation in reader.relations(reasons.get("relation", ())).items():
        ends = f"the relation of {relation.source!r} and {relation.target!r}"
        words = NOT_EMBEDDED.format(ends, reasons["relation"][row])
        stated += [(id, words) for id in relation.chunk_ids[:1]]
    documents = {
        chunk.id: chunk.document_id
        for chunk in reader.chunks(ids={id for id, _ in stated}).values()
    }
    failures += [Failure(documents[id], id, words) for id, words in stated]
    return sorted(failures, key=lambda failure: (failure.document_id, failure.chunk_id or ""))


def _without_vector(reader: Reader) -> dict[str, list[Failure]]:
    """What the embedder refused, by the ids of documents."""
    kinds: tuple[Kind, ...] = ("chunk", "entity", "relation")
    reasons = {kind: dict.fromkeys(reader.refused_rows(kind), REFUSED) for kind in kinds}
    failures: defaultdict[str, list[Failure]] = defaultdict(list)
    if any(reasons.values()):
        for failure in failures_without_vector(reasons, reader):
            failures[failure.document_id].append(failure)
    return failures


def document_statuses(
    reader: Reader, limit: int | None = None, offset: int = 0
) -> tuple[DocumentStatus, ...]:
    """A page of the documents, first the visible, then the waiting ones."""
    chunks: defaultdict[str, list[ChunkReport]] = defaultdict(list)
    visible = reader.documents(limit=limit, offset=offset)
    for report in reader.chunk_reports([one.id for one in visible]):
        chunks[report.document_id].append(report)
    named = titles(reader, visible)
    refused = _without_vector(reader)
    found = [
        _visible(replace(one, title=named[one.id]), chunks[one.id], refused.get(one.id, []))
        for one in visible
    ]
    if limit is None or len(visible) < limit:
        waiting = reader.pending()
        both = {one.id for one in reader.documents([one.document.id or "" for one in waiting])}
        counts = reader.counts().documents
        skipped = max(0, offset - sum(counts.values()) + counts.get("pending", 0))
        left = None if limit is None else limit - len(visible)
        only = [one for one in waiting if one.document.id not in both]
        found += map(_waiting, only[skipped:][:left])
    return tuple(found)


def _visible(
    one: StoredDocument, chunks: Sequence[ChunkReport], refused: Sequence[Failure]
) -> DocumentStatus:
    failed = (chunk for chunk in chunks if chunk.unfinished)
    unread = [Failure(one.id, chunk.chunk_id, chunk.error or ALL_REFUSED) for chunk in failed]
    return DocumentStatus(
        id=one.id,
        title=one.title,
        source=one.source,
        date=one.date,
        state="partial" if refused and one.state == "done" else one.state,
        chunks=len(chunks),
        characters=one.characters,
        created_at=datetime.fromtimestamp(one.created_at, UTC),
        extraction=sum((chunk.report for chunk in chunks), ExtractionReport()),
        failures=(*unread, *refused),
        metadata=one.metadata,  # type: ignore[arg-type]
    )


def _waiting(pending: PendingDocument) -> DocumentStatus:
    one, at = pending.document, datetime.fromtimestamp(pending.created_at, UTC)
    named = (one.id or "", one.title, one.source, one.date)
    return DocumentStatus(*named, "pending", 0, len(one.text), at, metadata=one.metadata)
