"""The dialect of SQLite: arrays are JSON, vectors float16 in bytes; and the full text in FTS5, which scores by BM25.

FTS5 holds terms but no texts here, so a chunk can be removed only when given all terms.
"""

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.base import json_text
from lightrag_jsonl.storage.tables.dialect import Cursor, Dialect, Keys
from lightrag_jsonl.storage.tables.full_text import (
    ANY_END,
    JOINT_SCORE,
    PARTS,
    ChunkTexts,
    FullText,
    term_parts,
)
from lightrag_jsonl.storage.vector_index import HALF, Halves


class SQLiteFullText(FullText):
    """The full text of the index that a connection leads to."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, chunks: ChunkTexts) -> None:
        statement = "INSERT INTO chunk_terms (rowid, terms) VALUES (?, ?)"
        self._connection.executemany(statement, _joined_parts(chunks))

    def remove(self, chunks: ChunkTexts) -> None:
        statement = "INSERT INTO chunk_terms (chunk_terms, rowid, terms) VALUES ('delete', ?, ?)"
        self._connection.executemany(statement, _joined_parts(chunks))

    def clear(self) -> None:
        self._connection.execute("INSERT INTO chunk_terms (chunk_terms) VALUES ('delete-all')")

    def holds(self, chunk: int, text: str) -> bool:
        """Whether a chunk is there with all terms of the text, in order."""
        statement = "SELECT 1 FROM chunk_terms WHERE chunk_terms MATCH ? AND rowid = ?"
        parts = _joined_parts([(chunk, text)])
        return all(
            self._connection.execute(statement, (_phrase(terms), part)).fetchall()
            for part, terms in parts
            if any(map(str.isalnum, terms))  # FTS5 has no token for marks without a letter
        )

    def search(
        self, stems: Sequence[str], limit: int, allowed: Collection[int] | None
    ) -> list[tuple[int, float]]:
        if not stems:
            return []
        query = " OR ".join(_phrase(stem) for stem in stems)
        parameters: list[object] = [query]
        where = ""
        if allowed is not None:
            where = "WHERE chunk IN (SELECT value FROM json_each(?))"
            parameters.append(json_text(sorted(allowed)))
        parameters.append(max(limit, 0))
        statement = f"""SELECT part / {PARTS} chunk, {JOINT_SCORE} joint FROM (
            SELECT rowid part, -bm25(chunk_terms) score FROM chunk_terms
            WHERE chunk_terms MATCH ? LIMIT -1)
            {where} GROUP BY chunk ORDER BY joint DESC, chunk LIMIT ?"""
        return self._connection.execute(statement, parameters).fetchall()

    def chunks_with_all(self, stems: Sequence[str], limit: int) -> list[int]:
        query = " AND ".join(map(_phrase, stems))
        statement = f"""SELECT DISTINCT rowid / {PARTS} FROM chunk_terms WHERE chunk_terms MATCH ?
            ORDER BY rowid LIMIT ?"""
        return [chunk for (chunk,) in self._connection.execute(statement, (query, limit))]

    def counts(self, stems: Collection[str]) -> tuple[int, dict[str, int]]:
        statement = """SELECT term, doc FROM chunk_vocabulary
            WHERE term IN (SELECT value FROM json_each(?))"""
        exact = self._connection.execute(statement, (json_text(list(stems)),))
        count_of_phrase = "SELECT count(*) FROM chunk_terms WHERE chunk_terms MATCH ?"
        counts = dict.fromkeys(stems, 0) | dict(exact)
        for term, count in counts.items():
            is_folded = not count and not term.isascii()  # é is stored as e
            if term.endswith(ANY_END) or is_folded:
                counts[term] = self._number(count_of_phrase, _phrase(term))
        return self._number("SELECT count(*) FROM chunk_terms_docsize"), counts

    def _number(self, statement: str, *parameters: str) -> int:
        ((number,),) = self._connection.execute(statement, parameters)
        return int(number)


def _joined_parts(chunks: ChunkTexts) -> Iterator[tuple[int, str]]:
    return ((part, " ".join(terms)) for part, terms in term_parts(chunks))


def _phrase(term: str) -> str:
    """The term in the query language of FTS5."""
    start = term.removesuffix(ANY_END).replace('"', '""')
    return f'"{start}"{ANY_END if term.endswith(ANY_END) else ""}'


# ── SQL ───────────────────────────────────────────────────────────────────────


class SQLiteDialect(Dialect):
    """A connection to SQLite; `Dialect` says what each method promises."""

    FOR_UPDATE = ""
    NO_VECTOR = "x'0000'"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.full_text = SQLiteFullText(connection)

    def execute(self, statement: str, *parameters: object) -> Cursor:
        return self._connection.execute(statement, parameters)

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        return self._connection.executemany(statement, rows).rowcount

    # ── arrays ──────────────────────────────────────────────────────────────────────

    def among(self, parameter: str = "?") -> str:
        return f"IN (SELECT value FROM json_each({parameter}))"

    def array(self, keys: Keys) -> object:
        return json_text(list(keys))

    def pairs(self, pairs: Collection[tuple[int, int]]) -> tuple[str, Sequence[object]]:
        query = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
        return query, [json_text(sorted(pairs))]

    # ── texts and JSON ──────────────────────────────────────────────────────────────

    def byte_length(self, column: str) -> str:
        """The number of bytes of a text or of bytes."""
        return f"length(CAST({column} AS BLOB))"

    def pack_text(self, text: str) -> object:
        """The text compressed by zlib, as fast as that goes: a model's records take a sixth of the bytes."""
        return zlib.compress(text.encode(), level=1)

    def unpack_text(self, value: Any) -> str:
        """The text of compressed bytes; `sqlite3.DatabaseError` if they are damaged."""
        try:
            return zlib.decompress(value).decode()
        except (zlib.error, UnicodeDecodeError) as error:
            raise sqlite3.DatabaseError(f"malformed compressed text: {error}") from error

    def contains(self, column: str, parameter: str) -> str:
        return f"instr({column}, {parameter}) > 0"

    def json_field(self, column: str, field: str) -> str:
        return f"{column} ->> '{field}'"

    # ── the first rows for each of many ids ─────────────────────────────────────────

    def descriptions(
        self, kind: Kind, after: Mapping[int, int], without: Collection[int], limit: int | None
    ) -> Iterator[tuple[int, int, int, str]]:
        """The first descriptions for each id, a statement each."""
        statement = f"""SELECT position, chunk, description FROM {kind}_mentions
            WHERE {kind} = ? AND id > ? AND NOT chunk IN (SELECT value FROM json_each(?))
            AND description <> '' ORDER BY position LIMIT ?"""
        chunks = json_text(sorted(without))
        count = -1 if limit is None else limit
        for id, last_mention in after.items():
            cursor = self._connection.execute(statement, (id, last_mention, chunks, count))
            for position, chunk, description in cursor:
                yield id, position, chunk, description

    def first_chunks(
        self, kind: Kind, ids: Collection[int], limit: int
    ) -> Iterator[tuple[int, str]]:
        """The chunks of the first mentions of each id, a statement each."""
        statement = f"""SELECT c.name FROM (
            SELECT chunk, position FROM {kind}_mentions WHERE {kind} = ? ORDER BY position LIMIT ?) m
            JOIN chunks c ON c.id = m.chunk ORDER BY m.position"""
        for id in ids:
            for (chunk,) in self._connection.execute(statement, (id, limit)):
                yield id, chunk

    # ── vectors ─────────────────────────────────────────────────────────────────────

    def pack(self, vector: Vectors) -> object:
        return vector.astype(HALF).tobytes()

    def unpack(self, data: Any) -> Halves:
        """The vector in bytes; `sqlite3.DatabaseError` if they are damaged."""
        try:
            return np.frombuffer(data, HALF)
        except ValueError as error:  # an odd number of bytes
            raise sqlite3.DatabaseError(f"malformed vector: {error}") from error
