"""The candidate relations of an answer, as edges with unique ids."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.options import Selection
from lightrag_jsonl.core.types import Rejection, Relation

ID_LENGTH = 8

Labels: TypeAlias = tuple[str, str, str]  # subject, predicate and object


@dataclass(frozen=True, slots=True)
class Edge:
    """A candidate relation: labels, score and chunks."""

    id: str
    source: str
    predicate: str
    target: str
    chunk_ids: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def labels(self) -> Labels:
        """Subject, predicate and object."""
        return self.source, self.predicate, self.target


@dataclass(frozen=True, slots=True)
class SelectedEdge:
    """A selected edge, with the model's reason or the score that decided."""

    edge: Edge
    reasoning: str | None = None
    score: float | None = None


class EdgeSelection(Struct, frozen=True):
    """The selected relations, best first, and the model's reasons by pairs of ends.

    `method` is the setting for the selection. With `fallback`, rank decided because the model chose
    nothing usable; `error` says why the model could not be asked.
    """

    method: Selection
    relations: tuple[Relation, ...] = ()
    reasons: Mapping[tuple[str, str], str] = msgspec.field(default_factory=dict)
    rejections: tuple[Rejection, ...] = ()
    fallback: bool = False
    error: str | None = None


def candidate_edges(relations: Sequence[Relation]) -> tuple[Edge, ...]:
    """The relations as edges with unique ids."""
    labels = [(relation.source, relation.predicate, relation.target) for relation in relations]
    edges = []
    for id, relation in zip(edge_ids(labels), relations, strict=True):
        edge = Edge(
            id=id,
            source=relation.source,
            predicate=relation.predicate,
            target=relation.target,
            chunk_ids=relation.chunk_ids,
            score=relation.score,
        )
        edges.append(edge)
    return tuple(edges)


def edge_ids(triples: Iterable[Labels]) -> tuple[str, ...]:
    """An id for each triple: the first eight digits of SHA-256 of `source|predicate|target`, more only after a
    collision.
    """
    digests: list[str] = []
    for number, labels in enumerate(triples):
        text = "|".join(labels).encode("utf-8", "surrogatepass")
        # Numbered, since the labels "a|b" and "c" join like "a" and "b|c".
        digests.append(f"{sha256(text).hexdigest()}{number}")
    length = ID_LENGTH
    ids = [digits[:length] for digits in digests]
    while repeated := {id for id, count in Counter(ids).items() if count > 1}:
        length += 1
        ids = [
            digits[:length] if id in repeated else id
            for id, digits in zip(ids, digests, strict=True)
        ]
    return tuple(ids)
