"""The store: an index in a database, which hands out views of the tables.

`sqlite` and `postgres` are the two stores; docs/stores.md says how to write another.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from operator import methodcaller
from pathlib import Path
from threading import RLock
from typing import ClassVar, TypeVar

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.errors import (
    ConnectionLostError,
    CorruptError,
    StorageError,
    UnavailableError,
)
from lightrag_jsonl.core.retrying import MAX_RETRIES
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.storage.memory import VectorMemory
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.views import Snapshot, StoreView, Transaction

log = logging.getLogger(__name__)

Result = TypeVar("Result")
View = TypeVar("View", bound=StoreView)

FORMAT = 21  # of the tables; an index of another format is not opened
MEMORY_FILES = "memory_files"  # the setting that names the files which processes map
MARK_SECRET = "mark_secret"  # a setting
OWN_SETTINGS = {"format", MARK_SECRET, MEMORY_FILES}  # that each index makes by itself
SAMPLE = 100  # chunks whose full text is checked


class Store(ABC):
    """One index in a database; safe to use from any thread.

    `location` is the folder or address, for messages. If `read_only`, nothing can be stored, not
    even traces and cached answers.
    """

    READ_ONLY_ADVICE: ClassVar[str]  # why nothing can be written, and what to do
    SHARES_JOBS: ClassVar[bool] = False  # whether several servers may offer the index at once
    read_only: bool

    def __init__(self, location: str, memory: VectorMemory | None = None) -> None:
        self.location = location
        self._memory = memory or VectorMemory()
        self._write_lock = RLock()  # so that a transaction inside another is an error
        self._closed = False

    @abstractmethod
    def view(self) -> AbstractContextManager[StoreView]:
        """A consistent view for reading."""

    @abstractmethod
    def transaction(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Writes that become visible together, or not at all if the block raises.

        Without `durable` a power cut may lose writes, but never damages the index.
        """

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """A consistent view for searching, by several threads; not to be opened inside another."""
        while True:
            with self.view() as view:
                if self._memory.begin_search(view):
                    try:
                        yield self._snapshot_of(view)
                    finally:
                        self._memory.end_search()
                    return

    @abstractmethod
    def writer_lock(self, timeout: float) -> AbstractContextManager[None]:
        """The right to change documents and graph, for one process at a time; `LockedError` after
        `timeout` seconds.
        """

    @abstractmethod
    def jobs_lock(self) -> AbstractContextManager[Callable[[], bool]]:
        """The right to do the jobs of the index, for one server at a time, and whether it is still held;
        `LockedError` if another server has it.
        """

    @cached_property
    def mark_secret(self) -> str:
        """What no document can know: from it the marks in prompts are derived."""
        with self.view() as view:
            return view.settings().get(MARK_SECRET, "")

    def is_empty(self) -> bool:
        """Whether there is no chunk; quick."""
        with self.view() as view:
            return not view.has_chunks()

    @abstractmethod
    def size(self) -> int:
        """The bytes that the index takes on the disk."""

    @abstractmethod
    def temporary_copy(self) -> AbstractContextManager[Address]:
        """The address of a copy of the index, which is deleted at the end of the block."""

    @property
    def parts(self) -> Sequence["Store"]:
        """The stores that hold the rows: this one, or those of the indexes that are asked as one."""
        return [self]

    def check(self, *, full: bool = False) -> list[str]:
        """Faults of the stored data, in words; empty if all is well.

        The full text is compared with the texts of some chunks, or with `full` of all.
        """
        try:
            with self.view() as view:
                return self._problems(view) or view.wrong_terms(None if full else SAMPLE)
        except CorruptError as error:
            return [str(error)]

    @abstractmethod
    def vacuum(self) -> None:
        """Give unused space back, so that nothing deleted is left in any file; `LockedError` if
        another process still reads an earlier state.
        """

    @abstractmethod
    def close(self) -> None:
        """Release everything; further calls raise `StorageError`."""

    def _snapshot_of(self, view: StoreView) -> Snapshot:
        """A snapshot of a view, after the memory has caught up with the state of the view."""
        memory = self._memory
        return Snapshot(view.dialect, memory.graph, memory.vectors, memory.state_memory)

    @abstractmethod
    def _problems(self, view: StoreView) -> list[str]:
        """Faults that statements over all rows find."""

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.location} was closed", path=self.location)

    def _check_writable(self) -> None:
        self._check_open()
        if self.read_only:
            raise StorageError(f"{self.location} {self.READ_ONLY_ADVICE}", path=self.location)


def schema_of(dialect: type[Dialect], module: str) -> str:
    """The statements that make an empty index: of the tables that all stores have, and of `schema.sql` beside the
    file of a store's module.
    """
    tables = Path(__file__).with_name("tables").joinpath("schema.sql").read_text("utf-8")
    own_tables = Path(module).with_name("schema.sql").read_text("utf-8")
    return dialect.schema_words(tables).replace("{FORMAT}", str(FORMAT)) + own_tables


async def read(store: Store, job: Callable[[StoreView], Result]) -> Result:
    """The result of a job that reads, run in a thread."""
    return await asyncio.to_thread(_run, store.view, job)


async def search(store: Store, job: Callable[[Snapshot], Result]) -> Result:
    """The result of a job on the index in memory, run in a thread."""
    return await asyncio.to_thread(_run, store.snapshot, job)


async def write(
    store: Store,
    job: Callable[[Transaction], Result],
    *,
    durable: bool = True,
    repeatable: bool = False,
) -> Result:
    """The result of a job that writes, run in a thread in one transaction.

    A cancelled caller still waits for the end of the transaction. A `repeatable` job, which finds its
    values as they were, runs again if the connection to the database was lost before the commit.
    """
    passing = UnavailableError if repeatable else ()
    return await in_thread(_run, partial(store.transaction, durable=durable), job, passing)


def _run(
    open_view: Callable[[], AbstractContextManager[View]],
    job: Callable[[View], Result],
    passing: type[UnavailableError] | tuple[()] = ConnectionLostError,
) -> Result:
    """The result of a job, which runs again after a `passing` error."""
    for _ in range(MAX_RETRIES):
        try:
            with open_view() as view:
                return job(view)
        except passing as error:
            log.warning("once more: %s", error)
    with open_view() as view:
        return job(view)


class CompletionCache:
    """The cached answers of a store, for the model client."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._waiting: dict[bytes, tuple[Completion, str | None]] = {}
        self._next: asyncio.Task[None] | None = None  # stores what is waiting

    async def get(self, key: bytes) -> Completion | None:
        """The cached answer of the request with this key."""
        with self._store.view() as view:  # quicker than handing a look-up by key to a thread
            return view.completion(key)

    async def put(self, key: bytes, completion: Completion, document: str | None = None) -> None:
        """Cache an answer; answers that come during a transaction share the next transaction."""
        if self._store.read_only:
            return
        self._waiting[key] = completion, document
        if self._next is None:
            self._next = asyncio.create_task(self._put_waiting())
        await asyncio.shield(self._next)

    async def _put_waiting(self) -> None:
        async with self._lock:
            answers = self._waiting
            self._waiting = {}
            self._next = None

            def put(transaction: Transaction) -> None:
                for key, (completion, document) in sorted(answers.items()):
                    transaction.put_completion(key, completion, document)

            await write(self._store, put, durable=False, repeatable=True)

    async def delete(self, keys: Collection[bytes]) -> None:
        """Forget answers."""
        await write(self._store, methodcaller("delete_completions", keys))
