"""Documents, visible or waiting, with their pages, chunks and refused lines, and the full text.

The full text is SQLite's FTS5 with BM25 over the terms of `core.text`. It holds terms but no texts,
so it can remove a chunk only when given all its terms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter

from msgspec.json import Decoder
from msgspec.json import decode as parse

from lightrag_jsonl.core.text import index_terms
from lightrag_jsonl.core.types import Chunk, Document, ExtractionReport, Page, Rejection
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.filters import Condition
from lightrag_jsonl.storage.sqlite.connection import AMONG, Row, Tables, decoded, json_text
from lightrag_jsonl.storage.sqlite.filters import compile_condition

DOCUMENT = "id, name, title, source, date, metadata, content, state, characters, created_at"
PAGES = """SELECT d.name, p.number, p.text FROM documents d JOIN pages p ON p.document = d.id
    WHERE d.name = ?"""
CHUNK = """c.id, c.name, d.name, c.position, c.page, c.start, c.stop, c.text, c.tokens,
    c.created_at"""
CHUNKS = f"""SELECT {CHUNK} FROM json_each(?) wanted JOIN chunks c ON c.{{}} = wanted.value
    JOIN documents d ON d.id = c.document"""
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
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms) VALUES (?, ?)"
REMOVE_TERMS = "INSERT INTO chunk_terms (chunk_terms, rowid, terms) VALUES ('delete', ?, ?)"
ANY_END = "*"  # after a term: all terms that begin with it


class DocumentTables(Tables):
    """Documents and chunks; the methods are those of the port."""

    # ── documents ───────────────────────────────────────────────────────────────

    def documents(self, ids: Collection[str] | None = None) -> list[r.StoredDocument]:
        rows = self._select(DOCUMENT, "documents", "name", ids)
        return [r.StoredDocument(*decoded(row, 5)) for row in rows]

    def pages(self, document_id: str) -> tuple[Page, ...]:
        return tuple(Page(*row) for row in self._rows(f"{PAGES} ORDER BY p.number", document_id))

    def page(self, document_id: str, number: int) -> Page | None:
        rows = self._rows(f"{PAGES} AND p.number = ?", document_id, number)
        return Page(*rows[0]) if rows else None

    def put_document(self, document: r.StoredDocument, pages: Iterable[Page]) -> None:
        one = document
        named = (one.row, one.id, one.title, one.source, one.date, json_text(one.metadata))
        self.connection.execute(
            f"INSERT INTO documents ({DOCUMENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*named, one.content, one.state, one.characters, one.created_at),
        )
        rows = [(one.row, page.number, page.text) for page in pages]
        self.connection.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)
        self.changed = True

    def set_document_state(self, rows: Collection[int]) -> None:
        query = f"UPDATE documents SET state = ({STATE}) WHERE id {AMONG}"
        self.connection.execute(query, (json_text(sorted(rows)),))
        self.changed = self.changed or bool(rows)

    def delete_documents(self, rows: Collection[int]) -> None:
        for row, text in self._select("id, text", "chunks", "document", rows):
            self.connection.execute(REMOVE_TERMS, (row, _terms(text)))
            self.touched["chunk"].add(row)
        self.changed = self._delete("documents", "id", rows) > 0 or self.changed

    def pending(self) -> list[r.PendingDocument]:
        query = "SELECT document, provided, created_at FROM pending ORDER BY created_at, id"
        return [_pending(*row) for row in self._rows(query)]

    def put_pending(self, pending: r.PendingDocument) -> None:
        provided = json_text([pending.records, pending.chunks, pending.chunk_size])
        document = pending.document
        self.connection.execute(
            "INSERT INTO pending (name, document, provided, created_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET document = excluded.document, "
            "provided = excluded.provided, created_at = excluded.created_at",
            (document.id, json_text(document), provided, pending.created_at),
        )

    def delete_pending(self, ids: Collection[str]) -> None:
        self._delete("pending", "name", ids)

    def counts(self) -> r.Counts:
        states = dict(self._rows("SELECT state, count(*) FROM documents GROUP BY state"))
        if waiting := self._value("SELECT count(*) FROM pending"):
            states["pending"] = waiting
        tables = ("chunks", "entities", "relations")
        return r.Counts(states, *(self._value(f"SELECT count(*) FROM {name}") for name in tables))

    # ── chunks ──────────────────────────────────────────────────────────────────

    def chunks(self, rows: Collection[int]) -> dict[int, Chunk]:
        return dict(map(_chunk, self._rows(CHUNKS.format("id"), json_text(list(rows)))))

    def chunks_by_id(self, ids: Collection[str]) -> dict[str, Chunk]:
        rows = self._rows(CHUNKS.format("name"), json_text(list(ids)))
        return {chunk.id: chunk for _, chunk in map(_chunk, rows)}

    def document_chunks(self, document_ids: Collection[str]) -> dict[int, Chunk]:
        return dict(map(_chunk, self._chunk_rows(CHUNK, document_ids)))

    def chunk_reports(self, document_ids: Collection[str] | None = None) -> list[r.ChunkReport]:
        columns = "c.id, c.name, d.name, c.tokens, c.state, c.error, c.report"
        decode, rows = Decoder(ExtractionReport).decode, self._chunk_rows(columns, document_ids)
        return [r.ChunkReport(*(*row[:-1], decode(row[-1]))) for row in rows]

    def rejections(
        self, document_ids: Collection[str] | None = None
    ) -> list[tuple[str, str, Rejection]]:
        columns = "d.name, c.name, r.line, r.text, r.reason, r.detail"
        rows = self._chunk_rows(columns, document_ids, "JOIN rejections r ON r.chunk = c.id")
        return [(row[0], row[1], Rejection(*row[2:])) for row in rows]

    def matching_chunks(self, condition: Condition) -> list[int]:
        test, values = compile_condition(condition)
        documents = f"SELECT d.id FROM documents d WHERE {test}"
        query = f"SELECT id FROM chunks WHERE document IN ({documents}) ORDER BY id"
        return [row[0] for row in self._rows(query, *values)]

    def put_chunks(self, chunks: Sequence[r.StoredChunk]) -> None:
        rows = list(map(attrgetter("row"), chunks))
        known = {row for (row,) in self._select("id", "chunks", "id", rows)}
        self._delete("rejections", "chunk", known)
        self.connection.executemany(PUT_CHUNK, map(_chunk_row, chunks))
        new = [one for one in chunks if one.row not in known]
        self.connection.executemany(ADD_TERMS, [(one.row, _terms(one.chunk.text)) for one in new])
        for stored in chunks:
            for one in stored.extraction.rejections:
                row = (stored.row, one.line, one.text, one.reason, one.detail)
                self.connection.execute(PUT_REJECTION, row)
        self.touched["chunk"].update(rows)

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

    # ── full text ───────────────────────────────────────────────────────────────

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        if not terms:
            return []
        query = "SELECT rowid, bm25(chunk_terms) score FROM chunk_terms WHERE chunk_terms MATCH ?"
        values: list[object] = [" OR ".join(map(_phrase, terms))]
        if allowed is not None:
            query += f" AND rowid {AMONG}"
            values.append(json_text(sorted(allowed)))
        rows = self._rows(f"{query} ORDER BY score, rowid LIMIT ?", *values, max(limit, 0))
        return [(row, -score) for row, score in rows]

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        query = f"SELECT term, doc FROM chunk_vocabulary WHERE term {AMONG}"
        counts = dict.fromkeys(terms, 0) | dict(self._rows(query, json_text(list(terms))))
        for term, count in counts.items():
            if term.endswith(ANY_END) or not (count or term.isascii()):  # é is stored as e
                query = "SELECT count(*) FROM chunk_terms WHERE chunk_terms MATCH ?"
                counts[term] = self._value(query, _phrase(term))
        return counts

    def rebuild_terms(self) -> None:
        self.connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")
        for row, text in self.connection.execute("SELECT id, text FROM chunks"):
            self.connection.execute(ADD_TERMS, (row, _terms(text)))


def _terms(text: str) -> str:
    return " ".join(index_terms(text))


def _phrase(term: str) -> str:
    """The term in the query language of FTS5."""
    start = term.removesuffix(ANY_END).replace('"', '""')
    return f'"{start}"{ANY_END if term.endswith(ANY_END) else ""}'


def _chunk(row: Row) -> tuple[int, Chunk]:
    """A chunk and its row id, from the columns in `CHUNK`."""
    return row[0], Chunk(*(*row[1:-1], datetime.fromtimestamp(row[-1], UTC)))


def _chunk_row(stored: r.StoredChunk) -> Row:
    one, extraction = stored.chunk, stored.extraction
    positions = (one.index, one.page, one.start, one.end, one.tokens)
    how = (extraction.state, extraction.error, json_text(extraction.report))
    return (stored.row, one.id, stored.document, *positions, stored.created_at, *how, one.text)


def _pending(document: str, provided: str, created_at: float) -> r.PendingDocument:
    lists = [None if one is None else tuple(one) for one in parse(provided)]
    return r.PendingDocument(parse(document, type=Document), created_at, *lists)
