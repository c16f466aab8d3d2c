"""The walk: where it starts, where it leads, and how it says why."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.retrieval import pagerank
from lightrag_jsonl.retrieval.fusion import Hits, SearchQuery, SearchTask, Seeds, Subgraph
from lightrag_jsonl.retrieval.modes import MODES
from lightrag_jsonl.retrieval.pagerank import MENTION, RELATION, START, SYNONYM, WalkGraph
from lightrag_jsonl.storage.vector_index import Floats, Ids, VectorIndex
from tests.kit import entity, reading, relation
from tests.retrieval.conftest import Pipelines, fill


class Edges(NamedTuple):
    """A graph of so many entities and chunks; synonyms are (one, other, similarity)."""

    entities: int
    chunks: int
    mentions: list[tuple[int, int]]
    relations: list[tuple[int, int]]
    synonyms: list[tuple[int, int, float]]

    def built(self) -> WalkGraph:
        """As a graph to walk on."""
        return pagerank.walk_graph(
            np.arange(self.entities),
            np.arange(self.chunks),
            pairs(self.mentions),
            pairs(self.relations),
            pairs([synonym[:2] for synonym in self.synonyms]),
            np.array([near for _, _, near in self.synonyms]),
        )

    def weighted(self) -> list[tuple[int, int, float]]:
        """The edges with their weights, as the specification words them."""
        edges = [(a, b, 1.0) for a, b in self.relations] + self.synonyms
        for one, chunk in self.mentions:
            count = sum(1 for other, _ in self.mentions if other == one)
            edges.append((one, self.entities + chunk, float(np.log(1 + self.chunks / count))))
        total: dict[tuple[int, int], float] = {}
        for a, b, weight in edges:
            total[a, b] = total.get((a, b), 0) + weight
        return [(a, b, weight) for (a, b), weight in total.items()]


def pairs(items: Iterable[tuple[int, ...]]) -> Ids:
    """Pairs as an array."""
    return np.array(list(items), np.int64).reshape(-1, 2)


# Entity 0 in chunk 0; 0 related to 1; 1 like 2; 2 in chunk 1; chunk 2 and entity 3 alone.
CHAIN = Edges(4, 3, [(0, 0), (2, 1)], [(0, 1)], [(1, 2, 0.9)])


def started(graph: WalkGraph, *nodes: int) -> Floats:
    """Weights of a walk that starts at these nodes, each as likely."""
    reset = np.zeros(len(graph.entities) + len(graph.chunks))
    np.add.at(reset, list(nodes), 1 / len(nodes))
    return reset


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    """Small graphs of every kind of edge; a pair may be joined by several kinds."""
    entities, chunks = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    one = st.integers(0, entities - 1)
    pair = st.tuples(one, one).filter(lambda ends: ends[0] < ends[1])
    mention = st.tuples(one, st.integers(0, chunks - 1))
    near = st.lists(pair, max_size=6, unique=True)
    return Edges(
        entities,
        chunks,
        draw(st.lists(mention, max_size=12, unique=True)),
        draw(st.lists(pair, max_size=12, unique=True)),
        [(a, b, 0.8 + 0.03 * n) for n, (a, b) in enumerate(draw(near))],
    )


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 10))
def test_agrees_with_networkx(edges: Edges, start: int) -> None:
    """The shares are those of personalized PageRank as networkx computes it."""
    graph = edges.built()
    size = edges.entities + edges.chunks
    reset = started(graph, 0, start % size)
    matrix = nx.Graph()
    matrix.add_nodes_from(range(size))
    matrix.add_weighted_edges_from(edges.weighted())
    weights = dict(enumerate(reset.tolist()))
    expected = nx.pagerank(
        matrix, pagerank.DAMPING, weights, dangling=weights, tol=1e-9, max_iter=1_000
    )
    found = pagerank.walk(graph, reset, tolerance=1e-8)
    assert found == pytest.approx([expected[node] for node in range(size)], abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.randoms())
def test_order_of_edges_makes_no_difference(edges: Edges, random: Random) -> None:
    """Edges in another order or direction give the same shares."""
    other = edges._replace(
        mentions=edges.mentions[::-1],
        relations=[(b, a) for a, b in random.sample(edges.relations, len(edges.relations))],
        synonyms=edges.synonyms[::-1],
    )
    one, two = edges.built(), other.built()
    reset = started(one, *range(edges.entities + edges.chunks))
    assert pagerank.walk(one, reset) == pytest.approx(pagerank.walk(two, reset), abs=1e-9)


def test_shares_sum_to_one_with_dead_ends() -> None:
    """A walker that cannot go on starts again: nothing is lost. Nowhere to start gives nothing."""
    graph = CHAIN.built()
    assert pagerank.walk(graph, started(graph, 0, 3, 6)).sum() == pytest.approx(1.0)
    assert not pagerank.walk(graph, np.zeros(7)).any()
    assert pagerank.walk(Edges(0, 0, [], [], []).built(), np.zeros(0)).shape == (0,)


def test_the_walk_reaches_what_resemblance_does_not() -> None:
    """From a name through a relation and a synonym to a passage that shares no word with it; and
    the path says how.
    """
    graph = CHAIN.built()
    reset = started(graph, 0)
    shares = pagerank.walk(graph, reset)
    assert shares[4] > shares[5] > 0
    assert shares[6] == shares[3] == 0
    last = pagerank.last_steps(graph, reset)
    path = [(0, START), (1, RELATION), (2, SYNONYM), (5, MENTION)]
    assert pagerank.path_to(graph, last, 5) == path
    assert pagerank.path_to(graph, last, 0) == [(0, START)]


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 10))
def test_every_path_begins_at_a_start(edges: Edges, start: int) -> None:
    """The path to each node that is reached consists of edges of the graph, passes no node twice,
    and begins where the walk began.
    """
    graph = edges.built()
    reset = started(graph, 0, 0, start % (edges.entities + edges.chunks))
    last = pagerank.last_steps(graph, reset)
    joined = {frozenset(edge[:2]) for edge in edges.weighted()}
    for node in np.flatnonzero(pagerank.walk(graph, reset) > 0).tolist():
        nodes = [each for each, _ in pagerank.path_to(graph, last, node)]
        assert nodes[-1] == node and len(set(nodes)) == len(nodes)
        assert all(frozenset(pair) in joined for pair in pairwise(nodes))
        assert reset[nodes[0]] > 0


# ── on an index ─────────────────────────────────────────────────────────────────

TEXTS = {
    "a": ("Ann met Bob.", [entity("Ann"), entity("Bob"), relation("Ann", "Bob")]),
    "b": ("Bob met Cem.", [entity("Bob"), entity("Cem"), relation("Bob", "Cem")]),
    "c": ("Cem met Dee.", [entity("Cem"), entity("Dee"), relation("Cem", "Dee")]),
    "d": ("Eve met Fay.", [entity("Eve"), entity("Fay"), relation("Eve", "Fay")]),
}


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index in which one leads to the next."""
    folder = tmp_path_factory.mktemp("met")
    fill(folder, [(Document(text, id=id), records) for id, (text, records) in TEXTS.items()])
    return folder


