"""Traces of real queries: every mode, every failure, many at once, and exactly what was shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, LightRAG, QueryParam
from lightrag_jsonl.adapters.openai import OpenAILLM
from lightrag_jsonl.errors import ConfigError, EmbeddingError, LLMError, StorageError
from lightrag_jsonl.explain.events import Answered, End, Event
from lightrag_jsonl.explain.trace import Trace, fold
from lightrag_jsonl.options import MODES
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from lightrag_jsonl.types import Mode
from tests import servers

from .curie import CHINESE, ENGLISH, Example, filled, opened, opened_async, step

BROKEN = LLMError("the model is out")


def asked(rag: LightRAG, example: Example = ENGLISH, mode: Mode = "hybrid") -> Trace:
    """The trace of the example's question."""
    rag.insert_records(example.document(), example.records)
    return rag.trace(str(rag.query(example.question, mode=mode, explain=True).trace_id))


@pytest.mark.parametrize("selection", ["llm", "score", "all"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_leaves_a_sound_trace(tmp_path: Path, mode: Mode, selection: str) -> None:
    """Whatever the mode and the way of choosing, the trace is whole, checked and exportable."""
    pyoxigraph = pytest.importorskip("pyoxigraph")
    param = QueryParam(mode=mode, selection=selection)  # type: ignore[arg-type]
    with filled(tmp_path, ENGLISH) as rag:
        id = str(rag.query(ENGLISH.question, param).trace_id)
        trace, problems = rag.trace(id), rag.verify()
        text = rag.export_trace(id, with_source=True)
        page = rag.trace_html(id)

    assert trace.status == "complete" and problems == ()
    assert len(list(pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS))) == text.count("\n")
    assert ("edgeCount" in text) == (mode not in ("naive", "bypass"))
    assert ("selectedChunk" in text) == (mode in ("naive", "mix", "walk"))
    assert bool(trace.selected) == (mode not in ("naive", "bypass"))
    assert {one.reasoning is not None for one in trace.selected} <= {selection == "llm"}
    assert ENGLISH.question in page


@pytest.mark.parametrize("mode", MODES)
def test_the_offline_parts_leave_sound_traces_too(tmp_path: Path, mode: Mode) -> None:
    """With no model at all nothing is chosen by one, and no reason is invented."""
    with LightRAG(tmp_path) as rag:
        rag.insert("Marie Curie discovered radium in Paris. Pierre Curie married Marie Curie.")
        if mode == "bypass":  # asks the model alone, and there is none
            with pytest.raises(ConfigError):
                rag.query(ENGLISH.question, mode=mode, explain=True)
        else:
            rag.query(ENGLISH.question, mode=mode, explain=True)
        trace, problems = rag.trace(rag.traces()[0].id), rag.verify()

    assert problems == () and trace.status == ("failed" if mode == "bypass" else "complete")
    assert trace.method in ("score", None)
    assert not [one for one in trace.selected if one.reasoning is not None]


def test_an_empty_index_leaves_a_trace(tmp_path: Path) -> None:
    """Nothing was found: that, too, is on record."""
    with opened(tmp_path, ENGLISH) as rag:
        id = rag.query(ENGLISH.question, explain=True).trace_id
        trace, problems = rag.trace(str(id)), rag.verify()

    assert trace.status == "complete" and trace.candidates == () and problems == ()


# ── what was shown ──────────────────────────────────────────────────────────────

NUMBERED = re.compile(r"^\[(\d+)\] ", re.MULTILINE)


@pytest.mark.parametrize("example", [ENGLISH, CHINESE], ids=["en", "zh"])
@pytest.mark.parametrize("explain", [True, False])
@pytest.mark.parametrize("mode", ["naive", "local", "global", "hybrid", "mix", "walk"])
def test_the_prompt_contains_exactly_what_the_trace_says(
    tmp_path: Path, example: Example, explain: bool, mode: Mode
) -> None:
    """The request that a server received has the items of the trace, all of them, and no other."""
    script = example.script({})

    def respond(request: servers.Request) -> servers.Reply:
        messages = request.json["messages"]
        kind = {"Candidates": "jsonl", "候选项": "jsonl", "Context": "text", "资料": "text"}
        found = next((k for word, k in kind.items() if word in messages[-1]["content"]), "json")
        said = script(Request((), found, None))  # type: ignore[arg-type]
        assert isinstance(said, str)
        return servers.chat_reply(said)

    with servers.ScriptedServer(respond=respond) as server:
        model = OpenAILLM("m", base_url=server.base_url, api_key="k")
        with LightRAG(tmp_path, llm=model, language=example.language) as rag:
            rag.insert_records(example.document(), example.records)
            param = QueryParam(mode=mode, max_total_tokens=2_000)
            id = rag.query(example.question, param, explain=explain).trace_id
            trace = rag.trace(str(id))
            sources = rag.sources(trace)
        received = server.bodies[-1]["messages"][-1]["content"]

    items = list(NUMBERED.finditer(received))
    assert [int(found[1]) for found in items] == [item.number for item in trace.shown]
    assert trace.shown
    for found, item in zip(items, trace.shown, strict=True):
        told = received[found.end() :].split("\n")[0]
        if item.kind == "chunk":
            chunk = sources.chunks[item.id]
            passage = chunk.text[item.start - chunk.start : item.end - chunk.start]
            assert told.startswith(item.label)
            assert received[found.end() + len(told) + 1 :].startswith(passage + "\n")
        else:
            assert told.startswith(item.label) and told.endswith(item.text)
    texts = [*example.pages, *(str(record["description"]) for record in example.records)]
    told_of = [item.text or sources.chunks[item.id].text for item in trace.shown]
    for text in texts:
        assert (text in received) == any(text in one for one in told_of)


def test_a_passage_cut_to_the_budget_is_recorded_as_it_was_shown(tmp_path: Path) -> None:
    """Where only the beginning of a chunk fits, the trace says which characters were shown."""
    text = "Marie Curie discovered radium. " * 300
    model = ScriptedLLM(lambda request: "Radium [1].")
    with LightRAG(tmp_path, llm=model) as rag:
        rag.insert_records(Document(text, id="d"), [])
        param = QueryParam(mode="naive", max_total_tokens=200)
        trace = rag.trace(str(rag.query("What is radium?", param).trace_id))
        problems = rag.verify()

    (shown,) = trace.shown
    assert 0 < shown.end - shown.start < 2_000 and problems == ()
    assert text[shown.start : shown.end] in model.requests[-1].text
    assert text[shown.start : shown.end + 30] not in model.requests[-1].text


def test_a_passage_without_edges_stays_in_mix(tmp_path: Path) -> None:
    """What a text search found and no candidate edge speaks of was not judged, so it is shown."""
    model = ENGLISH.model()
    with filled(tmp_path, ENGLISH, model) as rag:
        rag.insert_records(Document("What did Marie Curie discover? See Nature.", id="d2"), [])
        trace = rag.trace(str(rag.query(ENGLISH.question, mode="mix", explain=True).trace_id))
        problems = rag.verify()

    assert "See Nature" in model.requests[-1].text and "Warsaw" not in model.requests[-1].text
    assert len(trace.selected_chunks) == 2 and problems == ()


# ── failures ────────────────────────────────────────────────────────────────────


def test_a_failing_selection_falls_back_to_rank(tmp_path: Path) -> None:
    """The answer comes; that the model could not choose, and why, is on record."""
    with opened(tmp_path, ENGLISH, ENGLISH.model(selection=BROKEN)) as rag:
        trace = asked(rag)
        text = rag.export_trace(trace.id)
        page, problems = rag.trace_html(trace.id), rag.verify()

    assert trace.status == "complete" and trace.answer == ENGLISH.answer and problems == ()
    assert trace.fallback and trace.selection_error == "the model is out"
    assert [one.reasoning for one in trace.selected] == [None, None]
    assert 'fallback> "true"' in text and "reasoning" not in text and "score" in text
    assert "could not be asked to choose (the model is out)" in page


def test_who_wants_all_relations_explained_gets_all(tmp_path: Path) -> None:
    """`explain` asks the model to choose only where it was not said that nobody shall."""
    with opened(tmp_path, ENGLISH) as rag:
        rag.insert_records(ENGLISH.document(), ENGLISH.records)
        param = QueryParam(mode="hybrid", selection="all")
        answer = rag.query(ENGLISH.question, param, explain=True)
        trace = rag.trace(str(answer.trace_id))

    assert (trace.method, len(trace.selected)) == ("all", 2)


def test_an_empty_selection_falls_back_to_rank(tmp_path: Path) -> None:
    """A model that chooses nothing leaves it to rank, and the trace says so."""
    with opened(tmp_path, ENGLISH, ENGLISH.model(selection="None of these help.")) as rag:
        trace = asked(rag)

    assert trace.fallback and trace.selection_error is None and len(trace.selected) == 2


def test_a_failing_synthesis_ends_the_session_once(tmp_path: Path) -> None:
    """The error is raised, heard by the listener as the last event, and on record."""
    heard: list[Event] = []
    with filled(tmp_path, ENGLISH, ENGLISH.model(answer=BROKEN)) as rag:
        with pytest.raises(LLMError, match="the model is out"):
            rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=heard.append)
        streamed = list(rag.events(ENGLISH.question, mode="hybrid"))
        traces, problems = rag.traces(), rag.verify()
        text = rag.export_trace(traces[0].id)

    for events in (heard, streamed):
        ends = [event for event in events if isinstance(event, End)]
        assert [end.error for end in ends] == ["the model is out"] and events[-1] is ends[0]
        assert events[-1].to_message()["error"] == "the model is out"
    assert [one.status for one in traces] == ["failed", "failed"] and problems == ()
    assert len(text.splitlines()) == 14  # all but the answer


