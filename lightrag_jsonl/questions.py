"""Questions asked of one index, each recorded from its first event to its last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

from lightrag_jsonl.explain.events import End, Event, Session
from lightrag_jsonl.explain.recorder import Listener, Recorder
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.querying.pipeline import AnswerStream, QueryPipeline
from lightrag_jsonl.reuse import Reuse
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import snapshot
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.telling import Told
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Answer, Usage

Tell: TypeAlias = Callable[[str], Awaitable[None]]


class Questions:
    """Answers questions and records each; `clock` gives seconds since 1970, `new_id` the trace ids."""

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
        self,
        question: str,
        param: QueryParam,
        spending: Spending,
        listener: Listener | None = None,
        tell: Tell | None = None,
    ) -> Answer:
        """The answer to a question, or a stored one if `param` allows that; errors end the trace,
        too.

        With `tell` the answer is passed on in pieces as it is written. `spending` counts this
        question alone.
        """
        recorder = self._recorder(question, param, spending, listener)
        await recorder.begin()
        try:
            with spending.told():
                answer = await self._answered(question, param, spending, recorder, tell)
        except BaseException as error:  # if the pipeline has reported it already, this does nothing
            await recorder.failed(error)
            raise
        stored = self._database.takes_notes()
        return replace(answer, trace_id=recorder.trace_id if stored else None)

    async def _answered(
        self,
        question: str,
        param: QueryParam,
        spending: Spending,
        recorder: Recorder,
        tell: Tell | None,
    ) -> Answer:
        answer = await self._reuse.find(question, param, spending)
        if answer is not None:
            await self._reuse.replay(answer, recorder)
            if tell is not None:
                await tell(answer.text)
        else:
            answer = await self._written(question, param, spending, recorder, tell)
            await self._reuse.keep(question, param, answer, recorder.generation)
        return answer

    async def _written(
        self,
        question: str,
        param: QueryParam,
        spending: Spending,
        recorder: Recorder,
        tell: Tell | None,
    ) -> Answer:
        if tell is None:
            return await self._querying.answer(
                question, param, observer=recorder, spending=spending
            )
        stream = self._querying.stream(question, param, recorder, spending)
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                await tell(piece)
        return pieces.answer

    def _recorder(
        self, question: str, param: QueryParam, spending: Spending, listener: Listener | None
    ) -> Recorder:
        def now() -> datetime:
            return datetime.fromtimestamp(self._clock(), UTC)

        self._database.check_place()  # before anything is paid for: a replaced file would lose it
        with self._database.reading() as connection:
            generation = snapshot.generation(connection)
        session = Session(self._new_id(), sanitize(question), param.mode, now(), generation)
        return Recorder(self._database, session, spending, listener=listener, clock=now)


class AsyncStream(AnswerStream):
    """The pieces of an answer; after the last one, `.answer` holds it whole.

    `answer` is called with a function that takes the pieces and waits until each was read; it
    returns the whole answer. `spending` counts the cost.
    """

    def __init__(self, answer: Callable[[Tell], Awaitable[Answer]], spending: Spending) -> None:
        super().__init__(Told(partial(_tell, answer)))
        self._spending = spending

    @property
    def usage(self) -> Usage:
        """What was paid so far, even if the stream was left or ended in an error.

        A call that was cut off that way counts as a call without tokens, since the server reports
        tokens only at the end.
        """
        return self._spending.spent


def events(answer: Callable[[Listener, Tell], Awaitable[Answer]]) -> Told[Event]:
    """The events of a question as they happen, each stored before it is yielded; the last is an
    `End`.

    `answer` answers the question; it is given a listener for its events.
    """
    return Told(partial(_tell_events, answer))


async def _tell(
    answer: Callable[[Tell], Awaitable[Answer]], items: asyncio.Queue[str | Answer | None]
) -> None:
    async def tell(piece: str) -> None:
        items.put_nowait(piece)
        await items.join()

    items.put_nowait(await answer(tell))


async def _tell_events(
    answer: Callable[[Listener, Tell], Awaitable[Answer]], events: asyncio.Queue[Event | None]
) -> None:
    """Pass on each event as it happens, and the `End` after all work is done."""
    ends: list[End] = []

    def hear(event: Event) -> None:
        if isinstance(event, End):
            ends.append(event)
        else:
            events.put_nowait(event)

    try:
        await answer(hear, _pass_over)
    except Exception:
        if not ends:  # the end could not be stored
            raise
    events.put_nowait(ends[-1])


async def _pass_over(piece: str) -> None:
    """Ignore a piece of the answer: the pieces are among the events."""
