"""Documents, visible or waiting, with their pages, chunks and refused lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter

from msgspec.json import Decoder
from msgspec.json import decode as parse

from lightrag_jsonl.core.text import index_terms
from lightrag_jsonl.core.types import Chunk, Document, ExtractionReport, Page, Rejection
from lightrag_jsonl.storage.filters import Condition
from lightrag_jsonl.storage.rows import (
    ChunkReport,
    Counts,
    PendingDocument,
    StoredChunk,
    StoredDocument,
    extraction_report,
)
from lightrag_jsonl.storage.sqlite.connection import (
    AMONG,
    ConnectionReader,
    ConnectionWriter,
    Row,
    json_text,
)
from lightrag_jsonl.storage.sqlite.filters import compile_condition
from lightrag_jsonl.storage.sqlite.fulltext import ADD_TERMS, REMOVE_TERMS

DOCUMENT = "id, name, title, source, date, metadata, content, state, characters, created_at"
PAGES = """SELECT d.name, p.number, p.text FROM documents d JOIN pages p ON p.document = d.id
    WHERE d.name = ?"""
CHUNK = """c.id, c.name, d.name, c.position, c.page, c.start, c.stop, c.text, c.tokens,
    c.created_at"""
CHUNKS = "FROM json_each(?) wanted JOIN chunks c ON {} JOIN documents d ON d.id = c.document"
PUT_CHUNK = """
INSERT INTO chunks (id, name, document, position, page, start, stop, tokens, created_at, state,
    error, report, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    state = excluded.state, error = excluded.error, report = excluded.report"""
PUT_REJECTION = "INSERT INTO rejections (chunk, line, text, reason, detail) VALUES (?, ?, ?, ?, ?)"
STATE = """
SELECT CASE WHEN NOT total(state = 'failed' OR error <> '') THEN 'done'
    WHEN total(state = 'failed') = count(*) THEN 'failed' ELSE 'partial' END
FROM chunks WHERE document = documents.id"""


class DocumentReader(ConnectionReader):
    """Reads documents and chunks."""

    def documents(self, ids: Collection[str] | None = None) -> list[StoredDocument]:
        """The visible documents, all or those with these ids, in the order they were stored."""
        return list(map(_document, self._select(DOCUMENT, "documents", "name", ids)))

    def pages(self, document_id: str) -> tuple[Page, ...]:
        """A document's pages, in order; empty if there is no such document."""
        return tuple(Page(*row) for row in self._rows(f"{PAGES} ORDER BY p.number", document_id))

    def page(self, document_id: str, number: int) -> Page | None:
        """One page of a document."""
        rows = self._rows(f"{PAGES} AND p.number = ?", document_id, number)
        return Page(*rows[0]) if rows else None

    def chunks(self, rows: Collection[int]) -> dict[int, Chunk]:
        """Chunks by row id."""
        query = f"SELECT {CHUNK} {CHUNKS.format('c.id = wanted.value')}"
        return dict(map(_chunk, self._rows(query, json_text(list(rows)))))

    def chunks_by_id(self, ids: Collection[str]) -> dict[str, Chunk]:
        """Chunks by their public ids."""
        query = f"SELECT {CHUNK} {CHUNKS.format('c.name = wanted.value')}"
        chunks = map(_chunk, self._rows(query, json_text(list(ids))))
        return {chunk.id: chunk for _, chunk in chunks}

    def document_chunks(self, document_ids: Collection[str]) -> dict[int, Chunk]:
        """The chunks of these documents by row id, in the order of the text."""
        return dict(map(_chunk, self._chunk_rows(CHUNK, document_ids)))

    def chunk_reports(self, document_ids: Collection[str] | None = None) -> list[ChunkReport]:
        """How the extraction of each chunk went, of all documents or those with these ids."""
        columns = "c.id, c.name, d.name, c.tokens, c.state, c.error, c.report"
        decoder = Decoder(ExtractionReport)
        return [
            ChunkReport(row, id, document, tokens, state, error, decoder.decode(report))
            for row, id, document, tokens, state, error, report in self._chunk_rows(
                columns, document_ids
            )
        ]

    def rejections(
        self, document_ids: Collection[str] | None = None
    ) -> list[tuple[str, str, Rejection]]:
        """Refused lines as (document id, chunk id, rejection)."""
        columns = "d.name, c.name, r.line, r.text, r.reason, r.detail"
        rows = self._chunk_rows(columns, document_ids, "JOIN rejections r ON r.chunk = c.id")
        return [(row[0], row[1], Rejection(*row[2:])) for row in rows]

    def matching_chunks(self, condition: Condition) -> list[int]:
        """Row ids, ascending, of the chunks whose documents meet a condition."""
        test, values = compile_condition(condition)
        documents = f"SELECT d.id FROM documents d WHERE {test}"
        query = f"SELECT id FROM chunks WHERE document IN ({documents}) ORDER BY id"
        return [row[0] for row in self._rows(query, *values)]

    def pending(self) -> list[PendingDocument]:
        """Documents that were inserted and are not visible yet, oldest first."""
        query = "SELECT document, provided, created_at FROM pending ORDER BY created_at, id"
        return [_pending(*row) for row in self._rows(query)]

    def counts(self) -> Counts:
        """How much the index holds."""
        states = dict(self._rows("SELECT state, count(*) FROM documents GROUP BY state"))
        if waiting := self._value("SELECT count(*) FROM pending"):
            states["pending"] = waiting
        tables = ("chunks", "entities", "relations")
        return Counts(states, *(self._value(f"SELECT count(*) FROM {name}") for name in tables))

    def _chunk_rows(
        self, columns: str, document_ids: Collection[str] | None, join: str = ""
    ) -> list[Row]:
        """Columns of the chunks of all documents, or of those with these ids, in order."""
        where = "" if document_ids is None else f"WHERE d.name {AMONG}"
        return self._rows(
            f"SELECT {columns} FROM documents d JOIN chunks c ON c.document = d.id {join} {where} "
            f"ORDER BY d.id, c.position{', r.id' if join else ''}",
            *(() if document_ids is None else (json_text(sorted(document_ids)),)),
        )


class DocumentWriter(DocumentReader, ConnectionWriter):
    """Writes documents and chunks."""

    def put_pending(self, pending: PendingDocument) -> None:
        """Store a waiting document, replacing an earlier version of it."""
        provided = json_text([pending.records, pending.chunks, pending.chunk_size])
        document = pending.document
        self.connection.execute(
            "INSERT INTO pending (name, document, provided, created_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET document = excluded.document, "
            "provided = excluded.provided, created_at = excluded.created_at",
            (document.id, json_text(document), provided, pending.created_at),
        )

    def delete_pending(self, ids: Collection[str]) -> None:
        """Delete waiting documents; unknown ids are ignored."""
        self._delete("pending", "name", ids)

    def put_document(self, document: StoredDocument, pages: Iterable[Page]) -> None:
        """Store a new document with its pages."""
        one = document
        named = (one.row, one.id, one.title, one.source, one.date, json_text(one.metadata))
        self.connection.execute(
            f"INSERT INTO documents ({DOCUMENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*named, one.content, one.state, one.characters, one.created_at),
        )
        for page in pages:
            row = (document.row, page.number, page.text)
            self.connection.execute("INSERT INTO pages VALUES (?, ?, ?)", row)
        self.changed = True

    def set_document_state(self, rows: Collection[int]) -> None:
        """Set the state of documents by the states of their chunks."""
        query = f"UPDATE documents SET state = ({STATE}) WHERE id {AMONG}"
        self.connection.execute(query, (json_text(sorted(rows)),))
        self.changed = self.changed or bool(rows)

    def delete_documents(self, rows: Collection[int]) -> None:
        """Delete documents with their pages, chunks, mentions, vectors and full-text rows."""
        for row, text in self._select("id, text", "chunks", "document", rows):
            self.connection.execute(REMOVE_TERMS, (row, " ".join(index_terms(text))))
            self.touched["chunk"].add(row)
        self.changed = self._delete("documents", "id", rows) > 0 or self.changed

    def put_chunks(self, chunks: Sequence[StoredChunk]) -> None:
        """Store new chunks, or how known ones were read again, with their rejections and terms."""
        rows = list(map(attrgetter("row"), chunks))
        known = set(self._select("id", "chunks", "id", rows))
        self._delete("rejections", "chunk", rows)
        self.connection.executemany(PUT_CHUNK, map(_chunk_row, chunks))
        for stored in chunks:
            if (stored.row,) not in known:
                terms = " ".join(index_terms(stored.chunk.text))
                self.connection.execute(ADD_TERMS, (stored.row, terms))
            for one in stored.extraction.rejections:
                row = (stored.row, one.line, one.text, one.reason, one.detail)
                self.connection.execute(PUT_REJECTION, row)
        self._touch("chunk", rows)

    def rebuild_terms(self) -> None:
        """Make the full text anew from the chunks."""
        self.connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")
        for row, text in self.connection.execute("SELECT id, text FROM chunks"):
            self.connection.execute(ADD_TERMS, (row, " ".join(index_terms(text))))


# ── values and columns ──────────────────────────────────────────────────────────


def _document(row: Row) -> StoredDocument:
    id, name, title, source, date, metadata, *rest = row
    return StoredDocument(id, name, title, source, date, parse(metadata), *rest)


def _chunk(row: Row) -> tuple[int, Chunk]:
    """A chunk and its row id, from the columns in `CHUNK`."""
    id, name, document, index, page, start, end, text, tokens, created_at = row
    at = datetime.fromtimestamp(created_at, UTC)
    return id, Chunk(name, document, index, page, start, end, text, tokens, at)


def _chunk_row(stored: StoredChunk) -> Row:
    one, extraction = stored.chunk, stored.extraction
    positions = (one.index, one.page, one.start, one.end, one.tokens)
    how = (extraction.state, extraction.error, json_text(extraction_report(extraction)))
    return (stored.row, one.id, stored.document, *positions, stored.created_at, *how, one.text)


def _pending(document: str, provided: str, created_at: float) -> PendingDocument:
    records, chunks, size = parse(provided)
    return PendingDocument(
        parse(document, type=Document),
        created_at,
        None if records is None else tuple(records),
        None if chunks is None else tuple(chunks),
        None if size is None else tuple(size),
    )
