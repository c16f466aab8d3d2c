"""A Christmas Carol as gpt-4o really read it, through the whole pipeline."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lightrag_jsonl import IndexOptions
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.core.types import Document, Mode
from lightrag_jsonl.testing import HashEmbedder, ReplayLLM, Request
from tests.kit import index, problems
from tests.replays.carol import answers, chunks

OPTIONS = IndexOptions(chunk_tokens=3_000)  # a chunk of the recording is one chunk here


def otherwise(request: Request) -> str:
    """Keywords for the one question, and notes joined for a summary."""
    if request.response_type == "json":
        return '{"high_level_keywords": ["business partnership"], "low_level_keywords": ["Scrooge", "partner"]}'
    return " ".join(request.question.partition("Notes:\n- ")[2].split("\n- ")[:3])


async def build(folder: Path, data: Path, run: str, embedder: Embedder | None = None) -> ReplayLLM:
    """The index that recorded answers make, one document a chunk of the recording."""
    texts = [text.strip() for text in chunks(data)]
    llm = ReplayLLM(dict(zip(texts, answers(data, run), strict=True)), otherwise=otherwise)
    async with index(folder, llm, options=OPTIONS, embedder=embedder) as rag:
        documents = [Document(text, id=f"carol-{n:02}") for n, text in enumerate(texts)]
        report = await rag.insert(documents)
        assert (len(report.documents), report.chunks) == (42, 42) and report.failures == ()
        calls = len(llm.requests)
        again = await rag.insert(documents)
        assert len(again.unchanged) == 42 and len(llm.requests) == calls
    return llm


def test_the_graph_holds_what_the_model_wrote(shared_data: Path, tmp_path: Path) -> None:
    """At least 400 entities and 370 relations with weights and descriptions; Scrooge has most neighbours."""
    llm = asyncio.run(build(tmp_path, shared_data, "gpt-4o"))

    async def look() -> None:
        async with index(tmp_path, llm) as rag:
            graph = rag.graph
            assert graph.number_of_nodes() >= 400 and graph.number_of_edges() >= 370
            degrees = dict(graph.degree)
            assert max(degrees, key=lambda name: degrees[name]) == "Scrooge"
            for _, _, data in graph.edges(data=True):
                assert data["weight"] >= 1 and data["description"] and data["chunk_ids"]
            assert {"Marley", "Tiny Tim", "Bob Cratchit"} <= set(graph)

    asyncio.run(look())
    assert problems(tmp_path) == []


def test_keywords_come_with_the_prompt_that_asks_for_them(
    shared_data: Path, tmp_path: Path
) -> None:
    """The answers to LightRAG's own prompt name what each relation is about."""
    llm = asyncio.run(build(tmp_path, shared_data, "gpt-4o-mini (LightRAG prompt)"))

    async def look() -> None:
        async with index(tmp_path, llm) as rag:
            graph = rag.graph
            assert graph.number_of_nodes() >= 300 and graph.number_of_edges() >= 250
            named = sum(bool(data["keywords"]) for _, _, data in graph.edges(data=True))
            assert named >= 0.95 * graph.number_of_edges()

    asyncio.run(look())


def test_the_passage_that_names_the_partner_comes_first(shared_data: Path, tmp_path: Path) -> None:
    """The relation nearest to the question joins Scrooge to "Mr. Scrooge's partner", which repeats the
    question and leads nowhere.
    """
    embedder = HashEmbedder()
    llm = asyncio.run(build(tmp_path, shared_data, "gpt-4o", embedder))

    async def first(mode: Mode) -> str:
        async with index(tmp_path, llm, embedder=embedder) as rag:
            found = await rag.retrieve("Who was Scrooge's partner?", mode=mode)
            return found.chunks[0].document_id

    modes: tuple[Mode, ...] = ("naive", "local", "hybrid", "mix", "walk")
    assert {asyncio.run(first(mode)) for mode in modes} == {"carol-00"}


def test_the_partner_is_found(shared_data: Path, tmp_path: Path) -> None:
    """Marley is among the first three entities for "Who was Scrooge's partner?" in local and mix."""
    llm = asyncio.run(build(tmp_path, shared_data, "gpt-4o"))

    async def ask(mode: Mode) -> list[str]:
        async with index(tmp_path, llm) as rag:
            found = await rag.retrieve("Who was Scrooge's partner?", mode=mode)
            return [entity.name for entity in found.entities[:3]]

    modes: tuple[Mode, ...] = ("local", "mix")
    for mode in modes:
        assert any("Marley" in name for name in asyncio.run(ask(mode)))
