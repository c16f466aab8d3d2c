"""Files that wait in the store until an insert reads them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Failure
from lightrag_jsonl.indexing.loading import JSONL_SUFFIX, UnreadSource, documents_in
from lightrag_jsonl.readers.formats import UNPACKERS, file_suffix
from lightrag_jsonl.readers.process import ReadingProcess
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import Store


class WaitingFiles:
    """The documents in waiting files, one at a time; with `sees`, with the pictures of their files.

    `accepted` counts the documents that an insert took. `read_rows` are the rows of the files of
    which it took something; the others wait on. `unread` says what could not be read.
    """

    def __init__(self, store: Store, *, accepted: Callable[[], int], sees: bool) -> None:
        self._accepted = accepted
        self.read_rows: list[int] = []
        self.unread: list[UnreadSource] = []
        self._store = store
        self._sees = sees

    def read_in(self, waiting: Iterable[PendingDocument]) -> Iterator[PendingDocument]:
        """The waiting documents, with the documents of a file in place of the file."""
        with ReadingProcess(sees=self._sees) as reading:
            for pending in waiting:
                if pending.is_file:
                    yield from self._documents_of(pending, reading)
                else:
                    yield pending

    def _documents_of(
        self, pending: PendingDocument, reading: ReadingProcess
    ) -> Iterator[PendingDocument]:
        """The documents in a file, with what was given with it; a line of a `.jsonl` file keeps its
        own id.
        """
        if pending.row is None:
            return
        with self._store.view() as view:
            content = view.pending_file(pending.row)
        if content is None:  # nobody wants it any more
            return
        metadata = pending.document
        path = PurePath(metadata.source or "")
        holds_several = file_suffix(path) in (JSONL_SUFFIX, *UNPACKERS)
        names = ("title", "date") if holds_several else ("title", "date", "id")
        properties = {name: getattr(metadata, name) for name in names if getattr(metadata, name)}
        accepted_before = self._accepted()
        try:
            for item in documents_in(content, path, reading):
                if isinstance(item, Document):
                    document = replace(item, **properties)
                    yield replace(pending, document=document, is_file=False)
                else:
                    self.unread.append(item)
        except ConfigError as error:
            self.unread.append(Failure(path.name, None, str(error)))
        if self._accepted() > accepted_before:
            self.read_rows.append(pending.row)
