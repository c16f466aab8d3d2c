"""The public face: at home in notebooks, threads and running loops, honest about reuse."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

import lightrag_jsonl
from lightrag_jsonl import (
    AsyncLightRAG,
    ConfigError,
    Document,
    LightRAG,
    QueryParam,
    StorageError,
)
from tests.processes import run_python

RADIUM = Document("Marie Curie discovered radium in Paris.", id="d1", title="Radium")


def test_every_public_name_can_be_had() -> None:
    """All that `dir` lists resolves, late names too: the index, the reader of JSON Lines, what other programs
    implement. An unknown one is an AttributeError.
    """
    names = dir(lightrag_jsonl)
    ports = {"LLM", "StreamingLLM", "Embedder", "Tokenizer", "Reranker", "Message", "Completion"}
    reader = {"parse_jsonl", "JsonlReader", "JsonlResult", "Rejection", "PromptManager"}
    assert {"LightRAG", "Document", "QueryParam", "OpenAILLM", *ports, *reader} <= set(names)
    assert len(names) == len(set(names)) <= 70
    for name in names:
        assert getattr(lightrag_jsonl, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        lightrag_jsonl.nonsense  # noqa: B018


def test_the_package_loads_what_is_used() -> None:
    """An import alone, and the reader of JSON Lines, load neither numpy nor the index."""
    code = (
        "import sys; import lightrag_jsonl; print(len(sys.modules));"
        "from lightrag_jsonl import parse_jsonl; parse_jsonl('{}'); print('numpy' in sys.modules, 'lightrag_jsonl.rag' in sys.modules)"
    )
    modules, loaded = run_python(code).stdout.splitlines()
    assert int(modules) < 100
    assert loaded == "False False"


def test_it_works_inside_a_running_loop_until_it_is_closed(tmp_path: Path) -> None:
    """As in a notebook: the calling thread already runs an event loop. After close, calls are refused
    with a clear error; closing twice is no error.
    """

    async def cell() -> str:
        with LightRAG(tmp_path / "kb") as rag:
            rag.insert(RADIUM)
            answer = rag.query("What did Marie Curie discover?")
        rag.close()
        with pytest.raises(StorageError, match="closed"):
            rag.status()
        return answer.text

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


def test_arguments_of_lightrag_and_fields_of_a_question(tmp_path: Path) -> None:
    """A call as LightRAG's users write it raises a TypeError that names the replacement; any field of
    `QueryParam` can be given to a question, and overrides `param` unless it is None. An empty
    question is an error.
    """
    with pytest.raises(TypeError, match="use llm="):
        LightRAG(llm_model_func=print)
    with LightRAG(tmp_path / "kb") as rag:
        with pytest.raises(TypeError, match=r"Document\(text, id=…\)"):
            rag.insert("x", ids=["a"])
        rag.insert([RADIUM, Document("Pierre Curie taught in Paris.", id="d2")])
        for ask in (rag.query, rag.retrieve, rag.stream):
            with pytest.raises(TypeError, match=r"use retrieve\(question\)"):
                ask("Who?", only_need_context=True)
        for ask in (rag.query, rag.retrieve):
            with pytest.raises(ConfigError, match="empty"):
                ask("  ")
        where = {"id": "d2"}
        param = QueryParam(mode="naive", chunk_top_k=0)
        for given in (param, {"mode": "naive", "chunk_top_k": 0}):
            found = rag.retrieve("Paris", given, mode=None, chunk_top_k=9, where=where)
            assert found.mode == "naive" and [one.document_id for one in found.chunks] == ["d2"]
        answer = rag.query("Who taught?", where={"id": "d1"}, fail_response="？")
        assert "Pierre" not in answer.text
        assert "taught" in "".join(rag.stream("Who taught?", where=where, mode="naive"))


def test_async_has_the_same_names(tmp_path: Path) -> None:
    """Whatever the sync face offers, the async face offers too; both are small: 18 methods and 4 namespaces."""
    ours = {name for name in dir(LightRAG) if not name.startswith("_")} - {"run"}
    theirs = {name for name in dir(AsyncLightRAG) if not name.startswith("_")}
    assert ours == theirs and len(theirs) <= 22


def test_options_may_be_a_mapping(tmp_path: Path) -> None:
    """As those of `limits`; what is wrong with it is named."""
    with LightRAG(tmp_path, options={"chunk_tokens": 9}) as rag:
        rag.insert("Ann met Bob. " * 9, progress=False)
        assert rag.status().chunks > 3
    for wrong in ({"chunk_size": 9}, 5):
        with pytest.raises(ConfigError, match=r"no option 'chunk_size'|names and values, not 5"):
            LightRAG(tmp_path, options=wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["faiss", "networkx"])
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """A package that is imported at its first use says how to get it, as extras do."""
    monkeypatch.setitem(sys.modules, package, None)
    with (
        LightRAG(tmp_path / "kb") as rag,
        pytest.raises(ConfigError, match=f"the package {package} is missing: pip install"),
    ):
        rag.insert(RADIUM)
        _ = rag.graph
