"""Who watches a question being answered: the steps it went through, told as they happen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lightrag_jsonl.querying.edges import EdgeSelection
from lightrag_jsonl.types import Answer, Chunk, Context, Keywords, Relation


class Observer(Protocol):
    """Told of each step once it is done, in this order; `failed` instead of the rest."""

    async def keywords_found(self, keywords: Keywords) -> None:
        """What the question is about."""
        ...

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Everything that could be shown, best first."""
        ...

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """What was chosen, and what the model reads."""
        ...

    async def piece(self, text: str) -> None:
        """A piece of the answer."""
        ...

    async def answered(self, answer: Answer) -> None:
        """The whole answer."""
        ...

    async def failed(self, error: BaseException) -> None:
        """No answer came of it."""
        ...


class Silent:
    """Watches nothing."""

    async def keywords_found(self, keywords: Keywords) -> None:
        pass

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        pass

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        pass

    async def piece(self, text: str) -> None:
        pass

    async def answered(self, answer: Answer) -> None:
        pass

    async def failed(self, error: BaseException) -> None:
        pass
