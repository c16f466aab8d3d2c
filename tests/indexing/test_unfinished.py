"""Chunks that failed, in whole or in part: on record, and asked for what is missing."""

from pathlib import Path

import pytest

from lightrag_jsonl import Completion, Document, IndexOptions, LLMError
from lightrag_jsonl.indexing.commits import IndexWriter
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.indexing.test_insertion import CHUNKED, TEXT
from tests.kit import entity, index, jsonl, problems, relation, text_of, view

GLEANING = IndexOptions(chunk_tokens=60, chunk_overlap=0, max_gleanings=2, glean_min_tokens=1)
ILL = "Person1"  # the chunk whose conversation breaks off


async def test_a_document_whose_chunks_all_fail_is_failed_and_can_be_deleted(
    tmp_path: Path,
) -> None:
    """It is there, with its text, and findable by it; nothing of it is in the graph."""
    async with index(tmp_path, ScriptedLLM([LLMError("ill")] * 6), options=CHUNKED) as rag:
        await rag.insert(Document(TEXT, id="x"))
        (status,) = await rag.documents()
        assert status.state == "failed" and len(status.failures) == 6
        assert problems(tmp_path) == []
        await rag.delete("x")
        assert await rag.documents() == ()


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


@pytest.mark.slow
@pytest.mark.parametrize("way", ["retry", "insert"])
@pytest.mark.parametrize(
    ("turn", "cut"),
    [(0, False), (1, False), (2, False), (1, True), (3, True)],
    ids=["reading", "first gleaning", "second gleaning", "resuming", "gleaning after resuming"],
)
async def test_only_the_missing_turns_of_an_unfinished_chunk_are_asked(
    tmp_path: Path, turn: int, cut: bool, way: str
) -> None:
    """The document is partial and says why; what was read counts; in the end all is as if nothing
    had failed."""
    model = Late(turn, cut=cut)
    llm, folder = ScriptedLLM(model), tmp_path / "kb"
    async with index(tmp_path / "fresh", ScriptedLLM(Late(None, cut=cut)), options=GLEANING) as rag:
        await rag.insert(Document(TEXT, id="x"))
        (fresh,) = await rag.documents()
    async with index(folder, llm, options=GLEANING) as rag:
        report = await rag.insert(Document(TEXT, id="x"))
        (status,) = await rag.documents()
        assert [failure.reason for failure in report.failures] == ["model is ill"]
        assert (status.state, status.failures) == ("partial", report.failures)
        assert (status.extraction.partial, status.extraction.failed) == (turn > 0, turn == 0)
        assert (ILL in rag.graph) == (turn > 0) and problems(folder) == []
        before = view(folder)

        llm.requests.clear()
        still = await rag.retry()
        assert still.failures == report.failures and still.documents == ("x",)
        assert [turn_of(request) for request in llm.requests] == [turn]
        assert view(folder) == before and problems(folder) == []

        model.turn = None
        llm.requests.clear()
        assert (await rag.resume()).documents == ()
        again = await (rag.insert(Document(TEXT, id="x")) if way == "insert" else rag.retry())
        assert {text_of(request).split()[0] for request in llm.requests} == {ILL}
        asked = [turn_of(request) for request in llm.requests]
        assert asked == list(range(turn, 3 + cut))
        assert (again.failures, again.chunks, again.usage.calls) == ((), 1, len(asked))
        (status,) = await rag.documents()
        assert (status.state, status.failures) == ("done", ())
        assert status.extraction.usage == fresh.extraction.usage
        assert (await rag.retry()).documents == ()
    assert view(folder) == view(tmp_path / "fresh")


async def test_a_retry_that_reads_less_takes_nothing_away(tmp_path: Path) -> None:
    """Without the paid answers, and with a model that fails at once, what was read stays."""
    model = Late(1)
    async with index(tmp_path, ScriptedLLM(model), options=GLEANING) as rag:
        await rag.insert(Document(TEXT, id="x"))
        before = view(tmp_path)
        await rag.admin.clear_cache()
        model.always = True
        report = await rag.retry()
        assert [failure.reason for failure in report.failures] == ["model is ill"]
        assert view(tmp_path) == before and problems(tmp_path) == []
        assert [one.state for one in await rag.documents()] == ["partial"]


async def test_what_a_retry_refuses_is_on_record(tmp_path: Path) -> None:
    """In place of what the reading before it refused, which was nothing."""
    answers = iter((LLMError("model is ill"), jsonl(entity("Ann"), {"type": "entity"})))
    llm = ScriptedLLM(lambda request: next(answers))
    async with index(tmp_path, llm, options=IndexOptions(max_gleanings=0)) as rag:
        await rag.insert(Document("Ann sang.", id="x"))
        assert await rag.rejections() == []
        await rag.retry()
        ((document, _, rejection),) = await rag.rejections()
        assert (document, rejection.line, rejection.reason) == ("x", 2, "schema")


async def test_waiting_records_keep_the_chunks_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An insert that was killed is gone on with in the same pieces, whatever the sizes are by then."""
    text = " ".join(f"Person{n} met Nobody." for n in range(40))

    def die(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    async with index(tmp_path, options=IndexOptions(chunk_tokens=40, chunk_overlap=0)) as rag:
        chunks = (await rag.insert(Document(text, id="first"))).chunks
        await rag.delete("first")
        records = [{**entity(f"Person{n}", "Met."), "chunk": n * chunks // 40} for n in range(40)]
        with monkeypatch.context() as patch:
            patch.setattr(IndexWriter, "commit", die)
            with pytest.raises(KeyboardInterrupt):
                await rag.insert_records(Document(text, id="a"), records)
    async with index(tmp_path, options=IndexOptions(chunk_tokens=1200)) as rag:
        report = await rag.resume()
        assert report.documents == ("a",) and report.chunks == chunks and not report.failures
        assert (await rag.insert_records(Document(text, id="a"), records)).unchanged == ("a",)
    assert problems(tmp_path) == []
