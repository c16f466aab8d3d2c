"""What a question or an insert spends on a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lightrag_jsonl.errors import LightRAGError
from lightrag_jsonl.usage import Usage


class Spending:
    """What one operation spends on a model; `check` is called before each model call, `add` after
    it.
    """

    def __init__(self) -> None:
        self.spent = Usage()

    def check(self) -> None:
        """Raise `BudgetError` if the limit is reached."""

    def add(self, usage: Usage) -> None:
        """Count what a call cost."""
        self.spent += usage

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Set `usage` of an error that leaves this block to what was spent until then."""
        try:
            yield
        except LightRAGError as error:
            error.usage = self.spent
            raise


class Paid(Spending):
    """What a part of an operation spends, added up beside the whole: also what comes to nothing."""

    def __init__(self, of: Spending | None) -> None:
        super().__init__()
        self._of = of or Spending()

    def check(self) -> None:
        self._of.check()

    def add(self, usage: Usage) -> None:
        self._of.add(usage)
        super().add(usage)
