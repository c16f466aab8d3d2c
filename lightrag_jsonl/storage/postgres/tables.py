"""The tables of an index: those of the SQLite store, where PostgreSQL needs other statements."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pgvector import HalfVector

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.text import index_terms
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.filters import OWN_FIELDS, Condition
from lightrag_jsonl.storage.postgres.waking import CHANNEL, NOTIFY
from lightrag_jsonl.storage.sqlite.tables import (
    TABLES,
    Row,
    Values,
    json_text,
)
from lightrag_jsonl.storage.sqlite.views import SQLiteView

LONGEST_VECTOR = 4_000  # the most that an index of halfvec takes
EXACT_ROWS = 5_000  # of a kind; more are searched by an index
LONGEST_TERM = 200  # characters; of longer ones the beginning counts
POSTING = "COPY postings (term, chunk, occurrences, length) FROM STDIN"
LED = """WITH RECURSIVE led (wanted, key) AS (SELECT one, one COLLATE "C" FROM unnest(?::text[]) one
    UNION SELECT led.wanted, a.target FROM led JOIN aliases a USING (key))
    SELECT led.wanted, e.id FROM led JOIN entities e USING (key)
    WHERE NOT EXISTS (SELECT 1 FROM aliases a WHERE a.key = led.key AND a.target <> a.key)"""
DESCRIPTIONS = """SELECT wanted.id, m.position, m.description
    FROM unnest(?::bigint[], ?::bigint[]) wanted (id, past) CROSS JOIN LATERAL (
    SELECT position, description FROM {0}_mentions WHERE {0} = wanted.id AND id > wanted.past
    AND NOT chunk = ANY(?) AND description <> '' ORDER BY position LIMIT ?) m
    ORDER BY wanted.id, m.position"""
FIRST_CHUNKS = """SELECT wanted.id, c.name FROM unnest(?::bigint[]) wanted (id) CROSS JOIN LATERAL (
    SELECT chunk, position FROM {0}_mentions WHERE {0} = wanted.id ORDER BY position LIMIT ?) m
    JOIN chunks c ON c.id = m.chunk ORDER BY wanted.id, m.position"""
MENTIONED = """SELECT m.relation FROM unnest(?::bigint[]) WITH ORDINALITY wanted (chunk, place)
    JOIN relation_mentions m USING (chunk) WHERE m.relation IS NOT NULL GROUP BY m.relation
    ORDER BY min(place), min(m.position), m.relation"""
INDEXING_MEMORY = """SELECT set_config(name, greatest(setting::int, 262144)::text, true)
    FROM pg_settings WHERE name = 'maintenance_work_mem'"""  # kB: 256 MB, or more if it is so set
WEIGHT = "coalesce((edited::json ->> 'weight')::numeric::bigint, weight)"
LISTED: dict[Kind, str] = {
    "entity": """SELECT id FROM entities WHERE strpos(key, ?1) > 0
        AND (type = ?2::text OR ?2::text = '') ORDER BY name COLLATE "C", id""",
    "relation": f"""SELECT r.id FROM (SELECT id, low, high, {WEIGHT} weight FROM relations) r
        JOIN entities a ON a.id = r.low JOIN entities b ON b.id = r.high
        WHERE strpos(a.key, ?1) > 0 OR strpos(b.key, ?1) > 0 ORDER BY r.weight DESC, a.key, b.key""",
}

# A field's value, or the members of its list, as `item`; true and false count as 1 and 0.
MEETS = """EXISTS (SELECT 1 FROM (SELECT {field} f) own, jsonb_array_elements(
    CASE jsonb_typeof(f) WHEN 'array' THEN f ELSE jsonb_build_array(f) END) each (one), LATERAL (
    SELECT CASE one WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE one END item) counted,
    jsonb_array_elements(?::jsonb) wanted (wanted) WHERE {test})"""
IS_ONE = "item = wanted"
COMPARES = """CASE WHEN jsonb_typeof(item) <> jsonb_typeof(wanted) THEN false
    WHEN jsonb_typeof(item) = 'string' THEN (item #>> '{}') COLLATE "C" <=> (wanted #>> '{}')
    ELSE jsonb_typeof(item) = 'number' AND item <=> wanted END"""  # the comparator replaces <=>
_ACCENTS = re.compile("([A-Za-z])[\u0300-\u036f]+")


class PostgresView(SQLiteView):
    """A reader or, by a connection that may write, a transaction; the methods are the port's."""

    AMONG = "= ANY(?)"
    BYTES = "octet_length(text)"
    STAGE = "e.event::json ->> 'stage'"
    LISTED = LISTED

    def _list(self, values: Values) -> object:
        return list(values)

    def _delete(self, table: str, column: str, among: Values | None = None) -> int:
        where = "" if among is None else f"WHERE {column} = ANY(?)"
        values = () if among is None else (list(among),)
        return self.connection.execute(f"DELETE FROM {table} {where}", values).rowcount

    def record_commit(self) -> None:
        for kind in TABLES:
            if self.touched[kind]:
                self._index_vectors(kind)
        super().record_commit()
        if any(self.touched.values()) or self.changed:
            self.connection.execute(NOTIFY, (CHANNEL,))

    # ── documents, and their full text ──────────────────────────────────────────────

    def delete_documents(self, rows: Collection[int]) -> None:
        texts = self._select("id, text", "chunks", "document", rows)
        counted = [(row, _counted(text)) for row, text in texts]
        pairs = [(term, row) for row, terms in counted for term in terms]
        self.connection.execute(
            "DELETE FROM postings USING unnest(?::text[], ?::bigint[]) gone (term, chunk) "
            "WHERE postings.term = gone.term AND postings.chunk = gone.chunk",
            ([term for term, _ in pairs], [row for _, row in pairs]),
        )
        self._add_to_totals(-len(counted), -sum(terms.total() for _, terms in counted))
        self.touched["chunk"].update(row for row, _ in texts)
        self.changed = self._delete("documents", "id", rows) > 0 or self.changed

    def rebuild_terms(self) -> None:
        self._delete("postings", "term")
        self.connection.execute("UPDATE totals SET chunks = 0, terms = 0")
        rows = self._rows("SELECT id FROM chunks ORDER BY id")
        for at in range(0, len(rows), 1_000):
            ids = [row for (row,) in rows[at : at + 1_000]]
            self._add_terms(self._select("id, text", "chunks", "id", ids))

    def _add_terms(self, texts: Iterable[Row]) -> None:
        counted = [(row, _counted(text)) for row, text in texts]
        with self.connection.raw.cursor().copy(POSTING) as copy:  # type: ignore[attr-defined]
            for row, terms in counted:
                length = terms.total()
                for term, occurrences in terms.items():
                    copy.write_row((term, row, occurrences, length))
        self._add_to_totals(len(counted), sum(terms.total() for _, terms in counted))

    def _has_terms(self, row: int, text: str) -> bool:
        terms, query = _counted(text), "SELECT term, occurrences FROM postings WHERE chunk = ?"
        return dict(self._rows(f"{query} AND term = ANY(?)", row, list(terms))) == terms

    def _tests(self, condition: Condition) -> tuple[str, list[object], str, list[object]]:
        comparator, named = condition.comparator, list[object]()
        if condition.field in OWN_FIELDS:
            field = f"to_jsonb(d.{'name' if condition.field == 'id' else condition.field})"
        else:
            field, named = "(d.metadata::jsonb -> ?::text)", [condition.field]
        values = [int(one) if isinstance(one, bool) else one for one in condition.values]
        wanted = json_text([value for value in values if value is not None])
        test = IS_ONE if comparator in ("=", "!=") else COMPARES.replace("<=>", comparator)
        found = MEETS.format(field=field, test=test)
        return f"coalesce({field}, 'null') <> 'null'", named, found, [*named, wanted]

    def _add_to_totals(self, chunks: int, terms: int) -> None:
        query = "UPDATE totals SET chunks = chunks + ?, terms = terms + ?"
        self.connection.execute(query, (chunks, terms))

    # ── mentions, graph and vectors ─────────────────────────────────────────────────

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        return [row for (row,) in self._rows(MENTIONED, list(chunks))]

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

    def entity_ids(self, keys: Collection[str]) -> dict[str, int]:
        return dict(self._rows(LED, list(keys)))

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
        query = f"SELECT vector_dims(data) FROM {kind}_vectors ORDER BY id LIMIT 1"
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


def folded(term: str) -> str:
    """A term as it is stored: Latin letters without accents, and not too long."""
    if not term.isascii():
        term = unicodedata.normalize("NFC", _ACCENTS.sub(r"\1", unicodedata.normalize("NFD", term)))
    return term[:LONGEST_TERM]


def _counted(text: str) -> Counter[str]:
    """The terms of a text, with how often each occurs."""
    return Counter(map(folded, index_terms(text)))
