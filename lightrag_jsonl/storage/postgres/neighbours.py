"""The shape of the graph, looked up in the database, for graphs that do not fit into memory."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.rows import MILLION
from lightrag_jsonl.storage.sqlite.graph import RELATIONS
from lightrag_jsonl.storage.vector_index import Floats, Ids

if TYPE_CHECKING:
    from lightrag_jsonl.storage.postgres.views import PostgresSnapshot

WANTED = "unnest(?::bigint[]) WITH ORDINALITY wanted (id, place)"
MEMBERS = f"""SELECT place - 1, one.member FROM {WANTED} CROSS JOIN LATERAL ({{}}) one
    ORDER BY place, one.member"""
RELATIONS_OF = """SELECT r.id member FROM relations r WHERE low = wanted.id
    UNION SELECT r.id FROM relations r WHERE high = wanted.id"""
CHUNKS_OF = "SELECT DISTINCT chunk member FROM entity_mentions WHERE entity = wanted.id"
ENTITIES_OF = """SELECT DISTINCT entity member FROM entity_mentions
    WHERE chunk = wanted.id AND entity IS NOT NULL"""
DEGREES = f"SELECT (SELECT count(*) FROM ({RELATIONS_OF}) one) FROM {WANTED} ORDER BY place"
ENDS = f"SELECT low, high FROM {WANTED} JOIN relations r USING (id) ORDER BY place"
WEIGHTS = f"""SELECT weight FROM {WANTED} JOIN {RELATIONS.format("::json")} USING (id)
    ORDER BY place"""
ALL_MENTIONS = """SELECT DISTINCT entity, chunk FROM entity_mentions WHERE entity IS NOT NULL
    ORDER BY entity, chunk"""


class DatabaseGraph(GraphIndex):
    """The graph as a snapshot sees it; what is asked of it is one query each."""

    def __init__(self, snapshot: "PostgresSnapshot") -> None:
        self._snapshot = snapshot

    @cached_property
    def entities(self) -> Ids:  # type: ignore[override]
        """All row ids of entities, ascending."""
        return self._column("SELECT id FROM entities ORDER BY id")

    @cached_property
    def chunks(self) -> Ids:  # type: ignore[override]
        """All row ids of chunks, ascending."""
        return self._column("SELECT id FROM chunks ORDER BY id")

    def degrees(self, entities: Ids) -> Ids:
        return self._column(DEGREES, entities)

    def relations_of(self, entities: Ids) -> tuple[Ids, Ids]:
        return self._members(RELATIONS_OF, entities)

    def ends(self, relations: Ids) -> Ids:
        return self._columns(2, ENDS, relations).T

    def weights(self, relations: Ids) -> Floats:
        return np.divide(self._column(WEIGHTS, relations), MILLION)

    @property
    def all_ends(self) -> Ids:
        return self._columns(2, "SELECT low, high FROM relations ORDER BY id").T

    def chunks_of(self, entities: Ids) -> tuple[Ids, Ids]:
        return self._members(CHUNKS_OF, entities)

    def entities_of(self, chunks: Ids) -> tuple[Ids, Ids]:
        return self._members(ENTITIES_OF, chunks)

    @property
    def all_mentions(self) -> tuple[Ids, Ids]:
        entities, chunks = self._columns(2, ALL_MENTIONS)
        return entities, chunks

    def _members(self, members: str, owners: Ids) -> tuple[Ids, Ids]:
        which, found = self._columns(2, MEMBERS.format(members), owners)
        return which, found

    def _column(self, query: str, *ids: Ids) -> Ids:
        return self._columns(1, query, *ids).ravel()

    def _columns(self, count: int, query: str, *ids: Ids) -> Ids:
        """The columns of integers that a query about some rows gives."""
        rows = self._snapshot._rows(query, *(one.tolist() for one in ids))
        return np.array(rows, np.int64).reshape(-1, count).T
