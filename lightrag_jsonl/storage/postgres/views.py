"""The views of an index: those of the SQLite store, where PostgreSQL needs other statements.

Of a snapshot only the graph is in memory; vectors and words are searched in the database.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from pgvector import HalfVector, Vector

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.postgres.neighbours import DatabaseGraph
from lightrag_jsonl.storage.postgres.waking import CHANNEL, NOTIFY
from lightrag_jsonl.storage.sqlite.documents import ANY_END, JOINT_SCORE, PARTS, term_parts
from lightrag_jsonl.storage.sqlite.tables import TABLES, Row, Values
from lightrag_jsonl.storage.sqlite.views import Memory, SQLiteSnapshot, SQLiteView
from lightrag_jsonl.storage.vector_index import TIES, Floats, Ids

LONGEST_VECTOR = 4_000  # the most that an index of halfvec takes
EXACT_ROWS = 5_000  # of a kind; more are searched by an index
LONGEST_TERM = 200  # characters; of longer ones the beginning counts
POSTING = "COPY postings (term, part, occurrences, length) FROM STDIN"
DESCRIPTIONS = """SELECT wanted.id, m.position, m.description
    FROM unnest(?::bigint[], ?::bigint[]) wanted (id, past) CROSS JOIN LATERAL (
    SELECT position, description FROM {0}_mentions WHERE {0} = wanted.id AND id > wanted.past
    AND NOT chunk = ANY(?) AND description <> '' ORDER BY position LIMIT ?) m
    ORDER BY wanted.id, m.position"""
FIRST_CHUNKS = """SELECT wanted.id, c.name FROM unnest(?::bigint[]) wanted (id) CROSS JOIN LATERAL (
    SELECT chunk, position FROM {0}_mentions WHERE {0} = wanted.id ORDER BY position LIMIT ?) m
    JOIN chunks c ON c.id = m.chunk ORDER BY wanted.id, m.position"""
INDEXING_MEMORY = """SELECT set_config(name, greatest(setting::int, 262144)::text, true)
    FROM pg_settings WHERE name = 'maintenance_work_mem'"""  # kB: 256 MB, or more if it is so set

# A field's value, or the members of its list, as `item`; true and false count as 1 and 0.
OWN = "jsonb_build_object('id', d.name, 'title', d.title, 'source', d.source, 'date', d.date)"
PRESENT = "coalesce({0} -> ?::text, 'null') <> 'null'"
MEETS = """EXISTS (SELECT 1 FROM (SELECT {0} -> ?::text f) field, jsonb_array_elements(
    CASE jsonb_typeof(f) WHEN 'array' THEN f ELSE jsonb_build_array(f) END) each (one), LATERAL (
    SELECT CASE one WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE one END item) counted,
    jsonb_array_elements(?::jsonb) wanted (wanted) WHERE {1})"""
IS_ONE = "item = wanted"
COMPARES = """jsonb_typeof(item) = jsonb_typeof(wanted) AND CASE jsonb_typeof(item)
    WHEN 'string' THEN (item #>> '{{}}') COLLATE "C" <> (wanted #>> '{{}}')
    WHEN 'number' THEN item <> wanted END"""  # the comparator replaces <>

QUERIES = "unnest(?1::vector[]) WITH ORDINALITY query (vector, place)"
# The nearest vectors by half precision; their order is then refined by all digits of the query.
NEAREST = f"""SELECT place, near.* FROM {QUERIES} CROSS JOIN LATERAL (
    SELECT id, -(data::vector <#> vector) score FROM (SELECT id, data FROM {{rows}}
        WHERE vector_dims(data) = {{dim}}
        ORDER BY data::halfvec({{dim}}) <#> vector::halfvec({{dim}}) LIMIT ?2) wider
    ORDER BY score DESC, id LIMIT ?3) near ORDER BY place, score DESC, id"""
ALLOWED = "(SELECT id, data FROM {}_vectors WHERE id = ANY(?4){}) allowed"
COMPARED = " OFFSET 0"  # makes PostgreSQL compare all of these rows, without the HNSW index
SCORES = f"""SELECT place, id, -(data::vector <#> vector) FROM {{}}_vectors CROSS JOIN {QUERIES}
    WHERE id = ANY(?2) AND vector_dims(data) = ?3"""
LAST = chr(0x10FFFF)
# BM25 as in SQLite's FTS5. A term is the range of stored terms from `first` to `last`.
TERMS = """unnest(?1::text[], ?2::text[]) WITH ORDINALITY wanted (first, last, place)"""
HITS = """SELECT part, sum(occurrences) n, min(length) length FROM postings
    WHERE term >= first COLLATE "C" AND term <= last COLLATE "C" GROUP BY part"""
BM25 = f"""WITH hits AS (SELECT place, hit.* FROM {TERMS} CROSS JOIN LATERAL ({HITS}) hit),
    weights AS (SELECT place, parts, terms, greatest(
        ln((parts - count(*) + 0.5::float8) / (count(*) + 0.5::float8)), 1e-6::float8) weight
        FROM hits CROSS JOIN totals GROUP BY place, parts, terms),
    scores AS (SELECT part / {PARTS} chunk, sum(weight * (n * 2.2::float8)
        / (n + 1.2::float8 * (0.25::float8 + 0.75::float8 * length * parts / terms)) ORDER BY place)
        score FROM hits JOIN weights USING (place) GROUP BY part)
    SELECT chunk, {JOINT_SCORE} joint FROM scores WHERE ?3::bigint[] IS NULL OR chunk = ANY(?3)
    GROUP BY chunk ORDER BY joint DESC, chunk LIMIT ?4"""
COUNTS = f"SELECT place, (SELECT count(*) FROM ({HITS}) hit) FROM {TERMS}"
ACCENTS = re.compile("([A-Za-z])[\u0300-\u036f]+")


class PostgresView(SQLiteView):
    """A reader or, by a connection that may write, a transaction; the methods are the port's."""

    AMONG = "= ANY(?)"
    BYTES = "octet_length(text)"
    AS_JSON = "::json"
    IN_TEXT = "strpos"
    NO_VECTOR = "'[0]'::halfvec"
    OWN, METADATA = OWN, "d.metadata::jsonb"
    PRESENT, MEETS, IS_ONE, COMPARES = PRESENT, MEETS, IS_ONE, COMPARES

    def _list(self, values: Values) -> object:
        return list(values)

    def record_commit(self) -> None:
        for kind in TABLES:
            if self.touched[kind]:
                self._index_vectors(kind)
        super().record_commit()
        if any(self.touched.values()) or self.changed:
            self.connection.execute(NOTIFY, (CHANNEL,))

    # ── documents, and their full text ──────────────────────────────────────────────

    def rebuild_terms(self) -> None:
        self._delete("postings", "term")
        self.connection.execute("UPDATE totals SET parts = 0, terms = 0")
        self._add_terms(self._rows("SELECT id, text FROM chunks"))

    def _add_terms(self, texts: Iterable[Row]) -> None:
        parts = sum_of_lengths = 0
        with self.connection.raw.cursor().copy(POSTING) as copy:  # type: ignore[attr-defined]
            for part, terms in _counted_parts(texts):
                length = terms.total()
                for term, occurrences in terms.items():
                    copy.write_row((term, part, occurrences, length))
                parts, sum_of_lengths = parts + 1, sum_of_lengths + length
        self._add_to_totals(parts, sum_of_lengths)

    def _remove_terms(self, texts: Iterable[Row]) -> None:
        counted = list(_counted_parts(texts))
        pairs = [(term, part) for part, terms in counted for term in terms]
        self.connection.execute(
            "DELETE FROM postings USING unnest(?::text[], ?::bigint[]) gone (term, part) "
            "WHERE postings.term = gone.term AND postings.part = gone.part",
            ([term for term, _ in pairs], [part for _, part in pairs]),
        )
        self._add_to_totals(-len(counted), -sum(terms.total() for _, terms in counted))

    def _has_terms(self, row: int, text: str) -> bool:
        query = "SELECT term, occurrences FROM postings WHERE part = ? AND term = ANY(?)"
        parts = _counted_parts([(row, text)])
        return all(dict(self._rows(query, part, list(terms))) == terms for part, terms in parts)

    def _add_to_totals(self, parts: int, terms: int) -> None:
        query = "UPDATE totals SET parts = parts + ?, terms = terms + ?"
        self.connection.execute(query, (parts, terms))

    # ── mentions, graph and vectors ─────────────────────────────────────────────────

    def descriptions(
        self,
        kind: Kind,
        after: Mapping[int, int],
        *,
        without: Collection[int] = (),
        limit: int | None = None,
    ) -> dict[int, list[tuple[int, str]]]:
        values = (list(after), list(after.values()), list(without), limit)
        found: dict[int, list[tuple[int, str]]] = {row: [] for row in after}
        for row, position, text in self._rows(DESCRIPTIONS.format(kind), *values):
            found[row].append((position, text))
        return found

    def _pairs(self, pairs: Collection[tuple[int, int]]) -> list[object]:
        lows, highs = [low for low, _ in pairs], [high for _, high in pairs]
        return ["SELECT * FROM unnest(?::bigint[], ?::bigint[])", lows, highs]

    def _first_chunks(
        self, kind: Kind, rows: Collection[int], limit: int
    ) -> dict[int, tuple[str, ...]]:
        names: dict[int, dict[str, None]] = {row: {} for row in rows}
        for row, name in self._rows(FIRST_CHUNKS.format(kind), list(rows), limit):
            names[row][name] = None
        return {row: tuple(listed) for row, listed in names.items()}

    def _packed(self, vector: Vectors) -> object:
        if len(vector) > LONGEST_VECTOR:
            raise ConfigError(
                f"vectors of {len(vector):,} numbers are too long for PostgreSQL, which indexes up "
                f"to {LONGEST_VECTOR:,}: choose another embedder, or keep this index in a folder"
            )
        return HalfVector(vector)

    def _unpacked(self, data: Any) -> Vectors:
        return np.asarray(data.to_numpy(), np.float32)

    def dimension(self, kind: Kind) -> int:
        rows = f"{kind}_vectors WHERE data <> {self.NO_VECTOR}"
        query = f"SELECT vector_dims(data) FROM {rows} ORDER BY id LIMIT 1"
        return int([*self._rows(query), (0,)][0][0])

    def _index_vectors(self, kind: Kind) -> None:
        """Make an HNSW index of the vectors of a kind, once there are too many to compare all."""
        enough = f"SELECT 1 FROM {kind}_vectors OFFSET {EXACT_ROWS} LIMIT 1"
        if self._rows(enough):
            dim = self.dimension(kind)
            self.connection.execute("SET CONSTRAINTS ALL IMMEDIATE")  # no check may be pending
            self.connection.execute(INDEXING_MEMORY)
            self.connection.execute(
                f"CREATE INDEX IF NOT EXISTS {kind}_vectors_{dim} ON {kind}_vectors USING hnsw "
                f"((data::halfvec({dim})) halfvec_ip_ops) WHERE vector_dims(data) = {dim}"
            )


class GraphMemory(Memory):
    """The graph of one generation, shared by all searches; it catches up by what changed."""

    def _load_vectors(
        self, snapshot: SQLiteSnapshot, kind: Kind, touched: Collection[int] | None
    ) -> None:
        """Vectors stay in the database."""


class PostgresSnapshot(PostgresView, SQLiteSnapshot):
    """A reader with the graph in memory, and search; the methods are those of the port."""

    def search_vectors(
        self, kind: Kind, queries: Vectors, limit: int, allowed: Ids | None = None
    ) -> tuple[Ids, Floats]:
        rows, values = f"{kind}_vectors", list[object]()
        if allowed is not None:
            rows = ALLOWED.format(kind, COMPARED if len(allowed) <= EXACT_ROWS else "")
            values = [allowed.tolist()]
        count, dim = queries.shape
        limits = (max(limit, 0) + TIES, max(limit, 0))
        query = NEAREST.format(rows=rows, dim=dim)
        wanted = list(map(Vector, queries))
        found = self._rows(query, wanted, *limits, *values) if count and dim else []
        lists = [[row[1:] for row in group] for _, group in groupby(found, itemgetter(0))]
        least = min(map(len, lists), default=0)  # an approximate search may find fewer
        best = np.array([one[:least] for one in lists]).reshape(count, least, 2)
        return best[:, :, 0].astype(np.int64), best[:, :, 1]

    def vector_scores(self, kind: Kind, queries: Vectors, rows: Ids) -> Floats:
        scores, order = np.full((len(queries), len(rows)), np.nan), np.argsort(rows)
        values = (list(map(Vector, queries)), rows.tolist(), queries.shape[1])
        if found := self._rows(SCORES.format(kind), *values):
            places, ids, products = np.array(found, np.float64).T
            columns = order[np.searchsorted(rows, ids, sorter=order)]
            scores[places.astype(np.int64) - 1, columns] = products
        return scores

    def vector_matrix(self, kind: Kind, rows: Ids) -> Vectors:
        stored = self.vectors(kind, rows.tolist())
        none = np.zeros(self.dimension(kind), np.float32)
        whole = {row: vector for row, vector in stored.items() if len(vector) == len(none)}
        found = [whole.get(row, none) for row in rows.tolist()]
        return np.array(found, np.float32).reshape(len(rows), len(none))

    def search_terms(
        self, terms: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        among = None if allowed is None else list(allowed)
        return self._rows(BM25, *_ranges(terms), among, max(limit, 0))

    def term_counts(self, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        listed, ((total,),) = list(terms), self._rows("SELECT parts FROM totals")
        counts = self._rows(COUNTS, *_ranges(listed))
        return total, {listed[place - 1]: count for place, count in counts}


class DatabaseSnapshot(PostgresSnapshot):
    """A reader that looks up neighbours in the database, too; it has nothing in memory."""

    @cached_property
    def graph(self) -> DatabaseGraph:
        return DatabaseGraph(self)


def _ranges(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first and the last of the stored terms that each term stands for."""
    first = [folded(term.removesuffix(ANY_END)) for term in terms]
    any_end = [term.endswith(ANY_END) and len(term) > 1 for term in terms]
    return first, [one + LAST * end for one, end in zip(first, any_end, strict=True)]


def folded(term: str) -> str:
    """A term as it is stored: Latin letters without accents, and not too long."""
    if not term.isascii():
        term = unicodedata.normalize("NFC", ACCENTS.sub(r"\1", unicodedata.normalize("NFD", term)))
    return term[:LONGEST_TERM]


def _counted_parts(texts: Iterable[Row]) -> Iterator[tuple[int, Counter[str]]]:
    """The parts of chunks, and how often each of their terms occurs."""
    return ((part, Counter(map(folded, terms))) for part, terms in term_parts(texts))
