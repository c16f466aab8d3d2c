"""The walk: where it starts, where it leads, and how it says why."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.querying import walk
from lightrag_jsonl.querying.transitions import Ints, LargeMatrix, SmallMatrix
from lightrag_jsonl.querying.walk import Edges, Seed, Step, WalkGraph
from lightrag_jsonl.vectors import VectorIndex


def pairs(*items: tuple[int, int]) -> Ints:
    """Pairs as an array."""
    return np.array(items, np.int64).reshape(-1, 2)


def chain() -> WalkGraph:
    """Entity 0 in chunk 0; 0 related to 1; 1 like 2; 2 in chunk 1; chunk 2 and entity 3 alone."""
    return WalkGraph(
        4,
        3,
        Edges(pairs((0, 0), (2, 1)), pairs((0, 1)), pairs((1, 2)), np.array([0.9], np.float32)),
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, int, Edges]:
    """Small graphs of every kind of edge; a pair may be joined by several kinds."""
    entities, chunks = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    entity, chunk = st.integers(0, entities - 1), st.integers(0, chunks - 1)
    pair = st.tuples(entity, entity).filter(lambda ends: ends[0] < ends[1])
    mentions = draw(st.lists(st.tuples(entity, chunk), max_size=12, unique=True))
    relations = draw(st.lists(pair, max_size=12, unique=True))
    synonyms = draw(st.lists(pair, max_size=6, unique=True))
    near = np.linspace(0.8, 1.0, len(synonyms), dtype=np.float32)
    return entities, chunks, Edges(pairs(*mentions), pairs(*relations), pairs(*synonyms), near)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 10), st.sampled_from([0.3, 0.5, 0.85]))
def test_agrees_with_networkx(graph: tuple[int, int, Edges], start: int, damping: float) -> None:
    """The shares are those of personalized PageRank as networkx computes it."""
    entities, chunks, edges = graph
    built = WalkGraph(entities, chunks, edges)
    reset = np.zeros(len(built), np.float32)
    reset[start % len(built)] = 2
    reset[0] += 1
    matrix = nx.Graph()
    matrix.add_nodes_from(range(len(built)))
    matrix.add_weighted_edges_from(expected_edges(entities, chunks, edges))
    expected = nx.pagerank(
        matrix,
        alpha=damping,
        personalization=dict(enumerate(reset.tolist())),
        dangling=dict(enumerate(reset.tolist())),
        tol=1e-9,
        max_iter=1_000,
    )
    found = built.walk(reset, damping=damping, tolerance=1e-7)
    assert found == pytest.approx([expected[node] for node in range(len(built))], abs=1e-4)


def expected_edges(entities: int, chunks: int, edges: Edges) -> list[tuple[int, int, float]]:
    """The weighted edges as the specification words them."""
    mentions = {(e, c) for e, c in edges.mentions.tolist()}
    total: dict[tuple[int, int], float] = {}
    for e, c in mentions:
        frequency = sum(1 for other, _ in mentions if other == e)
        total[e, entities + c] = float(np.log(1 + chunks / frequency))
    for a, b in {(min(p), max(p)) for p in edges.relations.tolist() if p[0] != p[1]}:
        total[a, b] = total.get((a, b), 0) + 1
    near: dict[tuple[int, int], float] = {}
    for p, value in zip(edges.synonyms.tolist(), edges.similarities.tolist(), strict=True):
        if p[0] != p[1]:
            near[min(p), max(p)] = max(near.get((min(p), max(p)), 0), value)
    for pair, value in near.items():
        total[pair] = total.get(pair, 0) + value
    return [(a, b, value) for (a, b), value in total.items()]


@settings(max_examples=30, deadline=None)
@given(graphs(), st.randoms())
def test_order_of_edges_makes_no_difference(graph: tuple[int, int, Edges], random: Random) -> None:
    """Edges in another order or direction give the same shares."""
    entities, chunks, edges = graph
    shuffled = random.sample(range(len(edges.relations)), len(edges.relations))
    other = Edges(
        edges.mentions[::-1],
        edges.relations[shuffled][:, ::-1],
        edges.synonyms[::-1],
        edges.similarities[::-1],
    )
    reset = np.ones(entities + chunks, np.float32)
    one, two = (
        WalkGraph(entities, chunks, each).walk(reset, tolerance=1e-7) for each in (edges, other)
    )
    assert one == pytest.approx(two, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10))
def test_small_and_large_matrices_agree(graph: tuple[int, int, Edges], start: int) -> None:
    """Both tell the same products, the same rows, and the same greatest parts of them."""
    entities, chunks, edges = graph
    size = entities + chunks
    ones, others = edges.mentions.T + np.array([[0], [entities]])
    rows, columns = np.concatenate([ones, others]), np.concatenate([others, ones])
    values = np.linspace(0.1, 1, len(rows)).astype(np.float32)
    small, large = (kind(values, rows, columns, size) for kind in (SmallMatrix, LargeMatrix))
    vector = np.roll(np.linspace(0, 1, size), start).astype(np.float32)
    assert small @ vector == pytest.approx(large @ vector, abs=1e-6)
    one, two = small.greatest(vector), large.greatest(vector)
    for row in range(size):
        assert one(row)[1] == pytest.approx(two(row)[1], abs=1e-6)
        assert sorted(zip(*small.row(row), strict=True)) == sorted(
            zip(*large.row(row), strict=True)
        )
        column, most = one(row)
        assert (column < 0) == (most == 0)
        assert column < 0 or column in large.row(row)[0]


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10), st.lists(st.integers(0, 4), min_size=5, max_size=5))
def test_leaves_need_no_nodes(graph: tuple[int, int, Edges], start: int, counts: list[int]) -> None:
    """Entities that one chunk alone leads to may be counted instead: all others keep their shares."""
    entities, chunks, edges = graph
    leaves = np.array(counts[:chunks] + [0] * (chunks - len(counts)), np.int64)
    more = [(entities + n, c) for n, c in enumerate(np.repeat(np.arange(chunks), leaves).tolist())]
    whole = WalkGraph(
        entities + len(more),
        chunks,
        replace(edges, mentions=np.concatenate([edges.mentions, pairs(*more)])),
    )
    counted = WalkGraph(entities, chunks, replace(edges, leaves=leaves))
    node = start % entities
    one, two = (np.eye(1, len(built), node, dtype=np.float32)[0] for built in (whole, counted))
    one, two = whole.walk(one, tolerance=1e-7), counted.walk(two, tolerance=1e-7)
    assert two[:entities] == pytest.approx(one[:entities], abs=1e-5)
    assert two[entities:] == pytest.approx(one[entities + len(more) :], abs=1e-5)


def test_shares_sum_to_one_with_dead_ends() -> None:
    """A walker that cannot go on starts again: nothing is lost."""
    graph = chain()
    reset = np.zeros(len(graph), np.float32)
    reset[[0, 3, 6]] = 1
    assert graph.walk(reset).sum() == pytest.approx(1.0, abs=1e-3)


def test_nowhere_to_start_gives_nothing() -> None:
    """No seed and no near chunk: zeros, not a uniform guess. An empty graph can be walked too."""
    assert not chain().walk(walk.reset_vector(chain(), [])).any()
    empty = WalkGraph(0, 0, Edges())
    assert empty.walk(walk.reset_vector(empty, [])).shape == (0,)


def test_walk_reaches_what_resemblance_does_not() -> None:
    """From a name through a relation and a synonym to a passage that shares no word with it."""
    graph = chain()
    shares = graph.walk(walk.reset_vector(graph, [Seed(0, 1.0, "named")]))
    assert shares[4] > shares[5] > 0
    assert shares[6] == shares[3] == 0


def test_path_says_how() -> None:
    """Each hit has its way back to a seed, with the kind of every edge."""
    graph = chain()
    reset = walk.reset_vector(graph, [Seed(0, 1.0, "named")])
    steps = walk.Paths(graph, graph.walk(reset), reset).to(5)
    assert steps == (
        Step(0, "seed"),
        Step(1, "relation"),
        Step(2, "synonym"),
        Step(5, "mention"),
    )
    told = walk.why(steps, {0: "named in the question: Hayek"}, lambda node: f"n{node}")
    assert told == (
        "n0 (named in the question: Hayek); related to n1; nearly the same as n2; mentioned with n5"
    )


def test_path_of_a_seed_is_itself() -> None:
    """What the walk started from, and what nothing leads to, needs no way."""
    graph = chain()
    reset = walk.reset_vector(graph, [Seed(3, 1.0, "named")])
    shares = graph.walk(reset)
    assert walk.Paths(graph, shares, reset).to(3) == (Step(3, "seed"),)
    assert walk.Paths(graph, shares, reset).to(0) == (Step(0, "seed"),)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10))
def test_every_path_begins_at_a_start(graph: tuple[int, int, Edges], start: int) -> None:
    """For every hit the way is made of edges of the graph and begins where the walk began."""
    entities, chunks, edges = graph
    built = WalkGraph(entities, chunks, edges)
    reset = np.zeros(len(built), np.float32)
    reset[start % len(built)] = 1
    shares = built.walk(reset)
    joined = {frozenset(edge[:2]) for edge in expected_edges(entities, chunks, edges)}
    paths = walk.Paths(built, shares, reset, limit=20)
    for node in np.flatnonzero(shares > 1e-3).tolist():
        nodes = [step.node for step in paths.to(node)]
        assert reset[nodes[0]] > 0
        assert nodes[-1] == node
        assert all(frozenset(pair) in joined for pair in pairwise(nodes))


# ── where it starts ─────────────────────────────────────────────────────────────


def test_common_names_weigh_less() -> None:
    """A name counts by its similarity over the chunks that mention it; a far one not at all."""
    graph = WalkGraph(3, 4, Edges(pairs((0, 0), (0, 1), (0, 2), (0, 3), (1, 0))))
    seeds = walk.name_seeds(
        graph, ["India", "Gisvi", "X", "?"], [0, 1, 2, -1], [1.0, 0.8, 0.7, 1.0]
    )
    assert [(seed.node, seed.weight) for seed in seeds] == [(0, 0.25), (1, 0.8)]
    assert seeds[1].why == "named in the question: Gisvi"


def test_one_relation_seeds_both_ends() -> None:
    """The relation nearest to the question seeds its ends, if it is near at all."""
    graph = chain()
    assert [seed.node for seed in walk.relation_seeds(graph, (0, 1), 0.6, "a — b")] == [0, 1]
    assert [seed.node for seed in walk.relation_seeds(graph, (-1, 1), 0.6, "a — b")] == [1]
    assert walk.relation_seeds(graph, (0, 1), 0.4, "a — b") == []


def test_shares_do_not_depend_on_scales() -> None:
    """Seeds together are 1, near chunks together `mass`, whatever their sizes."""
    graph = WalkGraph(2, 500, Edges(pairs((0, 0), (1, 1))))
    chunks, near = np.arange(500), np.linspace(0.1, 0.9, 500, dtype=np.float32)
    for weight, scale in ((1.0, 1), (0.001, 1), (1.0, 100)):
        seeds = [Seed(0, weight, ""), Seed(0, weight / 2, ""), Seed(1, weight, "")]
        reset = walk.reset_vector(graph, seeds, chunks, near * np.float32(scale))
        assert reset[:2].tolist() == [0.5, 0.5]
        assert reset[2:].sum() == pytest.approx(walk.MEANINGS.mass, abs=1e-5)
        assert np.count_nonzero(reset[2:]) <= walk.NEAR_CHUNKS
        assert reset[-1] == reset[2:].max()


def test_what_is_not_near_is_no_start() -> None:
    """Chunks without any relevance are left alone; one that stands alone is a start."""
    graph = chain()
    near = np.array([0, -0.2, 0], np.float32)
    assert not walk.reset_vector(graph, [], np.arange(3), near).any()
    near[1] = 0.3
    assert np.flatnonzero(walk.reset_vector(graph, [], np.arange(3), near)).tolist() == [5]


def test_relevance_takes_either_lane() -> None:
    """Words decide where vectors are missing, and the other way round."""
    none, some = np.zeros(3, np.float32), np.array([1, 3, 2], np.float32)
    assert walk.relevance(none, some).argmax() == walk.relevance(some, none).argmax() == 1
    assert walk.relevance(none[:0], none[:0]).shape == (0,)


def test_synonyms_are_near_few_and_others() -> None:
    """At most five neighbours over the threshold for each, never itself; each pair once."""
    vectors = np.zeros((9, 16), np.float32)
    vectors[:8, 0] = 1
    vectors[8, 1] = 1
    index, ids = VectorIndex(16), np.arange(10, 19)
    index.update(ids, vectors)
    near, cosines = index.search(vectors, 8)
    found, similarities = walk.synonym_edges(ids.repeat(8), near.ravel(), cosines.ravel())
    asked = {(one, other) for one in range(10, 18) for other in range(10, 18) if one != other}
    first = {(a, b) for a, b in asked if sum((a, c) in asked for c in range(10, b)) < 5}
    assert [tuple(pair) for pair in found.tolist()] == sorted(
        {(min(pair), max(pair)) for pair in first}
    )
    assert (similarities >= walk.SYNONYM_SIMILARITY).all()
