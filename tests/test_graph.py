"""The graph in memory agrees with networkx after any sequence of changes."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.graph import KnowledgeGraph

entities = st.integers(1, 8)
pairs = st.tuples(entities, entities).filter(lambda pair: pair[0] < pair[1])
changes = st.lists(
    st.one_of(
        st.tuples(st.just("put"), pairs, st.integers(1, 9)),
        st.tuples(st.just("drop"), pairs, st.just(0)),
        st.tuples(st.just("entity"), pairs, st.just(0)),
        st.tuples(st.just("gone"), pairs, st.just(0)),
    )
)


@given(changes)
def test_it_agrees_with_networkx(steps: list[tuple[str, tuple[int, int], int]]) -> None:
    """Degrees, relations, ends and weights are those of a networkx graph that saw the same."""
    ours, theirs = KnowledgeGraph(), nx.Graph()
    for kind, (low, high), weight in steps:
        relation = low * 10 + high
        if kind == "put":
            ours.put_relations([(relation, low, high, float(weight))])
            theirs.add_edge(low, high, id=relation, weight=float(weight))
        elif kind == "drop":
            ours.drop_relations([relation])
            theirs.remove_edges_from([(low, high)])
        elif kind == "entity":
            ours.put_entities([low])
            theirs.add_node(low)
        else:
            ours.drop_entities([low])
            theirs.remove_nodes_from([low])
    assert ours.entity_ids() == sorted(theirs)
    assert list(ours.relation_rows()) == sorted(
        (data["id"], min(ends), max(ends), data["weight"])
        for *ends, data in theirs.edges(data=True)
    )
    for entity in range(1, 9):
        assert ours.degrees([entity]).tolist() == [theirs.degree[entity] if entity in theirs else 0]
        assert (entity in ours) == (entity in theirs)
    for relation in (data["id"] for *_, data in theirs.edges(data=True)):
        assert ours.ends([relation]).tolist() == [[relation // 10, relation % 10]]


def test_relations_come_in_the_order_of_their_ids() -> None:
    """Arrival order never shows."""
    graph = KnowledgeGraph()
    graph.put_relations([(9, 1, 4, 1.0), (3, 1, 2, 2.0), (5, 1, 3, 0.5)])
    assert graph.relations_of([1])[1].tolist() == [3, 5, 9]
    assert [row[0] for row in graph.relation_rows()] == [3, 5, 9]
    assert graph.weights([3]).tolist() == [2.0]


def test_relations_are_renewed_in_one_change() -> None:
    """What is put instead of others takes their place; of an id that comes twice the last counts."""
    graph = KnowledgeGraph()
    graph.put_relations([(1, 1, 2, 1.0), (2, 2, 3, 1.0), (3, 3, 4, 1.0)])
    graph.put_relations([(2, 5, 6, 2.0), (2, 5, 6, 4.0), (9, 1, 5, 1.0)], instead_of=[3, 77])
    assert list(graph.relation_rows()) == [(1, 1, 2, 1.0), (2, 5, 6, 4.0), (9, 1, 5, 1.0)]
    assert graph.degrees([1, 2, 3, 4, 5, 6]).tolist() == [2, 1, 0, 0, 2, 1]
    assert graph.ends([9, 2]).tolist() == [[1, 5], [5, 6]]
