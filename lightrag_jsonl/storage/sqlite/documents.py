"""Documents, visible or waiting, with their pages, chunks and refused lines, and the full text.

The full text is SQLite's FTS5 with BM25 over the terms of `core.terms`. It holds terms but no texts,
so it can remove a chunk only when given all its terms. A long chunk is several rows of it, of which
the best counts most: one sentence on what was asked is not lost in a page on something else.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import starmap
from typing import Any, TypeAlias

from msgspec.json import Decoder
from msgspec.json import decode as parse

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.terms import index_terms
from lightrag_jsonl.core.types import PERSON, Chunk, Document, ExtractionReport, Page, Rejection
from lightrag_jsonl.storage import rows as r
from lightrag_jsonl.storage.filters import OWN_FIELDS, Condition
from lightrag_jsonl.storage.rows import Names, RowIds
from lightrag_jsonl.storage.sqlite.tables import AMONG, Row, Tables, decoded, json_text, paged

DOCUMENT = "id, name, title, source, date, metadata, content, state, characters, created_at"
CHUNK = """c.id, c.name, d.name, c.position, c.page, c.start, c.stop, c.text, c.tokens,
    c.created_at, c.heading, d.title"""
CHUNKS, IN_ORDER = "documents d JOIN chunks c ON c.document = d.id", "d.id, c.position"
STORED_CHUNK = (
    "id, name, document, position, page, start, stop, tokens, created_at, state, error, report, "
    "text, heading, extractor"
)
REJECTION = "r.line, r.text, r.reason, r.detail"
Provided: TypeAlias = tuple[
    tuple[dict[str, Any], ...] | None, tuple[str, ...] | None, tuple[int, int] | None
]
SET_STATES = """
UPDATE documents SET state = (
    SELECT CASE WHEN count(CASE WHEN state = 'failed' OR error <> '' THEN 1 END) = 0 THEN 'done'
        WHEN count(CASE state WHEN 'failed' THEN 1 END) = count(*) THEN 'failed' ELSE 'partial' END
    FROM chunks WHERE document = documents.id)
