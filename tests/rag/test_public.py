"""The public face: quick to import, at home in notebooks, threads and running loops, honest about reuse."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import pytest

import lightrag_jsonl
from lightrag_jsonl import AsyncLightRAG, ConfigError, Document, LightRAG, QueryParam, StorageError
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.conftest import CHECKOUT
from tests.processes import run_python

HEAVY = (
    "faiss",
    "networkx",
    "openai",
    "scipy",
    "sentence_transformers",
    "rapidfuzz",
    "tiktoken",
    "torch",
)
RADIUM = Document("Marie Curie discovered radium in Paris.", id="d1", title="Radium")


def model(request: Request) -> str:
    """A model that extracts two entities, names keywords, and answers with the first number."""
    if (
        "Marie Curie discovered" in request.messages[-1].content
        and request.response_type == "jsonl"
    ):
        return (
            '{"type":"entity","name":"Marie Curie","entity_type":"person","description":"A chemist."}\n'
            '{"type":"entity","name":"radium","entity_type":"concept","description":"An element."}\n'
            '{"type":"relationship","source":"Marie Curie","target":"radium","keywords":["discovered"],'
            '"description":"Marie Curie discovered radium.","strength":9}\n'
            '{"type":"done","entities":2,"relationships":1}'
        )
    if request.response_type == "jsonl":
        return '{"type":"done","entities":0,"relationships":0}'
    if request.response_type == "json":
        return '{"high_level_keywords":["discovery"],"low_level_keywords":["Marie Curie"]}'
    return "NO" if "missing" in request.question.lower() else "She discovered radium [1]."


def test_importing_loads_no_heavy_package() -> None:
    """Faiss, torch and their like are imported by whoever first needs them."""
    code = "import sys, lightrag_jsonl; print([m for m in sys.argv[1:] if m in sys.modules])"
    done = run_python(code, *HEAVY)
    assert done.stdout.strip() == "[]", done.stderr


def test_every_public_name_can_be_had() -> None:
    """All that `dir` lists resolves, late names and ports too; an unknown one is an AttributeError."""
    names = dir(lightrag_jsonl)
    assert len(names) == len(set(names)) and {"LLM", "Embedder", *lightrag_jsonl.__all__} < set(
        names
    )
    for name in names:
        assert getattr(lightrag_jsonl, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        lightrag_jsonl.nonsense  # noqa: B018


def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook: the calling thread already runs an event loop."""

    async def cell() -> str:
        with LightRAG(tmp_path / "kb") as rag:
            rag.insert(RADIUM)
            return rag.query("What did Marie Curie discover?").text

    assert "radium" in asyncio.run(cell())


