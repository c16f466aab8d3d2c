"""Questions asked of one index, each recorded from its first event to its last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime

from lightrag_jsonl.explain.events import End, Event, new_session
from lightrag_jsonl.explain.recorder import Listener, Recorder
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.querying.pipeline import AnswerStream, QueryPipeline
from lightrag_jsonl.reuse import Reuse
from lightrag_jsonl.storage import snapshot
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Answer


class Questions:
    """Has questions answered, and keeps how; `clock` gives seconds since 1970, `new_id` trace ids."""

    def __init__(
        self,
        database: Database,
        querying: QueryPipeline,
        reuse: Reuse,
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._querying = querying
        self._reuse = reuse
        self._clock = clock
        self._new_id = new_id

    async def answer(
        self, question: str, param: QueryParam, listener: Listener | None = None
    ) -> Answer:
        """The answer, a stored one where `param` allows that; its trace ends with what went wrong."""
        recorder = self._recorder(question, param, listener)
        await recorder.begin()
        try:
            answer = await self._answered(question, param, recorder)
        except BaseException as error:  # what the pipeline has told already is told once
            await recorder.failed(error)
            raise
        return replace(answer, trace_id=recorder.trace_id)

    async def _answered(self, question: str, param: QueryParam, recorder: Recorder) -> Answer:
        answer = await self._reuse.find(question, param)
        if answer is not None:
            await self._reuse.replay(answer, recorder)
        else:
            answer = await self._querying.answer(question, param, observer=recorder)
            await self._reuse.keep(question, param, answer, recorder.generation)
        return answer

    def stream(
        self, question: str, param: QueryParam, listener: Listener | None = None
    ) -> AsyncStream:
        """The answer in pieces as they are written."""
        recorder = self._recorder(question, param, listener)
        return AsyncStream(recorder, self._querying.stream(question, param, recorder))

    async def events(self, question: str, param: QueryParam) -> AsyncIterator[Event]:
        """The events as they happen, each stored before it is yielded; the last is an `End`."""
        told: asyncio.Queue[Event | None] = asyncio.Queue()
        recorder = self._recorder(question, param, told.put_nowait)
        asking = asyncio.create_task(self._ask_aloud(question, param, recorder))
        asking.add_done_callback(lambda _: told.put_nowait(None))
        try:
            while (event := await told.get()) is not None:
                yield event
                if isinstance(event, End):
                    return
            await asking  # it ended without an end: the trace could not be stored
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask_aloud(self, question: str, param: QueryParam, recorder: Recorder) -> None:
        await recorder.begin()
        async for _ in self._querying.stream(question, param, recorder):
            pass

    def _recorder(self, question: str, param: QueryParam, listener: Listener | None) -> Recorder:
        def now() -> datetime:
            return datetime.fromtimestamp(self._clock(), UTC)

        self._database.check_place()  # before anything is paid for, and kept where nobody finds it
        with self._database.reading() as connection:
            generation = snapshot.generation(connection)
        session = new_session(
            sanitize(question), param.mode, generation=generation, new_id=self._new_id, clock=now
        )
        return Recorder(self._database, session, listener=listener, clock=now)


class AsyncStream:
    """The pieces of an answer; `.answer` holds it whole after the last one."""

    def __init__(self, recorder: Recorder, pieces: AnswerStream) -> None:
        self._recorder = recorder
        self._pieces = pieces
        self._begun = False

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if not self._begun:
            self._begun = True
            await self._recorder.begin()
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Stop before the end: no answer will come of it."""
        await self._pieces.aclose()

    @property
    def answer(self) -> Answer:
        """The whole answer, with its citations; `ValueError` while pieces are still to come."""
        return replace(self._pieces.answer, trace_id=self._recorder.trace_id)
