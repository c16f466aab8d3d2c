"""Answers in pieces: whoever reads slowly, leaves or forgets them keeps nobody waiting."""

import asyncio
import contextlib
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    Document,
    IndexOptions,
    LightRAG,
    LLMError,
    Message,
    QueryParam,
)
from lightrag_jsonl.testing import ScriptedLLM

ONE_CALL = IndexOptions(max_concurrent_calls=1)
NAIVE = QueryParam(mode="naive")
WORDS = ("She ", "discovered ", "radium ", "[1].")
span: ContextVar[str] = ContextVar("span", default="")


class Pieces(ScriptedLLM):
    """Writes what the next of its scripts holds, until that raises something."""

    def __init__(self, *scripts: Sequence[object]) -> None:
        super().__init__([])
        self.scripts = list(scripts)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        for piece in self.scripts.pop(0):
            if isinstance(piece, BaseException):
                raise piece
            yield piece  # type: ignore[misc]


class Writer(ScriptedLLM):
    """Writes the same answer each time, and notes where it was begun and ended."""

    def __init__(self, *, stops: bool = False) -> None:
        super().__init__(lambda request: "".join(WORDS))
        self.stops = stops  # after the first word
        self.begun: list[object] = []
        self.ended: list[object] = []
        self.left = threading.Event()

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        self.begun.append(asyncio.current_task())
        token = span.set("writing")
        try:
            async with asyncio.timeout(200):
                for word in WORDS:
                    await asyncio.sleep(0)
                    yield word
                    if self.stops:
                        await asyncio.Event().wait()
        finally:
            span.reset(token)
            self.ended.append(asyncio.current_task())
            self.left.set()


def index(folder: Path, llm: ScriptedLLM) -> AsyncLightRAG:
    return AsyncLightRAG(folder, llm=llm, options=ONE_CALL)


@contextmanager
def plain_index(folder: Path, llm: ScriptedLLM) -> Iterator[LightRAG]:
    with LightRAG(folder, llm=llm, options=ONE_CALL) as rag:
        rag.insert_records(TEXT, [])
        yield rag


TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")


async def test_a_reader_who_pauses_keeps_nobody_waiting(tmp_path: Path) -> None:
    """The model is done with its answer, and free for the next, long before that is read."""
    async with index(tmp_path, Writer()) as rag:
        await rag.insert_records(TEXT, [])
        idle = [rag.stream("Who" + "?" * number, NAIVE) for number in (1, 2, 3)]
        assert [await anext(stream) for stream in idle] == ["She "] * 3
        assert (await rag.query("Who?", NAIVE)).text == "".join(WORDS)
        for stream in idle:
            assert [piece async for piece in stream] == list(WORDS[1:])


def test_who_reads_may_ask_meanwhile(tmp_path: Path) -> None:
    """Between two pieces, without await, and with one call at a time; the model writes in one task, so
    it may hold what belongs to that: a context variable, a timeout.
    """
    llm = Writer()
    with plain_index(tmp_path, llm) as rag:
        stream = rag.stream("Who?", NAIVE)
        with pytest.raises(ValueError, match="pieces"):
            _ = stream.answer
        for _ in stream:
            assert rag.query("Who else?", NAIVE).text == "".join(WORDS)
        assert stream.answer.text == "".join(WORDS) and stream.answer.citations
    assert llm.begun == llm.ended and len(llm.begun) == 1


async def test_leaving_stops_the_model(tmp_path: Path) -> None:
    """In the task that it runs in; `aclose` comes back when that is done, and the next call has its place."""
    llm = Writer(stops=True)
    async with index(tmp_path, llm) as rag:
        await rag.insert_records(TEXT, [])
        stream = rag.stream("Who?", NAIVE)
        await anext(stream)
        await stream.aclose()
        assert llm.begun == llm.ended and len(llm.ended) == 1
        assert {trace.status for trace in await rag.traces.list()} == {"incomplete"}
        assert await rag.traces.verify() == ()
        llm.stops = False
        assert (await rag.query("Who else?", NAIVE)).text == "".join(WORDS)


