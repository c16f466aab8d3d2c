"""Search for vectors in PostgreSQL: exact, or by an HNSW index once there are many of a kind."""

from collections import defaultdict

import numpy as np
from pgvector import Vector

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.base import by_name
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.vector_index import TIES, Floats, Ids

EXACT_ROWS = 5_000  # of a kind; more are searched by an index
QUERIES = "unnest(?1::vector[]) WITH ORDINALITY query (vector, place)"
# The nearest vectors by half precision; their order is then refined by all digits of the query.
NEAREST = f"""SELECT place, near.id, near.score FROM {QUERIES} CROSS JOIN LATERAL (
    SELECT id, -(data::vector <#> vector) score FROM (SELECT id, data FROM {{rows}}
        WHERE vector_dims(data) = {{dim}}
        ORDER BY data::halfvec({{dim}}) <#> vector::halfvec({{dim}}) LIMIT ?2) wider
    ORDER BY score DESC, id LIMIT ?3) near ORDER BY place, score DESC, id"""
ALLOWED_ROWS = "(SELECT id, data FROM {kind}_vectors WHERE id = ANY(?4){exact}) allowed"
WITHOUT_INDEX = " OFFSET 0"  # makes PostgreSQL compare all of these rows, without the HNSW index
SCORES = f"""SELECT place, id, -(data::vector <#> vector) score
    FROM {{kind}}_vectors CROSS JOIN {QUERIES}
    WHERE id = ANY(?2) AND vector_dims(data) = ?3"""
INDEXING_MEMORY = """SELECT set_config(name, greatest(setting::int, 262144)::text, true)
    FROM pg_settings WHERE name = 'maintenance_work_mem'"""  # kB: 256 MB, or more if it is so set


class PostgresVectors:
    """The vectors of one kind in the database."""

    def __init__(self, dialect: Dialect, kind: Kind) -> None:
        self._dialect = dialect
        self._kind = kind

    def search(
        self, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        """The nearest vectors of each query: ids and scores, both of shape (queries, n <= limit)."""
        count, dim = queries.shape
        limit = max(limit, 0)
        rows = f"{self._kind}_vectors"
        parameters: list[object] = [[Vector(query) for query in queries], limit + TIES, limit]
        if allowed is not None:
            exact = WITHOUT_INDEX if len(allowed) <= EXACT_ROWS else ""
            rows = ALLOWED_ROWS.format(kind=self._kind, exact=exact)
            parameters.append(allowed.tolist())
        hits_by_place: dict[int, list[tuple[int, float]]] = defaultdict(list)
        if count and dim:
            hits = self._dialect.execute(NEAREST.format(rows=rows, dim=dim), parameters)
            for hit in by_name(hits):
                hits_by_place[hit.place].append((hit.id, hit.score))
        hit_lists = [hits_by_place[place] for place in range(1, count + 1)]
        length = min(map(len, hit_lists), default=0)  # an approximate search may find fewer
        best = np.array([hits[:length] for hits in hit_lists]).reshape(count, length, 2)
        return best[:, :, 0].astype(np.int64), best[:, :, 1]

    def scores(self, queries: Vectors, ids: Ids) -> Floats:
        """Inner products, shape (queries, ids); NaN where an id has no vector."""
        scores = np.full((len(queries), len(ids)), np.nan)
        order = np.argsort(ids)
        parameters = ([Vector(query) for query in queries], ids.tolist(), queries.shape[1])
        products = by_name(self._dialect.execute(SCORES.format(kind=self._kind), parameters))
        if products:
            places = np.array([product.place for product in products], np.int64)
            rows = np.array([product.id for product in products], np.int64)
            columns = order[np.searchsorted(ids, rows, sorter=order)]
            scores[places - 1, columns] = [product.score for product in products]
        return scores

    def matrix(self, ids: Ids) -> Vectors:
        """The vectors of these ids, shape (ids, dim); zeros where an id has no vector."""
        dim = self._dialect.vector_length(self._kind)
        matrix = np.zeros((len(ids), dim), np.float32)
        statement = f"SELECT id, data FROM {self._kind}_vectors WHERE id {self._dialect.among()}"
        cursor = self._dialect.execute(statement, [self._dialect.array(ids.tolist())])
        vectors = {id: self._dialect.unpack(data) for id, data in cursor}
        for row, id in enumerate(ids.tolist()):
            if id in vectors and len(vectors[id]) == dim:
                matrix[row] = vectors[id]
        return matrix


def index_vectors(dialect: Dialect, kind: Kind) -> None:
    """Make an HNSW index of the vectors of a kind, once there are too many to compare all."""
    rows = dialect.execute(f"SELECT 1 FROM {kind}_vectors OFFSET {EXACT_ROWS} LIMIT 1")
    if list(rows):
        dim = dialect.vector_length(kind)
        dialect.execute("SET CONSTRAINTS ALL IMMEDIATE")  # no check may be pending
        dialect.execute(INDEXING_MEMORY)
        dialect.execute(
            f"CREATE INDEX IF NOT EXISTS {kind}_vectors_{dim} ON {kind}_vectors USING hnsw "
            f"((data::halfvec({dim})) halfvec_ip_ops) WHERE vector_dims(data) = {dim}"
        )
