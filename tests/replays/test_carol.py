"""A Christmas Carol as gpt-4o really read it, through the whole pipeline."""

import asyncio
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions
from lightrag_jsonl.testing import HashEmbedder, ReplayLLM, Request
from tests.kit import Mode, index, problems
from tests.replays.carol import documents

pytestmark = pytest.mark.slow  # reads a whole novel's answers

OPTIONS = IndexOptions(chunk_tokens=3_000)  # a chunk of the recording is one chunk here


def otherwise(request: Request) -> str:
    """Keywords for the one question, and notes joined for a summary."""
    if request.response_type == "json":
        return '{"high_level_keywords": ["business partnership"], "low_level_keywords": ["Scrooge", "partner"]}'
    return " ".join(request.question.partition("Notes:\n- ")[2].split("\n- ")[:3])


async def build(folder: Path, data: Path) -> None:
    """The index that recorded answers make, one document a chunk of the recording."""
    given, recorded = documents(data)
    llm = ReplayLLM(recorded, otherwise=otherwise)
    async with index(folder, llm, options=OPTIONS, embedder=HashEmbedder()) as rag:
        report = await rag.insert(given)
        assert (len(report.documents), report.chunks) == (42, 42) and report.failures == ()
        calls = len(llm.requests)
        again = await rag.insert(given)
        assert len(again.unchanged) == 42 and len(llm.requests) == calls


@pytest.fixture(scope="module")
def carol(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of what gpt-4o answered."""
    folder = tmp_path_factory.mktemp("carol")
    asyncio.run(build(folder, shared_data))
    return folder


async def test_the_graph_holds_what_the_model_wrote(carol: Path) -> None:
    """At least 400 entities and 370 relations with weights and descriptions; Scrooge has most neighbours."""
    async with index(carol, embedder=HashEmbedder()) as rag:
        graph = rag.graph
        assert graph.number_of_nodes() >= 400 and graph.number_of_edges() >= 370
        degrees = dict(graph.degree)
        assert max(degrees, key=lambda name: degrees[name]) == "Scrooge"
        for _, _, data in graph.edges(data=True):
            assert data["weight"] >= 1 and data["description"] and data["chunk_ids"]
        assert {"Marley", "Tiny Tim", "Bob Cratchit"} <= set(graph)
    assert problems(carol) == []


@pytest.mark.parametrize("mode", ["naive", "local", "hybrid", "mix"])
async def test_the_partner_is_found(carol: Path, mode: Mode) -> None:
    """The passage that names him comes first, in `hybrid`, which does not weigh texts, among the first two: the
    relation nearest to the question joins Scrooge to "Mr. Scrooge's partner", which leads nowhere.
    """
    llm = ReplayLLM({}, otherwise=otherwise)
    async with index(carol, llm, embedder=HashEmbedder()) as rag:
        found = await rag.retrieve("Who was Scrooge's partner?", mode=mode)
    first = [chunk.document_id for chunk in found.chunks[: 2 if mode == "hybrid" else 1]]
    assert "carol-00" in first
    names = [entity.name for entity in found.entities[:3]]
    assert mode not in ("local", "mix") or any("Marley" in name for name in names)
