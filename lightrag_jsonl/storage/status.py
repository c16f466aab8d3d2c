"""What an index holds, for people: its totals, and its documents one by one."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lightrag_jsonl.core.sentences import first_words
from lightrag_jsonl.core.types import Context, DocumentStatus, ExtractionReport, Failure, Status
from lightrag_jsonl.storage.rows import ChunkReport, PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Reader

UNNAMED = re.compile(r"doc-(?:[0-9a-f]{16}){1,2}")  # id of a text given none; LightRAG's are longer
TITLE_LENGTH = 40  # characters, of a text without a title
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
    reports = (chunk.report for chunk in reader.chunk_reports())
    return Status(
        working_dir="",
        documents=counts.documents,
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


def document_statuses(
    reader: Reader, limit: int | None = None, offset: int = 0
) -> tuple[DocumentStatus, ...]:
    """A page of the documents, first the visible, then the waiting ones."""
    chunks: defaultdict[str, list[ChunkReport]] = defaultdict(list)
    visible = reader.documents(limit=limit, offset=offset)
    for report in reader.chunk_reports([one.id for one in visible]):
        chunks[report.document_id].append(report)
    named = titles(reader, visible)
    found = [_visible(replace(one, title=named[one.id]), chunks[one.id]) for one in visible]
    if limit is None or len(visible) < limit:
        waiting = reader.pending()
        both = {one.id for one in reader.documents([one.document.id or "" for one in waiting])}
        counts = reader.counts().documents
        skipped = max(0, offset - sum(counts.values()) + counts.get("pending", 0))
        left = None if limit is None else limit - len(visible)
        only = [one for one in waiting if one.document.id not in both]
        found += map(_waiting, only[skipped:][:left])
    return tuple(found)


def _visible(one: StoredDocument, chunks: Sequence[ChunkReport]) -> DocumentStatus:
    failed = (chunk for chunk in chunks if chunk.unfinished)
    return DocumentStatus(
        *(one.id, one.title, one.source, one.date, one.state, len(chunks), one.characters),
        created_at=datetime.fromtimestamp(one.created_at, UTC),
        extraction=sum((chunk.report for chunk in chunks), ExtractionReport()),
        failures=tuple(Failure(one.id, c.chunk_id, c.error or ALL_REFUSED) for c in failed),
        metadata=one.metadata,  # type: ignore[arg-type]
    )


def _waiting(pending: PendingDocument) -> DocumentStatus:
    one, at = pending.document, datetime.fromtimestamp(pending.created_at, UTC)
    named = (one.id or "", one.title, one.source, one.date)
    return DocumentStatus(*named, "pending", 0, len(one.text), at, metadata=one.metadata)
