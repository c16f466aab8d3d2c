"""The retry loop for requests to models and embedders, after transient errors."""

import asyncio
from collections.abc import Awaitable, Callable

from lightrag_jsonl.core.aio import Result
from lightrag_jsonl.core.errors import EmbeddingError, LLMError

MAX_RETRIES = 2  # of parts that do not name their own number
FIRST_PAUSE = 0.5  # seconds before the second attempt
PAUSE_GROWTH = 4  # a rate limit that passes within seconds is outlasted by two more attempts
LONGEST_PAUSE = 120.0  # seconds; a server that asks for more is not asked again
MOST_OVERLOADS = 5  # each halves the calls at a time: after so many, even 32 were reduced to one
PATIENCE = 900.0  # seconds of pauses, in all, that rate limits may ask of one request of an insert
READER_PATIENCE = 60.0  # the same, where somebody waits for the answer to a question


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
    Unless `retries` is 0, attempts refused by a rate limit with a pause are not counted, up to
    `patience` seconds of pauses, and neither are a few attempts of an overloaded server.
    """
    pause = FIRST_PAUSE
    patience_left = patience
    retries_left = retries
    overloads_left = MOST_OVERLOADS
    while True:
        try:
            return await attempt()
        except (LLMError, EmbeddingError) as error:
            wait = pause if error.retry_after is None else error.retry_after
            if not error.transient or wait > LONGEST_PAUSE or not may_repeat():
                raise
            is_overload = error.overloaded and overloads_left > 0
            is_counted = not (is_overload or (error.rate_limited and error.retry_after is not None))
            if not is_counted:
                wait = max(wait, FIRST_PAUSE)
            if retries == 0 or (is_counted and retries_left == 0):
                raise
            if not is_counted and wait > patience_left:
                raise
        if is_overload:
            overloads_left -= 1
        elif is_counted:
            retries_left -= 1
            pause *= PAUSE_GROWTH
        else:
            patience_left -= wait
        await asyncio.sleep(wait)


def retries_of(part: object) -> int:
    """The attribute `max_retries` of a model or an embedder, or the default."""
    retries = getattr(part, "max_retries", MAX_RETRIES)
    return retries if isinstance(retries, int) and retries >= 0 else MAX_RETRIES
