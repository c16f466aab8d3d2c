"""The names and contradictions of a graph at a time, and the difference between two times."""

from dataclasses import dataclass

from lightrag_jsonl.core.claims import Conflict, GraphDifference
from lightrag_jsonl.lenses.claims import ClaimIndex
from lightrag_jsonl.lenses.conflicts import find_conflicts
from lightrag_jsonl.storage.views import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphState:
    """The names of entities, and of the ends of relations, and the contradictions of a graph."""

    entities: frozenset[str]
    relations: frozenset[tuple[str, str]]
    conflicts: tuple[Conflict, ...]

    def since(self, before: "GraphState") -> GraphDifference:
        """What is new in this state, and what is gone since an earlier one."""
        known_conflicts = {_sides(conflict) for conflict in before.conflicts}
        new_conflicts = [
            conflict for conflict in self.conflicts if _sides(conflict) not in known_conflicts
        ]
        return GraphDifference(
            new_entities=tuple(sorted(self.entities - before.entities)),
            gone_entities=tuple(sorted(before.entities - self.entities)),
            new_relations=tuple(sorted(self.relations - before.relations)),
            gone_relations=tuple(sorted(before.relations - self.relations)),
            new_conflicts=tuple(new_conflicts),
        )


def read_state(snapshot: Snapshot, index: ClaimIndex) -> GraphState:
    """The present state of a graph."""
    names = snapshot.entity_names(snapshot.graph.entities.tolist())
    relations: set[tuple[str, str]] = set()
    for low, high in snapshot.graph.all_ends.tolist():
        first, second = sorted((names[low], names[high]))
        relations.add((first, second))
    return GraphState(
        entities=frozenset(names.values()),
        relations=frozenset(relations),
        conflicts=find_conflicts(snapshot, index),
    )


def _sides(conflict: Conflict) -> tuple[str, frozenset[tuple[str, str]]]:
    """The identity of a contradiction: the subject, the documents and the sentences."""
    sides = [(claim.document_id, claim.text) for claim in (conflict.first, conflict.second)]
    return conflict.subject, frozenset(sides)
