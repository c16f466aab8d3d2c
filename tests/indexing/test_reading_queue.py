"""Documents that are read side by side are committed in the order of arrival, in groups."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from lightrag_jsonl import Chunk, Document, LLMError
from lightrag_jsonl.core.types import Extraction
from lightrag_jsonl.indexing import insertion
from lightrag_jsonl.indexing.progress import Progress
from tests.kit import extraction, index

TEXT = "第{}篇: Text {}."


class OrderedExtractor:
    """Ends the reading of documents in an order; one of them is not read to the end."""

    name = "ordered"

    def __init__(self, order: Sequence[int], unread: int | None = None) -> None:
        self._order = order
        self._unread = unread
        self._turns = [asyncio.Event() for _ in order]
        self._turns[order[0]].set()

    async def extract(self, chunk: Chunk) -> Extraction:
        number = int(chunk.document_id)
        await self._turns[number].wait()
        position = self._order.index(number)
        if position + 1 < len(self._order):
            self._turns[self._order[position + 1]].set()
        if number == self._unread:
            raise LLMError("no such model", permanent=True)
        return extraction(state="empty")


async def groups_read_in(folder: Path, extractor: OrderedExtractor, count: int) -> list[int]:
    """The number of documents that are visible after each commit."""
    visible: list[int] = []

    def note(progress: Progress) -> None:
        if not progress.steps and progress.documents_done not in (0, *visible):
            visible.append(progress.documents_done)

    documents = [Document(TEXT.format(number, number), id=str(number)) for number in range(count)]
    async with index(folder, extractor=extractor) as rag:
        await rag.insert(documents, progress=note)
        assert [document.id for document in await rag.documents()] == list(map(str, range(count)))
    return visible


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
async def test_groups_do_not_depend_on_the_time_that_reading_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: list[int]
) -> None:
    """Whichever document is read first, the groups are those of the order of arrival."""
    monkeypatch.setattr(insertion, "FIRST_GROUP", 3)
    assert await groups_read_in(tmp_path, OrderedExtractor(order), 5) == [3, 5]


async def test_groups_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is twice as large as the one before, up to a limit: the first is seen soon, and there are few commits."""
    monkeypatch.setattr(insertion, "FIRST_GROUP", 2)
    monkeypatch.setattr(insertion, "LARGEST_GROUP", 4)
    assert await groups_read_in(tmp_path, OrderedExtractor(range(11)), 11) == [2, 6, 10, 11]


async def test_an_unread_document_is_in_no_group(tmp_path: Path) -> None:
    """A document that was not read to the end is left out, and later ones that were read are not."""
    documents = [Document(TEXT.format(number, number), id=str(number)) for number in range(3)]
    async with index(tmp_path, extractor=OrderedExtractor([0, 2, 1], unread=1)) as rag:
        with pytest.raises(LLMError, match="no such model"):
            await rag.insert(documents)
        states = {document.id: document.state for document in await rag.documents()}
    assert states == {"0": "done", "1": "pending", "2": "done"}
