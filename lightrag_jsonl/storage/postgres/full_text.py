"""The full text in PostgreSQL: BM25 over a table of postings, with the scores of SQLite's FTS5."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from lightrag_jsonl.storage.tables.full_text import JOINT_SCORE, PARTS, ChunkTexts, FullText
from lightrag_jsonl.storage.tables.postings import counted_parts, stored_term, term_ranges

if TYPE_CHECKING:
    from lightrag_jsonl.storage.postgres.dialect import PostgresDialect

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
        self._dialect.execute(DELETE, (terms, parts))
        total_length = sum(counts.total() for _, counts in removed_parts)
        self._add_to_totals(-len(removed_parts), -total_length)

    def clear(self) -> None:
        self._dialect.execute("DELETE FROM postings")
        self._dialect.execute("UPDATE totals SET parts = 0, terms = 0")

    def holds(self, chunk: int, text: str) -> bool:
        """Whether a chunk is there with all terms of the text and their numbers."""
        statement = "SELECT term, occurrences FROM postings WHERE part = ? AND term = ANY(?)"
        for part, counts in counted_parts([(chunk, text)]):
            if dict(self._dialect.execute(statement, (part, list(counts)))) != counts:
                return False
        return True

    def _search(
        self, stems: Sequence[str], limit: int, allowed: Collection[int] | None
    ) -> list[tuple[int, float]]:
        first, last = term_ranges(stems)
        chunks = None if allowed is None else list(allowed)
        hits = self._dialect.execute(BM25, (first, last, chunks, max(limit, 0)))
        return [(chunk, score) for chunk, score in hits]

    def _chunks_with_all(self, stems: Sequence[str], limit: int) -> list[int]:
        terms = list(dict.fromkeys(map(stored_term, stems)))
        return [chunk for (chunk,) in self._dialect.execute(CHUNKS, (terms, limit))]

    def _counts(self, stems: Collection[str]) -> tuple[int, dict[str, int]]:
        ordered_terms = list(stems)
        counts: dict[str, int] = {}
        part_count = 0
        for parts, place, count in self._dialect.execute(COUNTS, term_ranges(ordered_terms)):
            part_count = parts
            if place is not None:
                counts[ordered_terms[place - 1]] = count
        return part_count, counts

    def _add_to_totals(self, parts: int, terms: int) -> None:
        statement = "UPDATE totals SET parts = parts + ?, terms = terms + ?"
        self._dialect.execute(statement, (parts, terms))
