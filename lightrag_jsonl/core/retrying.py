"""The retry loop for requests to models and embedders, after transient errors."""

import asyncio
from collections.abc import Awaitable, Callable

from lightrag_jsonl.core.aio import Result
from lightrag_jsonl.core.errors import EmbeddingError, LLMError

MAX_RETRIES = 2  # of parts that do not name their own number
FIRST_PAUSE = 0.5  # seconds before the second attempt
PAUSE_GROWTH = 4  # a rate limit that passes within seconds is outlasted by two more attempts
LONGEST_PAUSE = 120.0  # seconds; a server that asks for more is not asked again


async def with_retries(
    attempt: Callable[[], Awaitable[Result]],
    *,
    retries: int,
    may_repeat: Callable[[], bool] = lambda: True,
) -> Result:
    """The result of the first successful attempt, of `retries` + 1 at most.

    Only transient errors lead to another attempt, after the pause requested by the server, or else
    after growing pauses. Instead of a pause longer than `LONGEST_PAUSE`, the error is raised.
    """
    pause = FIRST_PAUSE
    for _ in range(retries):
        try:
            return await attempt()
        except (LLMError, EmbeddingError) as error:
            wait = pause if error.retry_after is None else error.retry_after
            if not error.transient or wait > LONGEST_PAUSE or not may_repeat():
                raise
        await asyncio.sleep(wait)
        pause *= PAUSE_GROWTH
    return await attempt()


def retries_of(part: object) -> int:
    """The attribute `max_retries` of a model or an embedder, or the default."""
    retries = getattr(part, "max_retries", MAX_RETRIES)
    return retries if isinstance(retries, int) and retries >= 0 else MAX_RETRIES
