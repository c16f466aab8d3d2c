"""What an index holds, for people: its totals, and its documents one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

from lightrag_jsonl.core.types import DocumentStatus, ExtractionReport, Failure, Status
from lightrag_jsonl.storage.rows import ChunkReport, PendingDocument, StoredDocument
from lightrag_jsonl.storage.store import Reader

ALL_REFUSED = "no line of the answer could be read as a record"


def index_status(reader: Reader) -> Status:
    """The totals; what the database does not know (model, size on the disk) is left empty."""
    counts = reader.counts()
    recorded = reader.settings()
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


def document_statuses(reader: Reader) -> tuple[DocumentStatus, ...]:
    """All documents, first the visible, then the waiting ones."""
    chunks: defaultdict[str, list[ChunkReport]] = defaultdict(list)
    for report in reader.chunk_reports():
        chunks[report.document_id].append(report)
    visible = reader.documents()
    known = {document.id for document in visible}
    waiting = [one for one in reader.pending() if one.document.id not in known]
    return (
        *(_visible(document, chunks[document.id]) for document in visible),
        *map(_waiting, waiting),
    )


def _visible(document: StoredDocument, chunks: Sequence[ChunkReport]) -> DocumentStatus:
    return DocumentStatus(
        id=document.id,
        title=document.title,
        source=document.source,
        date=document.date,
        state=document.state,
        chunks=len(chunks),
        characters=document.characters,
        created_at=datetime.fromtimestamp(document.created_at, UTC),
        extraction=sum((chunk.report for chunk in chunks), ExtractionReport()),
        failures=tuple(
            Failure(document.id, chunk.chunk_id, chunk.error or ALL_REFUSED)
            for chunk in chunks
            if chunk.unfinished
        ),
        metadata=document.metadata,  # type: ignore[arg-type]
    )


def _waiting(pending: PendingDocument) -> DocumentStatus:
    document = pending.document
    return DocumentStatus(
        id=document.id or "",
        title=document.title,
        source=document.source,
        date=document.date,
        state="pending",
        chunks=0,
        characters=len(document.text),
        created_at=datetime.fromtimestamp(pending.created_at, UTC),
        metadata=document.metadata,
    )
