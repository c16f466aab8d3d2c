"""Reads chunks with the extractor of an index, until a lasting error ends the insert."""

from dataclasses import dataclass, replace

import msgspec

from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.errors import BudgetError, LLMError
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.protocols import Extractor
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Chunk, Extraction
from lightrag_jsonl.indexing.budget import Budget
from lightrag_jsonl.indexing.extraction import LLMExtractor
from lightrag_jsonl.indexing.incoming import storable_json


@dataclass(slots=True)
class ChunkReader:
    """Reads chunks within a budget.

    After `most_unanswered` chunks in a row without an answer the budget stops; None is no limit.
    `unanswered` counts the chunks without an answer since the last answer.
    """

    extractor: Extractor
    budget: Budget
    most_unanswered: int | None
    unanswered: int = 0

    async def read(self, chunk: Chunk) -> Extraction | None:
        """The extraction of a chunk; None if the insert has to end."""
        if self.budget.stopped:
            return None
        try:
            extraction = await self._extract(chunk)
        except BudgetError as error:
            self.budget.exhaust(error)
            return None
        except LLMError as error:  # permanent, or a rate limit that did not pass
            self.budget.stop(error)
            return None
        self._count_unanswered(extraction)
        return replace(extraction, extractor=self.extractor.name)

    async def _extract(self, chunk: Chunk) -> Extraction:
        if isinstance(self.extractor, LLMExtractor):
            return await self.extractor.extract(chunk, self.budget)
        extraction = await _extract_by_user(self.extractor, chunk)
        self.budget.add(extraction.usage)
        return extraction

    def _count_unanswered(self, extraction: Extraction) -> None:
        """End the insert if too many chunks in a row got no answer."""
        if not _is_unanswered(extraction):
            self.unanswered = 0
            return
        self.unanswered += 1
        if self.most_unanswered is not None and self.unanswered >= self.most_unanswered:
            chunks = f"{self.unanswered} chunks in a row got no answer"
            self.budget.stop(LLMError(f"{chunks} ({extraction.error})", transient=True))


def _is_unanswered(extraction: Extraction) -> bool:
    has_answer = extraction.records or extraction.rejections or extraction.truncated
    return extraction.state == "failed" and bool(extraction.error) and not has_answer


async def _extract_by_user(extractor: Extractor, chunk: Chunk) -> Extraction:
    """The result of a user's extractor, or a `failed` extraction; a permanent `LLMError` or a rate
    limit is raised.
    """
    try:
        result = await abandonable(extractor.extract(chunk))
        extraction = msgspec.convert(storable_json(msgspec.to_builtins(result)), Extraction)
        _check_names(extraction)
        return extraction
    except LLMError as error:
        if error.permanent or error.rate_limited:
            raise
        return Extraction(state="failed", error=str(error))
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        reason = f"{extractor.name} failed: {type(error).__name__}: {error}"
        return Extraction(state="failed", error=sanitize(reason))


def _check_names(extraction: Extraction) -> None:
    names = {name_key(mention.name) for mention in extraction.entities}
    sources = {name_key(mention.source) for mention in extraction.relations}
    targets = {name_key(mention.target) for mention in extraction.relations}
    if "" in names or (sources | targets) - names:
        raise ValueError("an entity has no name, or an end of a relation is no entity")
