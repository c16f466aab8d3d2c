"""The scheduler: never more calls than allowed, the right one next, and no slot lost."""

import asyncio
import heapq
from collections.abc import Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.llm import scheduler as llm_scheduler
from lightrag_jsonl.llm.scheduler import (
    FIRST_CHUNK,
    FIRST_LIMIT,
    MINUTE,
    QUESTION,
    SUMMARY,
    AdaptiveLimit,
    CallScheduler,
    MinuteLimits,
)


async def call(scheduler: CallScheduler, priority: int, log: list[int], name: int) -> None:
    async with scheduler.slot(priority):
        log.append(name)
        await asyncio.sleep(0)


def run(*work: Coroutine[None, None, None]) -> None:
    async def all_of_it() -> None:
        await asyncio.gather(*work)

    asyncio.run(all_of_it())


def test_the_lowest_priority_goes_first_and_equals_in_their_order() -> None:
    """Questions, then summaries, then chunks, the earlier ones first; what has begun goes on."""
    scheduler, log = CallScheduler(1), list[int]()
    chunk, later = FIRST_CHUNK, FIRST_CHUNK + 1
    priorities = [chunk, later, chunk, SUMMARY, QUESTION, QUESTION]
    run(*(call(scheduler, priority, log, name) for name, priority in enumerate(priorities)))
    assert log == [0, 4, 5, 3, 2, 1]


def test_questions_without_end_do_not_stop_an_insert() -> None:
    """Every fifth call is one of the others, in their order."""
    scheduler, log = CallScheduler(1), list[int]()
    chunks = [FIRST_CHUNK, FIRST_CHUNK + 1]
    run(*(call(scheduler, each, log, each) for each in [*[QUESTION] * 11, *chunks]))
    assert log == [*[QUESTION] * 5, chunks[0], *[QUESTION] * 4, chunks[1], *[QUESTION] * 2]


@given(
    st.integers(1, FIRST_LIMIT),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=12),
)
def test_no_slot_is_lost_or_given_twice(limit: int, calls: list[tuple[int, int]]) -> None:
    """Whoever is cancelled, waiting, calling or just next: all slots are there again."""
    scheduler = CallScheduler(limit)
    held = most = 0

    async def take(priority: int) -> None:
        nonlocal held, most
        async with scheduler.slot(priority):
            held += 1
            most = max(most, held)
            try:
                await asyncio.sleep(0)
            finally:
                held -= 1

    async def cancel_after(steps: int, task: asyncio.Task[None]) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()

    async def work() -> None:
        tasks = [asyncio.create_task(take(priority)) for priority, _ in calls]
        ends = [cancel_after(steps, task) for task, (_, steps) in zip(tasks, calls, strict=True)]
        await asyncio.gather(*tasks[::2], *ends[1::2], return_exceptions=True)
        await asyncio.gather(*tasks, *ends[::2], return_exceptions=True)
        assert most <= limit and scheduler.in_use == 0
        most_before = most
        async with asyncio.timeout(240):
            await asyncio.gather(*(take(QUESTION) for _ in range(limit)))
        assert most_before <= most == limit

    run(work())


# ── how many at a time ──────────────────────────────────────────────────────────


class SimulatedServer:
    """A server with so many slots, a second for each call, and a clock of its own."""

    def __init__(self, slots: int, *, timeout: float = float("inf")) -> None:
        self.seconds = 0.0
        self.most_in_flight = 0
        self.timeouts = 0
        self._timeout = timeout
        self._slots_free_at = [0.0] * slots
        self._in_flight: list[tuple[float, float]] = []  # a heap of ends, with the starts

    def work(self, limit: AdaptiveLimit, calls: int) -> None:
        """Do so many calls, with as many in flight as the limit allows."""
        while calls > 0 or self._in_flight:
            while calls > 0 and len(self._in_flight) < limit.current:
                calls -= 1
                self._send()
            self.most_in_flight = max(self.most_in_flight, len(self._in_flight))
            self.seconds, sent_at = heapq.heappop(self._in_flight)
            if self.seconds - sent_at > self._timeout:
                self.timeouts += 1
                calls += 1
                limit.reduce()
            else:
                limit.finished(100, is_full=calls > 0)

    def _send(self) -> None:
        begins_at = max(self.seconds, heapq.heappop(self._slots_free_at))
        heapq.heappush(self._slots_free_at, begins_at + 1)
        heapq.heappush(self._in_flight, (begins_at + 1, self.seconds))

    @property
    def clock(self) -> float:
        return self.seconds


