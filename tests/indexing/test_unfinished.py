"""A chunk whose first answer was read and a later one failed: on record, and asked for what is missing."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions
from lightrag_jsonl.errors import LLMError
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Completion, Document, DocumentStatus
from tests.indexing.kit import entity, index, jsonl, problems, relation, text_of, view

TEXT = "\n\n".join(
    f"Person{n} walked with Ann along the river and told her a long story. " * 3 for n in range(4)
)
GLEANING = IndexOptions(chunk_tokens=60, chunk_overlap=0, max_gleanings=2, glean_min_tokens=1)
ILL = "Person1"  # the chunk whose conversation breaks off


class Late:
    """A model that fails in one turn about one chunk; each turn finds somebody else.

    With `cut` every first answer stops at the token limit, so that the second turn resumes it.
    """

    def __init__(self, turn: int | None, *, cut: bool = False) -> None:
        self.turn = turn
        self.cut = cut
        self.always = False

    def __call__(self, request: Request) -> str | Completion | Exception:
        turn = turn_of(request)
        who = text_of(request).split()[0]
        if self.always or (who == ILL and turn == self.turn):
            return LLMError("model is ill")
        found = jsonl(
            entity("Ann", f"Ann in turn {turn}."),
            entity(who),
            entity(f"Friend{turn}"),
            relation("Ann", f"Friend{turn}"),
        )
        return Completion(found, "length") if self.cut and turn == 0 else found


def turn_of(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


@pytest.fixture
def fresh(tmp_path: Path, request: pytest.FixtureRequest) -> DocumentStatus:
    """The document where nothing failed, in the folder `fresh`."""

    async def run() -> DocumentStatus:
        llm = ScriptedLLM(Late(None, cut=request.param))
        async with index(tmp_path / "fresh", llm, options=GLEANING) as rag:
            await rag.insert(Document(TEXT, id="x"))
            return (await rag.documents())[0]

    return asyncio.run(run())


@pytest.mark.parametrize("way", ["retry", "insert"])
@pytest.mark.parametrize(
    ("turn", "fresh"),
    [(1, False), (2, False), (1, True), (3, True)],
    ids=["first gleaning", "second gleaning", "resuming", "gleaning after resuming"],
    indirect=["fresh"],
)
def test_only_the_missing_turns_of_an_unfinished_chunk_are_asked(
    tmp_path: Path, fresh: DocumentStatus, turn: int, way: str
) -> None:
    """The document is partial and says why; what was read counts; in the end all is as if nothing had failed."""
    model = Late(turn, cut=turn == 3 or fresh.extraction.truncated > 0)
    llm, folder = ScriptedLLM(model), tmp_path / "kb"

    async def run() -> None:
        async with index(folder, llm, options=GLEANING) as rag:
            report = await rag.insert(Document(TEXT, id="x"))
            (status,) = await rag.documents()
            assert [failure.reason for failure in report.failures] == ["model is ill"]
            assert (status.state, status.failures) == ("partial", report.failures)
            assert (status.extraction.partial, status.extraction.failed) == (1, 0)
            assert ILL in rag.graph and problems(folder) == []
            before = view(folder)

            llm.requests.clear()
            still = await rag.retry()
            assert still.failures == report.failures and still.documents == ("x",)
            assert [turn_of(request) for request in llm.requests] == [turn]
            assert view(folder) == before and problems(folder) == []

            model.turn = None
            llm.requests.clear()
            again = await (rag.insert(Document(TEXT, id="x")) if way == "insert" else rag.retry())
            assert {text_of(request).split()[0] for request in llm.requests} == {ILL}
            asked = [turn_of(request) for request in llm.requests]
            assert asked == list(range(turn, 3 + model.cut))
            assert (again.failures, again.chunks, again.usage.calls) == ((), 1, len(asked))
            (status,) = await rag.documents()
            assert (status.state, status.failures) == ("done", ())
            assert status.extraction.usage == fresh.extraction.usage
            assert (await rag.retry()).documents == ()

    with contextlib.closing(Database(folder)) as database:
        keeper = SnapshotKeeper(database)
        with keeper.snapshot():
            asyncio.run(run())
        assert problems(folder, keeper) == []
    assert view(folder) == view(tmp_path / "fresh")


async def test_a_retry_that_reads_less_takes_nothing_away(tmp_path: Path) -> None:
    """Without the paid answers, and with a model that fails at once, what was read stays."""
    model = Late(1)
    async with index(tmp_path, ScriptedLLM(model), options=GLEANING) as rag:
        await rag.insert(Document(TEXT, id="x"))
        before = view(tmp_path)
        with contextlib.closing(Database(tmp_path)) as database:
            database.write(lambda connection: connection.execute("DELETE FROM completions"))
        model.always = True
        report = await rag.retry()
        assert [failure.reason for failure in report.failures] == ["model is ill"]
        assert view(tmp_path) == before and problems(tmp_path) == []
        assert [one.state for one in await rag.documents()] == ["partial"]


async def test_repair_finds_unfinished_documents_that_were_called_done(tmp_path: Path) -> None:
    """An index of an earlier version is told to be wrong, and put right."""
    async with index(tmp_path, ScriptedLLM(Late(1)), options=GLEANING) as rag:
        await rag.insert(Document(TEXT, id="x"))
        with contextlib.closing(Database(tmp_path)) as database:
            database.write(lambda c: c.execute("UPDATE documents SET state = 'done'"))
        assert problems(tmp_path) == ["1 documents have another state than their chunks"]
        await rag.repair()
        assert [one.state for one in await rag.documents()] == ["partial"]
        assert problems(tmp_path) == []


def test_waiting_records_keep_the_chunks_they_name(tmp_path: Path) -> None:
    """An insert that was killed is gone on with in the same pieces, whatever the sizes are by then."""
    text = " ".join(f"Person{n} met Nobody." for n in range(40))

    async def run() -> None:
        async with index(tmp_path, options=IndexOptions(chunk_tokens=40, chunk_overlap=0)) as rag:
            chunks = (await rag.insert(Document(text, id="probe"))).chunks
            await rag.delete("probe")
            records = [
                {**entity(f"Person{n}", "Met."), "chunk": n * chunks // 40} for n in range(40)
            ]

            def die(*given: object, **more: object) -> None:
                raise KeyboardInterrupt

            rag._engine.indexing._committer.commit = die  # type: ignore[method-assign,assignment]
            with pytest.raises(KeyboardInterrupt):
                await rag.insert_records(Document(text, id="a"), records)
        async with index(tmp_path, options=IndexOptions(chunk_tokens=1200)) as rag:
            report = await rag.resume()
            assert report.documents == ("a",) and report.chunks == chunks and not report.failures
            assert (await rag.insert_records(Document(text, id="a"), records)).unchanged == ("a",)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
    assert problems(tmp_path) == []
