"""Documents, visible or waiting, with their pages; and chunks, with the results of the extraction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec.json import Decoder

from lightrag_jsonl.core.pictures import SeenPicture
from lightrag_jsonl.core.types import (
    BY_RULES,
    PERSON,
    Chunk,
    Document,
    ExtractionReport,
    Page,
    Rejection,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage.filters import CONTENT_KEYWORDS, OWN_FIELDS, Condition, meeting_rows
from lightrag_jsonl.storage.rows import (
    ChunkReport,
    Counts,
    DocumentLabel,
    Names,
    PendingDocument,
    RowIds,
    StoredChunk,
    StoredDocument,
)
from lightrag_jsonl.storage.tables.base import (
    Tables,
    by_name,
    column_values,
    json_text,
    only_column,
    read_as,
)
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.tables.kept_rows import CHUNK_TABLES, KeepingTables
from lightrag_jsonl.text.dates import iso_date
from lightrag_jsonl.text.strings import fingerprint

CHUNKS = "documents d JOIN chunks c ON c.document = d.id"
TEXT_ORDER = "d.id, c.position"
CHUNK = """c.id, c.name, d.name AS document_id, c.position, c.page, c.start, c.stop,
    c.text, c.tokens, c.created_at, c.heading, d.title, d.date"""
USAGE_NUMBERS = tuple([field.name for field in fields(Usage)])
REPORT_NUMBERS = tuple(
    [
        field.name
        for field in fields(ExtractionReport)
        if field.name not in ("rejections", "gleaned", "usage", "content_keywords")
    ]
)

Provided: TypeAlias = tuple[  # records, chunks, the size of the chunks, and pictures
    tuple[dict[str, Any], ...] | None,
    tuple[str, ...] | None,
    tuple[int, int] | None,
    tuple[SeenPicture, ...],
]
parse_document = Decoder(Document).decode
parse_metadata = Decoder(dict[str, Any]).decode
parse_provided = Decoder(Provided).decode
parse_counts = Decoder(dict[str, int]).decode
parse_numbers = Decoder(tuple[int, ...]).decode


class DocumentReads(Tables):
    """Reads documents and chunks."""

    def documents(
        self, ids: Names = None, *, limit: int | None = None, offset: int = 0
    ) -> list[StoredDocument]:
        """The visible documents, all or some by id, in the order of storing, without the first
        `offset` and at most `limit`.
        """
        columns = """d.id AS row, d.name AS id, d.title, d.source, d.date, d.metadata, d.seen_pictures,
            d.content, d.state, d.characters, d.created_at"""
        table = "documents d"
        if ids is None:
            table = f"(SELECT * FROM documents ORDER BY id {self._page(limit, offset)}) d"
        cursor = self._select(columns, table, "d.name", ids, order="d.id")
        return read_as(StoredDocument, cursor)

    def pages(self, document_ids: Collection[str], number: int | None = None) -> tuple[Page, ...]:
        """The pages of documents, in order: all pages, or the page with a number."""
        if not document_ids:
            return ()
        rows = self.dialect.execute(
            "SELECT d.name AS document_id, p.number, p.text "
            "FROM documents d JOIN pages p ON p.document = d.id "
            f"WHERE d.name {self.dialect.among('?1')} AND p.number = coalesce(?2, p.number) "
            "ORDER BY d.id, p.number",
            self.dialect.array(document_ids),
            number,
        )
        return tuple(read_as(Page, rows, text=self.dialect.unpack_text))

    def pending(self, ids: Names = None, *, job: str | None = None) -> list[PendingDocument]:
        """Documents and files that wait, oldest first: all, some by id, or those of a job."""
        columns = "id, document, provided, created_at, job, file IS NOT NULL AS is_file"
        if job is None:
            rows = self._select(columns, "pending", "name", ids, order="created_at, id")
        else:
            rows = self._select(columns, "pending", "job", [job], order="created_at, id")
        return [_pending(row) for row in by_name(rows)]

    def pending_file(self, row: int) -> bytes | None:
        """The content of a file that waits; None if it waits no longer."""
        statement = "SELECT file FROM pending WHERE id = ?"
        contents = only_column(self.dialect.execute(statement, row))
        return contents[0] if contents else None

    def pending_rows(self, ids: Collection[str]) -> list[int]:
        """The rows of waiting documents by id, but for those that an open job brought."""
        rows = self.dialect.execute(
            f"SELECT id FROM pending WHERE name {self.dialect.among()} AND (job IS NULL OR job "
            "NOT IN (SELECT name FROM jobs WHERE state IN ('waiting', 'running'))) ORDER BY id",
            self.dialect.array(ids),
        )
        return only_column(rows)

    def new_pending_ids(self) -> list[str]:
        """The ids of the waiting documents that are no new versions of visible ones, oldest first."""
        return only_column(
            self.dialect.execute(
                "SELECT name FROM pending p "
                "WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.name = p.name) "
                "ORDER BY created_at, id"
            )
        )

    def document_labels(self, *, titled: bool = False) -> list[DocumentLabel]:
        """What people search a visible document by, in the order of storing; only those with a title, if
        `titled`.
        """
        condition = "WHERE title > ''" if titled else ""
        statement = f"SELECT name, title, source, state FROM documents {condition} ORDER BY id"
        cursor = self.dialect.execute(statement)
        return list(map(DocumentLabel._make, cursor))

    def existing_ids(self, ids: Collection[str]) -> set[str]:
        """Those of the ids that belong to a visible or waiting document."""
        visible = self._select("name", "documents", "name", ids)
        waiting = self._select("name", "pending", "name", ids)
        return {*only_column(visible), *only_column(waiting)}

    def counts(self) -> Counts:
        """How much the index holds."""
        states = dict(self.dialect.execute("SELECT state, count(*) FROM documents GROUP BY state"))
        (row,) = by_name(
            self.dialect.execute(
                "SELECT (SELECT count(*) FROM pending) AS pending, "
                "(SELECT count(*) FROM chunks) AS chunks, "
                "(SELECT count(*) FROM entities) AS entities, "
                "(SELECT count(*) FROM relations) AS relations"
            )
        )
        if row.pending:
            states["pending"] = row.pending
        return Counts(
            documents=states,
            chunks=row.chunks,
            entities=row.entities,
            relations=row.relations,
        )

    # ── chunks ──────────────────────────────────────────────────────────────────

    def has_chunks(self) -> bool:
        """Whether there is a chunk; quick."""
        return bool(only_column(self.dialect.execute("SELECT 1 FROM chunks LIMIT 1")))

    def newest_document_at(self) -> float:
        """When the newest document was stored, in seconds since 1970; 0 without documents."""
        statement = "SELECT coalesce(max(created_at), 0) FROM documents"
        (newest,) = only_column(self.dialect.execute(statement))
        return float(newest)

    def chunks(
        self, rows: RowIds = None, *, ids: Names = None, documents: Names = None
    ) -> dict[int, Chunk]:
        """Chunks by row id, in the order of documents and text: all chunks, or some by row ids, public
        ids or documents.
        """
        if documents is not None:
            cursor = self._select(CHUNK, CHUNKS, "d.name", documents, order=TEXT_ORDER)
        elif rows is not None:
            cursor = self._select(CHUNK, CHUNKS, "c.id", rows, order=TEXT_ORDER)
        else:
            cursor = self._select(CHUNK, CHUNKS, "c.name", ids, order=TEXT_ORDER)
        return {row.id: _chunk(row) for row in by_name(cursor)}

    def fingerprints(self, rows: RowIds = None) -> dict[int, str]:
        """The fingerprints of chunks by row id, all or some."""
        return dict(self._select("id, fingerprint", "chunks", "id", rows))

    def chunk_names(self, rows: RowIds = None) -> dict[int, str]:
        """The public ids of chunks by row id, all or some, in the order of time and text: documents
        without a date first, then by date, documents of one date in the order of storing.
        """
        cursor = self._select("c.id, c.name, d.date", CHUNKS, "c.id", rows, order=TEXT_ORDER)
        dated = [(iso_date(date or ""), id, name) for id, name, date in cursor]
        return {id: name for _, id, name in sorted(dated, key=itemgetter(0))}

    def chunk_reports(self, document_ids: Names = None) -> list[ChunkReport]:
        """The results of the extraction of each chunk, of all documents or some."""
        columns = """c.id AS row, c.name AS chunk_id, d.name AS document_id, c.tokens, c.state, c.error,
            c.report, c.extractor"""
        cursor = self._select(columns, CHUNKS, "d.name", document_ids, order=TEXT_ORDER)
        return read_as(ChunkReport, cursor)

    def last_chunk(self) -> int:
        """The greatest row id of a chunk; 0 if there is none."""
        (last_row,) = only_column(self.dialect.execute("SELECT coalesce(max(id), 0) FROM chunks"))
        return int(last_row)

    def extraction_totals(self, rows: range) -> ExtractionReport:
        """The sum of the extraction reports of the chunks in a range of row ids, without themes, added up
        by the database.
        """
        rejections = self.dialect.json_field("report", "rejections")
        gleaned = self.dialect.json_field("report", "gleaned")
        usage = self.dialect.json_field("report", "usage")
        numbers = [_sum_of(self.dialect, "report", name) for name in REPORT_NUMBERS]
        tokens = [_sum_of(self.dialect, f"({usage})", name) for name in USAGE_NUMBERS]
        sums = ", ".join(numbers + tokens)
        statement = (
            f"SELECT {rejections} AS rejections, {gleaned} AS gleaned, count(*) AS chunks, "
            f"{sums} FROM chunks "
            "WHERE id >= ? AND id < ? GROUP BY 1, 2"
        )
        cursor = self.dialect.execute(statement, rows.start, rows.stop)
        reports = [_summed_report(row) for row in by_name(cursor)]
        return sum(reports, ExtractionReport())

    def edited_chunks(self) -> list[int]:
        """Row ids of the chunks that hold an edit by hand (of the extractor "person"), by time."""
        statement = f"SELECT id FROM chunks WHERE extractor = '{PERSON}' ORDER BY created_at, name"
        return only_column(self.dialect.execute(statement))

    def chunks_by_rules(self, names: Names = None, *, rows: RowIds = None) -> dict[int, str]:
        """The row ids and names of the chunks, all or some, that were read by rules, without records."""
        by_rules = f"{CHUNKS} AND substr(c.extractor, 1, {len(BY_RULES)}) = '{BY_RULES}'"
        if rows is not None:
            return dict(self._select("c.id, c.name", by_rules, "c.id", rows, order="c.id"))
        return dict(self._select("c.id, c.name", by_rules, "c.name", names, order="c.id"))

    def text_tokens(self, *, by_rules: bool = False) -> tuple[int, int]:
        """The number of chunks, and the sum of the tokens of their texts: all, or those that were read by
        rules. Edits by hand do not count.
        """
        is_read_so = f"substr(extractor, 1, {len(BY_RULES)}) = '{BY_RULES}'"
        test = is_read_so if by_rules else f"extractor <> '{PERSON}'"
        ((count, tokens),) = self.dialect.execute(
            f"SELECT count(*), coalesce(sum(tokens), 0) FROM chunks WHERE {test}"
        )
        return int(count), int(tokens)

    def has_records(self) -> bool:
        """Whether a model or a user gave the records of a chunk."""
        statement = (
            "SELECT 1 FROM chunks WHERE extractor NOT IN ('', ?1) "
            f"AND substr(extractor, 1, {len(BY_RULES)}) <> '{BY_RULES}' LIMIT 1"
        )
        return bool(only_column(self.dialect.execute(statement, PERSON)))

    def rejections(self, document_ids: Names = None) -> list[tuple[str, str, Rejection]]:
        """Refused lines as (document id, chunk id, rejection)."""
        columns = (
            """d.name AS document_id, c.name AS chunk_id, r.line, r.text, r.reason, r.detail"""
        )
        tables = f"{CHUNKS} JOIN rejections r ON r.chunk = c.id"
        cursor = self._select(columns, tables, "d.name", document_ids, order=f"{TEXT_ORDER}, r.id")
        return [
            (document_id, chunk_id, Rejection(*fields)) for document_id, chunk_id, *fields in cursor
        ]

    def matching_chunks(self, conditions: Sequence[Condition]) -> list[int]:
        """Row ids, ascending, of the chunks of documents that meet all conditions."""
        if not conditions:
            return only_column(self.dialect.execute("SELECT id FROM chunks ORDER BY id"))
        fields = {condition.field for condition in conditions}
        values = {field: self._field_values(field) for field in fields}
        rows = [meeting_rows(condition, values[condition.field]) for condition in conditions]
        documents = set.intersection(*rows)
        return only_column(self._select("id", "chunks", "document", documents))

    def metadata_fields(self) -> set[str]:
        """The names of all fields in the metadata of documents."""
        metadata = only_column(self.dialect.execute("SELECT metadata FROM documents"))
        return {field for text in metadata for field in parse_metadata(text)}

    def _field_values(self, field: str) -> dict[int, object]:
        """What each document has in a field of filters, by row id; None for nothing."""
        if field in OWN_FIELDS:
            return dict(self.dialect.execute(f"SELECT id, {OWN_FIELDS[field]} FROM documents"))
        if field == CONTENT_KEYWORDS:
            return self._content_keywords()
        metadata = self.dialect.execute("SELECT id, metadata FROM documents")
        return {row: parse_metadata(text).get(field) for row, text in metadata}

    def _content_keywords(self) -> dict[int, object]:
        """The themes that were read in each document, by row id; None for none."""
        keywords = self.dialect.json_field("report", CONTENT_KEYWORDS)
        cursor = self.dialect.execute(f"SELECT document, {keywords} FROM chunks")
        themes: defaultdict[int, list[str]] = defaultdict(list)
        for document, counts in cursor:
            themes[document] += parse_counts(counts or "{}")
        rows = only_column(self.dialect.execute("SELECT id FROM documents"))
        return {row: themes[row] or None for row in rows}

    def chunk_documents(self, rows: RowIds = None) -> dict[int, tuple[int, str]]:
        """For each chunk by row id, all or some, the row id of its document and the date in our form, or ""."""
        cursor = self._select("c.id, d.id AS document, d.date", CHUNKS, "c.id", rows, order="c.id")
        return {row.id: (row.document, iso_date(row.date or "")) for row in by_name(cursor)}

    def wrong_terms(self, limit: int | None) -> list[str]:
        """A line for each chunk, of `limit` random chunks or all, that the full text does not hold with
        all terms.
        """
        page = self._page(limit)
        statement = f"SELECT id, name, text FROM chunks ORDER BY random() {page}"
        rows = by_name(self.dialect.execute(statement))
        return [
            f"chunk {row.name} has other terms in the full text than in its own"
            for row in rows
            if not self.dialect.full_text.holds(row.id, row.text)
        ]


class DocumentWrites(DocumentReads, KeepingTables):
    """Writes documents and chunks."""

    def put_documents(self, documents: Sequence[tuple[StoredDocument, Iterable[Page]]]) -> None:
        """Store new documents with their pages."""
        rows = [
            {
                "id": document.row,
                "name": document.id,
                "title": document.title,
                "source": document.source,
                "date": document.date,
                "metadata": json_text(document.metadata),
                "seen_pictures": json_text(document.seen_pictures),
                "content": document.content,
                "state": document.state,
                "characters": document.characters,
                "created_at": document.created_at,
            }
            for document, _ in documents
        ]
        page_rows = [
            {
                "document": document.row,
                "number": page.number,
                "text": self.dialect.pack_text(page.text),
            }
            for document, pages in documents
            for page in pages
        ]
        self.keep([document.row for document, _ in documents], "documents", "pages")
        self._put("documents", rows)
        self._insert("pages", page_rows)
        self.changed = True

    def delete_documents(self, rows: Collection[int]) -> None:
        """Delete documents with their pages, chunks, mentions, vectors and full-text rows."""
        chunks: dict[int, str] = dict(self._select("id, text", "chunks", "document", rows))
        self.keep(rows, "documents", "pages")
        self.keep(chunks, *CHUNK_TABLES)
        self.dialect.full_text.remove(chunks.items())
        self.touched["chunk"].update(chunks)
        if self._delete("documents", "id", rows):
            self.changed = True

    def put_pending(self, pending: PendingDocument, file: bytes | None = None) -> int | None:
        """Store a waiting document, or a `file` to be read, in place of an earlier version of it.

        Returns the row; None if the document has a row already, but waits no longer there, or if a
        later version waits: then nothing is stored.
        """
        name = pending.name
        if pending.row is not None:
            statement = "SELECT id, name FROM pending WHERE name = ? OR id = ?"
            rows: dict[int, str] = dict(self.dialect.execute(statement, name, pending.row))
            is_superseded = any(row > pending.row for row, stored in rows.items() if stored == name)
            if pending.row not in rows or is_superseded:
                return None
        self._delete("pending", "name", [name])
        provided = [pending.records, pending.chunks, pending.chunk_size, pending.seen_pictures]
        (row,) = only_column(
            self.dialect.execute(
                "INSERT INTO pending (name, document, provided, created_at, job, file) "
                "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                name,
                json_text(pending.document),
                json_text(provided),
                pending.created_at,
                pending.job,
                file,
            )
        )
        return int(row)

    def delete_pending(self, rows: Collection[int]) -> None:
        """Delete waiting documents and files; other rows, such as of later versions, stay."""
        self._delete("pending", "id", rows)

    # ── chunks ──────────────────────────────────────────────────────────────────

    def put_chunks(self, chunks: Sequence[StoredChunk]) -> None:
        """Store chunks with rejections and terms; a chunk that is there already was read again.

        Such a chunk loses the earlier mentions. The states of documents follow from the chunks.
        """
        rows = [chunk.row for chunk in chunks]
        stored = set(only_column(self._select("id", "chunks", "id", rows)))
        documents = {chunk.document for chunk in chunks}
        self.keep(documents, "documents")
        self.keep(rows, *CHUNK_TABLES)
        for table in ("rejections", "entity_mentions", "relation_mentions"):
            self._delete(table, "chunk", stored)
        self._put("chunks", [_chunk_columns(chunk) for chunk in chunks])
        texts = {chunk.row: chunk.chunk.text for chunk in chunks if chunk.row not in stored}
        self.dialect.full_text.add(texts.items())
        rejections = [
            column_values(rejection, chunk=chunk.row)
            for chunk in chunks
            for rejection in chunk.extraction.rejections
        ]
        self._insert("rejections", rejections)
        statement = f"""UPDATE documents SET state = (
            SELECT CASE WHEN count(CASE WHEN state = 'failed' OR error <> '' THEN 1 END) = 0 THEN 'done'
                WHEN count(CASE state WHEN 'failed' THEN 1 END) = count(*) THEN 'failed' ELSE 'partial' END
            FROM chunks WHERE document = documents.id)
            WHERE id {self.dialect.among()}"""
        self.dialect.execute(statement, self.dialect.array(documents))
        self.touched["chunk"].update(rows)

    def rebuild_terms(self) -> None:
        """Make the full text anew from the chunks."""
        texts = self.dialect.execute("SELECT id, text FROM chunks")
        self.dialect.full_text.clear()
        self.dialect.full_text.add((id, text) for id, text in texts)


def _pending(row: Any) -> PendingDocument:
    records, chunks, chunk_size, seen_pictures = parse_provided(row.provided)
    return PendingDocument(
        document=parse_document(row.document),
        created_at=row.created_at,
        records=records,
        chunks=chunks,
        chunk_size=chunk_size,
        seen_pictures=seen_pictures,
        row=row.id,
        job=row.job,
        is_file=bool(row.is_file),
    )


def _chunk(row: Any) -> Chunk:
    return Chunk(
        id=row.name,
        document_id=row.document_id,
        index=row.position,
        page=row.page,
        start=row.start,
        end=row.stop,
        text=row.text,
        tokens=row.tokens,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
        heading=row.heading,
        title=row.title or "",
        date=row.date or "",
    )


def _sum_of(dialect: Dialect, column: str, field: str) -> str:
    """The sum of a number in the JSON of a column, called like the number."""
    return f"coalesce(sum(CAST({dialect.json_field(column, field)} AS BIGINT)), 0) AS {field}"


def _summed_report(row: Any) -> ExtractionReport:
    """The report on chunks that have the same rejections and the same number of gleanings each."""
    rejections = parse_counts(row.rejections or "{}")
    gleaned = parse_numbers(row.gleaned or "[]")
    return ExtractionReport(
        **{name: int(getattr(row, name)) for name in REPORT_NUMBERS},
        rejections={reason: count * row.chunks for reason, count in rejections.items()},
        gleaned=tuple([count * row.chunks for count in gleaned]),
        usage=Usage(**{name: int(getattr(row, name)) for name in USAGE_NUMBERS}),
        content_keywords={},
    )


def _chunk_columns(stored: StoredChunk) -> dict[str, object]:
    chunk = stored.chunk
    extraction = stored.extraction
    return {
        "id": stored.row,
        "name": chunk.id,
        "document": stored.document,
        "position": chunk.index,
        "page": chunk.page,
        "start": chunk.start,
        "stop": chunk.end,
        "tokens": chunk.tokens,
        "fingerprint": fingerprint(chunk.text),
        "created_at": stored.created_at,
        "state": extraction.state,
        "error": extraction.error,
        "report": json_text(extraction.report),
        "text": chunk.text,
        "heading": chunk.heading,
        "extractor": extraction.extractor,
    }
