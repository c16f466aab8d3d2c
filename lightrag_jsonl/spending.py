"""What a question or an insert spends on a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lightrag_jsonl.errors import LightRAGError
from lightrag_jsonl.usage import Usage


class Spending:
    """What an operation spends; `check` is asked before each call, `add` told after it."""

    def __init__(self) -> None:
        self.spent = Usage()

    def check(self) -> None:
        """Raise `BudgetError` where the limit is reached."""

    def add(self, usage: Usage) -> None:
        """Count what a call cost."""
        self.spent += usage

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Within, the operation: an error that ends it tells what was spent till then."""
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