class Moody:
    """An embedder that stops working when it is told to."""

    def __init__(self) -> None:
        self.broken = False
        self._works = HashEmbedder()
        self.name, self.dim = self._works.name, self._works.dim

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        if self.broken:
            raise EmbeddingError("no vectors today")
        return await self._works.embed(texts, kind=kind)


@pytest.mark.parametrize("reuse", [None, 0.9])
def test_a_failing_search_ends_the_session(tmp_path: Path, reuse: float | None) -> None:
    """Wherever a query fails, it ends once: in the search, or in looking for an earlier answer."""
    embedder, heard = Moody(), list[Event]()
    with LightRAG(tmp_path, llm=ENGLISH.model(), embedder=embedder) as rag:
        rag.insert_records(ENGLISH.document(), ENGLISH.records)
        embedder.broken = True
        with pytest.raises(EmbeddingError):
            rag.query("Who?", QueryParam(similarity_reuse=reuse), listener=heard.append)
        (trace,) = rag.traces()

    assert trace.status == "failed"
    assert [event.error for event in heard if isinstance(event, End)] == ["no vectors today"]


def test_a_failing_listener_never_changes_the_answer(tmp_path: Path) -> None:
    """Wherever a callback raises, the answer and the trace are those of a query without one."""
    for stop in range(1, 9):
        heard: list[Event] = []

        def listen(event: Event, heard: list[Event] = heard, stop: int = stop) -> None:
            heard.append(event)
            if len(heard) == stop:
                raise ZeroDivisionError

        with filled(tmp_path / str(stop), ENGLISH) as rag:
            answer = rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=listen)
            plain = rag.query(ENGLISH.question, mode="hybrid", explain=True)
            traces = [rag.trace(str(one.trace_id)) for one in (answer, plain)]

        assert len(heard) == min(stop, 8)
        assert answer.text == plain.text == ENGLISH.answer
        assert comparable(traces[0]) == comparable(traces[1])


