"""The error tree: what went wrong, where, and what to do about it."""

from pathlib import Path

from lightrag_jsonl.usage import Usage

FREE = Usage()


class LightRAGError(Exception):
    """Base of every error this package raises on purpose.

    `usage` is what the failed question or insert had cost before the error.
    """

    usage = FREE


class ConfigError(LightRAGError, ValueError):
    """An option, an argument or an ontology file makes no sense."""


class PromptError(LightRAGError):
    """A prompt, its template or its schema cannot be used."""


class LLMError(LightRAGError, RuntimeError):
    """A model call failed.

    - `transient`: the same call may succeed later. `retry_after`: the seconds the server asked to
      wait, if it did.
    - `permanent`: every other call would fail in the same way (a refused key, no credit, an unknown
      model). An insert then makes no further calls.
    - `unheard`: the call may have been answered, and billed, but the answer did not arrive whole.
      Nobody but the adapter repeats such a call.
    - `cost`: what is known, or must be assumed, to have been paid for the call: one call if it is
      `unheard`, nothing if it was refused.
    """

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        permanent: bool = False,
        unheard: bool = False,
        cost: Usage = FREE,
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.permanent = permanent
        self.unheard = unheard
        self.retry_after = retry_after
        self.cost = Usage(calls=1) if unheard and not cost.calls else cost


class ResponseError(LLMError):
    """A model's `json` answer could not be parsed; `.text` holds the answer."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class BudgetError(LightRAGError):
    """A limit on calls or tokens was reached; everything paid for is kept."""


class EmbeddingError(LightRAGError, RuntimeError):
    """An embedder failed or returned vectors of the wrong shape."""


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


# What Python raises when a value has an unexpected type, as in a damaged database or a user's YAML
# and templates.
MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
