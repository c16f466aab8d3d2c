"""The retry loop for requests to models and embedders, after transient errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lightrag_jsonl.core.aio import Result
from lightrag_jsonl.core.errors import EmbeddingError, LLMError

MAX_RETRIES = 2  # of parts that do not name their own number
FIRST_PAUSE = 0.5  # seconds before the second attempt
PAUSE_GROWTH = 4  # a failure that passes within seconds is outlasted by two more attempts
BUSY_GROWTH = 2  # a busy server is asked again until the patience is at its end
LONGEST_PAUSE = 120.0  # seconds; after a failure, a server that asks for more is not asked again
SHOWN_PAUSE = 4.0  # seconds; a shorter one needs no words
MOST_OVERLOADS = 5  # each halves the calls at a time: after so many, even 32 were reduced to one
PATIENCE = (
    900.0  # seconds of pauses, in all, that a busy server may ask of one request of an insert
)
READER_PATIENCE = 60.0  # the same, where somebody waits for the answer to a question

log = logging.getLogger(__name__)


async def with_retries(
    attempt: Callable[[], Awaitable[Result]],
    *,
    retries: int,
    may_repeat: Callable[[], bool] = lambda: True,
    patience: float = PATIENCE,
) -> Result:
    """The result of the first successful attempt, of `retries` + 1 at most.

    Only transient errors lead to another attempt, after the pause requested by the server, or else
    after growing pauses. Instead of a pause longer than `LONGEST_PAUSE`, the error is raised.
    Unless `retries` is 0, attempts refused by a rate limit or a busy server are not counted, up to
    `patience` seconds of pauses, and neither are a few attempts of an overloaded server.
    """
    pauses: RetryPauses | None = None  # before the first failure
    while True:
        try:
            return await attempt()
        except (LLMError, EmbeddingError) as error:
            if not error.transient or retries == 0 or not may_repeat():
                raise
            pauses = pauses or RetryPauses(retries, patience)
            seconds = pauses.after(error)
            if seconds is None:
                raise
        await asyncio.sleep(seconds)


class RetryPauses:
    """The pauses after the failed attempts of one request; see `with_retries`."""

    def __init__(self, retries: int, patience: float) -> None:
        self._retries_left = retries
        self._patience_left = patience
        self._overloads_left = MOST_OVERLOADS
        self._pause = FIRST_PAUSE
        self._busy_pause = FIRST_PAUSE

    def after(self, error: LLMError | EmbeddingError) -> float | None:
        """The seconds until the next attempt; None if there is no further one."""
        return self._after_refusal(error) if error.rate_limited else self._after_failure(error)

    def _after_refusal(self, error: LLMError | EmbeddingError) -> float | None:
        pause = self._busy_pause if error.retry_after is None else error.retry_after
        seconds = max(FIRST_PAUSE, pause)
        if seconds > self._patience_left:
            return None
        self._patience_left -= seconds
        self._busy_pause = min(BUSY_GROWTH * self._busy_pause, LONGEST_PAUSE)
        tell_of_pause(error, seconds)
        return seconds

    def _after_failure(self, error: LLMError | EmbeddingError) -> float | None:
        seconds = self._pause if error.retry_after is None else error.retry_after
        is_counted = not (error.overloaded and self._overloads_left > 0)
        if seconds > LONGEST_PAUSE or (is_counted and self._retries_left == 0):
            return None
        if is_counted:
            self._retries_left -= 1
            self._pause *= PAUSE_GROWTH
        else:
            self._overloads_left -= 1
        return seconds


def tell_of_pause(error: LLMError | EmbeddingError, seconds: float) -> None:
    """Say that a server is waited for, once for an error, unless the pause is short."""
    if seconds >= SHOWN_PAUSE and not error.pause_told:
        log.warning("waiting %.0f s (Ctrl-C ends): %s", seconds, error)
    error.pause_told = True


def retries_of(part: object) -> int:
    """The attribute `max_retries` of a model or an embedder, or the default."""
    retries = getattr(part, "max_retries", MAX_RETRIES)
    return retries if isinstance(retries, int) and retries >= 0 else MAX_RETRIES
