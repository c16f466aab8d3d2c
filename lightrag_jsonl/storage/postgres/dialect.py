"""The dialect of PostgreSQL: parameters $1, arrays, jsonb, vectors of pgvector."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
from pgvector import HalfVector

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.postgres.full_text import PostgresFullText
from lightrag_jsonl.storage.postgres.notifications import CHANNEL, NOTIFY
from lightrag_jsonl.storage.postgres.vectors import index_vectors
from lightrag_jsonl.storage.tables.dialect import Dialect, Keys, numbered_parameters

LONGEST_VECTOR = 4_000  # the most that an index of halfvec takes
DESCRIPTIONS = """SELECT r.id, m.position, m.chunk, m.description
    FROM unnest(?::bigint[], ?::bigint[]) r (id, last_mention) CROSS JOIN LATERAL (
    SELECT position, chunk, description FROM {kind}_mentions WHERE {kind} = r.id AND id > r.last_mention
    AND NOT chunk = ANY(?) AND description <> '' ORDER BY position LIMIT ?) m
    ORDER BY r.id, m.position"""
FIRST_CHUNKS = """SELECT r.id, c.name FROM unnest(?::bigint[]) r (id) CROSS JOIN LATERAL (
    SELECT chunk, position FROM {kind}_mentions WHERE {kind} = r.id ORDER BY position LIMIT ?) m
    JOIN chunks c ON c.id = m.chunk ORDER BY r.id, m.position"""
# The members of a field's list, or its only value, as `item`; true and false count as 1 and 0.
MEETS = """EXISTS (SELECT 1 FROM (SELECT {fields} -> ?::text whole) field, jsonb_array_elements(
    CASE jsonb_typeof(whole) WHEN 'array' THEN whole ELSE jsonb_build_array(whole) END)
    members (member), LATERAL (SELECT CASE member WHEN 'true' THEN '1' WHEN 'false' THEN '0'
    ELSE member END item) counted, jsonb_array_elements(?::jsonb) choices (choice)
    WHERE {compares})"""
COMPARES = """jsonb_typeof(item) = jsonb_typeof(choice) AND CASE jsonb_typeof(item)
    WHEN 'string' THEN (item #>> '{{}}') COLLATE "C" {comparator} (choice #>> '{{}}')
    WHEN 'number' THEN item {comparator} choice END"""

BOTH_ARE_TEXTS = "jsonb_typeof(item) = 'string' AND jsonb_typeof(choice) = 'string'"
TEXT_TESTS = {
    "contains": "strpos(item #>> '{}', choice #>> '{}') > 0",
    "starts with": "starts_with(item #>> '{}', choice #>> '{}')",
    "ends with": "right(item #>> '{}', length(choice #>> '{}')) = choice #>> '{}'",
}


class PostgresDialect(Dialect):
    """A connection to PostgreSQL, which gives values in binary form."""

    NO_LIMIT = "ALL"
    OWN_FIELDS = (
        "jsonb_build_object('id', d.name, 'title', d.title, 'source', d.source, 'date', d.date)"
    )
    METADATA = "d.metadata::jsonb"
    CONTENT_KEYWORDS = """jsonb_build_object('content_keywords', (SELECT jsonb_agg(DISTINCT keyword)
        FROM chunks c, jsonb_object_keys(c.report::jsonb -> 'content_keywords') keyword
        WHERE c.document = d.id))"""
    NO_VECTOR = "'[0]'::halfvec"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.full_text = PostgresFullText(self)

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        """Run one statement."""
        return self.connection.execute(numbered_parameters(statement), parameters, binary=True)

    def execute_many(self, statement: str, rows: Iterable[Sequence[object]]) -> int:
        """Run one statement for each row of parameters, in a pipeline."""
        cursor = self.connection.cursor()
        cursor.executemany(numbered_parameters(statement), rows)
        return cursor.rowcount

    # ── arrays ──────────────────────────────────────────────────────────────────────

    def among(self, parameter: str = "?") -> str:
        """A test after a column: whether the value is in an array."""
        return f"= ANY({parameter})"

    def array(self, keys: Keys) -> object:
        """An array."""
        return list(keys)

    def pairs(self, pairs: Collection[tuple[int, int]]) -> tuple[str, Sequence[object]]:
        """A query for pairs, and the parameters of the query."""
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
        """A test whether a text contains the text of a parameter."""
        return f"strpos({column}, {parameter}) > 0"

    def json_field(self, column: str, field: str) -> str:
        """A field of the JSON object in a column, as text."""
        return f"{column}::json ->> '{field}'"

    def is_present(self, fields: str) -> str:
        """A test whether a JSON object has a field, the parameter, that is not null."""
        return f"coalesce({fields} -> ?::text, 'null') <> 'null'"

    def meets(self, fields: str, comparator: str) -> str:
        """A test whether a field of a JSON object, or a member of its list, compares so."""
        compares = "item = choice"
        if comparator in TEXT_TESTS:
            compares = f"{BOTH_ARE_TEXTS} AND {TEXT_TESTS[comparator]}"
        elif comparator != "=":
            compares = COMPARES.format(comparator=comparator)
        return MEETS.format(fields=fields, compares=compares)

    # ── the first rows for each of many ids ─────────────────────────────────────────

    def descriptions(
        self, kind: Kind, after: Mapping[int, int], without: Collection[int], limit: int | None
    ) -> Iterable[tuple[int, int, int, str]]:
        """The first descriptions for each id, in one statement."""
        parameters = (list(after), list(after.values()), list(without), limit)
        return self.execute(DESCRIPTIONS.format(kind=kind), parameters)

    def first_chunks(
        self, kind: Kind, ids: Collection[int], limit: int
    ) -> Iterable[tuple[int, str]]:
        """The chunks of the first mentions of each id, in one statement."""
        return self.execute(FIRST_CHUNKS.format(kind=kind), (list(ids), limit))

    # ── vectors ─────────────────────────────────────────────────────────────────────

    def pack(self, vector: Vectors) -> object:
        """A vector in half precision; `ConfigError` if it is too long for an index."""
        if len(vector) > LONGEST_VECTOR:
            raise ConfigError(
                f"vectors of {len(vector):,} numbers are too long for PostgreSQL, which indexes up "
                f"to {LONGEST_VECTOR:,}: choose another embedder, or keep this index in a folder"
            )
        return HalfVector(vector)

    def unpack(self, data: Any) -> Vectors:
        """A vector as float32."""
        return np.asarray(data.to_numpy(), np.float32)

    def vector_length(self, kind: Kind) -> int:
        """The length of the vectors of a kind; 0 if there are none."""
        rows = f"{kind}_vectors WHERE data <> {self.NO_VECTOR}"
        statement = f"SELECT vector_dims(data) FROM {rows} ORDER BY id LIMIT 1"
        for (length,) in self.execute(statement):
            return int(length)
        return 0

    def before_commit(self, touched: Mapping[Kind, Collection[int]]) -> None:
        """Index the vectors of large kinds, and notify searching processes."""
        for kind, rows in touched.items():
            if rows:
                index_vectors(self, kind)
        self.execute(NOTIFY, (CHANNEL,))
