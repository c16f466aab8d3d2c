"""Adds up the cost of an operation while its calls run."""

import contextlib
from collections.abc import Iterator

from lightrag_jsonl.core.errors import LightRAGError
from lightrag_jsonl.core.usage import Usage


class UsageMeter:
    """Adds up the cost of an operation, also in the meter of its parent; subclasses may set limits."""

    def __init__(self, parent: "UsageMeter | None" = None) -> None:
        self.spent = Usage()
        self._parent = parent

    def check(self) -> None:
        """Raise `BudgetError` if a limit is reached; called before each model call."""
        if self._parent is not None:
            self._parent.check()

    def uncount(self) -> None:
        """Take back the count of a checked call: the server's rate limit refused the call."""
        if self._parent is not None:
            self._parent.uncount()

    def add(self, usage: Usage) -> None:
        """Count the cost of a call."""
        self.spent += usage
        if self._parent is not None:
            self._parent.add(usage)

    @contextlib.contextmanager
    def attach_usage(self) -> Iterator[None]:
        """Set `usage` of an error from this block to the amount spent until then."""
        try:
            yield
        except LightRAGError as error:
            error.usage = self.spent
            raise
