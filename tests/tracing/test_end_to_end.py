"""The acceptance examples of specification 2, section 8, and every mode, through the real pipeline."""

import asyncio
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, LightRAG, LLMError, NotFoundError, QueryParam
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import GRAPH_MODES, MODES, Mode
from tests.processes import run_python

from .conftest import trace_of
from .curie import CHINESE, ENGLISH, Example, filled, opened, settings, step

PLAIN: Mode = "hybrid"  # edges and no chunks of its own: the mode of the 18 quads
ORDER = ["session", "keywords", "retrieval", "selection", "chunk", "answer", "end"]
BROKEN = LLMError("the model is out")


@pytest.fixture(params=[ENGLISH, CHINESE], ids=["en", "zh"])
def example(request: pytest.FixtureRequest) -> Example:
    found: Example = request.param
    return found


def explained(rag: LightRAG, example: Example = ENGLISH, mode: Mode = PLAIN) -> str:
    return str(rag.query(example.question, mode=mode, explain=True).trace_id)


def exported(folder: Path, example: Example, *, with_source: bool = False) -> str:
    with filled(folder, example) as rag:
        return rag.traces.export(explained(rag, example), with_source=with_source)


@pytest.mark.parametrize("mode", ["hybrid", "mix"])
def test_events_come_in_order(tmp_path: Path, example: Example, mode: Mode) -> None:
    """Example 1: one edge chosen, three lines refused, and nothing else reaches the synthesis."""
    model, events = example.model(), list[Any]()
    with filled(tmp_path, example, model) as rag:
        list(rag.stream(example.question, mode=mode, explain=True, listener=events.append))

    assert list(dict.fromkeys(event.stage for event in events)) == ORDER
    selection = next(event for event in events if event.stage == "selection")
    (chosen,) = selection.selected
    assert (chosen.edge.labels, chosen.edge.id) == (example.edge, example.edge_id)
    assert chosen.reasoning == example.reason
    reasons = [refused.reason for refused in selection.rejections]
    assert reasons == ["unknown_id", "duplicate_id", "truncated"]
    assert not selection.fallback
    candidate = dict(zip(("id", "s", "p", "o"), (example.edge_id, *example.edge), strict=True))
    choosing = next(request for request in model.requests if step(request) == "selection")
    assert json.dumps(candidate, ensure_ascii=False) in choosing.text, (
        "no description says it again"
    )
    assert example.found[1] in model.requests[-1].text
    assert example.born[1] not in model.requests[-1].text
    if example is ENGLISH:
        *_, last_piece, answered, end = events
        assert last_piece.stage == "chunk" and last_piece.end_of_stream
        assert answered.stage == "answer" and answered.answer == ENGLISH.answer
        assert answered.invented == (9,)
        assert end.stage == "end" and end.sources == ("d1.txt",)


def test_eighteen_quads(tmp_path: Path, example: Example) -> None:
    """Example 2: 18 quads that pyoxigraph loads, with two candidate edges on record; two indexes
    with a fixed clock and fixed ids export the same bytes.
    """
    pyoxigraph = pytest.importorskip("pyoxigraph")
    text = exported(tmp_path / "a", example)

    lines = text.splitlines()
    kinds = ("session", "prov:retrieval", "prov:selection", "prov:edge", "prov:answer")
    counts = [sum(line.startswith(f"<urn:trustgraph:{kind}") for line in lines) for kind in kinds]
    assert counts == [4, 4, 4, 2, 4] and len(lines) == 18
    assert len(list(pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS))) == 18
    assert 'edgeCount> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:graph:ret' in text
    assert json.dumps(example.reason, ensure_ascii=False) in text
    assert text == exported(tmp_path / "b", example)


