"""LightRAG: the methods of AsyncLightRAG without await, on an event loop of its own."""

import asyncio
import contextlib
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from lightrag_jsonl.core.errors import LightRAGError, StorageError
from lightrag_jsonl.core.types import Answer
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.rag import namespaces
from lightrag_jsonl.rag.asynchronous import AsyncLightRAG
from lightrag_jsonl.rag.streams import AsyncAnswerStream

if TYPE_CHECKING:
    import networkx as nx

P = ParamSpec("P")
Twin = TypeVar("Twin")
Result = TypeVar("Result")


class _Loop:
    """A private event loop in a thread, which ends when it is closed or no longer referenced."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._open: set[object] = set()  # streams, which only this loop may close
        context = start_blocking_portal()
        self._portal: BlockingPortal | None = context.__enter__()
        self._end = weakref.finalize(self, _end, self._portal, context)

    def run(
        self, function: Callable[P, Awaitable[Result]], *args: P.args, **more: P.kwargs
    ) -> Result:
        """The result of an async function; an interrupt (Ctrl-C) cancels it first."""
        if self._portal is None:
            raise StorageError(f"{self._location} is closed", path=self._location)
        future = self._portal.start_task_soon(lambda: function(*args, **more))
        try:
            return future.result()
        except CancelledError as error:
            raise StorageError(f"{self._location} was closed", path=self._location) from error
        except LightRAGError as error:  # it says what to do: the frames inside hide that
            raise error.with_traceback(None) from error.__cause__
        except BaseException:
            if future.cancel():
                self._portal.call(asyncio.sleep, 0)  # the task gets the time to end
            raise

    def iterate(self, pieces: AsyncAnswerStream) -> Generator[str]:
        """The pieces of an answer; the stream is closed if this one is left early."""
        self._open.add(pieces)
        try:
            while True:
                try:
                    yield self.run(pieces.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._open.discard(pieces)
            if self._portal is not None:
                self.run(pieces.aclose)

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run a last function, and end the loop and its thread; closing twice is no error."""
        if self._portal is not None:
            self.run(last)
        self._portal = None
        self._end()


def _end(
    portal: BlockingPortal, context: contextlib.AbstractContextManager[BlockingPortal]
) -> None:
    """Cancel what is under way, and end the loop and its thread."""
    with contextlib.suppress(RuntimeError):  # it has ended
        portal.call(portal.stop, True)
    context.__exit__(None, None, None)


class _Blocking:
    """Offers the methods of its async twin without await."""

    def __init__(self, twin: Any, loop: _Loop) -> None:
        self._twin, self._loop = twin, loop