async def test_the_walk_leads_from_a_name_to_the_next(met: Path, pipelines: Pipelines) -> None:
    """The nearer, the better, strangers last; and each hit says how it was found."""
    param = QueryParam(mode="walk", ll_keywords=("Ann",), lexical=False)
    context = await pipelines(met, embedder=Blind()).retrieve("Ann", param)
    assert [chunk.document_id for chunk in context.chunks] == ["a", "b", "c", "d"]
    assert context.chunks[0].why == "Ann (named in the question: Ann); mentioned with a passage"
    whys = {entity.name: entity.why for entity in context.entities}
    assert next(iter(whys)) == "Ann" and whys["Ann"] == "Ann (named in the question: Ann)"
    assert whys["Cem"].startswith("Ann (named in the question: Ann); related to Bob")
    assert whys["Eve"].startswith("a passage (near the question)")


class Blind:
    """An embedder that tells no text from another."""

    name, dim = "blind", 1024

    async def embed(self, texts: list[str], *, kind: str) -> Floats:
        """The same vector for all, at a right angle to those of the index."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        vectors[:, 0] = 1
        return vectors


def start_weights(folder: Path, named: dict[str, float], dense: dict[int, float]) -> Floats:
    """Where a walk over the whole index starts."""
    with reading(folder) as snapshot:
        rows = snapshot.entity_ids([name.lower() for name in named])
        seeds = Seeds(
            named={rows[name.lower()]: near for name, near in named.items()},
            lexical=Hits.of(list(dense), list(dense.values())),
        )
        found = Subgraph(Hits.of(snapshot.graph.entities, np.zeros(len(snapshot.graph.entities))))
        query = SearchQuery("?", lexical=False)
        task = SearchTask(snapshot, query, MODES["mix"], QueryParam(), 20)
        graph = pagerank.neighbourhood(task, seeds, found)
        return pagerank.start_weights(task, graph, seeds)


def test_common_names_weigh_less(met: Path) -> None:
    """A name counts by its likeness over the number of chunks that mention it."""
    weights = start_weights(met, {"Ann": 1.0, "Bob": 0.8}, {})
    assert sorted(weights[weights > 0].tolist()) == pytest.approx([0.4 / 1.4, 1 / 1.4])


@pytest.mark.parametrize("scale", [0.01, 1, 100])
def test_weights_do_not_depend_on_scales(met: Path, scale: float) -> None:
    """All near chunks together have a fixed share, the nearest the most, one without relevance none."""
    weights = start_weights(met, {"Ann": scale / 100}, {1: 3 * scale, 2: scale, 3: 0.0})
    names, chunks = weights[:-4], weights[-4:]
    share = pagerank.NEAR_WEIGHT[False] / (1 + pagerank.NEAR_WEIGHT[False])
    assert names.sum() == pytest.approx(1 - share) and chunks.sum() == pytest.approx(share)
    assert chunks.argmax() == 0 and chunks[3] == 0


# ── synonyms ────────────────────────────────────────────────────────────────────


class Vectors:
    """A snapshot that knows vectors only, in families of about ten that are nearly alike; the first
    five rows have none.
    """

    def __init__(self, ids: Ids, dim: int) -> None:
        random, count = np.random.default_rng(len(ids)), len(ids)
        heads = random.standard_normal((count // 10, dim))[random.integers(0, count // 10, count)]
        rows = heads + random.standard_normal((count, dim)) * random.uniform(0.1, 0.9, (count, 1))
        self.rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        self.rows[:5] = 0
        self.index = VectorIndex(dim)
        self.index.update(ids[5:], self.rows[5:])

    def vector_matrix(self, kind: str, rows: Ids) -> Floats:
        return self.index.matrix(rows)  # type: ignore[return-value]

    def search_vectors(self, kind: str, queries: Any, *more: Any) -> tuple[Ids, Floats]:
        return self.index.search(queries, *more)


@pytest.mark.parametrize(("count", "dim", "leading"), [(200, 384, 40), (150, 7, 9), (30, 64, 1)])
def test_synonyms_are_those_of_every_pair(count: int, dim: int, leading: int) -> None:
    """At most five for each that leads, never itself, each pair once; one without a vector has none."""
    ids = np.arange(1, 1 + count) * 3
    vectors = Vectors(ids, dim)
    found, similarities = pagerank.synonyms(vectors, ids[::-1][:leading], ids)  # type: ignore[arg-type]
    exact = vectors.rows.astype(np.float64) @ vectors.rows.T.astype(np.float64)
    np.fill_diagonal(exact, 0)
    expected: dict[tuple[int, int], float] = {}
    for one in range(count - 1, count - 1 - leading, -1):
        for other in np.argsort(-exact[one])[: pagerank.SYNONYMS].tolist():
            if exact[one, other] >= pagerank.SYNONYM_SIMILARITY:
                pair = (ids[min(one, other)], ids[max(one, other)])
                expected[pair] = exact[one, other]
    assert [tuple(pair) for pair in found.tolist()] == sorted(expected)
    near = pytest.approx([expected[pair] for pair in sorted(expected)], abs=1e-5)
    assert similarities.tolist() == near and len(expected) >= leading // 2
    assert [len(part) for part in pagerank.synonyms(vectors, ids[:3], ids)] == [0, 0]  # type: ignore[arg-type]