@pytest.mark.slow
def test_the_form_of_rdf_1_1(tmp_path: Path, example: Example) -> None:
    """Example 3: 22 quads in JSON-LD, isomorphic to the 1.1 N-Quads."""
    rdflib = pytest.importorskip("rdflib")
    pytest.importorskip("pyoxigraph")
    with filled(tmp_path, example) as rag:
        id = explained(rag, example)
        texts = {
            "json-ld": rag.traces.export(id, format="jsonld", rdf="1.1"),
            "nquads": rag.traces.export(id, rdf="1.1"),
        }

    from rdflib.compare import isomorphic

    merged = []
    for format, text in texts.items():
        dataset, graph = rdflib.Dataset(), rdflib.Graph()
        dataset.parse(data=text, format=format)
        quads = list(dataset.quads())
        assert len(quads) == 22
        for quad in quads:
            graph.add(quad[:3])
        merged.append(graph)
    assert isomorphic(*merged)


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

    assert [row["document"].value for row in rows] == ["urn:document:d1"]


def test_every_source_not_one(tmp_path: Path, example: Example) -> None:
    """Example 6: the same sentence in two documents is two sources; deleted, they are reported.

    A document that comes back has the URIs it had, and the old trace finds its source again.
    """
    with filled(tmp_path, example) as rag:
        again = example.records_of(0, *example.found)
        rag.insert_records(example.document("d2", example.pages[0]), again)
        id = explained(rag, example)
        texts, counts = [rag.traces.export(id, with_source=True)], [counted(rag, example)]
        for document in ("d1", "d2"):
            rag.delete(document)
            texts.append(rag.traces.export(id, with_source=True))
            counts.append(counted(rag, example))
        trace = rag.traces.get(id)
        sources = rag.traces.sources(trace)
        assert rag.traces.verify() == ()
        rag.insert_records(example.document("d2", example.pages[0]), again)
        assert rag.traces.export(id, with_source=True) == texts[1]

    assert counts == [(2, 2), (1, 1), (0, 0)]
    assert [text.count("#wasDerivedFrom> <urn:document:") for text in texts] == [2, 1, 0]
    assert "urn:document:" not in texts[-1] and "urn:graph:retrieval" in texts[-1]
    assert {sources.where(id) for id in trace.selected[0].edge.chunk_ids} == {"source deleted"}


def counted(rag: LightRAG, example: Example) -> tuple[int, int]:
    try:
        found = rag.traces.edge_provenance(*example.edge)
    except NotFoundError:
        return 0, 0
    return len(found.sources.chunks), len(found.sources.documents)


def test_offsets_are_exact_and_an_edge_is_found_by_any_spelling(tmp_path: Path) -> None:
    """Example 5: page 1, 0, 30 and page 2, 0, 31; each chunk with the edge it states, and the query
    that was shown one of them. An error names what does not exist, and what does.
    """
    with filled(tmp_path, ENGLISH) as rag:
        id = explained(rag)
        read = rag.traces.document_provenance("d1")
        spans = [(one.chunk.page, one.chunk.start, one.chunk.end) for one in read.chunks]
        assert spans == [(1, 0, 30), (2, 0, 31)]
        edges = [[edge.id for edge in one.edges] for one in read.chunks]
        assert edges == [["66bd5bed"], ["9375e5f5"]] and [one.id for one in read.traces] == [id]
        with pytest.raises(NotFoundError):
            rag.traces.document_provenance("d2")
        found = rag.traces.edge_provenance("RADIUM", "Discovered", "marie  curie")
        assert found.edge.labels == ENGLISH.edge
        assert [one.id for one in found.traces] == [id]
        for wrong, named in [
            (("Marie Curie", "found", "radium"), r"there is \(Marie Curie, discovered, radium\)"),
            (("Marie Curie", "discovered", "gold"), "no edge between Marie Curie and gold"),
            (("radium", "discovered", "Warsaw"), "no edge between radium and Warsaw"),
        ]:
            with pytest.raises(NotFoundError, match=named):
                rag.traces.edge_provenance(*wrong)


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["llm", "score", "all"])
def test_every_mode_leaves_a_sound_trace(tmp_path: Path, selection: str) -> None:
    """Whatever the mode and the way of choosing, the trace is whole, checked and exportable."""
    pyoxigraph = pytest.importorskip("pyoxigraph")
    with filled(tmp_path, ENGLISH) as rag:
        for mode in MODES:
            param = QueryParam(mode=mode, selection=selection)  # type: ignore[arg-type]
            trace = rag.traces.get(str(rag.query(ENGLISH.question, param).trace_id))
            text = rag.traces.export(trace.id, with_source=True)
            quads = list(pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS))
            assert ENGLISH.question in rag.traces.page(trace.id)
            assert rag.traces.verify() == () == rag.traces.verify(trace.id)
            assert trace.status == "complete" and len(quads) == text.count("\n")
            assert ("edgeCount" in text) == (mode not in ("naive", "bypass"))
            assert ("selectedChunk" in text) == (mode in ("naive", "mix", "overview"))
            assert bool(trace.selected) == (mode in GRAPH_MODES)
            assert {one.reasoning is not None for one in trace.selected} <= {selection == "llm"}


