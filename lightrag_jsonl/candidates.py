"""Short ids for the candidate edges of one query, and the reading of a selection made by these ids."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lightrag_jsonl.types import Json, JsonlResult, Record, Rejection, RejectionReason, Relation

ID_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation as a candidate: its labels, the score of its rank, and the chunks it came from."""

    id: str
    source: str
    predicate: str
    target: str
    chunk_ids: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def labels(self) -> tuple[str, str, str]:
        """Subject, predicate and object."""
        return self.source, self.predicate, self.target


@dataclass(frozen=True, slots=True)
class SelectedEdge:
    """A chosen candidate, with the model's reason or the score by which it was chosen."""

    edge: Edge
    reasoning: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The chosen edges in the model's order, and what was refused."""

    selected: tuple[SelectedEdge, ...] = ()
    rejections: tuple[Rejection, ...] = ()


def edge_id(source: str, predicate: str, target: str, *, length: int = ID_LENGTH) -> str:
    """The first `length` digits of SHA-256 of `source|predicate|target`.

    Beyond 64 digits those of a second hash follow, in which a `|` inside a label cannot be mistaken
    for a separator: two different edges always differ at some length.
    """
    joined = _hex("|".join((source, predicate, target)))
    if length <= len(joined):
        return joined[:length]
    return (joined + _hex(json.dumps([source, predicate, target])))[:length]


def candidate_edges(relations: Iterable[Relation]) -> tuple[Edge, ...]:
    """The relations as candidates in the order given, without repetitions, each with a unique id."""
    distinct: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        distinct.setdefault((relation.source, relation.predicate, relation.target), relation)
    return tuple(
        Edge(name, *labels, chunk_ids=relation.chunk_ids, score=relation.score)
        for name, (labels, relation) in zip(edge_ids(list(distinct)), distinct.items(), strict=True)
    )


def edge_ids(triples: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    """An id for each triple: eight digits, more only if different triples collide."""
    alike: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    short = [edge_id(*triple) for triple in triples]
    for name, triple in zip(short, triples, strict=True):
        alike[name].add(triple)
    lengths = {name: _distinct_length(group) for name, group in alike.items() if len(group) > 1}
    return tuple(
        edge_id(*triple, length=lengths[name]) if name in lengths else name
        for name, triple in zip(short, triples, strict=True)
    )


def resolve_selection(result: JsonlResult, candidates: Iterable[Edge]) -> Resolution:
    """Find the chosen edges by id; unknown and repeated ids become rejections."""
    table = {edge.id: edge for edge in candidates}
    chosen: dict[str, SelectedEdge] = {}
    refused = list(result.rejections)
    for line, record in zip(result.line_numbers, result.records, strict=True):
        name = _written_id(record.get("id"))
        if name not in table:
            refused.append(_rejection(line, record, "unknown_id", f"no candidate has id {name!r}"))
        elif name in chosen:
            refused.append(_rejection(line, record, "duplicate_id", f"{name!r} was chosen before"))
        else:
            chosen[name] = SelectedEdge(table[name], reasoning=_reason(record.get("reasoning")))
    refused.sort(key=lambda rejection: rejection.line)
    return Resolution(tuple(chosen.values()), tuple(refused))


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _distinct_length(group: set[tuple[str, str, str]]) -> int:
    length = ID_LENGTH
    while len({edge_id(*triple, length=length) for triple in group}) < len(group):
        length += 1
    return length


def _written_id(value: Json) -> str:
    """The id a model meant, written as a number, in brackets or in capitals."""
    return str(value).strip().strip("[]#").lower() if isinstance(value, (str, int)) else ""


def _reason(value: Json) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _rejection(line: int, record: Record, reason: RejectionReason, detail: str) -> Rejection:
    return Rejection(line, json.dumps(record, ensure_ascii=False), reason, detail)
