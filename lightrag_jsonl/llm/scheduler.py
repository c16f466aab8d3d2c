"""Limits the calls of a model, in flight and per minute, and chooses the next call."""

import asyncio
import contextlib
import heapq
import itertools
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.errors import EmbeddingError, LLMError
from lightrag_jsonl.core.retrying import (
    BUSY_GROWTH,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    PATIENCE,
    tell_of_pause,
)

QUESTION: Final = 0  # somebody waits for the answer
SUMMARY: Final = 1  # a document that has been read waits for it to become visible
FIRST_CHUNK: Final = 2  # the first of the priorities of chunks
INSERTS_TURN: Final = 5  # every so many calls, the next is no question's: no insert waits forever

FIRST_LIMIT: Final = 8  # calls in flight before anything is known about the server
WORTHWHILE: Final = 1.2  # times the output per second: twice the calls that bring less only wait
MEASURABLE: Final = 0.05  # seconds; a shorter round says nothing about the server
FIRST_REST: Final = 8  # rounds without a further try, after a try that brought nothing
MINUTE: Final = 60.0

log = logging.getLogger(__name__)

MonotonicClock: TypeAlias = Callable[[], float]


class AdaptiveLimit:
    """The most calls in flight, `current`: `first` at the beginning, later at most `maximum`.

    After each round (as many finished calls as may be in flight) the limit is doubled, as long as
    the output per second grows; otherwise the limit goes back, and rests. A sign of overload halves
    the limit.
    """

    def __init__(
        self, maximum: int, *, first: int = FIRST_LIMIT, clock: MonotonicClock = time.monotonic
    ) -> None:
        self.maximum = maximum
        self.current = min(maximum, first)
        self.reductions = 0
        self._clock = clock
        self._smaller_limit = 0  # the limit before the last doubling; 0 if it is not on trial
        self._smaller_rate = 0.0
        self._next_rest = FIRST_REST
        self._rounds_to_rest = 0
        self.start_round()

    def start_round(self) -> None:
        """Measure anew."""
        self._round_started = self._clock()
        self._finished_calls = 0
        self._tokens = 0

    def finished(self, tokens: int, *, is_full: bool) -> None:
        """Count a finished call with the output in tokens; `is_full` means that other calls wait."""
        self._finished_calls += 1
        self._tokens += max(tokens, 1)
        if self._finished_calls < self.current:
            return
        if is_full:
            self._end_round(self._clock() - self._round_started)
        self.start_round()

    def reduce(self) -> None:
        """Halve the limit; the next try to grow comes later than after the last reduction."""
        self.current = max(1, self.current // 2)
        self.reductions += 1
        self._smaller_limit = 0
        self._rounds_to_rest = self._next_rest
        self._next_rest *= 2
        self.start_round()

    def _end_round(self, seconds: float) -> None:
        if self._rounds_to_rest > 0:
            self._rounds_to_rest -= 1
            return
        rate = self._tokens / max(seconds, MEASURABLE)
        is_on_trial = self._smaller_limit > 0 and seconds > MEASURABLE
        if is_on_trial and rate < WORTHWHILE * self._smaller_rate:
            self.current = self._smaller_limit
            self._smaller_limit = 0
            self._rounds_to_rest = FIRST_REST
            return
        self._smaller_limit = self.current if self.current < self.maximum else 0
        self._smaller_rate = rate
        self.current = min(self.maximum, 2 * self.current)


class StartedCall(Struct):
    """A call in the count of a minute; `tokens` are estimated until the call has ended."""

    started_at: float
    tokens: int


class MinuteLimits:
    """The requests and the tokens (input and output) allowed in any sixty seconds."""

    def __init__(
        self, *, requests: int | None, tokens: int | None, clock: MonotonicClock = time.monotonic
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._started_calls: deque[StartedCall] = deque()

    def start(self, tokens: int) -> StartedCall:
        """Count a beginning call."""
        call = StartedCall(self._clock(), tokens)
        if self._requests is not None or self._tokens is not None:
            self._started_calls.append(call)
        return call

    def seconds_to_wait(self, tokens: int) -> float:
        """How long a call with so many tokens has to wait; a call alone never waits."""
        now = self._clock()
        while self._started_calls and self._started_calls[0].started_at <= now - MINUTE:
            self._started_calls.popleft()
        requests = len(self._started_calls)
        total = sum(call.tokens for call in self._started_calls) + tokens
        seconds = 0.0
        for call in self._started_calls:
            has_room = self._requests is None or requests < self._requests
            if has_room and (self._tokens is None or total <= self._tokens):
                break
            requests -= 1
            total -= call.tokens
            seconds = call.started_at + MINUTE - now
        return seconds


class CallSlot:
    """A call in flight."""

    def __init__(
        self, scheduler: "CallScheduler", counted: StartedCall, *, is_question: bool
    ) -> None:
        self._scheduler = scheduler
        self._counted = counted
        self._is_question = is_question
        self._refusals_at_start = scheduler.refusals
        self._calls_at_start = scheduler.in_use
        self._finished_at_start = scheduler.finished_calls
        self._reductions_at_start = scheduler.limit.reductions

    def finish(self, *, output_tokens: int, all_tokens: int) -> None:
        """Report the success of the call."""
        if all_tokens:
            self._counted.tokens = all_tokens
        is_welcome = self._scheduler.refusals == self._refusals_at_start
        self._scheduler.finish(output_tokens, ends_refusals=is_welcome)

    @property
    def may_have_waited(self) -> bool:
        """Whether the server may have let the call wait behind earlier calls.

        If twice as many calls have finished since the start as were in flight at the start, the
        call is slow by itself.
        """
        finished_calls = self._scheduler.finished_calls - self._finished_at_start
        calls_at_once = max(self._calls_at_start, self._scheduler.in_use)
        return calls_at_once > 1 and finished_calls < 2 * self._calls_at_start

    def report(self, error: LLMError | EmbeddingError) -> None:
        """Slow down after a refusal of a busy server, with the pause in `error.retry_after`, and
        after a timeout in the server's queue, so that another attempt is worthwhile.
        """
        if error.timed_out and self.may_have_waited:
            self._reduce()
            error.overloaded = True
            error.transient = True
        elif error.rate_limited:
            self._reduce()
            is_news = self._scheduler.refusals == self._refusals_at_start
            pause = self._scheduler.refused(error, is_news=is_news)
            if not self._is_question:  # a reader's pauses grow apart from those of inserts
                error.retry_after = pause

    def _reduce(self) -> None:
        """Reduce the calls in flight, unless reduced since the call began."""
        limit = self._scheduler.limit
        if limit.reductions == self._reductions_at_start:
            limit.reduce()
            log.info("the server is overloaded: %d calls at a time from now on", limit.current)


class WaitingCall(Struct, frozen=True, order=True):
    """A call waiting for a slot; the smallest is next."""

    priority: int
    number: int
    turn: asyncio.Future[None]
    tokens: int


class CallScheduler:
    """At most `maximum` calls at a time, or fewer if the server cannot do as many.

    Among waiting calls the lowest priority goes next, then the earliest; every fifth call is not a
    question's, if another waits.
    """

    def __init__(
        self,
        maximum: int,
        *,
        first: int = FIRST_LIMIT,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: MonotonicClock = time.monotonic,
    ) -> None:
        self.limit = AdaptiveLimit(maximum, first=first, clock=clock)
        self.in_use = 0
        self.finished_calls = 0
        self._minute = MinuteLimits(
            requests=requests_per_minute, tokens=tokens_per_minute, clock=clock
        )
        self._clock = clock
        self.refusals = (
            0  # of a busy server; those of calls that were in flight together count once
        )
        self._next_pause = FIRST_PAUSE  # after a refusal that names none
        self._told_pause = 0.0  # the longest that the user was told of in the last minute
        self._told_at = -MINUTE
        self._held_until = 0.0  # no call of an insert starts earlier
        self._timer: asyncio.TimerHandle | None = None
        self._started_calls = 0
        self._questions: list[WaitingCall] = []  # a heap
        self._inserts: list[WaitingCall] = []  # a heap
        self._numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def slot(self, priority: int, *, tokens: int = 0) -> AsyncIterator[CallSlot]:
        """Hold a slot, after waiting for a free slot if necessary; `tokens` is an estimate."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._questions if priority == QUESTION else self._inserts
        call = WaitingCall(priority, next(self._numbers), turn=turn, tokens=tokens)
        heapq.heappush(queue, call)
        self._start_waiting_calls()
        try:
            await turn
            counted = self._minute.start(tokens)
            yield CallSlot(self, counted, is_question=priority == QUESTION)
        finally:
            if not turn.cancelled():
                self.in_use -= 1
                self._start_waiting_calls()

    def finish(self, output_tokens: int, *, ends_refusals: bool) -> None:
        """Count a successful call; one that began after the last refusal `ends_refusals`, and the next
        pause is a short one again.
        """
        if ends_refusals:
            self._next_pause = FIRST_PAUSE
        self.finished_calls += 1
        self.limit.finished(output_tokens, is_full=bool(self._questions or self._inserts))

    def refused(self, error: LLMError | EmbeddingError, *, is_news: bool) -> float:
        """Hold the calls of inserts after a refusal; returns the pause until the next attempt.

        The pause is named by the server. Otherwise pauses grow from refusal to refusal until a call
        succeeds; calls in flight together wait together (not `is_news`).
        """
        pause = error.retry_after
        if is_news:
            self.refusals += 1
            if pause is None:
                pause = self._next_pause
                self._next_pause = min(BUSY_GROWTH * pause, LONGEST_PAUSE)
            self._tell_of_pause(error, pause)
            self.hold(pause if pause <= PATIENCE else LONGEST_PAUSE)
        error.pause_told = True
        return max(0.0, self._held_until - self._clock()) if pause is None else pause

    def _tell_of_pause(self, error: LLMError | EmbeddingError, pause: float) -> None:
        """Tell the user once a minute, or if the pause is longer than before."""
        now = self._clock()
        if now < self._told_at + MINUTE and pause <= self._told_pause:
            return
        self._told_at = now
        self._told_pause = pause
        tell_of_pause(error, pause)

    def hold(self, seconds: float) -> None:
        """Start no call of an insert for so many seconds, as asked by the server."""
        self._held_until = max(self._held_until, self._clock() + seconds)
        self.limit.start_round()

    def _start_waiting_calls(self) -> None:
        while self.in_use < self.limit.current and (queue := self._next_queue()):
            call = queue[0]
            seconds = 0.0 if call.turn.cancelled() else self._minute.seconds_to_wait(call.tokens)
            if seconds > 0:
                self._start_later(seconds)
                return
            heapq.heappop(queue)
            if not call.turn.cancelled():
                self._started_calls += 1
                self.in_use += 1
                call.turn.set_result(None)

    def _next_queue(self) -> list[WaitingCall]:
        """The queue with the next call; empty if no call may start now."""
        seconds = self._held_until - self._clock()
        if seconds > 0 and self._inserts:
            self._start_later(seconds)
            return self._questions
        is_inserts_turn = self._started_calls % INSERTS_TURN == 0
        if self._inserts and (is_inserts_turn or not self._questions):
            return self._inserts
        return self._questions

    def _start_later(self, seconds: float) -> None:
        """Look for calls to start again after a while; an earlier appointment is replaced."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._start_waiting_calls)