def test_the_offline_parts_leave_sound_traces_too(tmp_path: Path) -> None:
    """With no model at all nothing is chosen by one, and no reason is invented; that nothing was
    found, or that half an emoji was asked, is on record, too.
    """
    with LightRAG(tmp_path) as rag:
        for text in ("", "Marie Curie discovered radium in Paris. Pierre Curie married her."):
            if text:
                rag.insert(text)
            id = rag.query("Who is Marie \ud800 Curie?", explain=True).trace_id
            trace = rag.traces.get(str(id))
            assert trace.status == "complete" and trace.method == "score"
            assert not [one for one in trace.selected if one.reasoning is not None]
        assert rag.traces.verify() == ()


def test_a_reused_answer_keeps_its_numbers(tmp_path: Path) -> None:
    """Readers see 1 and 2 in the order of use, the trace knows the numbers of the prompt, and what is
    cited is what was shown: also when the answer is given again.
    """
    model = ENGLISH.model(answer="Warsaw is where she was born [2]. She discovered radium [1].")
    with filled(tmp_path, ENGLISH, model) as rag:
        param = QueryParam(mode="naive", similarity_reuse=0.9)
        for _ in range(2):
            answer = rag.query(ENGLISH.question, param)
            trace = rag.traces.get(str(answer.trace_id))
            assert answer.text == "Warsaw is where she was born [1]. She discovered radium [2]."
            prompted = {item.number: item.id for item in trace.shown}
            cited = [prompted[number] for number in trace.prompt_numbers]
            assert cited == [one.chunk_id for one in answer.citations]
            assert trace.prompt_numbers == (2, 1) and trace.citations == answer.citations
        assert trace.reused and rag.traces.verify() == ()
        assert '<a class="cite number" href="#n2">2</a>' in rag.traces.page(trace.id)


NUMBERED = re.compile(r"^(?:[0-9]{9} )?\[(\d+)\] ", re.MULTILINE)


@pytest.mark.parametrize("explain", [True, False])
@pytest.mark.parametrize("mode", ["naive", "hybrid", "mix"])
def test_the_prompt_contains_exactly_what_the_trace_shows(
    tmp_path: Path, example: Example, explain: bool, mode: Mode
) -> None:
    """The model received the items of the trace, all of them, and no other."""
    model = example.model()
    with filled(tmp_path, example, model) as rag:
        param = QueryParam(mode=mode, max_total_tokens=2_000)
        trace = rag.traces.get(str(rag.query(example.question, param, explain=explain).trace_id))
        sources = rag.traces.sources(trace)
    received = model.requests[-1].question

    items = list(NUMBERED.finditer(received))
    assert [int(found[1]) for found in items] == [item.number for item in trace.shown] != []
    for found, item in zip(items, trace.shown, strict=True):
        line, _, rest = received[found.end() :].partition("\n")
        assert line.startswith(item.label)
        if item.kind == "chunk":
            chunk = sources.chunks[item.id]
            passage = chunk.text[item.start - chunk.start : item.end - chunk.start]
            assert rest.startswith(passage + "\n")
        else:
            assert line.endswith(item.text)
    shown = [
        one.text if one.kind != "chunk" else sources.chunks[one.id].text for one in trace.shown
    ]
    for text in (*example.pages, *(str(record["description"]) for record in example.records)):
        assert (text in received) == any(text in one for one in shown)


