"""The walk: where it starts, where it leads, and how it says why."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import Document, QueryParam
from lightrag_jsonl.core.modes import MODES, Mode
from lightrag_jsonl.retrieval import pagerank, ranking
from lightrag_jsonl.retrieval.hits import Hits
from lightrag_jsonl.retrieval.pagerank import WalkGraph
from lightrag_jsonl.retrieval.task import SearchQuery, SearchTask, Seeds, Subgraph
from lightrag_jsonl.storage.vector_index import HALF, Floats, Ids, VectorBlock, VectorIndex
from lightrag_jsonl.testing import HashEmbedder
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
        cosines = np.array([cosine for *_, cosine in self.synonyms])
        return pagerank.connect_nodes(
            np.arange(self.entities),
            np.arange(self.chunks),
            mentions=pairs(self.mentions),
            preferences=np.ones(len(self.mentions)),
            relations=pairs(self.relations),
            synonyms=(pairs(synonym[:2] for synonym in self.synonyms), cosines),
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


@pytest.mark.slow
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
    found = pagerank.walk(graph, reset, change_limit=1e-8)
    assert found == pytest.approx([expected[node] for node in range(size)], abs=1e-5)


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
    """The nearer, the better, strangers last; and each passage says how it was found."""
    param = QueryParam(mode="mix", ll_keywords=("Ann",), lexical=False, relevance_floor=0)
    context = await pipelines(met, embedder=Blind()).retrieve("Ann", param)
    assert [chunk.document_id for chunk in context.chunks] == ["a", "b", "c", "d"]
    assert context.chunks[0].why == "Ann (named in the question: Ann); mentioned with a passage"
    assert context.chunks[3].why.startswith("a passage (near the question)")


REPORTS = {
    f"report-{number}": f"The Alder Mill made {product} in the year {1900 + number}."
    for number, product in enumerate(("rope", "paper", "soap", "nails", "glue", "tiles"))
}


async def test_passages_of_a_named_entity_are_ranked_by_what_is_asked(
    tmp_path: Path, pipelines: Pipelines
) -> None:
    """Of six reports that mention the mill alike, the one with the answer comes first."""
    records = [entity("Alder Mill")]
    fill(tmp_path, [(Document(text, id=id), records) for id, text in REPORTS.items()])
    for product, id in (("glue", "report-4"), ("paper", "report-1"), ("tiles", "report-5")):
        param = QueryParam(mode="local", ll_keywords=("Alder Mill",))
        question = f"When did the Alder Mill make {product}?"
        context = await pipelines(tmp_path).retrieve(question, param)
        assert context.chunks[0].document_id == id


async def test_a_common_word_is_no_rare_name(tmp_path: Path, pipelines: Pipelines) -> None:
    """An entity called as a word that stands in most passages leads nowhere in particular."""
    texts = {id: f"{text} It was a time of change." for id, text in REPORTS.items()}
    documents = [(Document(text, id=id), [entity("Alder Mill")]) for id, text in texts.items()]
    stray = Document("The clock of the station shows the time.", id="stray")
    fill(tmp_path, [*documents, (stray, [entity("Time")])])
    param = QueryParam(mode="local", ll_keywords=("Alder Mill", "Time"))
    context = await pipelines(tmp_path).retrieve("What time did the Alder Mill make soap?", param)
    assert context.chunks[0].document_id == "report-2"


async def test_what_the_walk_hardly_visits_is_left_out(
    met: Path, pipelines: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entities below the floor are not shown, nor relations with an end below it, beyond those that
    are nearest to the question.
    """
    monkeypatch.setattr(ranking, "NEAREST_RELATIONS", 0)
    shown = []
    for floor in (0.0, 0.1):
        param = QueryParam(ll_keywords=("Ann",), lexical=False, relevance_floor=floor)
        shown.append(await pipelines(met, embedder=Blind()).retrieve("Ann", param))
    every, relevant = ({entity.name for entity in context.entities} for context in shown)
    assert {"Eve", "Fay"} <= every - relevant and "Ann" in relevant
    assert {one.source for one in shown[1].relations} <= relevant


