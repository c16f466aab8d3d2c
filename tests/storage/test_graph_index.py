"""GraphIndex agrees with plain dictionaries after any sequence of changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.storage.graph_index import GraphIndex, GraphRows
from lightrag_jsonl.storage.vector_index import Ids

ENTITIES, CHUNKS = range(1, 8), range(1, 6)
pairs = st.tuples(st.sampled_from(ENTITIES), st.sampled_from(ENTITIES)).filter(
    lambda pair: pair[0] < pair[1]
)
relations = st.dictionaries(st.integers(1, 9), st.tuples(pairs, st.integers(1, 9)), max_size=6)
mentions = st.dictionaries(st.sampled_from(CHUNKS), st.frozensets(st.sampled_from(ENTITIES)))
states = st.tuples(relations, mentions)
State = tuple[dict[int, tuple[tuple[int, int], int]], dict[int, frozenset[int]]]


@dataclass
class Model:
    """The same as the index, in dictionaries."""

    relations: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)
    mentions: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def entities(self) -> set[int]:
        """Every entity with a relation or a mention."""
        ends = {end for pair, _ in self.relations.values() for end in pair}
        return ends.union(*self.mentions.values())

    def rows(self, entities: Ids, relations: Ids, chunks: Ids) -> GraphRows:
        """The rows with these ids, latest first, each mention twice."""
        kept = [id for id in reversed(relations.tolist()) if id in self.relations]
        around = [(id, *self.relations[id][0]) for id in kept]
        mentioned = [
            (entity, chunk)
            for chunk in reversed(chunks.tolist())
            for entity in sorted(self.mentions.get(chunk, ()))
        ]
        return GraphRows(
            column([id for id in entities.tolist() if id in self.entities]),
            column([chunk for chunk in chunks.tolist() if chunk in self.mentions]),
            column(around).reshape(-1, 3),
            np.array([self.relations[id][1] for id in kept], np.float64),
            column([*mentioned, *mentioned]).reshape(-1, 2),
        )

    def index(self) -> GraphIndex:
        """The index of all rows."""
        return GraphIndex(self.rows(column(ENTITIES), column(range(1, 10)), column(CHUNKS)))


def column(values: object) -> Ids:
    """An array of row ids."""
    return np.array(list(values), np.int64)  # type: ignore[call-overload]


def touched(old: Model, new: Model) -> tuple[Ids, Ids, Ids]:
    """The entities, relations and chunks that differ."""
    relations = [id for id in range(1, 10) if old.relations.get(id) != new.relations.get(id)]
    chunks = [chunk for chunk in CHUNKS if old.mentions.get(chunk) != new.mentions.get(chunk)]
    return column(old.entities ^ new.entities), column(relations), column(chunks)


def check(index: GraphIndex, model: Model) -> None:
    """The index says of everything what the model says."""
    asked = column([*ENTITIES, 99])
    ids = sorted(model.relations)
    around = {e: [id for id in ids if e in model.relations[id][0]] for e in asked.tolist()}
    naming = {
        e: sorted(c for c in CHUNKS if e in model.mentions.get(c, ())) for e in asked.tolist()
    }
    assert index.entities.tolist() == sorted(model.entities)
    assert index.chunks.tolist() == sorted(model.mentions)
    assert index.degrees(asked).tolist() == [len(around[e]) for e in asked.tolist()]
    assert listed(index.relations_of(asked)) == listed_of(around.values())
    assert listed(index.chunks_of(asked)) == listed_of(naming.values())
    chunks = column([*CHUNKS, 99])
    assert listed(index.entities_of(chunks)) == listed_of(
        sorted(model.mentions.get(chunk, ())) for chunk in chunks.tolist()
    )
    assert index.all_ends.tolist() == [list(model.relations[id][0]) for id in ids]
    assert index.ends(column(ids[::-1])).tolist() == index.all_ends[::-1].tolist()
    assert index.weights(column(ids)).tolist() == [model.relations[id][1] for id in ids]
    assert listed(index.all_mentions) == [(e, c) for e in sorted(ENTITIES) for c in naming[e]]


def listed(columns: tuple[Ids, Ids]) -> list[tuple[int, int]]:
    """Two columns as pairs."""
    return list(zip(columns[0].tolist(), columns[1].tolist(), strict=True))


def listed_of(members: object) -> list[tuple[int, int]]:
    """(index, member) pairs of lists of members."""
    return [(number, one) for number, row in enumerate(members) for one in row]  # type: ignore[call-overload]


@given(st.lists(states, min_size=1, max_size=5))
def test_it_agrees_with_dictionaries_after_any_changes(history: list[State]) -> None:
    """An index that caught up with changes, row by row, is the index of the last state."""
    model, index = Model(), Model().index()
    for relations, mentions in history:
        new = Model(relations, mentions)
        changed = touched(model, new)
        after = index.updated(*changed, new.rows(*changed))
        check(index, model)  # a search keeps what it began with
        model, index = new, after
        check(index, model)
    check(model.index(), model)