async def test_a_listener_may_be_a_coroutine(tmp_path: Path) -> None:
    """It is waited for, and hears each event after it is stored."""
    stored: list[int] = []
    async with opened_async(tmp_path, ENGLISH) as rag:
        await rag.insert_records(ENGLISH.document(), ENGLISH.records)

        async def listen(event: Event) -> None:
            trace = await rag.trace(event.trace_id)
            if event.stage != "chunk":
                assert event.stage in trace.stages
                stored.append(len(trace.stages))

        await rag.query(ENGLISH.question, mode="hybrid", explain=True, listener=listen)
    assert stored == [1, 2, 3, 4, 5, 6]


def test_a_listener_that_calls_back_does_not_hang(tmp_path: Path) -> None:
    """Calling the blocking face from its own listener is refused, and the answer still comes."""
    with filled(tmp_path, ENGLISH) as rag:
        answer = rag.query(ENGLISH.question, explain=True, listener=lambda event: rag.traces())

    assert answer.text == ENGLISH.answer


def test_events_left_early_stop_the_query(tmp_path: Path) -> None:
    """Who stops listening pays for no answer; the trace stays incomplete, and sound."""
    model = ScriptedLLM(ENGLISH.script({}), seconds=5.0)
    with filled(tmp_path, ENGLISH, model) as rag:
        for event in rag.events(ENGLISH.question, mode="hybrid"):
            if event.stage == "session":
                break
        (trace,) = rag.traces()
        assert trace.status == "incomplete" and rag.verify() == ()
    assert not any(step(request) == "answer" for request in model.requests)


