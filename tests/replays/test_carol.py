"""A Christmas Carol as gpt-4o really read it, through the whole pipeline."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions, QueryParam
from lightrag_jsonl.testing import HashEmbedder, ReplayLLM, Request
from lightrag_jsonl.types import Context, Document
from tests.indexing.kit import index, problems
from tests.replays.carol import answers, chunks

QUESTION = "Who was Scrooge's partner?"


def otherwise(request: Request) -> str:
    """Keywords for the one question, and notes joined for a summary."""
    if request.response_type == "json":
        return '{"high_level_keywords": ["business partnership"], "low_level_keywords": ["Scrooge", "partner"]}'
    return " ".join(request.question.partition("Notes:\n- ")[2].split("\n- ")[:3])


@pytest.fixture(scope="module")
def carol(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReplayLLM]:
    """The index that the recorded answers make, one document a chunk of the recording."""
    texts = [text.strip() for text in chunks(shared_data)]
    said = answers(shared_data, "gpt-4o")
    llm = ReplayLLM(dict(zip(texts, said, strict=True)), otherwise=otherwise)
    folder = tmp_path_factory.mktemp("carol")

    async def build() -> None:
        options = IndexOptions(chunk_tokens=3_000, max_gleanings=1)
        async with index(folder, llm, options=options, embedder=HashEmbedder()) as rag:
            documents = [Document(text, id=f"carol-{n:02}") for n, text in enumerate(texts)]
            report = await rag.insert(documents)
            assert (len(report.documents), report.chunks) == (len(texts), len(texts))
            assert report.failures == ()

    asyncio.run(build())
    return folder, llm


def test_the_graph_holds_what_the_model_said(carol: tuple[Path, ReplayLLM]) -> None:
    """At least 400 entities and 370 relations, with all that belongs to them; Scrooge has most neighbours."""
    folder, llm = carol

    async def look() -> None:
        async with index(folder, llm, embedder=HashEmbedder()) as rag:
            graph = rag.graph
            assert graph.number_of_nodes() >= 400 and graph.number_of_edges() >= 370
            degrees = dict(graph.degree)
            assert max(degrees, key=lambda name: degrees[name]) == "Scrooge"
            assert all(data["weight"] >= 1 for _, _, data in graph.edges(data=True))
            assert all(data["description"] for _, _, data in graph.edges(data=True))
            described = sum(bool(data["keywords"]) for _, _, data in graph.edges(data=True))
            assert described > 0.95 * graph.number_of_edges()
            assert graph.has_edge("Scrooge", "Marley") or "Jacob Marley" in graph

    asyncio.run(look())
    assert problems(folder) == []


@pytest.mark.parametrize("mode", ["local", "mix"])
def test_the_partner_is_found(carol: tuple[Path, ReplayLLM], mode: str) -> None:
    """Marley is among the first three entities for "Who was Scrooge's partner?"."""
    folder, llm = carol

    async def ask() -> Context:
        async with index(folder, llm, embedder=HashEmbedder()) as rag:
            return await rag.retrieve(QUESTION, QueryParam(mode=mode))  # type: ignore[arg-type]

    found = asyncio.run(ask())
    assert any("Marley" in entity.name for entity in found.entities[:3])


def test_a_second_insert_asks_nothing(carol: tuple[Path, ReplayLLM], shared_data: Path) -> None:
    """All is known."""
    folder, llm = carol
    calls = len(llm.requests)

    async def again() -> None:
        options = IndexOptions(chunk_tokens=3_000)
        async with index(folder, llm, options=options, embedder=HashEmbedder()) as rag:
            texts = [text.strip() for text in chunks(shared_data)]
            report = await rag.insert(
                Document(text, id=f"carol-{n:02}") for n, text in enumerate(texts)
            )
            assert len(report.unchanged) == len(texts)

    asyncio.run(again())
    assert len(llm.requests) == calls
