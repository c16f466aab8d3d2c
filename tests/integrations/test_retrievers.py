"""Retrievers for other programs, with the real packages; skipped where these are not installed.

pip install langchain-core llama-index-core haystack-ai
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, QueryParam

QUESTION = "What did Marie Curie discover?"


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[LightRAG]:
    """An index of two short documents."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document("Marie Curie discovered radium in Paris.", id="c", title="Curie"))
        rag.insert(Document("张骞出使西域。", id="z", pages=("", "张骞出使西域。")))
        yield rag


def test_langchain(rag: LightRAG) -> None:
    """A chain gets the passages with their places, and the settings of the question count."""
    pytest.importorskip("langchain_core")
    from lightrag_jsonl.integrations.langchain import LightRAGRetriever

    first = LightRAGRetriever(rag=rag).invoke(QUESTION)[0]
    assert "radium" in first.page_content and first.metadata["document"] == "Curie"
    only = LightRAGRetriever(rag=rag, param=QueryParam(where={"id": "z"})).invoke("张骞去了哪里？")
    assert [(one.page_content, one.metadata["page"]) for one in only] == [("张骞出使西域。", 2)]


def test_llama_index(rag: LightRAG) -> None:
    """Nodes have the chunk's text, score and place."""
    pytest.importorskip("llama_index.core")
    from lightrag_jsonl.integrations.llama_index import LightRAGRetriever

    first = LightRAGRetriever(rag).retrieve(QUESTION)[0]
    assert "radium" in first.text and first.score and first.metadata["document_id"] == "c"


def test_haystack(rag: LightRAG) -> None:
    """It runs as a component of a pipeline."""
    pytest.importorskip("haystack")
    from haystack import Pipeline

    from lightrag_jsonl.integrations.haystack import LightRAGRetriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", LightRAGRetriever(rag))
    found = pipeline.run({"retriever": {"query": QUESTION}})["retriever"]["documents"]
    assert "radium" in found[0].content and found[0].meta["page"] == 1
