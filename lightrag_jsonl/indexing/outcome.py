"""The outcome of an insert: documents, graph rows, failures, and the report."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import Struct, field

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.index_reports import FileNote, InsertReport, SkippedFile
from lightrag_jsonl.core.types import Document, ExtractionReport, Failure
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.incoming import IncomingDocument, storable
from lightrag_jsonl.indexing.merging import IndexChange
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import ALL_REFUSED
from lightrag_jsonl.text.strings import sanitize

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.loading import UnreadSource

log = logging.getLogger(__name__)


class InsertOutcome(Struct):
    """The results of an insert so far; `received` counts the documents that were given, `unread` are the sources of
    documents that were not read.
    """

    unread: "Sequence[UnreadSource]" = ()
    received: int = 0
    documents: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    purged: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    shortened: list[Failure] = field(default_factory=list)
    notes: list[FileNote] = field(default_factory=list)
    entities: set[int] = field(default_factory=set)  # row ids
    relations: set[int] = field(default_factory=set)
    extraction: ExtractionReport = ExtractionReport()
    content_keywords: Counter[str] = field(default_factory=Counter)
    refusal: ConfigError | None = None  # of the last document that cannot be indexed

    def storable_document(self, pending: PendingDocument) -> PendingDocument | None:
        """The document as the store can hold it; None, and a failure, if it cannot be indexed."""
        try:
            storable_document = storable(pending)
        except ConfigError as error:
            self.refuse(pending.document, error)
            return None
        document = storable_document.document
        if any(text.strip() for text in document.pages or document.text.split("\f")):
            return storable_document
        failure = Failure(document.id or "", None, "the document has no text")
        self.failures.append(failure)
        return None

    def refuse(self, document: Document, error: ConfigError) -> None:
        """Add a document that cannot be indexed."""
        name = sanitize(document.id or document.source or "")
        self.failures.append(Failure(name, None, str(error)))
        self.refusal = error

    def add_commit(self, documents: Iterable[IncomingDocument], change: IndexChange) -> None:
        """Add committed documents, with the failures of chunks, and the entities and relations of the commit."""
        self.entities.update(change.graph.rows("entity"))
        self.relations.update(change.graph.rows("relation"))
        for document in documents:
            self.documents.append(document.id)
            for chunk, extraction in zip(document.chunks, document.extractions, strict=True):
                report = extraction.report
                self.content_keywords.update(report.content_keywords)
                numbers = replace(report, content_keywords={})
                self.extraction += numbers
                if extraction.unfinished:
                    reason = extraction.error or ALL_REFUSED
                    failure = Failure(document.id, chunk.id, reason)
                    self.failures.append(failure)

    def report(self, *, usage: Usage, stopped: str) -> InsertReport:
        """The report, in an order that does not depend on timing."""
        content_keywords = dict(sorted(self.content_keywords.items()))
        extraction = replace(self.extraction, content_keywords=content_keywords)
        chunks = extraction.ok + extraction.empty + extraction.partial + extraction.failed
        log.info(
            "inserted %d documents, %d chunks; %d failures",
            len(self.documents),
            chunks,
            len(self.failures),
        )
        report = InsertReport(
            documents=tuple(sorted(self.documents)),
            unchanged=tuple(sorted(self.unchanged)),
            purged=tuple(sorted(self.purged)),
            chunks=chunks,
            entities=len(self.entities),
            relations=len(self.relations),
            failures=_sorted_failures(self.failures),
            shortened=_sorted_failures(self.shortened),
            notes=tuple(self.notes),
            usage=usage,
            extraction=extraction,
            stopped=stopped,
        )
        return with_unread(report, self.unread) if self.unread else report


def _sorted_failures(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Failures by document and chunk."""
    return tuple(
        sorted(failures, key=lambda failure: (failure.document_id, failure.chunk_id or ""))
    )


def with_unread(report: InsertReport, unread: "Sequence[UnreadSource]") -> InsertReport:
    """The report of an insert, with the sources that failed or were skipped before."""
    failures = [source for source in unread if isinstance(source, Failure)]
    skipped = [source for source in unread if isinstance(source, SkippedFile)]
    notes = [source for source in unread if isinstance(source, FileNote)]
    return replace(
        report,
        failures=(*failures, *report.failures),
        skipped=(*skipped, *report.skipped),
        notes=(*notes, *report.notes),
    )
