"""The event loop behind `LightRAG`: who runs it, who waits for whom, Ctrl-C, and its end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import random
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.eventloop import LoopThread
from tests.limits import no_threads

LONG = 20.0  # seconds: nothing here waits for so long unless it fails


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    made = LoopThread()
    yield made
    made.close()


async def _where(seconds: float = 0.0) -> int:
    await asyncio.sleep(seconds)
    return threading.get_ident()


async def _sum(numbers: int) -> int:
    total = 0
    for number in range(numbers):
        await asyncio.sleep(0)
        total += await asyncio.to_thread(int, number) if number % 3 else number
    return total


# ── where ───────────────────────────────────────────────────────────────────────


def test_what_waits_for_nobody_runs_where_it_is_called(loop: LoopThread) -> None:
    assert loop.run_here(_where()) == threading.get_ident()
    assert loop.run(_where()) != threading.get_ident()
    deadline = time.monotonic() + LONG
    while loop.run_here(_where()) != threading.get_ident():  # the thread may still be leaving off
        assert time.monotonic() < deadline


def test_everything_awaitable_can_be_awaited_there(loop: LoopThread) -> None:
    assert loop.run_here(_sum(10)) == 45


def test_beside_an_open_call_the_thread_answers(loop: LoopThread) -> None:
    asked, answer = threading.Event(), asyncio.Event()

    async def waits() -> int:
        asked.set()
        await answer.wait()
        return threading.get_ident()

    async def wakes() -> int:
        answer.set()
        return threading.get_ident()

    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(loop.run, waits())
        assert asked.wait(LONG)
        here = loop.run_here(wakes())
        assert here == first.result(LONG) != threading.get_ident()


def test_a_call_that_comes_meanwhile_is_answered_after_the_caller_has_left(
    loop: LoopThread,
) -> None:
    begun, may_leave = threading.Event(), asyncio.Event()

    async def stays() -> int:
        begun.set()
        await may_leave.wait()
        return threading.get_ident()

    async def outlives() -> int:
        may_leave.set()
        return await _where(0.2)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        other = pool.submit(loop.run_here, stays())
        assert begun.wait(LONG)
        served = pool.submit(loop.run, outlives()).result(LONG)
        assert served not in {other.result(LONG), threading.get_ident()}


def test_a_caller_whose_own_loop_runs_is_served_by_the_thread(loop: LoopThread) -> None:
    async def calls() -> int:
        return loop.run_here(_where())

    assert asyncio.run(calls()) != threading.get_ident()


@pytest.mark.parametrize("call", [LoopThread.run, LoopThread.run_here])
def test_what_a_call_leaves_running_goes_on(
    loop: LoopThread, call: Callable[..., asyncio.Task[None]]
) -> None:
    done = threading.Event()

    async def later() -> None:
        await asyncio.sleep(0.05)
        done.set()

    async def leaves() -> asyncio.Task[None]:
        return asyncio.create_task(later())

    task = call(loop, leaves())
    assert done.wait(LONG)
    assert task is not None


@pytest.mark.parametrize("call", [LoopThread.run, LoopThread.run_here])
def test_a_call_from_within_is_refused_instead_of_waiting_for_itself(
    loop: LoopThread, call: Callable[..., int]
) -> None:
    async def again() -> int:
        return call(loop, _where())

    with pytest.raises(RuntimeError, match="a listener cannot call"):
        call(loop, again())
    assert call(loop, _sum(4)) == 6


def test_many_threads_at_once_all_get_their_answers(loop: LoopThread) -> None:
    def some(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(150):
            call = chance.choice([loop.run, loop.run_here])
            assert call(_sum(chance.choice([0, 1, 4]))) in {0, 6}
            if chance.random() < 0.2:
                time.sleep(chance.random() / 500)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(some, seed) for seed in range(8)]:
            future.result(6 * LONG)


# ── iterating ───────────────────────────────────────────────────────────────────


async def _endless(left: threading.Event) -> AsyncIterator[int]:
    try:
        for number in itertools.count():
            yield number
    finally:
        left.set()


def test_who_leaves_an_iterator_waits_for_nobody(loop: LoopThread) -> None:
    """It may be the collector of garbage, with the lock in its hands or in the loop's own thread."""
    for leave in ("holding the guard", "in the loop"):
        left = threading.Event()
        items = loop.iterate(_endless(left))
        assert [next(items), next(items)] == [0, 1]
        if leave == "in the loop":
            loop.run(_closing(items))
        else:
            with loop._guard:
                items.close()  # type: ignore[attr-defined]
        assert left.wait(LONG)
    assert loop.run(_sum(4)) == 6