@pytest.mark.parametrize(
    ("selection", "error"), [(BROKEN, "the model is out"), ("None of these help.", None)]
)
def test_a_selection_without_edges_falls_back_to_rank(
    tmp_path: Path, selection: LLMError | str, error: str | None
) -> None:
    """The answer comes; that the model chose nothing, or could not choose, and why, is on record."""
    with filled(tmp_path, ENGLISH, ENGLISH.model(selection=selection)) as rag:
        trace = rag.traces.get(explained(rag))
        text, page = rag.traces.export(trace.id), rag.traces.page(trace.id)
        assert rag.traces.verify() == ()

    assert trace.status == "complete" and trace.answer == ENGLISH.answer
    assert trace.fallback and trace.selection_error == error
    assert [one.reasoning for one in trace.selected] == [None, None]
    assert 'fallback> "true"' in text and "reasoning" not in text and "score" in text
    assert (error or "The model chose no edge") in page


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tracing.curie import ENGLISH, filled, step
from lightrag_jsonl.testing import ScriptedLLM

def script(request):
    if step(request) == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return ENGLISH.script({})(request)

with filled(Path(sys.argv[1]), ENGLISH, ScriptedLLM(script)) as rag:
    rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=lambda event: None)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("at", "quads"), [("selection", 8), ("answer", 14)])
def test_a_killed_process_leaves_an_incomplete_trace(tmp_path: Path, at: str, quads: int) -> None:
    """What a listener had heard is stored, and it is sound."""
    assert run_python(KILLED, tmp_path, at).returncode == -signal.SIGKILL

    with opened(tmp_path, ENGLISH) as rag:
        trace = rag.traces.get("0001")
        assert "did not finish" in rag.traces.page("0001")
        assert rag.traces.export("0001").count("\n") == quads
        assert rag.traces.verify() == ()
    reached = ("session", "keywords", "retrieval", "selection")[: 3 + (at == "answer")]
    assert (trace.status, trace.stages) == ("incomplete", reached)


@pytest.mark.slow
async def test_twenty_queries_at_once_leave_twenty_whole_traces(tmp_path: Path) -> None:
    """No event gets into the wrong trace, whoever else is asking."""
    heard: dict[str, list[Any]] = {}
    model = ScriptedLLM(ENGLISH.script({}), seconds=0.001)
    async with AsyncLightRAG(tmp_path, **settings(ENGLISH, model)) as rag:
        await rag.insert_records(ENGLISH.document(), ENGLISH.records)

        async def ask(number: int) -> None:
            question, mode = f"What did Marie Curie discover? ({number})", MODES[number % 6]
            own = heard[question] = list[Any]()
            await rag.query(question, mode=mode, explain=True, listener=own.append)

        await asyncio.gather(*map(ask, range(20)))
        traces = {one.question: await rag.traces.get(one.id) for one in await rag.traces.list()}
        assert await rag.traces.verify() == ()

    assert len(traces) == 20
    for question, events in heard.items():
        assert {event.trace_id for event in events} == {traces[question].id}
        assert sum(event.stage == "end" for event in events) == 1
        assert trace_of(events) == traces[question]


@pytest.mark.slow
def test_traces_stay_sound_through_every_change(tmp_path: Path) -> None:
    """Inserts, an update, deletions, a merge, retention: `verify` has nothing to report."""
    shorter = ENGLISH.document("d2", f"An introduction. {ENGLISH.pages[0]}")
    with opened(tmp_path, ENGLISH) as rag:
        changes: list[Callable[[], object]] = [
            lambda: None,
            lambda: rag.insert_records(ENGLISH.document(), ENGLISH.records),
            lambda: rag.insert_records(ENGLISH.document("d2"), ENGLISH.records),
            lambda: rag.insert_records(shorter, ENGLISH.records_of(0, *ENGLISH.found)),
            lambda: rag.entities.merge(["Marie Curie", "radium"], into="Marie Curie"),
            lambda: rag.delete("d1"),
            lambda: rag.delete("d2"),
        ]
        for change in changes:
            change()
            for mode in ("naive", "hybrid", "mix"):
                rag.query(ENGLISH.question, mode=mode, explain=True)
            assert rag.traces.verify() == ()
        assert len(rag.traces.list()) == 21
        assert rag.traces.delete(keep=4) == 17
        assert [one.id for one in rag.traces.list()] == ["0021", "0020", "0019", "0018"]
