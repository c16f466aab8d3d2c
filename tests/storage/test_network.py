"""`rag.graph`: a networkx graph over the index in memory."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import networkx as nx
import pytest

from lightrag_jsonl import Document, Entity, LightRAG, Relation
from lightrag_jsonl.core.types import EDGE_FIELDS, NODE_FIELDS

RECORDS = [
    {"type": "entity", "name": "Ada", "entity_type": "person", "description": "Ada sails."},
    {"type": "entity", "name": "港口", "entity_type": "place", "description": "北方的港口。"},
    {"type": "entity", "name": "Mill", "entity_type": "place", "description": "A mill."},
    {"type": "entity", "name": "Alone", "entity_type": "place", "description": "An island."},
    {"type": "relationship", "source": "Ada", "target": "港口", "keywords": ["sails to"],
     "description": "Ada sails to 港口.", "strength": 8},
    {"type": "relationship", "source": "港口", "target": "Mill", "keywords": ["feeds"],
     "description": "港口 feeds the mill.", "strength": 2},
]  # fmt: skip


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[LightRAG]:
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(
            Document("Ada sails to 港口. 港口 feeds the mill. Alone.", id="d"), RECORDS
        )
        yield rag


def test_algorithms_of_networkx_run_on_it(rag: LightRAG) -> None:
    """Paths, degrees, ranks, components and subgraphs are those of a copy that networkx has made itself."""
    graph = rag.graph
    copied = graph.copy()

    assert nx.shortest_path(graph, "Ada", "Mill") == ["Ada", "港口", "Mill"]
    assert nx.dijkstra_path_length(graph, "Ada", "Mill") == 10
    assert nx.pagerank(graph) == pytest.approx(nx.pagerank(copied))
    assert dict(graph.degree) == dict(copied.degree) == {"Ada": 1, "港口": 2, "Mill": 1, "Alone": 0}
    assert sorted(map(len, nx.connected_components(graph))) == [1, 3]
    assert graph.number_of_edges() == graph.subgraph(["Ada", "港口", "Mill"]).number_of_edges() == 2
    assert nx.to_numpy_array(graph).tolist() == nx.to_numpy_array(copied).tolist()
    assert "Nobody" not in graph and not graph.has_edge("Ada", "Mill")


def test_attributes_are_those_of_entities_and_relations(rag: LightRAG) -> None:
    """Of a node and of an edge from both ends; a copy has them, too, and outlives the index."""
    graph = rag.graph

    assert graph.nodes["港口"]["entity_type"] == "place"
    assert graph.edges["港口", "Ada"]["keywords"] == graph["Ada"]["港口"]["keywords"] == "sails to"
    assert graph.edges["Ada", "港口"]["weight"] == 8
    copied = graph.copy()
    rag.close()
    assert copied.nodes["Ada"]["description"] == "Ada sails."
    assert copied.edges["Ada", "港口"]["source"] == "Ada"


def test_it_cannot_be_changed_and_shows_one_state(rag: LightRAG) -> None:
    """What is inserted later is in the next `rag.graph`, not in this one."""
    graph = rag.graph
    with pytest.raises(nx.NetworkXError):
        graph.add_edge("Ada", "Mill")

    rag.insert_records(Document("Bob knows Ada.", id="e"), [{**RECORDS[0], "name": "Bob"}])

    assert "Bob" not in graph and "Bob" in rag.graph
    assert rag.graph is rag.graph


def test_exports_have_every_field() -> None:
    """Also one that an entity or a relation is given one day; scores belong to a search, degrees to the graph."""
    entity_fields = {field.name for field in fields(Entity)}
    relation_fields = {field.name for field in fields(Relation)}
    assert {*NODE_FIELDS, "name", "type", "degree", "score", "why"} == entity_fields
    assert {*EDGE_FIELDS, "score", "why"} == relation_fields
