"""The budget of an insert: calls and tokens that may be spent, and the reason for an early end."""

from lightrag_jsonl.core.errors import BudgetError, LightRAGError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import UsageMeter


class Budget(UsageMeter):
    """Counts the calls and the usage of an insert, and refuses calls after the end of the insert.

    `max_tokens` limits input and output tokens together.

    `stopped` is empty, or the reason why no further call is made; `error` is the error behind the
    reason, unless a limit was reached.
    """

    def __init__(
        self,
        limits: IndexOptions,
        *,
        max_tokens: int | None = None,
        parent: UsageMeter | None = None,
    ) -> None:
        super().__init__(parent)
        self.stopped = ""
        self.error: LightRAGError | None = None
        self._limits = limits
        self._max_tokens = max_tokens
        self._calls = 0

    def check(self) -> None:
        """Count a call that is about to be made; `BudgetError` if no call may be made."""
        if self.stopped:
            raise BudgetError(self.stopped)
        limits = self._limits
        tokens = self.spent.input_tokens + self.spent.output_tokens
        for name, limit, used in (
            ("calls", limits.max_calls, self._calls),
            ("input tokens", limits.max_input_tokens, self.spent.input_tokens),
            ("output tokens", limits.max_output_tokens, self.spent.output_tokens),
            ("tokens", self._max_tokens, tokens),
        ):
            if limit is not None and used >= limit:
                raise BudgetError(
                    f"stopped: {used} of {limit} {name} are used; progress saved, raise the limit"
                )
        self._calls += 1

    def uncount(self) -> None:
        """Take back the count of a call that a rate limit refused, for it will be made again."""
        self._calls -= 1

    def add(self, usage: Usage) -> None:
        """Count the cost of a call, and each request of a repeated call."""
        self._calls += max(0, usage.calls - 1)
        super().add(usage)

    def exhaust(self, error: BudgetError) -> None:
        """Make no further call, since a limit is reached."""
        self.stopped = str(error)

    def stop(self, error: LightRAGError) -> None:
        """Make no further call, since every call would fail; the first error is the one reported."""
        if not self.stopped:
            self.stopped = f"stopped: {error}; progress saved, fix this first"
            self.error = error