def test_a_fast_server_soon_gets_as_many_calls_as_allowed() -> None:
    """The limit doubles with every round: 64 slots are full after five rounds."""
    server = SimulatedServer(slots=1_000)
    limit = AdaptiveLimit(64, first=2, clock=lambda: server.seconds)
    server.work(limit, calls=2 + 4 + 8 + 16 + 32 + 64)
    assert server.most_in_flight == limit.current == 64 and server.seconds <= 7


def test_a_server_with_few_slots_is_not_flooded() -> None:
    """Calls beyond the slots only wait: they are tried seldom, and given up again."""
    for slots in (1, 2, 4):
        server = SimulatedServer(slots)
        limit = AdaptiveLimit(16, first=2, clock=lambda server=server: server.seconds)
        server.work(limit, calls=200)
        assert server.most_in_flight <= max(4 * slots, 4) < 17
        assert server.seconds <= 200 / slots * 1.05  # and none of its slots is idle


def test_timeouts_of_a_queue_become_rare() -> None:
    """Each overload halves the limit, and the next try comes later: few calls are thrown away."""
    server = SimulatedServer(1, timeout=2.5)
    limit = AdaptiveLimit(16, first=2, clock=lambda: server.seconds)
    server.work(limit, calls=400)
    assert server.timeouts <= 8


def test_a_round_without_waiting_calls_says_nothing() -> None:
    """Nothing is tried where nothing waits."""
    limit = AdaptiveLimit(16, first=2, clock=lambda: 0.0)
    for _ in range(100):
        limit.finished(1, is_full=False)
    assert limit.current == 2


# ── how many in a minute ────────────────────────────────────────────────────────


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 400)), min_size=1, max_size=30),
    st.integers(1, 5),
)
def test_no_minute_has_more_than_its_limits(calls: list[tuple[int, int]], requests: int) -> None:
    """Any sixty seconds hold at most so many requests and tokens; a call alone is never held up."""
    now = 0.0
    limits = MinuteLimits(requests=requests, tokens=1_000, clock=lambda: now)
    starts: list[tuple[float, int]] = []
    for pause, tokens in calls:
        now += pause
        now += limits.seconds_to_wait(tokens)
        assert limits.seconds_to_wait(tokens) == 0
        limits.start(tokens)
        starts.append((now, tokens))
        minute = [size for start, size in starts if start > now - MINUTE]
        assert len(minute) <= requests and sum(minute) <= 1_000
    assert MinuteLimits(requests=1, tokens=1, clock=lambda: 0.0).seconds_to_wait(10**6) == 0


def test_the_tokens_of_an_answer_replace_the_estimate() -> None:
    """What a call has really used counts against the minute."""
    limits = MinuteLimits(requests=None, tokens=100, clock=lambda: 5.0)
    call = limits.start(10)
    assert limits.seconds_to_wait(50) == 0
    call.tokens = 90
    assert limits.seconds_to_wait(50) == MINUTE


def test_the_scheduler_goes_on_in_the_next_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls beyond the limit start later, in their order; one that gives up is skipped."""
    monkeypatch.setattr(llm_scheduler, "MINUTE", 0.01)
    log: list[int] = []

    async def work() -> None:
        scheduler = CallScheduler(4, requests_per_minute=1)
        calls = [asyncio.create_task(call(scheduler, QUESTION, log, name)) for name in range(4)]
        await asyncio.sleep(0)
        calls[2].cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert scheduler.in_use == 0

    asyncio.run(work())
    assert log == [0, 1, 3]


def test_a_pause_of_the_server_holds_inserts_but_no_question() -> None:
    """A rate limit that one call met is not met by all others; somebody who waits tries."""
    now = 0.0
    log: list[int] = []

    async def work() -> None:
        scheduler = CallScheduler(4, clock=lambda: now)
        scheduler.hold(30)
        chunk = asyncio.create_task(call(scheduler, FIRST_CHUNK, log, FIRST_CHUNK))
        await call(scheduler, QUESTION, log, QUESTION)
        assert log == [QUESTION] and not chunk.done()
        nonlocal now
        now = 31.0
        await call(scheduler, QUESTION, log, QUESTION)
        await chunk

    asyncio.run(work())
    assert sorted(log) == [QUESTION, QUESTION, FIRST_CHUNK]
