"""The protocol for watching a question being answered, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lightrag_jsonl.querying.edges import EdgeSelection
from lightrag_jsonl.types import Answer, Chunk, Context, Keywords, Relation


class Observer(Protocol):
    """Is told of each step after it is done, in this order; `failed` comes instead of the remaining ones."""

    async def keywords_found(self, keywords: Keywords) -> None:
        """The question's keywords."""
        ...

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Everything that was found, best first."""
        ...

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """What was chosen, and the context that the model reads."""
        ...

    async def piece(self, text: str) -> None:
        """A piece of the answer."""
        ...

    async def answered(self, answer: Answer) -> None:
        """The whole answer."""
        ...

    async def failed(self, error: BaseException) -> None:
        """The question could not be answered."""
        ...


class Silent:
    """An observer that does nothing."""

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
