"""The full text in SQLite's FTS5, which scores by BM25.

FTS5 holds terms but no texts here, so a chunk can be removed only when given all terms.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence

from lightrag_jsonl.storage.tables.base import json_text
from lightrag_jsonl.storage.tables.full_text import (
    ANY_END,
    JOINT_SCORE,
    PARTS,
    ChunkTexts,
    FullText,
    term_parts,
)


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
            if terms
        )

    def _search(
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

    def _chunks_with_all(self, stems: Sequence[str], limit: int) -> list[int]:
        query = " AND ".join(map(_phrase, stems))
        statement = f"""SELECT DISTINCT rowid / {PARTS} FROM chunk_terms WHERE chunk_terms MATCH ?
            ORDER BY rowid LIMIT ?"""
        return [chunk for (chunk,) in self._connection.execute(statement, (query, limit))]

    def _counts(self, stems: Collection[str]) -> tuple[int, dict[str, int]]:
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
