"""Edge identity: short ids for the candidates of one query, and the reading of a selection by them."""

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
    """A relation as a candidate of one query: its labels, its rank's score, the chunks it came from."""

    id: str
    source: str
    predicate: str
    target: str
    chunk_ids: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def labels(self) -> tuple[str, str, str]:
        """Subject, predicate and object in words."""
        return self.source, self.predicate, self.target


@dataclass(frozen=True, slots=True)
class SelectedEdge:
    """A candidate that was chosen, with the model's own reason or the score that chose it."""

    edge: Edge
    reasoning: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """A selection answer, resolved: the chosen edges in the model's order, and what was refused."""

    selected: tuple[SelectedEdge, ...] = ()
    rejections: tuple[Rejection, ...] = ()


def edge_id(source: str, predicate: str, target: str, *, length: int = ID_LENGTH) -> str:
    """The first digits of sha256 of `source|predicate|target`.

    Past 64 digits a second hash goes on that no `|` inside a label can confuse, so that two
    different edges always differ at some length.
    """
    joined = _hex("|".join((source, predicate, target)))
    if length <= len(joined):
        return joined[:length]
    return (joined + _hex(json.dumps([source, predicate, target])))[:length]


def candidate_edges(relations: Iterable[Relation]) -> tuple[Edge, ...]:
    """The candidates in the order given, each once, with ids that differ from each other."""
    distinct: dict[tuple[str, str, str], Relation] = {}
    for relation in relations:
        distinct.setdefault((relation.source, relation.predicate, relation.target), relation)
    return tuple(
        Edge(name, *labels, chunk_ids=relation.chunk_ids, score=relation.score)
        for name, (labels, relation) in zip(edge_ids(list(distinct)), distinct.items(), strict=True)
    )


def edge_ids(triples: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    """An id for each triple, longer than eight digits only where different triples collide."""
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
    """Find the chosen edges by id; unknown and repeated ids become rejections on record."""
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
    """The id as a model may have written it: a number of digits only, brackets, capitals."""
    return str(value).strip().strip("[]#").lower() if isinstance(value, (str, int)) else ""


def _reason(value: Json) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _rejection(line: int, record: Record, reason: RejectionReason, detail: str) -> Rejection:
    return Rejection(line, json.dumps(record, ensure_ascii=False), reason, detail)
