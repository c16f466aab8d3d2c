"""Documents that are read side by side leave the queue in the order of arrival, in groups."""

import asyncio
from collections.abc import Sequence

import pytest

from lightrag_jsonl import Chunk, Document
from lightrag_jsonl.indexing.incoming import (
    AHEAD,
    FIRST_GROUP,
    LARGEST_GROUP,
    IncomingDocument,
    ReadingQueue,
    incoming_document,
    storable,
)
from tests.kit import pending_document

CHUNKS = FIRST_GROUP // 2  # so that two documents are the first group


def document_of(number: int) -> IncomingDocument:
    """A document with as many chunks as half a group."""
    document = Document(f"Text {number}, 第{number}篇", id=f"document-{number}")
    incoming = incoming_document(storable(pending_document(document)))
    chunks = [
        Chunk(
            id=f"{incoming.id}-{index}",
            document_id=incoming.id,
            index=index,
            page=1,
            start=0,
            end=1,
            text="T",
        )
        for index in range(CHUNKS)
    ]
    return IncomingDocument(incoming.document, incoming.pages, tuple(chunks))


async def groups_read_in(order: Sequence[int], *, unread: int | None = None) -> list[list[str]]:
    """The ids in each group, if the reading of the documents ends in an order."""
    ended = [asyncio.Event() for _ in order]

    async def read(document: IncomingDocument) -> IncomingDocument | None:
        number = int(document.id.removeprefix("document-"))
        await ended[number].wait()
        position = order.index(number)
        if position + 1 < len(order):
            ended[order[position + 1]].set()
        return None if number == unread else document

    queue = ReadingQueue(read)
    for number in range(len(order)):
        queue.put(document_of(number))
    ended[order[0]].set()
    groups: list[list[str]] = []
    while group := await queue.next_group():
        groups.append([document.id for document in group])
        queue.committed(group)
    return groups


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
async def test_groups_do_not_depend_on_the_time_that_reading_takes(order: list[int]) -> None:
    """Whichever document is read first, the groups are those of the order of arrival."""
    assert await groups_read_in(order) == [
        ["document-0", "document-1"],
        ["document-2", "document-3"],
        ["document-4"],
    ]


async def test_groups_grow_with_what_was_committed() -> None:
    """Each group has as many chunks as all before it, up to a limit, so that there are few commits."""
    documents = 4 * LARGEST_GROUP // CHUNKS

    groups = await groups_read_in(range(documents))

    sizes = [CHUNKS * len(group) for group in groups]
    assert sizes == [128, 128, 256, 512, 1_024, 1_024, 1_024]
    assert [id for group in groups for id in group] == [f"document-{n}" for n in range(documents)]


async def test_an_unread_document_is_in_no_group() -> None:
    """A document that was not read to the end is left out, and later ones move up."""
    groups = await groups_read_in([0, 1, 2], unread=1)
    assert groups == [["document-0", "document-2"]]


async def test_documents_wait_for_room_until_a_group_is_committed() -> None:
    """No group leaves while there is room to read more chunks; a document counts until its commit."""

    async def read(document: IncomingDocument) -> IncomingDocument | None:
        return document

    queue = ReadingQueue(read)
    for number in range((FIRST_GROUP + AHEAD) // CHUNKS - 1):
        queue.put(document_of(number))
    assert await queue.next_group(room=CHUNKS) == ()
    group = await queue.next_group(room=CHUNKS + 1)
    assert [document.id for document in group] == ["document-0", "document-1"]
    assert "document-0" in queue
    queue.committed(group)
    assert "document-0" not in queue and "document-2" in queue
    assert await queue.next_group(room=3 * CHUNKS) == ()
    await queue.cancel()