WHERE id """
PART_WORDS = 200  # the words of a chunk that are one row of the full text
# The words that a bigram of a script without spaces counts as: 200 English words are 330 Chinese
# characters. On 346 questions over Chinese passages of 277 characters, recall@5 of BM25 is 59 % if a
# bigram counts as 1, and 68 % with 0.6; of 1,135 characters, 94 and 96 %.
WORDS_PER_BIGRAM = 0.6
PARTS = 1_024  # the most rows of a chunk; longer chunks have longer rows
OTHER_PARTS = 0.2  # what the score of each row of a chunk counts beside the best one's 1
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms) VALUES (?, ?)"
REMOVE_TERMS = "INSERT INTO chunk_terms (chunk_terms, rowid, terms) VALUES ('delete', ?, ?)"
JOINT_SCORE = f"{1 - OTHER_PARTS} * max(score) + {OTHER_PARTS} * sum(score)"
SEARCH = f"""SELECT part / {PARTS} chunk, {JOINT_SCORE} joint FROM (
    SELECT rowid part, -bm25(chunk_terms) score FROM chunk_terms WHERE chunk_terms MATCH ? LIMIT -1)
    {{}} GROUP BY chunk ORDER BY joint DESC, chunk LIMIT ?"""

# A field meets a test if its value does, or a member of its list. {0} is an object that holds it.
OWN = "json_object('id', d.name, 'title', d.title, 'source', d.source, 'date', d.date)"
PRESENT = "EXISTS (SELECT 1 FROM json_each({0}) WHERE key = ? AND type <> 'null')"
MEETS = """EXISTS (SELECT 1 FROM json_each({0}) field WHERE field.key = ? AND ({1} OR
    field.type = 'array' AND EXISTS (SELECT 1 FROM json_each(field.value) member WHERE {2})))"""
# Tests of a value {0} of the JSON type {1} by the wanted values; the comparator replaces <>.
IS_ONE = f"({{1}} NOT IN ('array', 'object') AND {{0}} {AMONG})"
COMPARES = """EXISTS (SELECT 1 FROM json_each(?) wanted WHERE {1} NOT IN ('array', 'object')
    AND ({1} = 'text') = (wanted.type = 'text') AND {0} <> wanted.value)"""
ANY_END = "*"  # after a term: all terms that begin with it


class DocumentTables(Tables):
    """Documents and chunks; the methods are those of the port."""

    OWN, METADATA = OWN, "d.metadata"
    PRESENT, MEETS, IS_ONE, COMPARES = PRESENT, MEETS, IS_ONE, COMPARES

    def documents(
        self, ids: Names = None, *, limit: int | None = None, offset: int = 0
    ) -> list[r.StoredDocument]:
        page = f"(SELECT * FROM documents ORDER BY id LIMIT {paged(limit, offset)})"
        rows = self._select(DOCUMENT, "documents" if ids is not None else page, "name", ids)
        return [r.StoredDocument(*decoded(row, 5)) for row in rows]

    def pages(self, document_ids: Collection[str], number: int | None = None) -> tuple[Page, ...]:
        among = self.AMONG.replace("?", "?1")
        query = (
            "SELECT d.name, p.number, p.text FROM documents d JOIN pages p ON p.document = d.id "
            f"WHERE d.name {among} AND p.number = coalesce(?2, p.number) ORDER BY d.id, p.number"
        )
        return tuple(starmap(Page, self._rows(query, self._list(document_ids), number)))

    def put_document(self, document: r.StoredDocument, pages: Iterable[Page]) -> None:
        one = document
        named = (one.row, one.id, one.title, one.source, one.date, json_text(one.metadata))
        row = (*named, one.content, one.state, one.characters, one.created_at)
        self._put("documents", DOCUMENT, [row])
        rows = [(one.row, page.number, page.text) for page in pages]
        self._put("pages", "document, number, text", rows, None)
        self.changed = True

    def delete_documents(self, rows: Collection[int]) -> None:
        texts = self._select("id, text", "chunks", "document", rows)
        self._remove_terms(texts)
        self.touched["chunk"].update(row for row, _ in texts)
        self.changed = self._delete("documents", "id", rows) > 0 or self.changed

    def pending(self) -> list[r.PendingDocument]:
        query = "SELECT document, provided, created_at FROM pending ORDER BY created_at, id"
        return [
            r.PendingDocument(parse(document, type=Document), at, *parse(provided, type=Provided))
            for document, provided, at in self._rows(query)
        ]

    def put_pending(self, pending: r.PendingDocument) -> None:
        provided = json_text([pending.records, pending.chunks, pending.chunk_size])
        row = (pending.document.id, json_text(pending.document), provided, pending.created_at)
        self._put("pending", "name, document, provided, created_at", [row], "name")

    def delete_pending(self, ids: Collection[str]) -> None:
        self._delete("pending", "name", ids)

    def counts(self) -> r.Counts:
        states: dict[str, int] = dict(
            self._rows("SELECT state, count(*) FROM documents GROUP BY state")
        )
        tables = ("pending", "chunks", "entities", "relations")
        numbers = ", ".join(f"(SELECT count(*) FROM {name})" for name in tables)
        waiting, *others = self._rows(f"SELECT {numbers}")[0]
        return r.Counts(states | ({"pending": waiting} if waiting else {}), *others)

    def chunks(
        self, rows: RowIds = None, *, ids: Names = None, documents: Names = None
    ) -> dict[int, Chunk]:
        by: tuple[str, RowIds | Names] = ("c.id", rows) if rows is not None else ("c.name", ids)
        if documents is not None:
            by = "d.name", documents
        return {row[0]: _chunk(row[1:]) for row in self._select(CHUNK, CHUNKS, *by, IN_ORDER)}

    def chunk_reports(self, document_ids: Names = None) -> list[r.ChunkReport]:
        columns = "c.id, c.name, d.name, c.tokens, c.state, c.error, c.extractor, c.report"
        rows = self._select(columns, CHUNKS, "d.name", document_ids, IN_ORDER)
        decode = Decoder(ExtractionReport).decode
        return [r.ChunkReport(*(*row[:-2], decode(row[-1]), row[-2])) for row in rows]

    def edited_chunks(self) -> list[int]:
        query = f"SELECT id FROM chunks WHERE extractor = '{PERSON}' ORDER BY created_at, name"
        return [row for (row,) in self._rows(query)]

    def rejections(self, document_ids: Names = None) -> list[tuple[str, str, Rejection]]:
        tables = f"{CHUNKS} JOIN rejections r ON r.chunk = c.id"
        columns, order = f"d.name, c.name, {REJECTION}", f"{IN_ORDER}, r.id"
        rows = self._select(columns, tables, "d.name", document_ids, order)
        return [(row[0], row[1], Rejection(*row[2:])) for row in rows]

    def matching_chunks(self, conditions: Sequence[Condition]) -> list[int]:
        tests, values = ["true"], list[object]()
        for condition in conditions:
            test, given = self._compiled(condition)
            tests.append(test)
            values += given
        documents = f"SELECT d.id FROM documents d WHERE {' AND '.join(tests)}"
        query = f"SELECT id FROM chunks WHERE document IN ({documents}) ORDER BY id"
        return [row for (row,) in self._rows(query, *values)]

    def put_chunks(self, chunks: Sequence[r.StoredChunk]) -> None:
        rows = [one.row for one in chunks]
        known = {row for (row,) in self._select("id", "chunks", "id", rows)}
        for table in ("rejections", "entity_mentions", "relation_mentions"):
            self._delete(table, "chunk", known)
        self._put("chunks", STORED_CHUNK, map(_chunk_row, chunks))
        self._add_terms([(one.row, one.chunk.text) for one in chunks if one.row not in known])
        rejected = [(one.row, line) for one in chunks for line in one.extraction.rejections]
        lines = [(row, one.line, one.text, one.reason, one.detail) for row, one in rejected]
        self._put("rejections", "chunk, line, text, reason, detail", lines, None)
        documents = self._list({one.document for one in chunks})
        self.connection.execute(SET_STATES + self.AMONG, (documents,))
        self.touched["chunk"].update(rows)

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        if not terms:
            return []
        inside, values = "", list[object]()
        if allowed is not None:
            inside, values = f"WHERE chunk {AMONG}", [json_text(sorted(allowed))]
        wanted = " OR ".join(map(_phrase, terms))
        return self._rows(SEARCH.format(inside), wanted, *values, max(limit, 0))

    def term_counts(self, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        query = f"SELECT term, doc FROM chunk_vocabulary WHERE term {AMONG}"
        counts = dict.fromkeys(terms, 0) | dict(self._rows(query, json_text(list(terms))))
        for term, count in counts.items():
            if term.endswith(ANY_END) or not (count or term.isascii()):  # é is stored as e
                query = "SELECT count(*) FROM chunk_terms WHERE chunk_terms MATCH ?"
                counts[term] = self._rows(query, _phrase(term))[0][0]
        return self._rows("SELECT count(*) FROM chunk_terms_docsize")[0][0], counts

    def wrong_terms(self, limit: int | None) -> list[str]:
        """A line for each of `limit` random chunks, or of all, that the full text does not have with
        all its terms.
        """
        query = f"SELECT id, name, text FROM chunks ORDER BY random() LIMIT {paged(limit, 0)}"
        wrong = [name for row, name, text in self._rows(query) if not self._has_terms(row, text)]
        return [f"chunk {name} has other terms in the full text than in its own" for name in wrong]

    def _has_terms(self, row: int, text: str) -> bool:
        """Whether the full text has the terms of a chunk, in their order."""
        query = "SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH ? AND rowid = ?"
        parts = [(part, " ".join(terms)) for part, terms in term_parts([(row, text)])]
        return all(self._rows(query, _phrase(terms), part) for part, terms in parts if terms)

    def rebuild_terms(self) -> None:
        self.connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")
        self._add_terms(self.connection.execute("SELECT id, text FROM chunks"))

    def _add_terms(self, texts: Iterable[Row]) -> None:
        """Add the terms of new chunks (row id, text)."""
        self.connection.executemany(ADD_TERMS, _joined_parts(texts))

    def _remove_terms(self, texts: Iterable[Row]) -> None:
        self.connection.executemany(REMOVE_TERMS, _joined_parts(texts))

    def _compiled(self, condition: Condition) -> tuple[str, list[object]]:
        """A condition on the documents `d` as an SQL expression, and the values of its parameters."""
        field, comparator = condition.field, condition.comparator
        is_one = comparator in ("=", "!=")
        test = self.IS_ONE if is_one else self.COMPARES.replace("<>", comparator)
        holder = self.OWN if field in OWN_FIELDS else self.METADATA
        tests = [test.format(f"{one}.value", f"{one}.type") for one in ("field", "member")]
        present, found = self.PRESENT.format(holder), self.MEETS.format(holder, *tests)
        wanted = json_text([value for value in condition.values if value is not None])
        values: list[object] = [field, *[wanted] * (found.count("?") - 1)]
        if comparator == "!=":
            return f"({present} AND NOT {found})", [field, *values]
        if comparator == "=" and None in condition.values:
            return f"({found} OR NOT {present})", [*values, field]
        return found, values


def term_parts(texts: Iterable[Row]) -> Iterator[tuple[int, list[str]]]:
    """The terms of chunks (row id, text), cut into parts of about the same length: (id, terms).

    The id of a part, divided by `PARTS`, is the row id of the chunk. A change of what is a part needs
    a new `FORMAT`: terms are removed by the parts that they were stored in.
    """
    for row, text in texts:
        terms = index_terms(text)
        count = min(max(math.ceil(_measure(terms) / PART_WORDS), 1), PARTS)
        for n in range(count):
            part = terms[n * len(terms) // count : (n + 1) * len(terms) // count]
            yield row * PARTS + n, part


def _measure(terms: Sequence[str]) -> float:
    """The length of a text in English words."""
    if all(map(str.isascii, terms)):
        return len(terms)
    bigrams = sum(is_cjk(term[0]) for term in terms)
    return len(terms) - (1 - WORDS_PER_BIGRAM) * bigrams


def _joined_parts(texts: Iterable[Row]) -> Iterator[Row]:
    return ((part, " ".join(terms)) for part, terms in term_parts(texts))


def _phrase(term: str) -> str:
    """The term in the query language of FTS5."""
    start = term.removesuffix(ANY_END).replace('"', '""')
    return f'"{start}"{ANY_END if term.endswith(ANY_END) else ""}'


def _chunk(row: Row) -> Chunk:
    *fields, created_at, heading, title = row
    created = datetime.fromtimestamp(created_at, UTC)
    return Chunk(*(*fields, created, 0.0, "", heading, title or ""))


def _chunk_row(stored: r.StoredChunk) -> Row:
    one, extraction = stored.chunk, stored.extraction
    positions = (one.index, one.page, one.start, one.end, one.tokens)
    how = (extraction.state, extraction.error, json_text(extraction.report))
    texts = one.text, one.heading, extraction.extractor
    return (stored.row, one.id, stored.document, *positions, stored.created_at, *how, *texts)