def blocking(
    method: Callable[Concatenate[Twin, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, P], Result]:
    """The method without await."""

    def call(self: _Blocking, *args: P.args, **more: P.kwargs) -> Result:
        return self._loop.run(method, self._twin, *args, **more)

    return cast("Callable[Concatenate[Any, P], Result]", update_wrapper(call, method))


def _streaming(
    method: Callable[Concatenate[AsyncLightRAG, P], AsyncAnswerStream],
) -> "Callable[Concatenate[Any, P], AnswerStream]":
    """The method, with a stream that is read without await."""

    def call(self: _Blocking, *args: P.args, **more: P.kwargs) -> AnswerStream:
        return AnswerStream(self._loop, method(self._twin, *args, **more))

    return cast("Callable[Concatenate[Any, P], AnswerStream]", update_wrapper(call, method))


def _takes(
    method: Callable[Concatenate[AsyncLightRAG, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Gives a method the arguments of the twin's."""
    return lambda own: update_wrapper(own, method, assigned=["__annotations__"])


class Entities(_Blocking):
    """The entities of the graph, by name, and which names are one entity."""

    get = blocking(namespaces.Entities.get)
    list = blocking(namespaces.Entities.list)
    relations = blocking(namespaces.Entities.relations)
    neighbours = blocking(namespaces.Entities.neighbours)
    merge = blocking(namespaces.Entities.merge)
    unmerge = blocking(namespaces.Entities.unmerge)
    create = blocking(namespaces.Entities.create)
    edit = blocking(namespaces.Entities.edit)
    delete = blocking(namespaces.Entities.delete)
    create_relation = blocking(namespaces.Entities.create_relation)
    edit_relation = blocking(namespaces.Entities.edit_relation)
    delete_relation = blocking(namespaces.Entities.delete_relation)
    duplicates = blocking(namespaces.Entities.duplicates)
    merge_stated = blocking(namespaces.Entities.merge_stated)
    merge_pairs = blocking(namespaces.Entities.merge_pairs)
    estimate_review = blocking(namespaces.Entities.estimate_review)
    review = blocking(namespaces.Entities.review)


class Traces(_Blocking):
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


class Admin(_Blocking):
    """Maintenance of an index."""

    rebuild = blocking(namespaces.Admin.rebuild)
    reembed = blocking(namespaces.Admin.reembed)
    summarize = blocking(namespaces.Admin.summarize)
    vacuum = blocking(namespaces.Admin.vacuum)
    cache = blocking(namespaces.Admin.cache)
    clear_cache = blocking(namespaces.Admin.clear_cache)
    settings = blocking(namespaces.Admin.settings)
    check = blocking(namespaces.Admin.check)
    export = blocking(namespaces.Admin.export)
    export_text = blocking(namespaces.Admin.export_text)


class AnswerStream:
    """The pieces of an answer; after the last one, `.answer` holds it complete."""

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
    """A knowledge graph over texts, kept in one folder, and answers from it; safe from any thread.

    The arguments are those of `AsyncLightRAG`. Works in scripts, notebooks and inside a running
    event loop: calls run on a private event loop in a thread, which ends with `close()` or the
    `with` block.
    """

    _twin: AsyncLightRAG

    @_takes(AsyncLightRAG.__init__)
    def __init__(self, *working_dir: Any, **parts: Any) -> None:
        twin = AsyncLightRAG(*working_dir, **parts)
        super().__init__(twin, _Loop(twin._store.location))
        self.working_dir, self._store = twin.working_dir, twin._store
        self.entities = Entities(twin.entities, self._loop)
        self.traces = Traces(twin.traces, self._loop)
        self.admin = Admin(twin.admin, self._loop)

    def __repr__(self) -> str:
        return f"LightRAG({str(self.working_dir)!r})"

    insert = blocking(AsyncLightRAG.insert)
    insert_records = blocking(AsyncLightRAG.insert_records)
    resume = blocking(AsyncLightRAG.resume)
    retry = blocking(AsyncLightRAG.retry)
    delete = blocking(AsyncLightRAG.delete)
    merge_from = blocking(AsyncLightRAG.merge_from)
    split = blocking(AsyncLightRAG.split)
    status = blocking(AsyncLightRAG.status)
    documents = blocking(AsyncLightRAG.documents)
    pages = blocking(AsyncLightRAG.pages)
    rejections = blocking(AsyncLightRAG.rejections)
    query = blocking(AsyncLightRAG.query)
    retrieve = blocking(AsyncLightRAG.retrieve)
    stream = _streaming(AsyncLightRAG.stream)

    def run(
        self,
        function: Callable[Concatenate[AsyncLightRAG, P], Awaitable[Result]],
        *args: P.args,
        **more: P.kwargs,
    ) -> Result:
        """The result of an async function of an index, such as those of `lightrag_jsonl.tools`."""
        return self._loop.run(function, self._twin, *args, **more)

    @property
    def graph(self) -> "nx.Graph":
        """A read-only networkx view: nodes by entity name, with all their attributes."""
        return self._twin.graph

    def close(self) -> None:
        """Close the index; further calls raise `StorageError`."""
        self._loop.close(self._twin.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