def test_closing_stops_the_model(tmp_path: Path) -> None:
    """As a web server does (PEP 3333), or a loop that breaks off; no further piece comes."""
    llm = Writer(stops=True)
    with plain_index(tmp_path, llm) as rag:
        stream = rag.stream("Who?", NAIVE)
        assert next(stream) == "She "
        stream.close()
        assert llm.left.wait(240) and list(stream) == []
        assert llm.begun == llm.ended and len(llm.begun) == 1


class Page:
    """What shows an answer, and holds itself."""

    def __init__(self, rag: LightRAG) -> None:
        self.pieces, self.itself = rag.stream("Who?", NAIVE), self


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_forgotten_stream_stops_the_model(tmp_path: Path) -> None:
    """Whatever thread finds it as garbage, and without a word."""
    llm = Writer(stops=True)
    gc.freeze()  # what other tests left is not searched 30 times
    try:
        with plain_index(tmp_path, llm) as rag:
            for _ in range(30):
                next(Page(rag).pieces)
                gc.collect()
                assert llm.left.wait(240)
                llm.left.clear()
            assert llm.begun == llm.ended
    finally:
        gc.unfreeze()


async def test_who_leaves_before_the_answer_is_kept_does_not_pay_again(tmp_path: Path) -> None:
    """Somebody else writes into the folder just then: the next question waits for what is paid."""
    llm = Writer()
    async with index(tmp_path, llm) as rag:
        await rag.insert_records(TEXT, [])
        with contextlib.closing(
            sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
        ) as other:
            async for piece in rag.stream("Who?", NAIVE):
                if piece == WORDS[0]:
                    other.execute("BEGIN IMMEDIATE")
                if piece == WORDS[-1]:
                    break
            again = asyncio.create_task(rag.query("Who?", NAIVE))
            await asyncio.wait([again], timeout=0.3)
            other.execute("ROLLBACK")
        assert (await again).usage.calls == 0
    assert len(llm.begun) == 1 and llm.requests == []


async def test_equal_questions_at_once_are_paid_for_once(tmp_path: Path) -> None:
    """A later question gets the complete answer, by either method."""
    llm = Writer()
    async with index(tmp_path, llm) as rag:
        await rag.insert_records(TEXT, [])

        async def read() -> str:
            return "".join([piece async for piece in rag.stream("Who?", NAIVE)])

        asked = rag.query("Who?", NAIVE)
        first, second, answer = await asyncio.gather(read(), read(), asked)
        assert first == second == answer.text == "".join(WORDS)
        assert len(llm.begun) + len(llm.requests) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (ConnectionResetError("reset"), "ConnectionResetError: reset"),
        (7, "a piece of its answer is int, not text"),
        (LLMError("busy", transient=True), "busy"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_a_model_raises_is_reported_as_its_error(
    tmp_path: Path, fault: object, message: str
) -> None:
    """After the pieces before it, once, by the last of the events, and on record."""
    events: list[Any] = []
    async with index(tmp_path, Pieces(["She ", fault])) as rag:
        await rag.insert_records(TEXT, [])
        heard: list[str] = []
        with pytest.raises(LLMError, match=message):
            async for piece in rag.stream("Who?", NAIVE, listener=events.append):
                heard.append(piece)
        assert heard == ["She "] and [one.stage for one in events[-2:]] == ["chunk", "end"]
        assert message in events[-1].error
        assert [trace.status for trace in await rag.traces.list()] == ["failed"]


def test_a_passing_error_is_tried_again_before_the_first_piece(tmp_path: Path) -> None:
    """Later, a reader would get the beginning twice. Pieces without text are skipped, since many
    clients end with one that is None.
    """
    busy = LLMError("busy", transient=True, retry_after=0.001)
    llm = Pieces([busy], [None, busy], ["中文 ", "", "１🙂", None], ["It ", busy], ["He."])
    with plain_index(tmp_path, llm) as rag:
        assert list(rag.stream("Who?", NAIVE)) == ["中文 ", "１🙂"]
        with pytest.raises(LLMError, match="busy"):
            list(rag.stream("What?", NAIVE))
        assert llm.scripts == [["He."]]
