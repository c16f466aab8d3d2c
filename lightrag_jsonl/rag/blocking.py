"""LightRAG: the methods of AsyncLightRAG without await, on an event loop of its own."""

import asyncio
import contextlib
import os
import sys
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.core.errors import LightRAGError, StorageError
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.validation import names_replacements
from lightrag_jsonl.rag import admin, namespaces
from lightrag_jsonl.rag.asynchronous import AsyncLightRAG
from lightrag_jsonl.rag.engine import Engine
from lightrag_jsonl.rag.streams import AsyncAnswerStream

if sys.platform == "win32":
    from asyncio import ProactorEventLoop as EventLoop
else:
    from asyncio import SelectorEventLoop as EventLoop

if TYPE_CHECKING:
    import networkx as nx
    from anyio.from_thread import BlockingPortal

P = ParamSpec("P")
Twin = TypeVar("Twin")
Returned = TypeVar("Returned")
Result = TypeVar("Result")


class _SteadyLoop(EventLoop):
    """An event loop that goes on after an exit (`SystemExit`, `KeyboardInterrupt`) in a user's code, such as a
    model: the task holds the exit, and whoever waits for the task gets it.
    """

    def run_forever(self) -> None:
        while True:
            try:
                super().run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue
            return


class _Loop:
    """A private event loop in a thread; both end with `close`, or with the last reference."""

    def __init__(self, location: str) -> None:
        from anyio.from_thread import start_blocking_portal

        self._location = location
        self._process_id = os.getpid()
        self._open: set[object] = set()  # streams, which only this loop may close
        context = start_blocking_portal(backend_options={"loop_factory": _SteadyLoop})
        self._portal: BlockingPortal | None = context.__enter__()
        self._end = weakref.finalize(self, _end_loop, self._portal, context, self._process_id)

    @property
    def is_in_forked_child(self) -> bool:
        """Whether this process was forked from the one with the loop's thread."""
        return os.getpid() != self._process_id

    def check_process(self) -> None:
        """Raise `StorageError` in a forked child, where no thread would ever answer."""
        if os.getpid() != self._process_id:
            raise self._error_of_forked_child()

    def _error_of_forked_child(self) -> StorageError:
        return StorageError(
            f"{self._location} was opened by process {self._process_id}, and this is its forked "
            f"child {os.getpid()}: open the index in each process itself, after the fork (in "
            "Celery's worker_process_init, gunicorn's post_fork or without --preload)",
            path=self._location,
        )

    def run(self, job: Callable[[], Awaitable[Result]]) -> Result:
        """The result of an async function; an interrupt (Ctrl-C) cancels the function first."""
        self.check_process()
        if self._portal is None:
            raise StorageError(f"{self._location} is closed", path=self._location)
        future = self._portal.start_task_soon(_outcome, job)
        try:
            outcome = future.result()
        except CancelledError as error:
            raise StorageError(f"{self._location} was closed", path=self._location) from error
        except BaseException:
            self._interrupt(future, self._portal)
            raise
        if isinstance(outcome, LightRAGError | SystemExit | KeyboardInterrupt):
            raise outcome.with_traceback(None)  # the message says what to do: the frames hide it
        return outcome

    def _interrupt(self, future: Future[Any], portal: "BlockingPortal") -> None:
        """Cancel a task, and give it the time to end."""
        if future.cancel():
            portal.call(asyncio.sleep, 0)

    def iterate(self, pieces: AsyncAnswerStream) -> Generator[str]:
        """The pieces of an answer; leaving the iterator early closes the stream."""
        self._open.add(pieces)
        try:
            while True:
                try:
                    yield self.run(pieces.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._open.discard(pieces)
            if self._portal is not None and not self.is_in_forked_child:
                self.run(pieces.aclose)

    def close(self, last_job: Callable[[], Awaitable[None]]) -> None:
        """Run a last job, and end the loop and its thread; closing twice is no error, and closing in
        a forked child does nothing.
        """
        if self.is_in_forked_child:
            return
        if self._portal is not None:
            self.run(last_job)
        self._portal = None
        self._end()


async def _outcome(
    job: Callable[[], Awaitable[Result]],
) -> Result | LightRAGError | SystemExit | KeyboardInterrupt:
    """The result of a job, or its error; an exit as an error would end the portal."""
    try:
        return await job()
    except (LightRAGError, SystemExit, KeyboardInterrupt) as error:
        return error


def _end_loop(
    portal: "BlockingPortal",
    context: "contextlib.AbstractContextManager[BlockingPortal]",
    process_id: int,
) -> None:
    """Cancel the running tasks, and end the loop and its thread, which a forked child has not."""
    if os.getpid() != process_id:
        return
    with contextlib.suppress(RuntimeError):  # the loop has ended already
        portal.call(portal.stop, True)
    context.__exit__(None, None, None)


class _Blocking:
    """Offers the methods of an async object, the twin, without await."""

    def __init__(self, twin: Any, loop: _Loop) -> None:
        self._twin = twin
        self._loop = loop


def _without_await(
    method: Callable[Concatenate[Twin, P], Returned],
    finish: Callable[[_Loop, Callable[[], Returned]], Result],
) -> Callable[Concatenate[Any, P], Result]:
    """A function with the parameters of the method; `finish` gets the result out of the loop."""

    def call(self: _Blocking, *args: P.args, **kwargs: P.kwargs) -> Result:
        return finish(self._loop, partial(method, self._twin, *args, **kwargs))

    return cast("Callable[Concatenate[Any, P], Result]", update_wrapper(call, method))


def blocking(
    method: Callable[Concatenate[Twin, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, P], Result]:
    """The async method without await."""
    return _without_await(method, _Loop.run)


def _takes(
    method: Callable[Concatenate[AsyncLightRAG, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Gives a constructor the signature of the twin's, and the description of its class."""

    def described(constructor: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        constructor.__doc__ = AsyncLightRAG.__doc__
        return update_wrapper(constructor, method, assigned=["__annotations__"])

    return described


class BlockingEntities(_Blocking):
    """The entities of the graph, by name, and the merges of names."""

    get = blocking(namespaces.Entities.get)
    list = blocking(namespaces.Entities.list)
    relations = blocking(namespaces.Entities.relations)
    neighbours = blocking(namespaces.Entities.neighbours)
    history = blocking(namespaces.Entities.history)
    of_records = blocking(namespaces.Entities.of_records)
    merge = blocking(namespaces.Entities.merge)
    unmerge = blocking(namespaces.Entities.unmerge)
    create = blocking(namespaces.Entities.create)
    edit = blocking(namespaces.Entities.edit)
    delete = blocking(namespaces.Entities.delete)
    create_relation = blocking(namespaces.Entities.create_relation)
    edit_relation = blocking(namespaces.Entities.edit_relation)
    delete_relation = blocking(namespaces.Entities.delete_relation)
    duplicates = blocking(namespaces.Entities.duplicates)
    homonyms = blocking(namespaces.Entities.homonyms)
    separate = blocking(namespaces.Entities.separate)
    rejoin = blocking(namespaces.Entities.rejoin)
    merge_stated = blocking(namespaces.Entities.merge_stated)
    merge_pairs = blocking(namespaces.Entities.merge_pairs)
    estimate_review = blocking(namespaces.Entities.estimate_review)
    review = blocking(namespaces.Entities.review)
    estimate_conflict_review = blocking(namespaces.Entities.estimate_conflict_review)
    review_conflicts = blocking(namespaces.Entities.review_conflicts)


class BlockingCommunities(_Blocking):
    """The communities of the graph: entities and passages that belong together."""

    list = blocking(namespaces.Communities.list)
    estimate_report = blocking(namespaces.Communities.estimate_report)
    report = blocking(namespaces.Communities.report)


class BlockingTraces(_Blocking):
    """The recorded queries: how each answer came about."""

    get = blocking(namespaces.Traces.get)
    list = blocking(namespaces.Traces.list)
    verify = blocking(namespaces.Traces.verify)
    export = blocking(namespaces.Traces.export)
    page = blocking(namespaces.Traces.page)
    sources = blocking(namespaces.Traces.sources)
    edge_provenance = blocking(namespaces.Traces.edge_provenance)
    document_provenance = blocking(namespaces.Traces.document_provenance)
    delete = blocking(namespaces.Traces.delete)


class BlockingAdmin(_Blocking):
    """Maintenance of an index."""

    rebuild = blocking(admin.Admin.rebuild)
    reembed = blocking(admin.Admin.reembed)
    summarize = blocking(admin.Admin.summarize)
    vacuum = blocking(admin.Admin.vacuum)
    snapshot = blocking(admin.Admin.snapshot)
    snapshots = blocking(admin.Admin.snapshots)
    delete_snapshot = blocking(admin.Admin.delete_snapshot)
    diff = blocking(admin.Admin.diff)
    rollback = blocking(admin.Admin.rollback)
    cache = blocking(admin.Admin.cache)
    clear_cache = blocking(admin.Admin.clear_cache)
    settings = blocking(admin.Admin.settings)
    measure_checker = blocking(admin.Admin.measure_checker)
    check = blocking(admin.Admin.check)
    export = blocking(admin.Admin.export)
    export_text = blocking(admin.Admin.export_text)


class AnswerStream:
    """The pieces of an answer; after the last piece, `.answer` holds the complete answer."""

    def __init__(self, loop: _Loop, stream: AsyncAnswerStream) -> None:
        self._stream = stream
        self._pieces: Generator[str] = loop.iterate(stream)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """End the answer early; the model is not asked further."""
        self._pieces.close()

    @property
    def answer(self) -> Answer:
        """The complete answer; `ValueError` before the last piece was read."""
        return self._stream.answer

    @property
    def usage(self) -> Usage:
        """The calls and tokens used so far."""
        return self._stream.usage


class LightRAG(_Blocking):
    """A knowledge graph over texts, kept in one folder, and answers; safe from any thread.

    Works in scripts, notebooks and inside a running event
    loop: calls run on a private event loop in a thread, until `close()` or the end of the `with`
    block. `engine` is the `Engine` with the parts of the index; all parts but `store` belong to
    the private loop: use them in a function for `run`.
    """

    _twin: AsyncLightRAG

    @_takes(AsyncLightRAG.__init__)
    @names_replacements
    def __init__(self, working_dir: Any, **parts: Any) -> None:
        twin = AsyncLightRAG(working_dir, **parts)
        self.engine: Engine = twin.engine
        super().__init__(twin, _Loop(self.engine.store.location))
        self.working_dir = twin.working_dir

    def __repr__(self) -> str:
        return f"LightRAG({str(self.working_dir)!r})"

    insert = blocking(AsyncLightRAG.insert)
    extract = blocking(AsyncLightRAG.extract)
    insert_records = blocking(AsyncLightRAG.insert_records)
    resume = blocking(AsyncLightRAG.resume)
    retry = blocking(AsyncLightRAG.retry)
    delete = blocking(AsyncLightRAG.delete)
    merge_from = blocking(AsyncLightRAG.merge_from)
    split = blocking(AsyncLightRAG.split)
    conflicts = blocking(AsyncLightRAG.conflicts)
    status = blocking(AsyncLightRAG.status)
    documents = blocking(AsyncLightRAG.documents)
    pages = blocking(AsyncLightRAG.pages)
    rejections = blocking(AsyncLightRAG.rejections)
    query = blocking(AsyncLightRAG.query)
    retrieve = blocking(AsyncLightRAG.retrieve)
    stream = _without_await(AsyncLightRAG.stream, lambda loop, job: AnswerStream(loop, job()))

    def run(
        self,
        function: Callable[Concatenate[AsyncLightRAG, P], Awaitable[Result]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Result:
        """The result of an async function of an index, like the functions in `lightrag_jsonl.tools`."""
        return self._loop.run(partial(function, self._twin, *args, **kwargs))

    @property
    def entities(self) -> BlockingEntities:
        """Entities, relations and merges of names: `get`, `list`, `relations`, `neighbours`, `history`, `merge`, …"""
        return BlockingEntities(self._twin.entities, self._loop)

    @property
    def communities(self) -> BlockingCommunities:
        """Groups of entities and passages that belong together: `list`, `report`, `estimate_report`."""
        return BlockingCommunities(self._twin.communities, self._loop)

    @property
    def traces(self) -> BlockingTraces:
        """The recorded questions: `get`, `list`, `page`, `export`, `verify`, `sources`, …"""
        return BlockingTraces(self._twin.traces, self._loop)

    @property
    def admin(self) -> BlockingAdmin:
        """Maintenance of the index: `export`, `snapshot`, `check`, `vacuum`, `settings`, …"""
        return BlockingAdmin(self._twin.admin, self._loop)

    @property
    def graph(self) -> "nx.Graph":
        """A read-only networkx graph of the index as it is now: nodes by entity name, with all attributes as
        texts, and weights as numbers, ready for networkx to write in any format.

        No copy is made: algorithms read the index in memory. Attributes are read from the store when they are
        asked for, and only while the index is open; `rag.graph.copy()` is a graph of its own.
        """
        self._loop.check_process()
        return self._twin.graph

    def close(self) -> None:
        """Close the index; further calls raise `StorageError`."""
        self._loop.close(self._twin.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
