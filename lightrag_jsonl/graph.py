"""The knowledge graph's shape in memory, by row id; `rag.graph` gives the whole of it to networkx.

Plain dictionaries, as networkx keeps them inside: importing networkx takes longer than answering
a first question, so only who asks for a networkx graph pays for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class KnowledgeGraph:
    """Entities and the relations between them; a pair of entities has one relation at most."""

    def __init__(self) -> None:
        self._relations: dict[int, dict[int, int]] = {}  # entity → neighbour → relation
        self._ends: dict[int, tuple[int, int]] = {}
        self._weights: dict[int, float] = {}

    @property
    def entity_count(self) -> int:
        """Number of entities."""
        return len(self._relations)

    @property
    def relation_count(self) -> int:
        """Number of relations."""
        return len(self._ends)

    def put_entities(self, ids: Iterable[int]) -> None:
        """Add entities; those already there stay as they are."""
        for entity in ids:
            self._relations.setdefault(entity, {})

    def put_relations(self, rows: Iterable[tuple[int, int, int, float]]) -> None:
        """Add or renew relations, each as (id, low, high, weight)."""
        relations = self._relations
        for relation, low, high, weight in rows:
            self._ends[relation] = (low, high)
            self._weights[relation] = weight
            relations.setdefault(low, {})[high] = relation
            relations.setdefault(high, {})[low] = relation

    def drop_entities(self, ids: Iterable[int]) -> None:
        """Remove entities with all their relations; unknown ones are passed over."""
        for entity in ids:
            self.drop_relations(list(self._relations.get(entity, {}).values()))
            self._relations.pop(entity, None)

    def drop_relations(self, ids: Iterable[int]) -> None:
        """Remove relations by their ids; unknown ones are passed over."""
        for relation in ids:
            ends = self._ends.pop(relation, None)
            self._weights.pop(relation, None)
            if ends is not None and self._relations.get(ends[0], {}).get(ends[1]) == relation:
                del self._relations[ends[0]][ends[1]], self._relations[ends[1]][ends[0]]

    def __contains__(self, entity: int) -> bool:
        return entity in self._relations

    def degree(self, entity: int) -> int:
        """Number of relations of an entity; 0 where it is unknown."""
        return len(self._relations.get(entity, ()))

    def relations_of(self, entity: int) -> list[int]:
        """The ids of an entity's relations, ascending."""
        return sorted(self._relations.get(entity, {}).values())

    def ends(self, relation: int) -> tuple[int, int]:
        """The two entities of a relation, the lower id first."""
        return self._ends[relation]

    def weights(self, relations: Iterable[int]) -> list[float]:
        """The weights of relations: of each the sum of its mentions' strengths."""
        return [self._weights[relation] for relation in relations]

    def relation_rows(self) -> Iterator[tuple[int, int, int, float]]:
        """All relations as (id, low, high, weight), in the order of their ids."""
        for relation in sorted(self._ends):
            yield (relation, *self._ends[relation], self._weights[relation])

    def entity_ids(self) -> list[int]:
        """All entities' ids, ascending."""
        return sorted(self._relations)
