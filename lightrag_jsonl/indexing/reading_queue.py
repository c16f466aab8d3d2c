"""A queue of documents that are read side by side and leave in the order of arrival, in groups."""

import asyncio
from asyncio import Task
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeAlias

from lightrag_jsonl.indexing.incoming import IncomingDocument

AHEAD = 512  # chunks that are being read beside those of the next group
# Chunks that are committed together, at least: the first time so many, then as many as were committed
# before, up to a limit. Small groups write the rows of frequent names again and again.
FIRST_GROUP = 128
LARGEST_GROUP = 1_024

ReadDocument: TypeAlias = Callable[[IncomingDocument], Coroutine[Any, Any, IncomingDocument | None]]
DocumentGroup: TypeAlias = tuple[IncomingDocument, ...]


class ReadingQueue:
    """Documents that are being read, or were read and wait to be committed as a group.

    The groups depend on the documents only, not on the time that their reading takes. `read` returns
    None for a document that could not be read to the end: no group contains such a document.
    """

    def __init__(self, read: ReadDocument) -> None:
        self._read = read
        self._tasks: deque[Task[IncomingDocument | None]] = deque()
        self._group: list[IncomingDocument] = []
        self._chunks_by_id: dict[str, int] = {}  # of documents that are not committed
        self._uncommitted_chunks = 0
        self._committed_chunks = 0
        self._read_chunks = 0  # of the documents that wait to be committed as a group

    def __contains__(self, document_id: str) -> bool:
        """Whether a document is in the queue, or in a group that is not committed yet."""
        return document_id in self._chunks_by_id

    def put(self, document: IncomingDocument) -> None:
        """Begin to read a document."""
        self._chunks_by_id[document.id] = len(document.chunks)
        self._uncommitted_chunks += len(document.chunks)
        self._tasks.append(asyncio.create_task(self._read(document)))

    async def next_group(self, *, room: int | None = None) -> DocumentGroup:
        """The next documents to be committed together; none if there is room for so many chunks, or, without
        `room`, if the queue is empty.
        """
        least_chunks = self._least_chunks
        most_uncommitted = -1 if room is None else least_chunks + AHEAD - room
        while self._tasks and self._uncommitted_chunks > most_uncommitted:
            document = await self._tasks[0]
            self._tasks.popleft()
            if document is not None:
                self._group.append(document)
                self._read_chunks += len(document.chunks)
            if self._read_chunks >= least_chunks:
                return self._take_group()
        return self._take_group() if room is None else ()

    def committed(self, group: Iterable[IncomingDocument]) -> None:
        """Make room for as many chunks as those of a group that was committed."""
        for document in group:
            chunks = self._chunks_by_id.pop(document.id)
            self._uncommitted_chunks -= chunks
            self._committed_chunks += chunks

    async def finish_reading(self) -> None:
        """Wait for the end of every reading, whether or not it succeeds."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cancel(self) -> None:
        """End every reading now."""
        for task in self._tasks:
            task.cancel()
        await self.finish_reading()

    @property
    def _least_chunks(self) -> int:
        """The number of chunks that make a group."""
        return min(max(FIRST_GROUP, self._committed_chunks), LARGEST_GROUP)

    def _take_group(self) -> DocumentGroup:
        group = tuple(self._group)
        self._group.clear()
        self._read_chunks = 0
        return group