def test_threads_may_share_it(tmp_path: Path) -> None:
    """Many threads ask one object at once, while another inserts."""
    answers: list[str] = []
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(RADIUM)

        def ask() -> None:
            answers.append(rag.query("What did Marie Curie discover?", mode="naive").text)

        def add() -> None:
            rag.insert([Document(f"Note {n}: Paul met Anna.", id=f"n{n}") for n in range(5)])

        threads = [threading.Thread(target=ask) for _ in range(8)] + [threading.Thread(target=add)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(rag.documents()) == 6
    assert len(answers) == 8 and all("radium" in answer for answer in answers)


def test_a_closed_one_says_so(tmp_path: Path) -> None:
    """After close, calls are refused with a clear error; closing twice is no error."""
    rag = LightRAG(tmp_path / "kb")
    rag.close()
    rag.close()
    with pytest.raises(StorageError, match="closed"):
        rag.status()


def test_streaming_gives_the_same_answer(tmp_path: Path) -> None:
    """The pieces joined are the answer, which has citations and a trace; it is not there before."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM(model)) as rag:
        rag.insert(RADIUM)
        stream = rag.stream("What did Marie Curie discover?")
        first = next(stream)
        with pytest.raises(ValueError, match="pieces"):
            _ = stream.answer
        text = first + "".join(stream)
        assert stream.answer.text == text == "She discovered radium [1]." != first
        assert stream.answer.citations
        assert rag.traces.get(str(stream.answer.trace_id)).status == "complete"


def test_the_graph_is_a_read_only_networkx_view(tmp_path: Path) -> None:
    """Nodes by entity name, edges with keywords and weight; it cannot be changed."""
    import networkx as nx

    with LightRAG(tmp_path / "kb", llm=ScriptedLLM(model)) as rag:
        rag.insert(RADIUM)
        graph = rag.graph
        assert graph.edges["Marie Curie", "radium"]["keywords"] == ("discovered",)
        assert graph.nodes["radium"]["entity_type"] == "concept"
        with pytest.raises(nx.NetworkXError):
            graph.add_node("x")


def test_an_answer_never_outlives_its_context(tmp_path: Path) -> None:
    """The same question is answered from the cache until the index changes under it."""
    llm = ScriptedLLM(model)
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        rag.insert(RADIUM)
        rag.query("What did Marie Curie discover?")
        before = len(llm.requests)
        rag.query("What did Marie Curie discover?")
        assert len(llm.requests) == before
        rag.insert(Document("Marie Curie discovered nothing, says a forger in Paris.", id="d2"))
        after = len(llm.requests)
        rag.query("What did Marie Curie discover?")
        assert len(llm.requests) > after


def test_a_similar_question_is_answered_again_only_where_that_was_asked_for(tmp_path: Path) -> None:
    """Reuse is off by default; with a threshold it needs the same generation of the index."""
    llm = ScriptedLLM(model)
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        rag.insert(RADIUM)
        param = QueryParam(similarity_reuse=0.5)
        first = rag.query("What did Marie Curie discover?", param)
        calls = len(llm.requests)
        again = rag.query("What did Marie Curie discover?!", param)
        assert again.text == first.text and len(llm.requests) == calls
        assert again.trace_id != first.trace_id and rag.traces.verify() == ()
        rag.query("What did Marie Curie discover?!")
        assert len(llm.requests) > calls
        calls = len(llm.requests)
        rag.insert(Document("Marie Curie discovered nothing, a forger says.", id="d3"))
        asked = len(llm.requests)
        rag.query("What did Marie Curie discover?!", param)
        assert len(llm.requests) > asked > calls


def test_no_answer_is_given_again_once_the_cache_is_cleared(tmp_path: Path) -> None:
    """Neither to the same question nor to one like it."""
    llm = ScriptedLLM(model)
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        rag.insert(RADIUM)
        param = QueryParam(similarity_reuse=0.5)
        rag.query("What did Marie Curie discover?", param)
        rag.admin.clear_cache()
        calls = len(llm.requests)
        rag.query("What did Marie Curie discover?!", param)
        assert len(llm.requests) > calls


def test_async_has_the_same_names(tmp_path: Path) -> None:
    """Whatever the sync face offers, the async face offers too."""
    ours = {name for name in dir(LightRAG) if not name.startswith("_")} - {"run"}
    theirs = {name for name in dir(AsyncLightRAG) if not name.startswith("_")}
    assert ours == theirs and len(theirs) <= 16


def test_an_empty_question_is_refused(tmp_path: Path) -> None:
    """Nothing asked, nothing answered: a clear error instead."""
    with LightRAG(tmp_path / "kb") as rag, pytest.raises(ConfigError, match="empty"):
        rag.query("  ")


@pytest.mark.parametrize("question", [None, 5, b"radium", ["radium"]])
def test_a_question_is_a_text(tmp_path: Path, question: object) -> None:
    """What is none is refused before a trace is begun, in words of ours."""
    with LightRAG(tmp_path) as rag:
        for ask in (rag.query, rag.retrieve, rag.events):
            with pytest.raises(TypeError, match="a question must be a text"):
                list(ask(question))  # type: ignore[call-overload]
        assert rag.traces.list() == ()


def test_settings_of_a_wrong_kind_are_refused(tmp_path: Path) -> None:
    """A dict in the place of `QueryParam`, or a text as a filter: the error says what is expected."""
    with LightRAG(tmp_path / "kb") as rag, pytest.raises(TypeError, match="QueryParam, not dict"):
        rag.query("Who?", {"mode": "mix"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="where"):
        QueryParam(where="date>1900")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "said"), [("README.md", "radium"), ("README.zh.md", "镭")])
def test_the_quickstart_of_the_readme_runs(name: str, said: str, tmp_path: Path) -> None:
    """Every Python block of a README that needs no model and no key runs as written, in order."""
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    runnable = [block for block in blocks if "llm" not in block]
    assert len(runnable) >= 4
    done = run_python("\n".join(runnable), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
