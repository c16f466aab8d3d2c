"""One search of an index, from plain values to plain values, in whatever process has the index open.

Further processes search side by side: in one process, Python runs one search at a time.
"""

import asyncio
import logging
import os
import pickle
import signal
from dataclasses import replace
from typing import Final

from msgspec import Struct, structs

from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.aio import in_thread
from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.child_process import read_message, start_python, write_message
from lightrag_jsonl.core.errors import ConfigError, StorageError
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.retrieval import ranking
from lightrag_jsonl.retrieval.lens import Lens
from lightrag_jsonl.retrieval.task import SearchQuery, SearchResult, SearchTask
from lightrag_jsonl.storage.opening import open_store
from lightrag_jsonl.storage.views import Snapshot


class SearchRequest(Struct, frozen=True, kw_only=True):
    """What to search for, as plain values, so that another process can search.

    `context` has the question, its keywords and no findings yet; `chunk_limit` is as in `SearchTask`.
    With `for_overview`, the question is about everything.
    """

    query: SearchQuery
    context: Context
    param: QueryParam
    chunk_limit: int
    for_overview: bool


class Searcher(Struct, frozen=True):
    """Searches one state of an index after another, through lenses; another process gets a copy."""

    lenses: tuple[Lens, ...] = ()

    def find(self, snapshot: Snapshot, request: SearchRequest) -> SearchResult:
        """The findings of one state of the index."""
        context = replace(request.context, has_records=snapshot.has_records())
        task = SearchTask(
            snapshot=snapshot,
            query=request.query,
            mode=MODES[request.param.mode],
            param=request.param,
            chunk_limit=request.chunk_limit,
        )
        for lens in self.lenses:
            task = lens.narrow(task)
        result = self._overview(task, context) if request.for_overview else None
        if result is None:
            result = ranking.find(task, context)
        telling: list[int] = []
        for number, lens in enumerate(self.lenses):
            result_of_lens = lens.find(task, result)
            if result_of_lens is not None:
                telling.append(number)
                result = result_of_lens
        return structs.replace(result, lenses=tuple(telling))

    def _overview(self, task: SearchTask, context: Context) -> SearchResult | None:
        """What the first lens that can says about everything."""
        for lens in self.lenses:
            overview = lens.overview(task, context)
            if overview is not None:
                return overview
        return None


# ── further processes ─────────────────────────────────────────────────────────

SEARCHING_CODE: Final = (
    "from lightrag_jsonl.retrieval.searching import answer_searches; answer_searches()"
)

log = logging.getLogger(__name__)


class SearchProcesses:
    """At most `count` processes that search the index at an address, each one request at a time.

    A request starts a further process if all are busy; the processes end with `close` or with this
    process, each with a copy of the `searcher`. Use from one event loop.
    """

    def __init__(self, address: Address, count: int, searcher: Searcher) -> None:
        if count < 1:
            raise ConfigError(f"search_processes is {count}: it must be 0 or more")
        self._address = address
        self._searcher = searcher
        self._free_slots = asyncio.Semaphore(count)
        self._idle: list[_SearchProcess] = []
        self._is_closed = False

    async def find(self, request: SearchRequest) -> SearchResult:
        """The findings of the latest state of the index.

        If a process ends during a request, another process gets the request; if that process ends, too,
        `StorageError`.
        """
        async with self._free_slots:
            outcome = await self._outcome(request)
            if outcome is None:
                log.warning("%s: a search process ended, another one is started", self._address)
                outcome = await self._outcome(request)
        if outcome is None:
            raise StorageError(
                f"the processes that search {self._address} end by themselves: is there enough memory? "
                "With search_processes=0 this process searches"
            )
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        """End the processes: idle ones now, others after the request that they answer."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().end()

    async def _outcome(self, request: SearchRequest) -> SearchResult | Exception | None:
        """The findings, or the error of the search; None if the process has ended."""
        process = self._idle_process() or _SearchProcess(self._address, self._searcher)
        try:
            return await in_thread(process.outcome, request)
        finally:
            if self._is_closed or not process.is_running:
                process.end()
            else:
                self._idle.append(process)

    def _idle_process(self) -> "_SearchProcess | None":
        """A running process without a request, if there is one."""
        while self._idle:
            process = self._idle.pop()
            if process.is_running:
                return process
            process.end()
        return None


class _SearchProcess:
    """A process that searches the index at an address."""

    def __init__(self, address: Address, searcher: Searcher) -> None:
        self._process = start_python(SEARCHING_CODE, environment=os.environ)
        self._first_message: bytes | None = pickle.dumps((address, searcher))

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def outcome(self, request: SearchRequest) -> SearchResult | Exception | None:
        """The findings, or the error of the search; None if the process has ended."""
        requests = self._process.stdin
        responses = self._process.stdout
        assert requests is not None and responses is not None
        try:
            if self._first_message is not None:
                write_message(requests, self._first_message)
                self._first_message = None
            write_message(requests, pickle.dumps(request))
            response = read_message(responses)
        except OSError:
            response = None
        if response is None:
            self.end()
            return None
        outcome: SearchResult | Exception = pickle.loads(response)
        return outcome

    def end(self) -> None:
        """End the process, which has nothing to lose; a second call is no error."""
        self._process.kill()
        self._process.communicate()


def answer_searches() -> None:
    """Answer requests until their stream ends: the first message says where the index is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    requests = os.fdopen(os.dup(0), "rb")
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of libraries is no response
    first_message = read_message(requests)
    if first_message is None:
        return
    address, searcher = pickle.loads(first_message)
    store = None
    while message := read_message(requests):
        outcome: SearchResult | Exception
        try:
            store = store or open_store(address, create=False)
            with store.snapshot() as snapshot:
                outcome = searcher.find(snapshot, pickle.loads(message))
        except Exception as error:  # noqa: BLE001 - it is raised where the request came from
            outcome = error
        write_message(responses, pickle.dumps(outcome))
