"""How the CPU time of a call grows with its text, with an end to calls that would never end."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from tests.growth.texts import TextMaker

SMALLEST = 1_000  # characters
STEP = 4  # each text is so many times as long as the one before
LARGEST = 64_000
CHEAP = 0.010  # seconds of CPU; what takes less has no growth that can be measured
LIMIT = 3.0  # seconds of CPU of one call
# A text four times as long takes 4.6 times as long at n log n, and 16 times at n².
MOST_GROWTH = 8.0
# And one twice as long 2.2 times as long, and 4 times: a call may cost more once, until a buffer of its own is full.
MOST_DOUBLED = 3.0
REPEATS = 3


class TooLong(BaseException):
    """A call has taken `LIMIT` seconds of CPU; nothing that it runs catches this."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A call that grows too fast: its CPU seconds for texts of two sizes in characters."""

    size: int
    seconds: float
    seconds_before: float

    def __str__(self) -> str:
        if self.seconds >= LIMIT:
            return f"{self.size:,} characters take more than {LIMIT:.0f} s of CPU"
        ratio = self.seconds / max(self.seconds_before, 1e-9)
        before = f"{self.size // STEP:,} characters take {self.seconds_before * 1e3:.1f} ms of CPU"
        return (
            f"{before}, {self.size:,} take {self.seconds * 1e3:.0f} ms ({ratio:.0f} times as much)"
        )


def measured_growth(
    call: Callable[[str], object], make_text: TextMaker, largest: int = LARGEST
) -> Growth | None:
    """The growth of a call above n log n, or None.

    The text grows until a call takes a time that can be measured. A suspicion is measured again, and
    the least of several times counts, so that a busy machine makes no difference. Each text has an end
    of its own, so that no cache knows it.
    """
    seconds_before = 0.0
    size = SMALLEST
    while size <= largest:
        seconds = _cpu_seconds(call, make_text, size)
        if seconds > CHEAP and size > SMALLEST:  # this size decides: the time before may be noise
            seconds_before = min(seconds_before, _cpu_seconds(call, make_text, size // STEP))
        grows = seconds > MOST_GROWTH * max(seconds_before, CHEAP / MOST_GROWTH)
        if (grows and size > SMALLEST) or seconds >= LIMIT:
            growth = _confirmed(call, make_text, size)
            if growth is not None:
                return growth
        if seconds > CHEAP and size > SMALLEST:
            return None
        seconds_before = seconds
        size *= STEP
    return None


def _confirmed(call: Callable[[str], object], make_text: TextMaker, size: int) -> Growth | None:
    seconds_before = _least_seconds(call, make_text, size // STEP)
    seconds = _least_seconds(call, make_text, size)
    growth = Growth(size, seconds, seconds_before)
    if seconds >= LIMIT:
        return growth
    if seconds <= MOST_GROWTH * max(seconds_before, CHEAP / MOST_GROWTH):
        return None
    twice = _least_seconds(call, make_text, 2 * size)
    return growth if twice > MOST_DOUBLED * seconds else None


def _least_seconds(call: Callable[[str], object], make_text: TextMaker, size: int) -> float:
    least = LIMIT
    for _ in range(REPEATS):
        least = min(least, _cpu_seconds(call, make_text, size))
        if least >= LIMIT:
            break
    return least


_texts = 0


def _cpu_seconds(call: Callable[[str], object], make_text: TextMaker, size: int) -> float:
    """The CPU seconds of a call, at most `LIMIT`; errors that it raises are its answer."""
    global _texts
    _texts += 1
    text = make_text(size) + str(_texts)
    handler_before = signal.signal(signal.SIGPROF, _end_call)
    started = time.thread_time()
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        call(text)
    except TooLong:
        return LIMIT
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - an error is an answer, too
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler_before)
    return min(time.thread_time() - started, LIMIT)


def _end_call(number: int, frame: FrameType | None) -> None:
    raise TooLong
