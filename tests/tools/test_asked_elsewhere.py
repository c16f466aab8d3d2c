"""What questions had read stays: after a merge, a split, a copy, a rollback and a purge."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from lightrag_jsonl import Answer, AsyncLightRAG
from lightrag_jsonl.testing import ScriptedLLM
from tests.cli.conftest import run_json
from tests.kit import View, index, problems, view
from tests.retrieval.test_asked import QUESTION, answering, documents, read_texts

Address: TypeAlias = Path | str
Learned: TypeAlias = tuple[View, Any, Any]

OTHER_QUESTION = "Where does the ferry run?"


def opened(address: Address, llm: ScriptedLLM | None = None) -> AsyncLightRAG:
    """An index whose times are all alike."""
    return index(address, llm or ScriptedLLM(answering), clock=lambda: 1000.0)


def told(answer: Answer) -> tuple[Any, ...]:
    """The text of an answer, what it cites, and the order of what its context holds. Scores may differ in
    their last digits, since the numbers of rows differ.
    """
    context = answer.context
    return (
        answer.text,
        [citation.document_id for citation in answer.citations],
        [entity.name for entity in context.entities],
        [(relation.source, relation.target) for relation in context.relations],
        [chunk.id for chunk in context.chunks],
    )


async def learned(address: Address) -> Learned:
    """What an index holds, how much of it was read, and an answer, for which nothing more is read."""
    llm = ScriptedLLM(answering)
    async with opened(address, llm) as rag:
        answer = await rag.query(QUESTION, read_chunks=0)
        reading = (await rag.status()).reading
    assert read_texts(llm) == []
    assert problems(address) == []
    return view(address), reading, told(answer)


async def asked(address: Address, question: str = QUESTION, chunks: int = 2) -> None:
    """An index of the documents, in which a question had chunks read."""
    async with opened(address) as rag:
        await rag.insert(documents(), read="asked", progress=False)
        await rag.query(question, read_chunks=chunks)


async def stays_after_a_merge(address: Callable[[str], Address]) -> None:
    """Merged into a new index, an index is what it was, and is read on when it is asked."""
    await asked(address("a"))
    before = await learned(address("a"))
    assert (before[1].read, before[1].chunks_read, before[1].questions) == ("asked", 2, 1)
    llm = ScriptedLLM(answering)
    async with opened(address("merged"), llm) as rag:
        await rag.merge_from(address("a"))
        await rag.merge_from(address("a"))
    assert await learned(address("merged")) == before
    async with opened(address("merged"), llm) as rag:
        await rag.query(QUESTION, read_chunks=8)
    assert len(read_texts(llm)) == 3


async def joins_what_two_copies_have_read(address: Callable[[str], Address]) -> None:
    """Two copies that were asked different things: merged, the index is the one that was asked both,
    whichever comes first, and no model is asked.
    """
    for name, question in (("mills", QUESTION), ("ferries", OTHER_QUESTION)):
        await asked(address(name), question, chunks=1)
    await asked(address("both"), QUESTION, chunks=1)
    async with opened(address("both")) as rag:
        await rag.query(OTHER_QUESTION, read_chunks=1)
    expected = await learned(address("both"))
    assert expected[1].chunks_read == 2
    for name, sources in (("one", ("mills", "ferries")), ("two", ("ferries", "mills"))):
        llm = ScriptedLLM(answering)
        async with opened(address(name), llm) as rag:
            for source in sources:
                await rag.merge_from(address(source))
        assert llm.requests == []
        merged = await learned(address(name))
        assert merged[0] == expected[0]
        assert merged[1].chunks_read == 2
        assert merged[2] == expected[2]


async def stays_after_a_rollback_and_a_purge(address: Callable[[str], Address]) -> None:
    """A rollback brings back what had been read at the snapshot, but for the questions, which were asked; a
    purge leaves nothing of its document, and of the others all that was learned.
    """
    await asked(address("a"))
    before = await learned(address("a"))
    async with opened(address("a")) as rag:
        await rag.admin.snapshot("learned")
        await rag.query(OTHER_QUESTION, read_chunks=8)
        await rag.admin.rollback("learned")
    state, reading, answer = await learned(address("a"))
    assert (state, replace(reading, questions=1), answer) == before
    async with opened(address("a")) as rag:
        await rag.delete("mill", purge=True)
        status = await rag.status()
    assert (status.reading.read, status.reading.chunks_read) == ("asked", 1)
    async with opened(address("without")) as rag:
        texts = [document for document in documents() if document.id != "mill"]
        await rag.insert(texts, read="asked", progress=False)
        await rag.query("Who paid for the bridge?", read_chunks=1)
    assert view(address("a")) == view(address("without"))


async def test_a_merge_brings_what_was_learned(tmp_path: Path) -> None:
    """See `stays_after_a_merge`."""
    await stays_after_a_merge(lambda name: tmp_path / name)


async def test_a_merge_joins_what_two_copies_have_read(tmp_path: Path) -> None:
    """See `joins_what_two_copies_have_read`."""
    await joins_what_two_copies_have_read(lambda name: tmp_path / name)


async def test_a_rollback_and_a_purge_leave_what_was_learned(tmp_path: Path) -> None:
    """See `stays_after_a_rollback_and_a_purge`."""
    await stays_after_a_rollback_and_a_purge(lambda name: tmp_path / name)


async def test_a_split_is_read_when_it_is_asked(tmp_path: Path) -> None:
    """A part keeps what was read of it, and reads on; the questions stay with the whole index."""
    await asked(tmp_path / "a", chunks=1)
    llm = ScriptedLLM(answering)
    async with opened(tmp_path / "a", llm) as rag:
        await rag.split(["mill", "ferry"], tmp_path / "part")
    async with opened(tmp_path / "part", llm) as rag:
        status = await rag.status()
        await rag.query(OTHER_QUESTION)
    assert (status.reading.read, status.reading.chunks_read) == ("asked", 1)
    assert status.reading.questions == 0
    assert read_texts(llm) == ["ferry"]


async def test_the_command_merges_what_two_copies_have_read(tmp_path: Path) -> None:
    """`merge` into a new folder counts the questions of both."""
    await asked(tmp_path / "a", QUESTION, chunks=1)
    await asked(tmp_path / "b", OTHER_QUESTION, chunks=1)
    run_json("merge", "-w", tmp_path / "all", tmp_path / "a", tmp_path / "b")
    reading = run_json("status", "-w", tmp_path / "all")["reading"]
    assert (reading["read"], reading["chunks_read"], reading["questions"]) == ("asked", 2, 2)


async def test_a_copy_is_what_was_copied(tmp_path: Path) -> None:
    """`copy` brings all that was learned, with the number of questions, and the copy reads on."""
    await asked(tmp_path / "a")
    before = await learned(tmp_path / "a")
    run_json("copy", tmp_path / "a", tmp_path / "copy")
    assert await learned(tmp_path / "copy") == before
    llm = ScriptedLLM(answering)
    async with opened(tmp_path / "copy", llm) as rag:
        await rag.query(QUESTION, read_chunks=8)
    assert len(read_texts(llm)) == 3
