"""The dialect of PostgreSQL: parameters $1, arrays, jsonb, vectors of pgvector; and the full text, with the scores of FTS5."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
from pgvector import HalfVector

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.dialect import Cursor, Dialect, Keys, numbered_parameters
from lightrag_jsonl.storage.tables.full_text import (
    JOINT_SCORE,
    PARTS,
    ChunkTexts,
    FullText,
    counted_parts,
    stored_term,
    term_ranges,
)
from lightrag_jsonl.storage.vector_index import HALF, Halves

COPY = "COPY postings (term, part, occurrences, length) FROM STDIN"
DELETE = """DELETE FROM postings USING unnest(?::text[], ?::bigint[]) gone (term, part)
    WHERE postings.term = gone.term AND postings.part = gone.part"""
# A term is the range of stored terms from `first` to `last`.
TERMS = "unnest(?1::text[], ?2::text[]) WITH ORDINALITY term_range (first, last, place)"
HITS = """SELECT part, sum(occurrences) n, min(length) length FROM postings
    WHERE term >= first COLLATE "C" AND term <= last COLLATE "C" GROUP BY part"""
# The constants are those of FTS5: k1 = 1.2, b = 0.75, and no weight below 1e-6.
BM25 = f"""WITH hits AS (SELECT place, hit.* FROM {TERMS} CROSS JOIN LATERAL ({HITS}) hit),
    weights AS (SELECT place, parts, terms, greatest(
        ln((parts - count(*) + 0.5::float8) / (count(*) + 0.5::float8)), 1e-6::float8) weight
        FROM hits CROSS JOIN totals GROUP BY place, parts, terms),
    scores AS (SELECT part / {PARTS} chunk, sum(weight * (n * 2.2::float8)
        / (n + 1.2::float8 * (0.25::float8 + 0.75::float8 * length * parts / terms)) ORDER BY place)
        score FROM hits JOIN weights USING (place) GROUP BY part)
    SELECT chunk, {JOINT_SCORE} joint FROM scores WHERE ?3::bigint[] IS NULL OR chunk = ANY(?3)
    GROUP BY chunk ORDER BY joint DESC, chunk LIMIT ?4"""
# As many postings of a part as there are terms, since a part has one of each term.
CHUNKS = f"""SELECT DISTINCT part / {PARTS} chunk FROM (SELECT part FROM postings
    WHERE term = ANY(?1::text[]) GROUP BY part HAVING count(*) = cardinality(?1::text[])) hit
    ORDER BY chunk LIMIT ?2"""
COUNTS = f"""SELECT parts, place, (SELECT count(*) FROM ({HITS}) hit)
    FROM totals LEFT JOIN {TERMS} ON true"""


class PostgresFullText(FullText):
    """The full text of the index that a connection leads to."""

    def __init__(self, dialect: "PostgresDialect") -> None:
        self._dialect = dialect

    def add(self, chunks: ChunkTexts) -> None:
        parts = 0
        total_length = 0
        with self._dialect.connection.cursor().copy(COPY) as copy:
            for part, counts in counted_parts(chunks):
                length = counts.total()
                for term, occurrences in counts.items():
                    copy.write_row((term, part, occurrences, length))
                parts += 1
                total_length += length
        self._add_to_totals(parts, total_length)

    def remove(self, chunks: ChunkTexts) -> None:
        removed_parts = list(counted_parts(chunks))
        postings = [(term, part) for part, counts in removed_parts for term in counts]
        terms = [term for term, _ in postings]
        parts = [part for _, part in postings]
        self._dialect.execute(DELETE, terms, parts)
        total_length = sum(counts.total() for _, counts in removed_parts)
        self._add_to_totals(-len(removed_parts), -total_length)

    def clear(self) -> None:
        self._dialect.execute("DELETE FROM postings")
        self._dialect.execute("UPDATE totals SET parts = 0, terms = 0")

    def holds(self, chunk: int, text: str) -> bool:
        """Whether a chunk is there with all terms of the text and their numbers."""
        statement = "SELECT term, occurrences FROM postings WHERE part = ? AND term = ANY(?)"
        for part, counts in counted_parts([(chunk, text)]):
            if dict(self._dialect.execute(statement, part, list(counts))) != counts:
                return False
        return True

    def search(
        self, stems: Sequence[str], limit: int, allowed: Collection[int] | None
    ) -> list[tuple[int, float]]:
        first, last = term_ranges(stems)
        chunks = None if allowed is None else list(allowed)
        hits = self._dialect.execute(BM25, first, last, chunks, max(limit, 0))
        return [(chunk, score) for chunk, score in hits]

    def chunks_with_all(self, stems: Sequence[str], limit: int) -> list[int]:
        terms = list(dict.fromkeys(map(stored_term, stems)))
        return [chunk for (chunk,) in self._dialect.execute(CHUNKS, terms, limit)]

    def counts(self, stems: Collection[str]) -> tuple[int, dict[str, int]]:
        ordered_terms = list(stems)
        counts: dict[str, int] = {}
        part_count = 0
        for parts, place, count in self._dialect.execute(COUNTS, *term_ranges(ordered_terms)):
            part_count = parts
            if place is not None:
                counts[ordered_terms[place - 1]] = count
        return part_count, counts

    def _add_to_totals(self, parts: int, terms: int) -> None:
        statement = "UPDATE totals SET parts = parts + ?, terms = terms + ?"
        self._dialect.execute(statement, parts, terms)


# ── SQL ───────────────────────────────────────────────────────────────────────

LONGEST_VECTOR = 4_000  # the most that an index of halfvec takes


class PostgresDialect(Dialect):
    """A connection to PostgreSQL, which gives values in binary form; `Dialect` says what each method promises."""

    FOR_UPDATE = " FOR UPDATE"
    NO_VECTOR = "'[0]'::halfvec"
    SCHEMA_WORDS = (
        (
            r"id INTEGER PRIMARY KEY( AUTOINCREMENT)?,",
            "id INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,",
        ),
        (r"(\w+) INTEGER NOT NULL CHECK \(\1 IN \(0, 1\)\)", r"\1 boolean NOT NULL"),
        (r"data BLOB NOT NULL CHECK \(length\(data\) >= 2\)", "data halfvec NOT NULL"),
        (r"x'0000'", NO_VECTOR),
        (r"INTEGER", "bigint"),
        (r"REAL", "double precision"),
        (r"text BLOB", "text TEXT"),  # compressed by the database itself
        (r"BLOB", "bytea"),
        (r"key TEXT NOT NULL UNIQUE", "key TEXT NOT NULL"),  # by hash, in `schema.sql`
        (r"TEXT", 'text COLLATE "C"'),  # ordered as in SQLite, by code points
        (r"json_valid\((\w+)\)", r"\1 IS JSON"),
        (r"UNIQUE \(low, high\)", "UNIQUE (low, high) DEFERRABLE INITIALLY DEFERRED"),
        (r" STRICT(, WITHOUT ROWID)?", ""),
    )

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.full_text = PostgresFullText(self)

    def execute(self, statement: str, *parameters: object) -> Cursor:
        return self.connection.execute(numbered_parameters(statement), parameters, binary=True)

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        """Run one statement for each row of parameters, in a pipeline."""
        cursor = self.connection.cursor()
        cursor.executemany(numbered_parameters(statement), rows)
        return cursor.rowcount

    # ── arrays ──────────────────────────────────────────────────────────────────────

    def among(self, parameter: str = "?") -> str:
        return f"= ANY({parameter})"

    def array(self, keys: Keys) -> object:
        return list(keys)

    def pairs(self, pairs: Collection[tuple[int, int]]) -> tuple[str, Sequence[object]]:
        lows = [low for low, _ in pairs]
        highs = [high for _, high in pairs]
        return "SELECT * FROM unnest(?::bigint[], ?::bigint[])", [lows, highs]

    # ── texts and JSON ──────────────────────────────────────────────────────────────

    def byte_length(self, column: str) -> str:
        """The number of bytes of a text in UTF-8."""
        return f"octet_length({column})"

    def pack_text(self, text: str) -> object:
        """The text itself: PostgreSQL compresses long values."""
        return text

    def unpack_text(self, value: Any) -> str:
        """The text itself."""
        return str(value)

    def contains(self, column: str, parameter: str) -> str:
        return f"strpos({column}, {parameter}) > 0"

    def json_field(self, column: str, field: str) -> str:
        return f"{column}::json ->> '{field}'"

    # ── the first rows for each of many ids ─────────────────────────────────────────

    def descriptions(
        self, kind: Kind, after: Mapping[int, int], without: Collection[int], limit: int | None
    ) -> Iterable[tuple[int, int, int, str]]:
        """The first descriptions for each id, in one statement."""
        if not after:
            return ()
        statement = f"""SELECT r.id, m.position, m.chunk, m.description
            FROM unnest(?::bigint[], ?::bigint[]) r (id, last_mention) CROSS JOIN LATERAL (
            SELECT position, chunk, description FROM {kind}_mentions
            WHERE {kind} = r.id AND id > r.last_mention AND NOT chunk = ANY(?) AND description <> ''
            ORDER BY position LIMIT ?) m ORDER BY r.id, m.position"""
        return self.execute(statement, list(after), list(after.values()), list(without), limit)

    def first_chunks(
        self, kind: Kind, ids: Collection[int], limit: int
    ) -> Iterable[tuple[int, str]]:
        """The chunks of the first mentions of each id, in one statement."""
        if not ids:
            return ()
        statement = f"""SELECT r.id, c.name FROM unnest(?::bigint[]) r (id) CROSS JOIN LATERAL (
            SELECT chunk, position FROM {kind}_mentions WHERE {kind} = r.id ORDER BY position LIMIT ?) m
            JOIN chunks c ON c.id = m.chunk ORDER BY r.id, m.position"""
        return self.execute(statement, list(ids), limit)

    # ── vectors ─────────────────────────────────────────────────────────────────────

    def pack(self, vector: Vectors) -> object:
        """A vector in half precision; `ConfigError` if it is too long for an index."""
        if len(vector) > LONGEST_VECTOR:
            raise ConfigError(
                f"vectors of {len(vector):,} numbers are too long for PostgreSQL, which indexes up "
                f"to {LONGEST_VECTOR:,}: choose another embedder, or keep this index in a folder"
            )
        return HalfVector(vector)

    def unpack(self, data: Any) -> Halves:
        return np.asarray(data.to_numpy(), HALF)