async def _closing(items: Iterator[int]) -> None:
    items.close()  # type: ignore[attr-defined]


# ── Ctrl-C ──────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _interrupts(*moments: float) -> Iterator[None]:
    """Ctrl-C after so many seconds."""
    main = threading.main_thread().ident
    assert main is not None
    timers = [
        threading.Timer(moment, signal.pthread_kill, (main, signal.SIGINT)) for moment in moments
    ]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.join()


def test_ctrl_c_lets_what_runs_here_come_to_its_end(loop: LoopThread) -> None:
    tidied = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            await asyncio.sleep(0.05)
            tidied.set()

    with _interrupts(0.2), pytest.raises(KeyboardInterrupt):
        loop.run_here(long())
    assert tidied.is_set()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert loop.run_here(_sum(4)) == 6


def test_a_second_ctrl_c_ends_it_at_once(loop: LoopThread) -> None:
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(LONG)
        await asyncio.sleep(LONG)

    started = time.monotonic()
    with _interrupts(0.2, 0.4), pytest.raises(KeyboardInterrupt):
        loop.run_here(stubborn())
    assert time.monotonic() - started < LONG


def test_a_program_that_passes_over_ctrl_c_gets_its_answer(loop: LoopThread) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with _interrupts(0.1):
            assert loop.run_here(_where(0.3)) == threading.get_ident()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


@pytest.mark.parametrize("call", [LoopThread.run, LoopThread.run_here])
def test_what_another_signal_raises_calls_its_caller_away(
    loop: LoopThread, call: Callable[..., object]
) -> None:
    """As a limit of time or a SIGTERM does: what nobody waits for any more is not gone on with."""
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            ended.set()
            raise

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError("its time is up")

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError, match="its time is up"):
            call(loop, long())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended.wait(LONG / 2)
    assert call(loop, _sum(4)) == 6


# ── no thread ───────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("call", [LoopThread.run, LoopThread.run_here])
def test_without_a_thread_a_call_is_refused_and_the_next_one_answered(
    loop: LoopThread, call: Callable[..., object]
) -> None:
    """As where a container has too many: nobody waits for a thread that never began."""
    with no_threads():
        for _ in range(2):
            with pytest.raises(StorageError, match="no thread can be started"):
                call(loop, _where())
    assert call(loop, _sum(4)) == 6


# ── the end ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("call", [LoopThread.run, LoopThread.run_here])
def test_closing_ends_what_runs_and_refuses_what_comes(call: Callable[..., int]) -> None:
    loop, begun = LoopThread(), threading.Event()

    async def long() -> int:
        begun.set()
        return await _where(LONG)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        other = pool.submit(call, loop, long())
        assert begun.wait(LONG)
        loop.close()
        with pytest.raises(StorageError, match="was closed"):
            other.result(LONG)
    with pytest.raises(StorageError, match="was closed"):
        call(loop, _where())


def test_closing_what_was_never_used_does_nothing() -> None:
    LoopThread().close()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_thread_ends_whenever_it_is_closed() -> None:
    def some(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(100):
            loop = LoopThread()
            assert loop.run(_sum(2)) == 1
            time.sleep(chance.choice([0, 0, 0.0001]))
            loop.close()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(some, seed) for seed in range(4)]:
            future.result(6 * LONG)


# ── want ────────────────────────────────────────────────────────────────────────


class Starved(asyncio.SelectorEventLoop):
    """A loop that finds no memory for its rounds, now and then."""

    rounds = 0

    def _run_once(self) -> None:
        self.rounds += 1
        if self.rounds % 2:
            raise MemoryError
        super()._run_once()  # type: ignore[misc]


def test_where_memory_is_wanting_for_a_moment_the_thread_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else all who wait for it, and all who ask later, would wait for ever."""
    monkeypatch.setattr(asyncio, "new_event_loop", Starved)
    loop = LoopThread()
    assert loop.run(_sum(2)) == 1
    assert loop.run(_sum(3)) == 3
    monkeypatch.setattr(Starved, "_run_once", asyncio.SelectorEventLoop._run_once)  # type: ignore[attr-defined]
    loop.close()


def test_where_a_call_gets_no_thread_of_its_own_it_is_told(loop: LoopThread) -> None:
    assert loop.run(_sum(0)) == 0  # the loop has its own
    with no_threads(), pytest.raises(StorageError, match="no thread can be started"):
        loop.run(_sum(3))
    assert loop.run(_sum(10)) == 45