class Blind:
    """An embedder that tells no text from another."""

    name, dim = HashEmbedder().name, 1024

    async def embed(self, texts: list[str], *, kind: str) -> Floats:
        """The same vector for all, at a right angle to those of the index."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        vectors[:, 0] = 1
        return vectors


def test_common_names_weigh_less(met: Path) -> None:
    """A name counts by its likeness over the number of chunks that mention it; chunks that are near
    have a fixed share together, whatever their scores.
    """
    with reading(met) as snapshot:
        rows = snapshot.entity_ids(["ann", "bob"])
        named = {rows["ann"]: 1.0, rows["bob"]: 0.8}
        entities = snapshot.graph.entities
        found = Subgraph(Hits.of(entities, np.zeros(len(entities))))
        query = SearchQuery(question="?", vectors=np.zeros((1, 1024), np.float32))
        task = SearchTask(
            snapshot=snapshot,
            query=query,
            mode=MODES["mix"],
            param=QueryParam(),
            chunk_limit=20,
        )
        for near in ([], [0.03, 0.01, 0.0], [300.0, 100.0, 0.0]):
            seeds = Seeds(named=named, lexical=Hits.of([1, 2, 3][: len(near)], near))
            graph = pagerank.neighborhood(task, seeds, found)
            weights = pagerank.start_weights(task, graph, seeds)
            names, chunks = weights[:-4], weights[-4:]
            share = pagerank.NEAR_WEIGHT / (1 + pagerank.NEAR_WEIGHT) if near else 0
            assert chunks.sum() == pytest.approx(share) and chunks[3] == 0
            expected = [(1 - share) * 0.4 / 1.4, (1 - share) * 1 / 1.4]
            assert sorted(names[names > 0].tolist()) == pytest.approx(expected)


# ── synonyms ────────────────────────────────────────────────────────────────────


def test_synonyms_are_those_of_every_pair() -> None:
    """At most five for each that leads, never itself, each pair once; one without a vector has none."""
    angles, ids = np.linspace(0, 3, 60), np.arange(1, 61) * 3
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    rows = rows.astype(HALF).astype(np.float32)
    index = VectorIndex.of(VectorBlock.of(ids[5:], rows[5:].astype(HALF)))
    leading = ids[:12]
    near = SimpleNamespace(vectors_by_kind={"entity": index})
    found, similarities = pagerank.synonym_pairs(near, leading, ids)
    exact = rows @ rows.T - 2 * np.eye(60)
    exact[:, :5] = 0
    expected = {
        (min(one, other), max(one, other))
        for one in range(5, 12)
        for other in np.lexsort((ids, -exact[one].round(5)))[: pagerank.SYNONYMS].tolist()
    }
    assert [(a // 3 - 1, b // 3 - 1) for a, b in found.tolist()] == sorted(expected)
    assert np.allclose(similarities, [exact[pair] for pair in sorted(expected)], atol=1e-5)
    assert not len(pagerank.synonym_pairs(near, ids[20:21], ids[40:])[0])


GIVEN = [
    (Document("刘备字玄德。", id="names"), [entity("刘备", kind="人物", aliases=["玄德"])]),
    (
        Document("玄德到了徐州。", id="town"),
        [entity("玄德", kind="人物"), entity("徐州", kind="地点")],
    ),
    (
        Document("吕布到了下邳。", id="other"),
        [entity("吕布", kind="人物"), entity("下邳", kind="地点")],
    ),
]


@pytest.mark.parametrize("alone", [True, False])
async def test_stated_aliases_are_walked_as_one(
    tmp_path: Path, pipelines: Pipelines, alone: bool
) -> None:
    """A name that is only an alias finds the entity that states it; two entities of which one states
    the other's name are found together, with their passages, and shown as one.
    """
    fill(tmp_path, GIVEN[::2] if alone else GIVEN)
    found = await pipelines(tmp_path).retrieve("玄德是谁？", QueryParam(mode="mix"))
    names = {found.entities[0].name, *found.entities[0].aliases}
    assert names == {"刘备", "玄德"}
    assert not names & {one.name for one in found.entities[1:]}
    assert found.chunks[0].document_id in ("names", "town")
    assert alone or {one.document_id for one in found.chunks[:2]} == {"names", "town"}
    named = await pipelines(tmp_path).retrieve("刘备到了哪里？", QueryParam(mode="mix"))
    assert alone or "town" in {one.document_id for one in named.chunks[:2]}


async def test_a_filter_hides_what_other_documents_state(
    tmp_path: Path, pipelines: Pipelines
) -> None:
    """An alias that only hidden documents state joins nothing."""
    fill(tmp_path, [*GIVEN, (Document("刘备来了。", id="plain"), [entity("刘备", kind="人物")])])
    param = QueryParam(mode="mix", where={"id": ["plain", "other"]})
    found = await pipelines(tmp_path).retrieve("玄德是谁？", param)
    assert not any("named" in one.why for one in found.entities)


@pytest.mark.parametrize("mode", ["mix", "local"])
async def test_a_hidden_namesake_takes_no_name_away(
    tmp_path: Path, pipelines: Pipelines, mode: Mode
) -> None:
    """Under a filter a short name finds the entity that the visible documents call so, also where a hidden
    document has an entity of that very name; and the other way round.
    """
    ferry = [
        entity("Orla Finch", "She runs the ferry.", aliases=["Finch"]),
        entity("芬奇 🛶", "The ferry."),
    ]
    given = [
        (Document("Orla Finch runs the ferry 芬奇 🛶. Finch is deaf.", id="ferry"), ferry),
        (Document("Finch sang.", id="choir"), [entity("Finch", "He sang.")]),
    ]
    fill(tmp_path, given)
    param = QueryParam(mode=mode, where={"id": "ferry"})
    found = await pipelines(tmp_path).retrieve("What does Finch do with 芬奇 🛶?", param)
    named = {one.name for one in found.entities if "named “" in one.why}
    assert named == {"Orla Finch", "芬奇 🛶"}
    assert "sang" not in found.prompt
    param = QueryParam(mode=mode, where={"id": "choir"})
    found = await pipelines(tmp_path).retrieve("What does Finch do?", param)
    assert [one.name for one in found.entities if "named “" in one.why] == ["Finch"]
    assert "Orla" not in found.prompt and "ferry" not in found.prompt
