"""The graph as files that other programs read."""

import csv
import json
import re
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest

from lightrag_jsonl import Document, LightRAG
from tests.kit import Record, entity, relation

ODD = '"A", b\n\x01 <&> 🙂'
RECORDS: list[Record] = [
    entity("马利", ODD, aliases=["雅各布"]),
    relation("马利", "Bob", ODD, keywords=["knows", "欠 债"]),
    relation("马利", "Hub"),
    *(relation("Hub", f"N{number:03}") for number in range(600)),
]


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> LightRAG:
    found = LightRAG(tmp_path_factory.mktemp("export"), language="zh")
    found.insert_records(Document("马利，又名雅各布", id="文 1"), RECORDS)
    return found


@pytest.mark.slow
def test_networkx_writes_the_graph_as_it_is(rag: LightRAG, tmp_path: Path) -> None:
    """No attribute has a type that GraphML lacks; what XML forbids is replaced. It cannot be changed."""
    nx.write_graphml(rag.graph, tmp_path / "g.graphml")
    read = nx.read_graphml(tmp_path / "g.graphml")
    assert dict(read.nodes(data=True)) == dict(rag.graph.nodes(data=True))
    assert read.nodes["马利"]["aliases"] == "雅各布" and "🙂" in read.nodes["马利"]["description"]
    assert rag.graph.edges["马利", "Bob"]["keywords"] == "knows; 欠 债"
    with pytest.raises(nx.NetworkXError):
        rag.graph.add_node("x")
    assert rag.admin.export(tmp_path / "h.xml") == "graphml"
    assert nx.utils.graphs_equal(nx.read_graphml(tmp_path / "h.xml"), read)


@pytest.mark.slow
def test_every_format_holds_every_name(rag: LightRAG, tmp_path: Path) -> None:
    """Each is what its suffix says, with the odd characters of names and texts; all in UTF-8."""
    for suffix in (".csv", ".json", ".jsonl", ".cypher"):
        rag.admin.export(str(tmp_path / f"g{suffix}"))
    with (tmp_path / "g.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["name"] for row in rows if row["kind"] == "entity"} == set(rag.graph)
    edge = next(row for row in rows if row["target"] == "Bob" or row["source"] == "Bob")
    assert edge["keywords"] == "knows; 欠 债" and edge["description"].endswith("<&> 🙂")
    graph = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))
    assert {one["name"] for one in graph["entities"]} == set(rag.graph)
    lines = (tmp_path / "g.jsonl").read_text(encoding="utf-8").split("\n")
    assert {"document", "chunk", "name"} < json.loads(lines[0]).keys()
    cypher = (tmp_path / "g.cypher").read_text(encoding="utf-8").split("\n")
    assert sum(line.startswith('MERGE (n:Entity {name: "') for line in cypher) == len(rag.graph)
    assert any('SET r.keywords = ["knows", "欠 债"]' in line for line in cypher)


def test_n_quads_are_read_by_an_rdf_library(rag: LightRAG, tmp_path: Path) -> None:
    """Each keyword of a relation is a triple; entities have labels and sources."""
    pyoxigraph = pytest.importorskip("pyoxigraph")
    rag.admin.export(tmp_path / "g.nq")
    quads = list(pyoxigraph.parse((tmp_path / "g.nq").read_bytes(), pyoxigraph.RdfFormat.N_QUADS))
    labels = {one.object.value for one in quads if one.predicate.value.endswith("#label")}
    assert labels >= {*rag.graph, "knows", "欠 债"}
    ends = {one.object.value for one in quads if one.subject.value == "urn:entity:bob"} | {
        one.subject.value for one in quads if one.object.value == "urn:entity:bob"
    }
    assert "urn:entity:%E9%A9%AC%E5%88%A9" in ends


