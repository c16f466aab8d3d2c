"""The port between a query and what records it."""

from collections.abc import Sequence

from lightrag_jsonl.core.edges import EdgeSelection
from lightrag_jsonl.core.types import Answer, Chunk, Context, Keywords, Relation


class QueryObserver:
    """Is called after each step of a query. This one does nothing."""

    async def keywords_found(self, keywords: Keywords) -> None:
        """The question's keywords."""

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """Everything that was found, best first."""

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """What was chosen, and the context that the model reads."""

    async def piece(self, text: str) -> None:
        """A piece of the answer."""

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """The complete answer."""
