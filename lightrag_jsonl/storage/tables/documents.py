"""Documents, visible or waiting, with their pages."""

from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from msgspec.json import Decoder

from lightrag_jsonl.core.types import Document, Page
from lightrag_jsonl.storage.rows import (
    Counts,
    DocumentLabel,
    Names,
    PendingDocument,
    StoredDocument,
)
from lightrag_jsonl.storage.tables.base import (
    Tables,
    WritableTables,
    by_name,
    json_text,
    only_column,
)

COLUMNS = "id, name, title, source, date, metadata, content, state, characters, created_at"

Provided: TypeAlias = tuple[  # records, chunks, and the size of the chunks
    tuple[dict[str, Any], ...] | None, tuple[str, ...] | None, tuple[int, int] | None
]
parse_metadata = Decoder(dict[str, Any]).decode
parse_document = Decoder(Document).decode
parse_provided = Decoder(Provided).decode


class DocumentReads(Tables):
    """Reads documents."""

    def documents(
        self, ids: Names = None, *, limit: int | None = None, offset: int = 0
    ) -> list[StoredDocument]:
        """The visible documents, all or some by id, in the order of storing, without the first
        `offset` and at most `limit`.
        """
        table = "documents"
        if ids is None:
            table = f"(SELECT * FROM documents ORDER BY id {self._page(limit, offset)}) d"
        rows = by_name(self._select(COLUMNS, table, "name", ids))
        return [_document(row) for row in rows]

    def pages(self, document_ids: Collection[str], number: int | None = None) -> tuple[Page, ...]:
        """The pages of documents, in order: all pages, or the page with a number."""
        rows = self._execute(
            "SELECT d.name AS document_id, p.number, p.text "
            "FROM documents d JOIN pages p ON p.document = d.id "
            f"WHERE d.name {self.dialect.among('?1')} AND p.number = coalesce(?2, p.number) "
            "ORDER BY d.id, p.number",
            self.dialect.array(document_ids),
            number,
        )
        return tuple(
            Page(document_id=page.document_id, number=page.number, text=page.text)
            for page in by_name(rows)
        )

    def pending(self, ids: Names = None) -> list[PendingDocument]:
        """Documents that were inserted and are not visible yet, oldest first: all, or some by id."""
        columns = "document, provided, created_at"
        rows = self._select(columns, "pending", "name", ids, order="created_at, id")
        return [_pending(row) for row in by_name(rows)]

    def new_pending_ids(self) -> list[str]:
        """The ids of the waiting documents that are no new versions of visible ones, oldest first."""
        return only_column(
            self._execute(
                "SELECT name FROM pending p "
                "WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.name = p.name) "
                "ORDER BY created_at, id"
            )
        )

    def document_labels(self) -> list[DocumentLabel]:
        """What people search a visible document by, in the order of storing."""
        statement = "SELECT name AS id, title, source, state FROM documents ORDER BY id"
        return [
            DocumentLabel(id=row.id, title=row.title, source=row.source, state=row.state)
            for row in by_name(self._execute(statement))
        ]

    def existing_ids(self, ids: Collection[str]) -> set[str]:
        """Those of the ids that belong to a visible or waiting document."""
        visible = self._select("name", "documents", "name", ids)
        waiting = self._select("name", "pending", "name", ids)
        return {*only_column(visible), *only_column(waiting)}

    def counts(self) -> Counts:
        """How much the index holds."""
        states = dict(self._execute("SELECT state, count(*) FROM documents GROUP BY state"))
        (row,) = by_name(
            self._execute(
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


class DocumentWrites(DocumentReads, WritableTables):
    """Writes documents."""

    def put_document(self, document: StoredDocument, pages: Iterable[Page]) -> None:
        """Store a new document with its pages."""
        row = {
            "id": document.row,
            "name": document.id,
            "title": document.title,
            "source": document.source,
            "date": document.date,
            "metadata": json_text(document.metadata),
            "content": document.content,
            "state": document.state,
            "characters": document.characters,
            "created_at": document.created_at,
        }
        self._put("documents", [row])
        self._insert(
            "pages",
            [
                {"document": document.row, "number": page.number, "text": page.text}
                for page in pages
            ],
        )
        self.changed = True

    def delete_documents(self, rows: Collection[int]) -> None:
        """Delete documents with their pages, chunks, mentions, vectors and full-text rows."""
        chunks: dict[int, str] = dict(self._select("id, text", "chunks", "document", rows))
        self.dialect.full_text.remove(chunks.items())
        self._touch("chunk", chunks)
        if self._delete("documents", "id", rows):
            self.changed = True

    def put_pending(self, pending: PendingDocument) -> None:
        """Store a waiting document, replacing an earlier version of it."""
        row = {
            "name": pending.document.id,
            "document": json_text(pending.document),
            "provided": json_text([pending.records, pending.chunks, pending.chunk_size]),
            "created_at": pending.created_at,
        }
        self._put("pending", [row], key="name")

    def delete_pending(self, ids: Collection[str]) -> None:
        """Delete waiting documents; unknown ids are ignored."""
        self._delete("pending", "name", ids)


def _document(row: Any) -> StoredDocument:
    return StoredDocument(
        row=row.id,
        id=row.name,
        title=row.title,
        source=row.source,
        date=row.date,
        metadata=parse_metadata(row.metadata),
        content=row.content,
        state=row.state,
        characters=row.characters,
        created_at=row.created_at,
    )


def _pending(row: Any) -> PendingDocument:
    records, chunks, chunk_size = parse_provided(row.provided)
    return PendingDocument(
        document=parse_document(row.document),
        created_at=row.created_at,
        records=records,
        chunks=chunks,
        chunk_size=chunk_size,
    )