@pytest.mark.slow
def test_the_page_is_small_and_loads_nothing(rag: LightRAG, tmp_path: Path) -> None:
    """The entities with most relations, at most 500, drawn; in the language of the index; no script,
    no address, and text of a document stays text.
    """
    rag.admin.export(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert 400 < tags.count("circle") <= 500 and tags.count("line") >= 400
    assert "知识图谱" in page and "个实体" in page and "&lt;&amp;&gt; 🙂" in page
    assert not {"script", "link", "img"} & {*tags} and "http://" not in page
    assert len(page) < 500_000
    labels = re.findall(r'<text x="(.*?)" y="(.*?)">N\d', page)
    assert 20 < len(labels) <= 80
    for (x, y), (a, b) in combinations([(float(x), float(y)) for x, y in labels], 2):
        assert abs(x - a) > 30 or abs(y - b) > 15


def test_relations_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Whichever entity was there first, as after a deletion."""
    with LightRAG(tmp_path) as rag:
        for pair in (("Zed", "Bob"), ("Zed", "Ann"), ("Bob", "Cid")):
            rag.insert_records(" ".join(pair), [relation(*pair)])
        found = [(one.source, one.target) for one in rag.entities.relations()]
    assert found == [("Zed", "Ann"), ("Bob", "Cid"), ("Zed", "Bob")]


def test_records_leave_out_changes_by_hand(tmp_path: Path) -> None:
    """What a person created is a record like any other; what a person changed or deleted is none, so
    that inserting the records again gives what the texts say.
    """
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(Document("Ann met Bob.", id="d1"), [relation("Ann", "Bob", "They met.")])
        rag.entities.edit("Ann", description="Changed.", by="Eve")
        rag.entities.edit_relation("Bob", "Ann", description="Changed.", by="Eve")
        rag.entities.create("Cid", type="person", description="Created.", by="Eve")
        rag.entities.delete("Bob", by="Eve")
        rag.admin.export(tmp_path / "g.jsonl")
    lines = (tmp_path / "g.jsonl").read_text(encoding="utf-8").split("\n")
    records = [json.loads(line) for line in lines if line]
    assert {record.get("description") for record in records} >= {"They met.", "Created."}
    assert "Changed." not in {record.get("description") for record in records}
    assert not any("claim" in record for record in records)


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "Orla Tamsin met Ilona Varga.", "other type, or not known"),
        ("zh", "《青石湾纪事》写到了青石湾🙂。", "其他类型或类型未知"),
    ],
)
def test_the_legend_says_of_which_names_no_type_is_known(
    tmp_path: Path, language: str, text: str, words: str
) -> None:
    """In the language of the texts, and in a color of no type."""
    with LightRAG(tmp_path / "kb", llm="none", language=language) as rag:
        unknown = entity("Smew", kind="unknown")
        rag.insert_records(Document(f"{text} Smew."), [unknown, entity("Tern", kind="boat")])
        rag.admin.export(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    legend = page.partition("<svg")[0]
    assert words in legend and "unknown" not in legend and "boat" in legend


def test_names_on_the_page_lie_over_no_other_name_and_no_other_node_if_there_is_room(
    tmp_path: Path,
) -> None:
    """Of pairs side by side every name is there: above, below or beside its node."""
    pairs = [relation(f"渡口 {number}", f"Lighthouse {number}") for number in range(24)]
    with LightRAG(tmp_path / "kb", llm="none") as rag:
        rag.insert_records(Document("Pairs."), pairs)
        rag.admin.export(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    size = float(re.findall(r"text \{ font-size: ([\d.]+)px", page)[0])
    texts = re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)">(.*?)</text>', page)
    circles = re.findall(r'<circle cx="([-\d.]+)" cy="([-\d.]+)" r="([\d.]+)"', page)
    assert len(texts) == len(circles) == 48
    for x, y, name in texts:
        half_width = 0.5 * size * len(name) / 2  # narrower than any letters of the page
        left, right = float(x) - half_width, float(x) + half_width
        top, bottom = float(y) - 0.6 * size, float(y)
        for node_x, node_y, _ in circles:
            is_under = left < float(node_x) < right and top < float(node_y) < bottom
            assert not is_under, name
