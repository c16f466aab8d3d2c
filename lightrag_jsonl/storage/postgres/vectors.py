"""Search for vectors in PostgreSQL: exact, or by an HNSW index once there are many of a kind."""

from collections import defaultdict
from typing import Any

import numpy as np
import psycopg
from pgvector import HalfVector, Vector
from psycopg.types.array import ListBinaryDumper

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.base import by_name, only_column
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.tables.vectors import VectorReads
from lightrag_jsonl.storage.vector_index import TIES, Floats, Ids

# Of a kind; more are searched by an index, fewer in memory (in the database if the address keeps nothing in
# memory), exactly: with hashed vectors an HNSW index missed a fifth of the best 40 above 20,000.
EXACT_ROWS = 100_000
# Links of a vector in the index: with pgvector's 16, a search finds .93 of the best 40 of 60,000 hashed vectors, and a
# wider one (tried with 20,000) no more.
INDEX_LINKS = 32
QUERIES_AT_ONCE = 100  # a statement has a column for each
INDEX_NAME = "{kind}_vectors_{dim}"
# All scores of a query in one value: ids, and scores in the same order. No row if there is an index.
SCORES = """SELECT string_agg(int8send(id), ''), {scores} FROM (SELECT id, data::vector AS vector
    FROM {kind}_vectors WHERE vector_dims(data) = {dim}{condition} OFFSET 0) stored"""
SCORE = "string_agg(float4send((-(vector <#> ?::vector))::real), '')"
WITHOUT_INDEX = " AND to_regclass('{index}') IS NULL"
AMONG = " AND id = ANY(?::bigint[])"
# The nearest vectors by half precision; their order is then refined by all digits of the query.
NEAREST = """SELECT place, near.id, near.score
    FROM unnest(?1::vector[], ?2::halfvec[]) WITH ORDINALITY query (vector, half, place)
    CROSS JOIN LATERAL (SELECT id, -(data::vector <#> vector) score FROM (SELECT id, data FROM {rows}
        WHERE vector_dims(data) = {dim} ORDER BY data::halfvec({dim}) <#> half LIMIT ?3) wider
    ORDER BY score DESC, id LIMIT ?4) near ORDER BY place, score DESC, id"""
ALLOWED_ROWS = "(SELECT id, data FROM {kind}_vectors WHERE id = ANY(?5)) allowed"
INDEXING_MEMORY = """SELECT set_config(name, greatest(setting::int, 262144)::text, true)
    FROM pg_settings WHERE name = 'maintenance_work_mem'"""  # kB: 256 MB, or more if it is so set


class VectorList(list[Any]):
    """Vectors that are sent in binary form; in text, five of 1,024 numbers take 4 ms to write."""


