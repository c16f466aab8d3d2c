"""The knowledge graph's shape in memory: a networkx graph over row ids, derived from the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx


class KnowledgeGraph:
    """Entities as nodes, relations as edges with an `id` and a `weight`; ids are row ids."""

    def __init__(self) -> None:
        import networkx as nx

        self._graph: nx.Graph = nx.Graph()
        self._ends: dict[int, tuple[int, int]] = {}

    @property
    def entity_count(self) -> int:
        """Number of entities."""
        return int(self._graph.number_of_nodes())

    @property
    def relation_count(self) -> int:
        """Number of relations."""
        return len(self._ends)

    def put_entities(self, ids: Iterable[int]) -> None:
        """Add entities; those already there stay as they are."""
        self._graph.add_nodes_from(ids)

    def put_relations(self, rows: Iterable[tuple[int, int, int, float]]) -> None:
        """Add or renew relations, each as (id, low, high, weight)."""
        for relation, low, high, weight in rows:
            self._ends[relation] = (low, high)
            self._graph.add_edge(low, high, id=relation, weight=weight)

    def drop_entities(self, ids: Iterable[int]) -> None:
        """Remove entities; their relations are dropped with `drop_relations`."""
        self._graph.remove_nodes_from(ids)

    def drop_relations(self, ids: Iterable[int]) -> None:
        """Remove relations by their ids; unknown ones are passed over."""
        for relation in ids:
            ends = self._ends.pop(relation, None)
            if ends is not None and self._graph.has_edge(*ends):
                self._graph.remove_edge(*ends)

    def __contains__(self, entity: int) -> bool:
        return entity in self._graph

    def degree(self, entity: int) -> int:
        """Number of relations of an entity; 0 where it is unknown."""
        return len(self._graph.adj[entity]) if entity in self._graph else 0

    def relations_of(self, entity: int) -> list[int]:
        """The ids of an entity's relations, ascending."""
        if entity not in self._graph:
            return []
        return sorted(data["id"] for data in self._graph.adj[entity].values())

    def ends(self, relation: int) -> tuple[int, int]:
        """The two entities of a relation, the lower id first."""
        return self._ends[relation]

    def weight(self, relation: int) -> float:
        """A relation's weight: the sum of its mentions' strengths."""
        return float(self._graph.edges[self._ends[relation]]["weight"])

    def relation_rows(self) -> Iterable[tuple[int, int, int, float]]:
        """All relations as (id, low, high, weight), in the order of their ids."""
        for relation in sorted(self._ends):
            low, high = self._ends[relation]
            yield relation, low, high, self.weight(relation)

    def entity_ids(self) -> list[int]:
        """All entities' ids, ascending."""
        return sorted(self._graph.nodes)
