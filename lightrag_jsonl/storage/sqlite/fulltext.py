"""Full-text search in chunks: SQLite FTS5 with BM25 over the terms of `core.text`.

The index holds terms but no texts, so it can remove a chunk only when given all its terms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lightrag_jsonl.storage.sqlite.connection import AMONG, ConnectionReader, json_text

ANY_END = "*"  # after a term: all terms that begin with it
ADD_TERMS = "INSERT INTO chunk_terms (rowid, terms) VALUES (?, ?)"
REMOVE_TERMS = "INSERT INTO chunk_terms (chunk_terms, rowid, terms) VALUES ('delete', ?, ?)"


class TermReader(ConnectionReader):
    """Searches chunks by terms."""

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """The best chunks by BM25 as (row id, score); "猫*" stands for all terms like 猫咪."""
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
        """In how many chunks each term occurs."""
        query = f"SELECT term, doc FROM chunk_vocabulary WHERE term {AMONG}"
        counts = dict.fromkeys(terms, 0) | dict(self._rows(query, json_text(list(terms))))
        for term, count in counts.items():
            if term.endswith(ANY_END) or not (count or term.isascii()):  # é is stored as e
                query = "SELECT count(*) FROM chunk_terms WHERE chunk_terms MATCH ?"
                counts[term] = self._value(query, _phrase(term))
        return counts


def _phrase(term: str) -> str:
    """The term in the query language of FTS5."""
    start = term.removesuffix(ANY_END).replace('"', '""')
    return f'"{start}"{ANY_END if term.endswith(ANY_END) else ""}'
