"""GraphIndex agrees with plain dictionaries after any sequence of changes."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.storage.graph_index import GraphIndex, GraphRows
from lightrag_jsonl.storage.vector_index import Ids

ENTITIES, RELATIONS, CHUNKS = range(1, 8), range(1, 10), range(1, 6)
ends = st.lists(st.sampled_from(ENTITIES), min_size=2, max_size=2, unique=True).map(sorted)


class State(NamedTuple):
    """The same as the index, in dictionaries; a relation has its two ends and its weight."""

    relations: dict[int, tuple[list[int], int]]
    mentions: dict[int, frozenset[int]]

    def entities(self) -> set[int]:
        """Every entity with a relation or a mention."""
        return {end for pair, _ in self.relations.values() for end in pair}.union(
            *self.mentions.values()
        )

    def rows(self, entities: Iterable[int], relations: Ids, chunks: Ids) -> GraphRows:
        """The rows with these ids, latest first, each mention twice."""
        kept = [id for id in reversed(relations.tolist()) if id in self.relations]
        here = [chunk for chunk in reversed(chunks.tolist()) if chunk in self.mentions]
        pairs = [(entity, chunk) for chunk in here for entity in self.mentions[chunk]]
        return GraphRows(
            column(id for id in entities if id in self.entities()),
            column(here),
            column([(id, *self.relations[id][0]) for id in kept]).reshape(-1, 3),
            np.array([self.relations[id][1] for id in kept], np.float64),
            column([*pairs, *pairs]).reshape(-1, 2),
        )


states = st.builds(
    State,
    st.dictionaries(st.sampled_from(RELATIONS), st.tuples(ends, st.integers(1, 9)), max_size=6),
    st.dictionaries(st.sampled_from(CHUNKS), st.frozensets(st.sampled_from(ENTITIES))),
)


def column(values: Iterable[object]) -> Ids:
    """An array of row ids."""
    return np.array(list(values), np.int64)


def check(index: GraphIndex, state: State) -> None:
    """The index says of everything what the dictionaries say."""
    relations, mentions = state
    asked, ids = [*ENTITIES, 99], sorted(relations)
    around = [[id for id in ids if one in relations[id][0]] for one in asked]
    naming = [[c for c in CHUNKS if one in mentions.get(c, ())] for one in asked]
    named = [sorted(mentions.get(chunk, ())) for chunk in CHUNKS]
    assert index.entities.tolist() == sorted(state.entities())
    assert index.chunks.tolist() == sorted(mentions)
    assert index.degrees(column(asked)).tolist() == list(map(len, around))
    for found, expected in (
        (index.relations_of(column(asked)), around),
        (index.chunks_of(column(asked)), naming),
        (index.entities_of(column(CHUNKS)), named),
    ):
        pairs = [(number, one) for number, row in enumerate(expected) for one in row]
        assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == pairs
    assert index.all_ends.tolist() == [relations[id][0] for id in ids]
    assert index.ends(column(ids[::-1])).tolist() == index.all_ends[::-1].tolist()
    assert index.weights(column(ids)).tolist() == [relations[id][1] for id in ids]
    every = [(one, chunk) for one, row in zip(asked, naming, strict=True) for chunk in row]
    assert np.transpose(index.all_mentions).tolist() == list(map(list, every))


@given(st.lists(states, min_size=1, max_size=5))
def test_it_agrees_with_dictionaries_after_any_changes(history: list[State]) -> None:
    """An index that caught up with changes, row by row, is the index of the last state."""
    old = State({}, {})
    index = GraphIndex(old.rows((), column(()), column(())))
    for new in history:
        entities = column(old.entities() ^ new.entities())
        relations, chunks = (
            column(id for id in {*one, *other} if one.get(id) != other.get(id))
            for one, other in zip(old, new, strict=True)
        )
        after = index.updated(entities, relations, chunks, new.rows(entities, relations, chunks))
        check(index, old)  # a search keeps what it began with
        old, index = new, after
        check(index, old)
    check(GraphIndex(old.rows(ENTITIES, column(RELATIONS), column(CHUNKS))), old)