async def test_events_that_cannot_be_stored_raise(tmp_path: Path) -> None:
    """Without a place for the trace the iterator ends with the error: it does not wait forever."""
    async with AsyncLightRAG(tmp_path, new_id=lambda: "same") as rag:
        async for _ in rag.events(ENGLISH.question):
            pass
        with pytest.raises(StorageError):
            async for _ in rag.events(ENGLISH.question):
                pass


# ── many at once ────────────────────────────────────────────────────────────────


async def test_twenty_queries_at_once_leave_twenty_whole_traces(tmp_path: Path) -> None:
    """No event gets into the wrong trace, whoever else is asking."""

    def script(request: Request) -> str:
        if step(request) == "answer":
            return f"Answer to {request.text.rsplit('Question: ', 1)[1]} [1]"
        said = ENGLISH.script({})(request)
        assert isinstance(said, str)
        return said

    heard: dict[str, list[Event]] = {}
    model = ScriptedLLM(script, seconds=0.001)
    async with opened_async(tmp_path, ENGLISH, model) as rag:
        await rag.insert_records(ENGLISH.document(), ENGLISH.records)

        async def ask(number: int) -> tuple[str, str]:
            question, own = f"What did Marie Curie discover? ({number})", []
            heard[question] = own
            mode = MODES[number % 6]
            answer = await rag.query(question, mode=mode, explain=True, listener=own.append)
            return question, answer.text

        texts = dict(await asyncio.gather(*map(ask, range(20))))
        traces = {one.question: await rag.trace(one.id) for one in await rag.traces()}
        assert await rag.verify() == ()

    assert len(traces) == 20
    for question, events in heard.items():
        assert {event.trace_id for event in events} == {traces[question].id}
        assert sum(isinstance(event, End) for event in events) == 1
        assert fold(events) == traces[question]
        assert traces[question].answer == texts[question] == f"Answer to {question} [1]"


# ── answers that cost nothing ───────────────────────────────────────────────────


def test_a_cached_answer_leaves_a_whole_trace(tmp_path: Path) -> None:
    """The second time nothing is asked of the model, and the trace is as good as the first."""
    model = ENGLISH.model()
    with opened(tmp_path, ENGLISH, model) as rag:
        first = asked(rag)
        calls = len(model.requests)
        second = asked(rag)

    assert len(model.requests) == calls
    assert comparable(first) == comparable(second) and first.id != second.id


