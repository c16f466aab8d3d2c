"""The indexes of a server, with jobs and running questions."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from lightrag_jsonl import AsyncLightRAG
from lightrag_jsonl.core.address import Address, index_name
from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import open_async
from lightrag_jsonl.server.jobs import JOB_SECONDS, MOST_BYTES, MOST_JOBS, Busy, JobQueue
from lightrag_jsonl.server.metrics import Metrics
from lightrag_jsonl.server.sharing import SharedStream
from lightrag_jsonl.storage.store import read, search
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import counted
from lightrag_jsonl.tracing.events import Event

WorkResult = TypeVar("WorkResult")
QuestionEvent: TypeAlias = Event | Answer
Opener: TypeAlias = Callable[[Address], AsyncLightRAG]

MEGABYTE: Final = 1 << 20


@dataclass(frozen=True)
class ServerLimits:
    """Limits of requests.

    `upload`, `body` and `jobs_bytes` are in bytes, `question` in characters, `job_seconds` in
    seconds for a job; `questions`, `jobs` and `heavy` are numbers. `heavy` limits the requests that
    read a whole index, by the weight of the routes. `jobs_bytes` limits the contents of all open
    jobs of an index.
    """

    upload: int = 100 * MEGABYTE
    body: int = MEGABYTE
    question: int = 20_000
    questions: int = 16
    jobs: int = MOST_JOBS
    heavy: int = 4
    jobs_bytes: int = MOST_BYTES
    job_seconds: float = JOB_SECONDS


class EntityLine(msgspec.Struct, frozen=True):
    """An entity in a list; `degree` is the number of relations."""

    name: str
    type: str
    degree: int


class Index:
    """An open index of a server; `LockedError` if another server has it, and its store is for one."""

    def __init__(
        self,
        name: str,
        address: Address,
        metrics: Metrics,
        opener: Opener,
        *,
        limits: ServerLimits,
        setup: Setup | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self._metrics = metrics
        self.rag = opener(address)
        store = self.rag.engine.store
        self._lock = contextlib.ExitStack()
        if not store.read_only and not store.SHARES_JOBS:
            self._lock.enter_context(store.jobs_lock())
        self.jobs = JobQueue(
            store,
            address,
            seconds=limits.job_seconds,
            most_jobs=limits.jobs,
            most_bytes=limits.jobs_bytes,
            setup=setup,
        )
        self.agents: Starlette | None = None  # answers programs that act on a person's behalf
        self._running: dict[bytes, SharedStream[QuestionEvent]] = {}
        self._results: dict[str, tuple[int, Any]] = {}  # of `once`, with their generations

    def ask(
        self, question: str, param: QueryParam, explain: bool = False
    ) -> AsyncGenerator[QuestionEvent]:
        """The events of a question, with the answer at the end; equal questions at once are answered once.

        A listener that leaves early closes the generator: without listeners, the model's call is
        cancelled.
        """
        param = self.limited(param)
        key = msgspec.json.encode([question, param, explain])
        stream = self._running.get(key)
        self._metrics.count_question(self.name, param.mode, shared=stream is not None)
        if stream is None:
            stream = self._start(key, question, param, explain)
        return stream.listen()

    def limited(self, param: QueryParam) -> QueryParam:
        """The settings of a question, with at most as many chunks to read as the index allows."""
        limit = self.rag.options.read_chunks
        read_chunks = limit if param.read_chunks is None else min(param.read_chunks, limit)
        return replace(param, read_chunks=read_chunks)

    def _start(
        self, key: bytes, question: str, param: QueryParam, explain: bool
    ) -> SharedStream[QuestionEvent]:
        async def run(listener: Callable[[QuestionEvent], None]) -> None:
            pieces = self.rag.stream(question, param, explain=explain, listener=listener)
            try:
                async with contextlib.aclosing(pieces):
                    async for _ in pieces:  # the listener gets each piece as an event
                        pass
                listener(pieces.answer)
            finally:
                self._metrics.count_usage(self.name, pieces.usage)

        def forget() -> None:
            if self._running.get(key) is stream:
                del self._running[key]

        stream = SharedStream(run, forget)
        self._running[key] = stream
        return stream

    async def directory(self) -> dict[str, EntityLine]:
        """All entities by the key of the name, the most connected first."""
        return await self.once(
            "directory", lambda: search(self.rag.engine.store, _entities_by_degree)
        )

    async def once(self, name: str, work: Callable[[], Awaitable[WorkResult]]) -> WorkResult:
        """The result of work that reads the whole index, done once for each state of the index."""
        generation = await read(self.rag.engine.store, lambda view: view.generation)
        made_for, result = self._results.get(name, (-1, None))
        if made_for != generation:
            result = await work()
            self._results[name] = generation, result
        return result  # type: ignore[no-any-return]

    async def find_entities(self, text: str, kind: str) -> list[EntityLine]:
        """The entities of a type (all for "") with a text in the name; matches at the beginning come first."""
        text_key = name_key(text)
        lines_by_key = {
            key: line
            for key, line in (await self.directory()).items()
            if text_key in key and (not kind or line.type == kind)
        }
        keys = sorted(lines_by_key, key=lambda key: not key.startswith(text_key))
        return [lines_by_key[key] for key in keys]

    async def close(self) -> None:
        """Close the index, and release the lock of the server."""
        await self.rag.close()
        self._lock.close()


def _entities_by_degree(snapshot: Snapshot) -> dict[str, EntityLine]:
    degrees = snapshot.graph.degrees(snapshot.graph.entities).tolist()
    degree_by_id = dict(zip(snapshot.graph.entities.tolist(), degrees, strict=True))
    lines = [
        (row.key, EntityLine(name=row.name, type=row.type, degree=degree_by_id[row.id]))
        for row in snapshot.entity_rows().values()
    ]
    lines.sort(key=lambda item: (-item[1].degree, item[0]))
    return dict(lines)


@dataclass
class Indexes:
    """The indexes of a server by name, and the number of questions being answered.

    Models of the `setup` replace the remembered models of the indexes.
    """

    limits: ServerLimits = ServerLimits()
    setup: Setup | None = None
    metrics: Metrics = field(default_factory=Metrics)
    opener: Opener | None = None
    by_name: dict[str, Index] = field(default_factory=dict)
    is_personal: bool = False  # whether the one who starts the server is the one who asks
    in_flight: int = 0
    heavy_in_flight: int = 0

    def open(self, addresses: Iterable[Address]) -> None:
        """Open the index in each folder or database; `ConfigError` for equal or unusable names."""
        for address in addresses:
            name = index_name(address)
            if not name or not name.isprintable() or set(name) & set(":/\\?#"):
                raise ConfigError(
                    f"{address}: this name cannot be that of an index; rename the folder or schema"
                )
            if name in self.by_name:
                first = self.by_name[name].address
                raise ConfigError(f"{first} and {address} have the same name: rename one of them")
            self.by_name[name] = Index(
                name,
                address,
                self.metrics,
                self.opener or partial(open_async, setup=self.setup),
                limits=self.limits,
                setup=self.setup,
            )

    def get(self, name: str) -> Index:
        """The index of a name; `NotFoundError` lists the available names."""
        if name not in self.by_name:
            raise NotFoundError(f"no such index: {name}; available: {', '.join(self.by_name)}")
        return self.by_name[name]

    @contextlib.contextmanager
    def question(self, text: str) -> Iterator[None]:
        """Count a question until answered; `Busy` above the limit, 413 for a long question."""
        if not text.strip():
            raise ConfigError("the question is empty")
        if len(text) > self.limits.question:
            raise HTTPException(413, f"the question has over {self.limits.question:,} characters")
        if self.in_flight >= self.limits.questions:
            raise Busy(f"{counted(self.in_flight, 'questions')} in progress: try again later", 2)
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    def heavy_work(self, work: Awaitable[WorkResult], weight: int) -> Awaitable[WorkResult]:
        """Work that reads a whole index, counted until the end, even after the client has left: a
        thread cannot be cancelled. `Busy` above the limit.
        """
        task = asyncio.ensure_future(work)
        if self.heavy_in_flight + weight > self.limits.heavy:
            task.cancel()
            raise Busy("too many requests that read a whole index: try again later", 5)
        self.heavy_in_flight += weight

        def forget(ended: asyncio.Future[WorkResult]) -> None:
            self.heavy_in_flight -= weight
            if not ended.cancelled():
                ended.exception()  # nobody may be left to see it

        task.add_done_callback(forget)
        return asyncio.shield(task)
