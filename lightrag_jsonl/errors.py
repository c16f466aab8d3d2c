"""The error tree: what went wrong, where, and what to do about it."""

from pathlib import Path

from lightrag_jsonl.usage import Usage

FREE = Usage()


class LightRAGError(Exception):
    """Base of every error this package raises on purpose.

    `usage` is what the question, or the insert, that ended so had paid a model till then.
    """

    usage = FREE


class ConfigError(LightRAGError, ValueError):
    """An option, an argument or an ontology file makes no sense."""


class PromptError(LightRAGError):
    """A prompt, its template or its schema cannot be used."""


class LLMError(LightRAGError, RuntimeError):
    """A model call failed.

    `transient` tells whether the same call may succeed later; `retry_after` is the
    server's own wish in seconds, where it gave one. `permanent` tells that every other call would
    fail alike (a refused key, no credit left, an unknown model): an insert asks nothing more then.
    `unheard` tells that the model may have answered, and be paid for it, though nobody heard it to
    its end: such a call is not made again by itself. `cost` is what is known, or must be assumed,
    to have been paid for it: a call where it is unheard, and nothing where it was refused.
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
    """A model's `json` answer could not be read; the text it gave is in `.text`."""

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text


class BudgetError(LightRAGError):
    """A limit on calls or tokens was reached; what was paid for is kept."""


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
    """The database is damaged or is no database of this package."""


class VersionError(StorageError):
    """The database has a format that this version of the package cannot read as it is."""


class SettingsError(StorageError, ConfigError):
    """The index was built with other settings than the ones it is opened with."""


class NotFoundError(LightRAGError, KeyError):
    """No such document, trace, entity or relation."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


# What Python raises over a value of another kind than was expected: a damaged database has some,
# a user's YAML and templates too.
MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