def test_a_reused_answer_leaves_a_trace_that_says_so(tmp_path: Path) -> None:
    """An answer of an earlier question is on record as such."""
    param = QueryParam(mode="hybrid", similarity_reuse=0.5)
    with filled(tmp_path, ENGLISH) as rag:
        rag.query(ENGLISH.question, param)
        again = rag.query("What did Marie Curie discover, then?", param)
        trace, problems = rag.trace(str(again.trace_id)), rag.verify()
        page = rag.trace_html(trace.id)

    assert trace.reused and trace.answer == ENGLISH.answer and problems == ()
    assert "written for an earlier, similar question" in page


def test_an_answer_is_reused_in_the_form_that_is_wished(tmp_path: Path) -> None:
    """Whether the form is the prompt's own or one that was named."""
    plain = QueryParam(mode="hybrid", similarity_reuse=0.5)
    with filled(tmp_path, ENGLISH) as rag:
        for param in (plain, replace(plain, response_type="One sentence")):
            reused = [
                rag.trace(str(rag.query(ENGLISH.question, param).trace_id)).reused for _ in "12"
            ]
            assert reused == [False, True]


@pytest.mark.parametrize("first", ["query", "stream", "events"])
def test_answers_are_reused_in_pieces_and_events_too(tmp_path: Path, first: str) -> None:
    """Whichever way a question is asked; a reused answer is one piece."""
    param = QueryParam(mode="hybrid", similarity_reuse=0.5)
    model = ENGLISH.model()
    with filled(tmp_path, ENGLISH, model) as rag:
        begun = getattr(rag, first)(ENGLISH.question, param, explain=False)
        assert first == "query" or list(begun)
        calls = len(model.requests)
        stream = rag.stream("What did Marie Curie discover, now?", param)
        assert list(stream) == [ENGLISH.answer] == [stream.answer.text]
        assert rag.trace(str(stream.answer.trace_id)).reused
        *_, answered, end = rag.events("What did Marie Curie discover, then?", param, explain=False)
        assert isinstance(answered, Answered) and answered.reused and isinstance(end, End)
        assert len(model.requests) == calls and rag.verify() == ()


def test_no_answer_of_other_prompts_is_reused(tmp_path: Path) -> None:
    """What the model was told then was something else."""
    param, prompts = QueryParam(mode="hybrid", similarity_reuse=0.5), tmp_path / "prompts"
    prompts.mkdir()
    template = "---\nresponse-type: text\n---\n# user\n\nAnswer in verse: {{ query }}\n"
    with filled(tmp_path / "kb", ENGLISH) as rag:
        rag.query(ENGLISH.question, param)
    (prompts / "answer.md").write_text(template, encoding="utf-8")
    with LightRAG(tmp_path / "kb", llm=ENGLISH.model(), prompts=prompts) as rag:
        again = rag.query(ENGLISH.question, param)
        assert not rag.trace(str(again.trace_id)).reused
        assert rag.trace(str(rag.query(ENGLISH.question, param).trace_id)).reused


def test_a_question_that_cannot_be_stored_leaves_a_trace_all_the_same(tmp_path: Path) -> None:
    """Half an emoji, or any byte that was no UTF-8 on a command line."""
    with LightRAG(tmp_path) as rag:
        rag.insert(ENGLISH.document())
        answer = rag.query("Who is Marie \ud800 Curie?")
        assert rag.trace(str(answer.trace_id)).status == "complete"
        assert rag.verify() == ()


async def test_a_query_that_is_forgotten_while_it_runs_leaves_nothing(tmp_path: Path) -> None:
    rag = opened_async(tmp_path, ENGLISH, ScriptedLLM(ENGLISH.script({}), seconds=0.3))
    async with rag:
        await rag.insert_records(ENGLISH.document(), ENGLISH.records)
        query = asyncio.create_task(rag.query(ENGLISH.question))
        while not await rag.traces():
            await asyncio.sleep(0.01)
        assert await rag.forget_traces(keep=0) == 1
        await query
        assert await rag.traces() == () and await rag.verify() == ()


# ── helpers ─────────────────────────────────────────────────────────────────────


def comparable(trace: Trace) -> Trace:
    """The trace without its id and what the first asking paid."""
    return replace(trace, id="", usage=type(trace.usage)())
