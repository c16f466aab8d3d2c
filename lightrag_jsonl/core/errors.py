"""The error tree: what went wrong, where, and what to do about it."""

from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.usage import Usage

if TYPE_CHECKING:
    from lightrag_jsonl.core.types import InsertReport

FREE = Usage()


class LightRAGError(Exception):
    """Base of every error of this package.

    `usage` is what the operation had cost until then. `report` is what an insert, resume or retry
    had done when the error stopped it; None for all other operations.
    """

    usage = FREE
    report: "InsertReport | None" = None


class ConfigError(LightRAGError, ValueError):
    """An option, an argument or an ontology file makes no sense."""


class PromptError(LightRAGError):
    """A prompt, its template or its schema cannot be used."""


class LLMError(LightRAGError, RuntimeError):
    """A model call failed.

    `transient`: it may succeed if repeated, after `retry_after` seconds if the server sent it.
    `permanent`: every other call would fail, too (a refused key, an unknown model). `cost` is what
    is known, or must be assumed, to have been paid. A timeout is not transient: a model slower than
    it would be paid for every attempt. `refused`: the server took the request and refused it, or
    failed at it, so that other requests may succeed.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        permanent: bool = False,
        refused: bool = False,
        cost: Usage = FREE,
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after
        self.permanent = permanent
        self.refused = refused
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

    `unavailable`: it could not be asked (no connection, a refused key, too many requests), so that
    every other text would fail, too. Otherwise the texts may be to blame, and others are tried.
    `transient` and `retry_after` are those of `LLMError`.
    """

    def __init__(
        self,
        message: str,
        *,
        unavailable: bool = False,
        transient: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.unavailable = unavailable
        self.transient = transient
        self.retry_after = retry_after


class StorageError(LightRAGError):
    """The working directory cannot be used as asked."""

    def __init__(self, message: str, *, path: Path | str | None = None) -> None:
        super().__init__(message)
        self.path = None if path is None else Path(path)


class LockedError(StorageError):
    """Another process is writing to this working directory."""


class CorruptError(StorageError):
    """The database is damaged, or is not a database of this package."""


class VersionError(StorageError):
    """The database has a format that this version of the package cannot read."""


class SettingsError(StorageError, ConfigError):
    """The index was built with settings other than those it is opened with."""


class NotFoundError(LightRAGError, KeyError):
    """No such document, trace, entity or relation."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def described(error: Exception) -> str:
    """The type and the words of an error that a library or a user's code raised."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")
