"""The time of an index, by a replaceable clock."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from lightrag_jsonl.core.errors import ConfigError

LATEST = 10_000_000_000  # in seconds: the year 2286; as milliseconds, April 1970
DIGITS = 6  # of a second's fraction: a datetime holds no more


@dataclass(frozen=True, slots=True)
class Clock:
    """Checks the times of a function like `time.time`."""

    function: Callable[[], float]

    def seconds(self) -> float:
        """The time in seconds since 1970; `ConfigError` if the function returns anything else."""
        seconds = self.function()
        if isinstance(seconds, int | float) and 0 <= seconds <= LATEST:
            return round(seconds, DIGITS)
        raise ConfigError(
            f"clock returned {seconds!r}: it must return seconds since 1970, as time.time"
        )

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.fromtimestamp(self.seconds(), UTC)