def register_vector_lists(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection to send `VectorList`."""
    connection.adapters.register_dumper(VectorList, ListBinaryDumper)


class PostgresVectors:
    """The vectors of one kind in the database."""

    def __init__(self, dialect: Dialect, kind: Kind) -> None:
        self._dialect = dialect
        self._kind = kind

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        count, dim = queries.shape
        limit = max(limit, 0)
        if not (count and dim and limit):
            return np.zeros((count, 0), np.int64), np.zeros((count, 0))
        if allowed is not None and len(allowed) <= EXACT_ROWS:
            ids, scores = self._scores(queries, AMONG, allowed.tolist())
            return _best(ids, scores, limit)
        if allowed is None:
            index = INDEX_NAME.format(kind=self._kind, dim=dim)
            ids, scores = self._scores(queries, WITHOUT_INDEX.format(index=index))
            if len(ids):
                return _best(ids, scores, limit)
        return self._nearest(queries, limit, allowed)

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        scores = np.full((len(queries), len(ids)), np.nan)
        if scores.size:
            stored_ids, stored_scores = self._scores(queries, AMONG, ids.tolist())
            order = np.argsort(ids)
            columns = order[np.searchsorted(ids, stored_ids, sorter=order)]
            scores[:, columns] = stored_scores
        return scores

    def matrix(self, ids: Ids) -> Vectors:
        statement = f"SELECT id, data FROM {self._kind}_vectors WHERE id {self._dialect.among()}"
        cursor = self._dialect.execute(statement, self._dialect.array(ids.tolist()))
        vectors = {id: self._dialect.unpack(data) for id, data in cursor}
        dim = max([len(vector) for vector in vectors.values()], default=0)
        if dim <= 1:
            dim = VectorReads(self._dialect).vector_length(self._kind)
        matrix = np.zeros((len(ids), dim), np.float32)
        for row, id in enumerate(ids.tolist()):
            if id in vectors and len(vectors[id]) == dim:
                matrix[row] = vectors[id]
        return matrix

    def _scores(self, queries: Vectors, condition: str, *parameters: object) -> tuple[Ids, Floats]:
        """All row ids under a condition, ascending, and the inner products, shape (queries, ids)."""
        columns: list[Floats] = []
        ids = np.zeros(0, np.int64)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            batch = [Vector(query) for query in queries[start : start + QUERIES_AT_ONCE]]
            statement = SCORES.format(
                scores=", ".join([SCORE] * len(batch)),
                kind=self._kind,
                dim=queries.shape[1],
                condition=condition,
            )
            (values,) = self._dialect.execute(statement, *batch, *parameters)
            ids = np.frombuffer(values[0] or b"", ">i8").astype(np.int64)
            columns += [np.frombuffer(value or b"", ">f4") for value in values[1:]]
        order = np.argsort(ids, kind="stable")
        return ids[order], np.stack(columns).astype(np.float64)[:, order]

    def _nearest(self, queries: Vectors, limit: int, allowed: Ids | None) -> tuple[Ids, Floats]:
        """`search` by the index."""
        rows = f"{self._kind}_vectors"
        parameters: list[object] = [
            VectorList([Vector(query) for query in queries]),
            VectorList([HalfVector(query) for query in queries]),
            limit + TIES,
            limit,
        ]
        if allowed is not None:
            rows = ALLOWED_ROWS.format(kind=self._kind)
            parameters.append(allowed.tolist())
        hits_by_place: dict[int, list[tuple[int, float]]] = defaultdict(list)
        statement = NEAREST.format(rows=rows, dim=queries.shape[1])
        for hit in by_name(self._dialect.execute(statement, *parameters)):
            hits_by_place[hit.place].append((hit.id, hit.score))
        hit_lists = [hits_by_place[place] for place in range(1, len(queries) + 1)]
        length = min(map(len, hit_lists))  # an approximate search may find fewer
        best = np.array([hits[:length] for hits in hit_lists]).reshape(len(queries), length, 2)
        return best[:, :, 0].astype(np.int64), best[:, :, 1]


def _best(ids: Ids, scores: Floats, limit: int) -> tuple[Ids, Floats]:
    """The ids (ascending) with the highest scores of each query, best first, ties by id."""
    count = min(limit, len(ids))
    if not count:
        return np.zeros((len(scores), 0), np.int64), np.zeros((len(scores), 0))
    rows: list[Ids] = []
    for query_scores in scores:
        last = len(ids) - count
        candidates = np.flatnonzero(query_scores >= np.partition(query_scores, last)[last])
        order = np.argsort(-query_scores[candidates], kind="stable")[:count]
        rows.append(candidates[order])
    best = np.stack(rows)
    return ids[best], np.take_along_axis(scores, best, 1)


def has_many_vectors(dialect: Dialect, kind: Kind) -> bool:
    """Whether a kind has so many vectors that an index searches them."""
    statement = f"SELECT 1 FROM {kind}_vectors OFFSET {EXACT_ROWS} LIMIT 1"
    return bool(only_column(dialect.execute(statement)))


def index_vectors(dialect: Dialect, kind: Kind) -> None:
    """Make an HNSW index of the vectors of a kind, once there are too many to compare all."""
    if has_many_vectors(dialect, kind):
        dim = VectorReads(dialect).vector_length(kind)
        dialect.execute("SET CONSTRAINTS ALL IMMEDIATE")  # no check may be pending
        dialect.execute(INDEXING_MEMORY)
        dialect.execute(
            f"CREATE INDEX IF NOT EXISTS {INDEX_NAME.format(kind=kind, dim=dim)} ON {kind}_vectors "
            f"USING hnsw ((data::halfvec({dim})) halfvec_ip_ops) WITH (m = {INDEX_LINKS}) "
            f"WHERE vector_dims(data) = {dim}"
        )
