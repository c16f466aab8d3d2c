"""GraphIndex agrees with plain dictionaries after any sequence of changes."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.storage.graph_index import GraphIndex, GraphRows, PartialGraph, is_among

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

    def rows(
        self,
        entities: Iterable[int],
        relations: npt.NDArray[np.int64],
        chunks: npt.NDArray[np.int64],
    ) -> GraphRows:
        """The rows with these ids, latest first, each mention twice."""
        relation_ids = [id for id in reversed(relations.tolist()) if id in self.relations]
        chunk_ids = [chunk for chunk in reversed(chunks.tolist()) if chunk in self.mentions]
        pairs = [(entity, chunk) for chunk in chunk_ids for entity in self.mentions[chunk]]
        return GraphRows(
            column(id for id in entities if id in self.entities()),
            column(chunk_ids),
            column([(id, *self.relations[id][0]) for id in relation_ids]).reshape(-1, 3),
            np.array([self.relations[id][1] for id in relation_ids], np.float64),
            column([*pairs, *pairs]).reshape(-1, 2),
        )


states = st.builds(
    State,
    st.dictionaries(st.sampled_from(RELATIONS), st.tuples(ends, st.integers(1, 9)), max_size=6),
    st.dictionaries(st.sampled_from(CHUNKS), st.frozensets(st.sampled_from(ENTITIES))),
)


def column(values: Iterable[object]) -> npt.NDArray[np.int64]:
    """An array of row ids."""
    return np.array(list(values), np.int64)


def check(index: GraphIndex, state: State) -> None:
    """The index says of everything what the dictionaries say."""
    relations = state.relations
    mentions = state.mentions
    relation_ids = sorted(relations)
    entities = [*ENTITIES, 99]
    relations_of = [
        [id for id in relation_ids if entity in relations[id][0]] for entity in entities
    ]
    chunks_of = [
        [chunk for chunk in CHUNKS if entity in mentions.get(chunk, ())] for entity in entities
    ]
    entities_of = [sorted(mentions.get(chunk, ())) for chunk in CHUNKS]
    assert index.entities.tolist() == sorted(state.entities())
    assert index.chunks.tolist() == sorted(mentions)
    assert index.degrees(column(entities)).tolist() == list(map(len, relations_of))
    assert index.mention_counts(column(entities)).tolist() == list(map(len, chunks_of))
    without_mentions = PartialGraph(index, np.transpose(index.all_mentions))
    assert not without_mentions.mention_counts(column(entities)).any()
    for columns, expected in (
        (index.relations_of(column(entities)), relations_of),
        (index.chunks_of(column(entities)), chunks_of),
        (index.entities_of(column(CHUNKS)), entities_of),
    ):
        pairs = [(place, member) for place, members in enumerate(expected) for member in members]
        assert list(zip(*map(np.ndarray.tolist, columns), strict=True)) == pairs
    assert index.all_ends.tolist() == [relations[id][0] for id in relation_ids]
    assert index.ends(column(relation_ids[::-1])).tolist() == index.all_ends[::-1].tolist()
    assert index.weights(column(relation_ids)).tolist() == [relations[id][1] for id in relation_ids]
    all_mentions = [
        [entity, chunk]
        for entity, chunks in zip(entities, chunks_of, strict=True)
        for chunk in chunks
    ]
    assert np.transpose(index.all_mentions).tolist() == all_mentions


def changed_ids(old: Mapping[int, object], new: Mapping[int, object]) -> npt.NDArray[np.int64]:
    """The ids of what was added, changed or deleted."""
    return column(id for id in {*old, *new} if old.get(id) != new.get(id))


@pytest.mark.slow
@given(st.lists(states, min_size=1, max_size=5))
def test_it_agrees_with_dictionaries_after_any_changes(history: list[State]) -> None:
    """An index that caught up with changes, row by row, is the index of the last state."""
    old = State({}, {})
    index = GraphIndex.of(old.rows((), column(()), column(())))
    for new in history:
        entities = column(old.entities() ^ new.entities())
        relations = changed_ids(old.relations, new.relations)
        chunks = changed_ids(old.mentions, new.mentions)
        after = index.updated(entities, relations, chunks, new.rows(entities, relations, chunks))
        check(index, old)  # a search goes on in the old index
        old = new
        index = after
        check(index, old)
    check(GraphIndex.of(old.rows(ENTITIES, column(RELATIONS), column(CHUNKS))), old)


def test_rows_among_others_are_those_that_numpy_finds() -> None:
    rows = np.array([[7, 3], [9, 1], [3, 3]])
    for others in ([], [3], [9, 7, 3, 3], [2, 10]):
        column = np.array(others, np.int64)

        assert is_among(rows, column).tolist() == np.isin(rows, column).tolist()
