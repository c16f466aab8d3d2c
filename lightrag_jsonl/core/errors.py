"""The error tree; a message says what went wrong, where, and what to do."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.text.strings import cut, sanitize

if TYPE_CHECKING:
    from lightrag_jsonl.core.index_reports import InsertReport

FREE = Usage()
LONGEST_WORDS = 2_000  # characters of an error of a user's code
PACKAGE_MISSING = "the package {} is missing: pip install --upgrade . in the checkout"


class LightRAGError(Exception):
    """Base of every error of this package.

    `usage` is the cost of the operation until the error. `report` describes the completed part of an
    insert, resume or retry; None for any other operation. A message can be stored, whatever it quotes.
    """

    usage = FREE
    report: "InsertReport | None" = None

    def __init__(self, *arguments: object) -> None:
        super().__init__(*map(_as_stored, arguments))


class ConfigError(LightRAGError, ValueError):
    """An option, an argument or an ontology file makes no sense."""


class PromptError(LightRAGError):
    """A prompt, a template or a schema cannot be used."""


class LLMError(LightRAGError, RuntimeError):
    """A model call failed.

    - `transient`: a repetition may succeed, after `retry_after` seconds if the server sent a number.
      A timeout is not transient: a slow model would be paid for every attempt.
    - `permanent`: every further call would fail, too (a refused key, an unknown model).
    - `refused`: the server took the request and refused it, or failed; different requests may
      succeed.
    - `too_long`: the request, or the request and the answer, exceed the model's window.
    - `rate_limited`: the server asked for fewer requests, or is busy; nothing is wrong with this one.
    - `timed_out`: no answer in time. `overloaded`: the reason may be that other calls were in flight, and
      fewer will be from now on.
    - `pause_told`: the user knows already how long is waited.
    - `cost`: the known or assumed cost of the call.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        permanent: bool = False,
        refused: bool = False,
        too_long: bool = False,
        rate_limited: bool = False,
        timed_out: bool = False,
        cost: Usage = FREE,
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.timed_out = timed_out
        self.overloaded = False
        self.pause_told = False
        self.retry_after = _seconds(retry_after)
        self.permanent = permanent
        self.refused = refused
        self.too_long = too_long
        self.rate_limited = rate_limited
        self.cost = cost


class ResponseError(LLMError):
    """A model's `json` answer could not be parsed; `.text` holds the answer."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class BudgetError(LightRAGError):
    """A limit on calls or tokens was reached; everything paid for is kept."""


class EmbeddingError(LightRAGError, RuntimeError):
    """An embedder failed or returned vectors of the wrong shape.

    `unavailable`: the embedder could not be asked (no connection, a refused key, too many requests):
    every text would fail. Otherwise the texts may be to blame, and the remaining texts are tried.
    `transient`, `retry_after`, `rate_limited`, `timed_out`, `overloaded` and `pause_told` mean the same
    as in `LLMError`.
    """

    def __init__(
        self,
        message: str,
        *,
        unavailable: bool = False,
        transient: bool = False,
        retry_after: float | None = None,
        rate_limited: bool = False,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.unavailable = unavailable
        self.transient = transient
        self.timed_out = timed_out
        self.overloaded = False
        self.pause_told = False
        self.retry_after = _seconds(retry_after)
        self.rate_limited = rate_limited


class StorageError(LightRAGError):
    """The working directory cannot be used as asked."""

    def __init__(self, message: str, *, path: Path | str | None = None) -> None:
        super().__init__(message)
        self.path = None if path is None else Path(path)


class UnavailableError(StorageError):
    """The database cannot be reached at the moment, or has no room for a connection; the same may succeed
    later.
    """


class TimedOutError(StorageError):
    """A statement took longer than the address of the database allows; to repeat it at once takes as long."""


class ConnectionLostError(UnavailableError):
    """The database went away during a reading, which can be done again."""


class LockedError(StorageError):
    """Another process is writing to this working directory."""


class CorruptError(StorageError):
    """The database is damaged, or is not a database of this package."""


class VersionError(StorageError):
    """The database has a format that this version of the package cannot read."""


class SettingsError(StorageError, ConfigError):
    """The index was built with different settings."""


class NotFoundError(LightRAGError, KeyError):
    """No such document, trace, entity or relation."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


@contextmanager
def required_packages() -> Iterator[None]:
    """Around the import of a required package where it is first used: `ConfigError` if it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(PACKAGE_MISSING.format(error.name)) from error


def described(error: BaseException) -> str:
    """The type and the words of an error of a library or of a user's code."""
    return f"{type(error).__name__}: {error_text(error)}".removesuffix(": ")


def error_text(error: BaseException) -> str:
    """The words of any error, cut and as they can be stored; "" if a user's `__str__` raises."""
    try:
        return sanitize(cut(str(error), LONGEST_WORDS))
    except Exception:  # noqa: BLE001 - the user's own code may raise anything
        return ""


def _as_stored(argument: object) -> object:
    return sanitize(argument) if isinstance(argument, str) else argument


def _seconds(number: float | None) -> float | None:
    """A time to wait; None for what is none, such as NaN, infinity or a number below zero."""
    return number if number is not None and 0 <= number < math.inf else None
