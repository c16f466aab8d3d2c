"""The acceptance examples of specification 2, section 8, through the real pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.errors import ConfigError, NotFoundError
from lightrag_jsonl.explain.events import AnswerChunk, Answered, End, Selection
from lightrag_jsonl.types import Mode

from .curie import CHINESE, ENGLISH, Example, filled

RIGHT: Mode = "hybrid"  # edges and no chunks of its own: the mode of the 18 quads
ORDER = ["session", "keywords", "retrieval", "selection", "chunk", "answer", "end"]


@pytest.fixture(params=[ENGLISH, CHINESE], ids=["en", "zh"])
def example(request: pytest.FixtureRequest) -> Example:
    """The example in each language."""
    found: Example = request.param
    return found


@pytest.mark.parametrize("mode", ["hybrid", "local", "global", "mix", "walk"])
def test_events_come_in_order(tmp_path: Path, example: Example, mode: Mode) -> None:
    """Example 1: one edge chosen, three lines refused, and nothing else reaches the synthesis."""
    model = example.model()
    with filled(tmp_path, example, model) as rag:
        events = list(rag.events(example.question, mode=mode))

    assert list(dict.fromkeys(event.stage for event in events)) == ORDER
    assert [event.stage for event in events].count("end") == 1
    selection = next(event for event in events if isinstance(event, Selection))
    assert [chosen.edge.labels for chosen in selection.edges] == [example.edge]
    assert [chosen.edge.id for chosen in selection.edges] == [example.edge_id]
    assert [chosen.reasoning for chosen in selection.edges] == [example.reason]
    reasons = [refused.reason for refused in selection.rejections]
    assert reasons == ["unknown_id", "duplicate_id", "truncated"]
    assert not selection.fallback
    assert example.found[1] in model.requests[-1].text
    assert example.born[1] not in model.requests[-1].text


def test_pieces_come_before_the_answer_and_the_sources_last(tmp_path: Path) -> None:
    """Example 1: pieces, the end of their stream, the answer, the end of the session."""
    with filled(tmp_path, ENGLISH) as rag:
        *_, last_piece, answered, end = rag.events(ENGLISH.question, mode=RIGHT)

    assert isinstance(last_piece, AnswerChunk) and last_piece.end_of_stream
    assert isinstance(answered, Answered) and answered.text == ENGLISH.answer
    assert [citation.number for citation in answered.citations] == [1, 2]
    assert answered.invented == (9,)
    assert isinstance(end, End) and end.sources == ("d1.txt",)
    message = end.to_message()
    assert message["end_of_session"] is True and message["error"] is None


def test_eighteen_quads(tmp_path: Path, example: Example) -> None:
    """Example 2: 18 quads that pyoxigraph loads, with two candidate edges on record."""
    pyoxigraph = pytest.importorskip("pyoxigraph")
    text = exported(tmp_path, example)

    lines = text.splitlines()
    kinds = ("session", "prov:retrieval", "prov:selection", "prov:edge", "prov:answer")
    counts = [sum(line.startswith(f"<urn:trustgraph:{kind}") for line in lines) for kind in kinds]
    assert counts == [4, 4, 4, 2, 4] and len(lines) == 18
    assert len(list(pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS))) == 18
    assert 'edgeCount> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:graph:ret' in text
    assert json.dumps(example.reason, ensure_ascii=False) in text


def test_facts_under_bases_of_ones_own(tmp_path: Path) -> None:
    """The export goes into the name space of the knowledge base that it is joined with."""
    with filled(tmp_path, ENGLISH) as rag:
        id = str(rag.query(ENGLISH.question, mode=RIGHT, explain=True).trace_id)
        plain = rag.export_trace(id, with_source=True)
        given = rag.export_trace(
            id, with_source=True, entity_base="https://kb.example/e/", predicate_base="urn:p:"
        )
        with pytest.raises(ConfigError, match="scheme"):
            rag.export_trace(id, entity_base="")

    moved = plain.replace("urn:entity:", "https://kb.example/e/").replace(
        "urn:predicate:", "urn:p:"
    )
    assert moved != plain and sorted(given.splitlines()) == sorted(moved.splitlines())


def test_equal_runs_are_equal_to_the_byte(tmp_path: Path, example: Example) -> None:
    """Example 2: with a fixed clock and fixed ids, two indexes export the same bytes."""
    first = exported(tmp_path / "a", example, with_source=True)
    assert first == exported(tmp_path / "b", example, with_source=True)


def test_the_form_of_rdf_1_1(tmp_path: Path, example: Example) -> None:
    """Example 3: 22 quads in JSON-LD, isomorphic to the 1.1 N-Quads."""
    rdflib = pytest.importorskip("rdflib")
    pytest.importorskip("pyoxigraph")
    with filled(tmp_path, example) as rag:
        id = str(rag.query(example.question, mode=RIGHT, explain=True).trace_id)
        linked = rag.export_trace(id, format="jsonld", rdf="1.1")
        plain = rag.export_trace(id, rdf="1.1")

    from rdflib.compare import isomorphic

    graphs = [rdflib.Dataset(), rdflib.Dataset()]
    graphs[0].parse(data=linked, format="json-ld")
    graphs[1].parse(data=plain, format="nquads")
    assert [len(list(graph.quads())) for graph in graphs] == [22, 22]
    one, other = (rdflib.Graph() for _ in graphs)
    for merged, dataset in zip((one, other), graphs, strict=True):
        for subject, predicate, thing, _ in dataset.quads():
            merged.add((subject, predicate, thing))
    assert isomorphic(one, other)


CHAIN = """
PREFIX tg: <https://trustgraph.ai/ns/>
PREFIX prov: <http://www.w3.org/ns/prov#>
SELECT DISTINCT ?answer ?fact ?chunk ?document WHERE {
  GRAPH <urn:graph:retrieval> {
    ?answer tg:document ?text ; prov:wasDerivedFrom/tg:selectedEdge/tg:edge ?fact .
  }
  GRAPH <urn:graph:source> {
    ?subgraph tg:contains ?fact ; prov:wasDerivedFrom ?chunk .
    ?chunk tg:charOffset ?offset ; prov:wasDerivedFrom+ ?document .
    FILTER NOT EXISTS { ?document prov:wasDerivedFrom ?further }
  }
}
"""


def test_from_the_answer_to_the_document_in_sparql(tmp_path: Path, example: Example) -> None:
    """Example 4: along the export with source, exactly one row."""
    pyoxigraph = pytest.importorskip("pyoxigraph")
    store = pyoxigraph.Store()
    text = exported(tmp_path, example, with_source=True)
    store.load(text.encode("utf-8"), pyoxigraph.RdfFormat.N_QUADS)

    rows = list(store.query(CHAIN))

    assert len(rows) == 1
    assert rows[0]["document"].value == "urn:document:d1"


def test_offsets_are_exact(tmp_path: Path) -> None:
    """Example 5: page 1, 0, 30 and page 2, 0, 31."""
    with filled(tmp_path, ENGLISH) as rag:
        found = rag.document_origins("d1")
        text = export_text(rag)

    spans = [(one.chunk.page, one.chunk.start, one.chunk.end) for one in found.chunks]
    assert spans == [(1, 0, 30), (2, 0, 31)]
    assert [[edge.id for edge in one.edges] for one in found.chunks] == [["66bd5bed"], ["9375e5f5"]]
    assert 'charOffset> "0"' in text and 'charLength> "30"' in text


@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (7, 3), (40, 39), (300, 50), (1200, 100)])
def test_slices_equal_chunks_whatever_the_size(tmp_path: Path, size: int, overlap: int) -> None:
    """Example 5: fifty pages of Chinese and English, cut at any size, verify."""
    pages = tuple(
        f"第{number}页。居里夫人发现了镭 🧪，１２ 克。\n\nShe wrote page {number}; e.g. 3.14 things. "
        * 2
        for number in range(50)
    )
    options = IndexOptions(chunk_tokens=size, chunk_overlap=overlap)
    with LightRAG(tmp_path, options=options) as rag:
        rag.insert_records(Document("", id="d", pages=pages), [])
        found = rag.document_origins("d")
        problems = rag.verify()

    assert len(found.pages) == 50 and problems == ()
    for one in found.chunks:
        chunk = one.chunk
        assert pages[chunk.page - 1][chunk.start : chunk.end] == chunk.text


def test_every_source_not_one(tmp_path: Path, example: Example) -> None:
    """Example 6: the same sentence in two documents is two sources; deleted, they are said to be."""
    with filled(tmp_path, example) as rag:
        again = example.records_of(0, *example.found)
        rag.insert_records(example.document("d2", example.pages[0]), again)
        id = str(rag.query(example.question, mode=RIGHT, explain=True).trace_id)
        texts, counts = [rag.export_trace(id, with_source=True)], [counted(rag, example)]
        for document in ("d1", "d2"):
            rag.delete(document)
            texts.append(rag.export_trace(id, with_source=True))
            counts.append(counted(rag, example))
        trace = rag.trace(id)
        sources = rag.sources(trace)
        problems = rag.verify()

    assert counts == [(2, 2), (1, 1), (0, 0)]
    assert [text.count("#wasDerivedFrom> <urn:document:") for text in texts] == [2, 1, 0]
    assert "urn:document:" not in texts[-1] and "urn:graph:retrieval" in texts[-1]
    assert {sources.where(name) for name in trace.selected[0].edge.chunk_ids} == {"source deleted"}
    assert len(sources.deleted(trace)) == 2 and problems == ()


def test_inserted_again_the_uris_are_the_same(tmp_path: Path) -> None:
    """A document that comes back has the URIs it had, and the old trace finds its source again."""
    with filled(tmp_path, ENGLISH) as rag:
        id = str(rag.query(ENGLISH.question, mode=RIGHT, explain=True).trace_id)
        before = rag.export_trace(id, with_source=True)
        rag.delete("d1")
        rag.insert_records(ENGLISH.document(), ENGLISH.records)

        assert rag.export_trace(id, with_source=True) == before


# ── helpers ─────────────────────────────────────────────────────────────────────


def exported(folder: Path, example: Example, *, with_source: bool = False) -> str:
    """A fresh index, the question, and its trace as N-Quads."""
    with filled(folder, example) as rag:
        id = str(rag.query(example.question, mode=RIGHT, explain=True).trace_id)
        return rag.export_trace(id, with_source=with_source)


def export_text(rag: LightRAG) -> str:
    id = str(rag.query(ENGLISH.question, mode=RIGHT, explain=True).trace_id)
    return rag.export_trace(id, with_source=True)


def counted(rag: LightRAG, example: Example) -> tuple[int, int]:
    """How many chunks and documents state the example's edge now."""
    try:
        found = rag.edge_origins(*example.edge)
    except NotFoundError:
        return 0, 0
    return len(found.sources.chunks), len(found.sources.documents)
