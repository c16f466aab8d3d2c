"""The shape of the graph, looked up in the database, for graphs that do not fit into memory."""

from functools import cached_property

import numpy as np

from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.rows import MILLION
from lightrag_jsonl.storage.tables.base import integer_columns
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.tables.graph import weighted_relations
from lightrag_jsonl.storage.vector_index import Floats, Ids

OWNERS = "unnest(?::bigint[]) WITH ORDINALITY owner (id, place)"
MEMBERS = f"""SELECT place - 1 AS place, m.member FROM {OWNERS} CROSS JOIN LATERAL ({{members}}) m
    ORDER BY place, m.member"""
RELATIONS_OF = """SELECT r.id member FROM relations r WHERE low = owner.id
    UNION SELECT r.id FROM relations r WHERE high = owner.id"""
CHUNKS_OF = "SELECT DISTINCT chunk member FROM entity_mentions WHERE entity = owner.id"
ENTITIES_OF = """SELECT DISTINCT entity member FROM entity_mentions
    WHERE chunk = owner.id AND entity IS NOT NULL"""
DEGREES = f"""SELECT (SELECT count(*) FROM ({RELATIONS_OF}) relations_of) AS degree
    FROM {OWNERS} ORDER BY place"""
MENTION_COUNTS = f"""SELECT (SELECT count(*) FROM ({CHUNKS_OF}) chunks_of) AS mentions
    FROM {OWNERS} ORDER BY place"""
ENDS = f"SELECT low, high FROM {OWNERS} JOIN relations r USING (id) ORDER BY place"
WEIGHTS = f"SELECT weight FROM {OWNERS} JOIN {{relations}} USING (id) ORDER BY place"
ALL_MENTIONS = """SELECT DISTINCT entity, chunk FROM entity_mentions WHERE entity IS NOT NULL
    ORDER BY entity, chunk"""


class DatabaseGraph(GraphIndex):
    """The graph as a snapshot sees it; each look-up is one query."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    @cached_property
    def entities(self) -> Ids:  # type: ignore[override]
        """All row ids of entities, ascending."""
        return self._columns("SELECT id FROM entities ORDER BY id")["id"]

    @cached_property
    def chunks(self) -> Ids:  # type: ignore[override]
        """All row ids of chunks, ascending."""
        return self._columns("SELECT id FROM chunks ORDER BY id")["id"]

    def degrees(self, entities: Ids) -> Ids:
        return self._columns(DEGREES, entities)["degree"]

    def relations_of(self, entities: Ids) -> tuple[Ids, Ids]:
        return self._members(RELATIONS_OF, entities)

    def ends(self, relations: Ids) -> Ids:
        return _ends(self._columns(ENDS, relations))

    def weights(self, relations: Ids) -> Floats:
        statement = WEIGHTS.format(relations=weighted_relations(self._dialect))
        return np.divide(self._columns(statement, relations)["weight"], MILLION)

    @property
    def all_relations(self) -> Ids:
        return self._columns("SELECT id FROM relations ORDER BY id")["id"]

    @property
    def all_ends(self) -> Ids:
        return _ends(self._columns("SELECT low, high FROM relations ORDER BY id"))

    def mention_counts(self, entities: Ids) -> Ids:
        return self._columns(MENTION_COUNTS, entities)["mentions"]

    def chunks_of(self, entities: Ids) -> tuple[Ids, Ids]:
        return self._members(CHUNKS_OF, entities)

    def entities_of(self, chunks: Ids) -> tuple[Ids, Ids]:
        return self._members(ENTITIES_OF, chunks)

    @property
    def all_mentions(self) -> tuple[Ids, Ids]:
        columns = self._columns(ALL_MENTIONS)
        return columns["entity"], columns["chunk"]

    def _members(self, members: str, owners: Ids) -> tuple[Ids, Ids]:
        columns = self._columns(MEMBERS.format(members=members), owners)
        return columns["place"], columns["member"]

    def _columns(self, statement: str, ids: Ids | None = None) -> dict[str, Ids]:
        """The columns of integers of a query about some rows or all."""
        parameters = [] if ids is None else [ids.tolist()]
        return integer_columns(self._dialect.execute(statement, *parameters))


def _ends(columns: dict[str, Ids]) -> Ids:
    """Pairs of a low and a high end, shape (n, 2)."""
    return np.stack([columns["low"], columns["high"]], axis=1)
