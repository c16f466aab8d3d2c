"""Snapshots: the graph in memory, vectors and words searched in the database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np
from pgvector import Vector

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.postgres.neighbours import DatabaseGraph
from lightrag_jsonl.storage.postgres.tables import EXACT_ROWS, WEIGHT, PostgresView, folded
from lightrag_jsonl.storage.sqlite.documents import ANY_END
from lightrag_jsonl.storage.sqlite.views import RELATIONS, Memory, SQLiteSnapshot
from lightrag_jsonl.storage.vector_index import TIES, Floats, Ids

QUERIES = "unnest(?1::vector[]) WITH ORDINALITY query (vector, place)"
# The nearest vectors by half precision; their order is then refined by all digits of the query.
NEAREST = f"""SELECT place, near.* FROM {QUERIES} CROSS JOIN LATERAL (
    SELECT id, -(data::vector <#> vector) score FROM (SELECT id, data FROM {{rows}}
        WHERE vector_dims(data) = {{dim}}
        ORDER BY data::halfvec({{dim}}) <#> vector::halfvec({{dim}}) LIMIT ?2) wider
    ORDER BY score DESC, id LIMIT ?3) near ORDER BY place, score DESC, id"""
AMONG = "(SELECT id, data FROM {}_vectors WHERE id = ANY(?4){}) allowed"
COMPARED = " OFFSET 0"  # makes PostgreSQL compare all of these rows, without the HNSW index
SCORES = f"""SELECT place, id, -(data::vector <#> vector) FROM {{}}_vectors CROSS JOIN {QUERIES}
    WHERE id = ANY(?2) AND vector_dims(data) = ?3"""
HEADER, TRAILER = 19, 2  # bytes around the rows of COPY in binary form
NUMBER = ">i4, >i8"  # a column of a row in binary form: its size and its value

LAST = chr(0x10FFFF)
# BM25 as in SQLite's FTS5. A term is the range of stored terms from `first` to `last`.
TERMS = """unnest(?1::text[], ?2::text[]) WITH ORDINALITY wanted (first, last, place)"""
HITS = """SELECT chunk, sum(occurrences) n, min(length) length FROM postings
    WHERE term >= first COLLATE "C" AND term <= last COLLATE "C" GROUP BY chunk"""
BM25 = f"""WITH hits AS (SELECT place, hit.* FROM {TERMS} CROSS JOIN LATERAL ({HITS}) hit),
    weights AS (SELECT place, chunks, terms, greatest(
        ln((chunks - count(*) + 0.5::float8) / (count(*) + 0.5::float8)), 1e-6::float8) weight
        FROM hits CROSS JOIN totals GROUP BY place, chunks, terms)
    SELECT chunk, sum(weight * (n * 2.2::float8)
        / (n + 1.2::float8 * (0.25::float8 + 0.75::float8 * length * chunks / terms)) ORDER BY place)
        score FROM hits JOIN weights USING (place) WHERE ?3::bigint[] IS NULL OR chunk = ANY(?3)
    GROUP BY chunk ORDER BY score DESC, chunk LIMIT ?4"""
COUNTS = f"SELECT place, (SELECT count(*) FROM ({HITS}) hit) FROM {TERMS}"


class GraphMemory(Memory):
    """The graph of one generation, shared by all searches; it catches up by what changed."""

    def _load_vectors(
        self, snapshot: SQLiteSnapshot, kind: Kind, touched: Collection[int] | None
    ) -> None:
        """Vectors stay in the database."""


class PostgresSnapshot(PostgresView, SQLiteSnapshot):
    """A reader with the graph in memory, and search; the methods are those of the port."""

    def _columns(self, columns: str, table: str, column: str, among: Collection[int] | None) -> Ids:
        if table == RELATIONS:
            table = f"(SELECT id, low, high, {WEIGHT} weight FROM relations) weighed"
        if among is not None:
            return super()._columns(columns, table, column, among)
        count = columns.count(",") + 1
        copied = f"COPY (SELECT {columns} FROM {table}) TO STDOUT (FORMAT binary)"
        with self.connection.raw.cursor().copy(copied) as copy:  # type: ignore[attr-defined]
            data = b"".join(copy)[HEADER:-TRAILER]
        rows = np.frombuffer(data, ",".join([">i2", *[NUMBER] * count]))
        numbers = [rows[f"f{2 * number + 2}"] for number in range(count)]
        return np.stack(numbers, axis=1).astype(np.int64)

    def search_vectors(
        self, kind: Kind, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        rows, values = f"{kind}_vectors", list[object]()
        if allowed is not None:
            rows = AMONG.format(kind, COMPARED if len(allowed) <= EXACT_ROWS else "")
            values = [allowed.tolist()]
        count, dim = queries.shape
        limits = (max(limit, 0) + TIES, max(limit, 0))
        query = NEAREST.format(rows=rows, dim=dim)
        found = self._rows(query, _vectors(queries), *limits, *values) if count and dim else []
        lists = [[row[1:] for row in group] for _, group in groupby(found, itemgetter(0))]
        least = min(map(len, lists), default=0)  # an approximate search may find fewer
        best = np.array([one[:least] for one in lists]).reshape(count, least, 2)
        return best[:, :, 0].astype(np.int64), best[:, :, 1]

    def vector_scores(self, kind: Kind, queries: Vectors, rows: Ids) -> Floats:
        scores, order = np.full((len(queries), len(rows)), np.nan), np.argsort(rows)
        values = (_vectors(queries), rows.tolist(), queries.shape[1])
        if found := self._rows(SCORES.format(kind), *values):
            places, ids, products = np.array(found, np.float64).T
            columns = order[np.searchsorted(rows, ids, sorter=order)]
            scores[places.astype(np.int64) - 1, columns] = products
        return scores

    def vector_matrix(self, kind: Kind, rows: Ids) -> Vectors:
        stored = self.vectors(kind, rows.tolist())
        none = np.zeros(self.dimension(kind), np.float32)
        fitting = {row: one for row, one in stored.items() if len(one) == len(none)}
        found = [fitting.get(row, none) for row in rows.tolist()]
        return np.array(found, np.float32).reshape(len(rows), len(none))

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        among = None if allowed is None else list(allowed)
        return self._rows(BM25, *_ranges(terms), among, max(limit, 0))

    def term_counts(self, terms: Collection[str]) -> dict[str, int]:
        listed = list(terms)
        return {listed[place - 1]: count for place, count in self._rows(COUNTS, *_ranges(listed))}


class DatabaseSnapshot(PostgresSnapshot):
    """A reader that looks up neighbours in the database, too; it has nothing in memory."""

    @cached_property
    def graph(self) -> DatabaseGraph:
        return DatabaseGraph(self)


def _vectors(queries: Vectors) -> list[Vector]:
    return [Vector(vector) for vector in queries]


def _ranges(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first and the last of the stored terms that each term stands for."""
    first = [folded(term.removesuffix(ANY_END)) for term in terms]
    any_end = [term.endswith(ANY_END) and len(term) > 1 for term in terms]
    return first, [one + LAST * end for one, end in zip(first, any_end, strict=True)]
