"""What model calls cost, in tokens."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of model calls; `input_tokens` includes `cached_tokens`, from the provider's cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))
