"""The port between a query and a recorder."""

from collections.abc import Sequence

from lightrag_jsonl.core.answers import Answer, Context, Keywords, Reading
from lightrag_jsonl.core.edges import EdgeSelection
from lightrag_jsonl.core.types import Chunk, Relation


class QueryObserver:
    """Called after each step of a query; the methods of the base class do nothing."""

    async def keywords_found(self, keywords: Keywords) -> None:
        """The question's keywords."""

    async def reading(self, chunks_done: int, chunks_known: int) -> None:
        """The chunks that a model has read for the question, of those to read."""

    async def chunks_read(self, reading: Reading) -> None:
        """All that a model has read for the question so far, before the index is searched again."""

    async def retrieved(self, relations: Sequence[Relation], chunks: Sequence[Chunk]) -> None:
        """All retrieved relations and chunks, best first."""

    async def selected(self, selection: EdgeSelection, context: Context) -> None:
        """The selected relations, and the context for the model."""

    async def piece(self, text: str) -> None:
        """A piece of the answer."""

    async def answered(self, answer: Answer, *, reused: bool = False) -> None:
        """The complete answer."""
