"""LightRAG: the methods of AsyncLightRAG without await, on an event loop of its own."""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from lightrag_jsonl.core.errors import StorageError
from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import (
    LLM,
    Answerer,
    Embedder,
    Extractor,
    KeywordExtractor,
    Reranker,
    Tokenizer,
)
from lightrag_jsonl.core.types import Answer
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.rag import namespaces
from lightrag_jsonl.rag.asynchronous import AsyncAnswerStream, AsyncLightRAG

if TYPE_CHECKING:
    import networkx as nx

P = ParamSpec("P")
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Loop:
    """A private event loop in a thread, which ends when it is closed or no longer referenced."""

    def __init__(self, location: Path) -> None:
        self._location = location
        context = start_blocking_portal()
        self._portal: BlockingPortal | None = context.__enter__()
        self._end = weakref.finalize(self, context.__exit__, None, None, None)

    @property
    def is_open(self) -> bool:
        """Whether calls can run."""
        return self._portal is not None

    def run(
        self, function: Callable[P, Awaitable[Result]], *args: P.args, **more: P.kwargs
    ) -> Result:
        """The result of an async function; an interrupt (Ctrl-C) cancels it first."""
        if self._portal is None:
            raise StorageError(f"{self._location} is closed", path=self._location)
        future = self._portal.start_task_soon(lambda: function(*args, **more))
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                self._portal.call(_nothing)
            raise

    def iterate(self, items: AsyncGenerator[Item] | AsyncAnswerStream) -> Generator[Item]:
        """The items of an async iterator, which is closed if this one is left early."""
        try:
            while True:
                try:
                    yield self.run(items.__anext__)  # type: ignore[misc]
                except StopAsyncIteration:
                    return
        finally:
            if self._portal is not None:
                self.run(items.aclose)

    def close(self) -> None:
        """End the loop and its thread; closing twice is no error."""
        self._portal = None
        self._end()


async def _nothing() -> None:
    """Gives a cancelled task the time to end."""


class _Blocking:
    """What has an async twin, whose methods it offers without await."""

    _twin: Any
    _loop: _Loop


Twin = TypeVar("Twin")
Own = TypeVar("Own", bound=_Blocking)


def blocking(
    method: Callable[Concatenate[Twin, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, P], Result]:
    """The method without await."""

    def call(self: _Blocking, *args: P.args, **more: P.kwargs) -> Result:
        return self._loop.run(method, self._twin, *args, **more)

    return cast("Callable[Concatenate[Any, P], Result]", update_wrapper(call, method))


class Entities(_Blocking):
    """The entities of the graph, by name, and which names are one entity."""

    def __init__(self, twin: namespaces.Entities, loop: _Loop) -> None:
        self._twin, self._loop = twin, loop

    get = blocking(namespaces.Entities.get)
    list = blocking(namespaces.Entities.list)
    neighbours = blocking(namespaces.Entities.neighbours)
    merge = blocking(namespaces.Entities.merge)
    unmerge = blocking(namespaces.Entities.unmerge)
    duplicates = blocking(namespaces.Entities.duplicates)


class Traces(_Blocking):
    """The recorded queries: how each answer came about."""

    def __init__(self, twin: namespaces.Traces, loop: _Loop) -> None:
        self._twin, self._loop = twin, loop

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

    def __init__(self, twin: namespaces.Admin, loop: _Loop) -> None:
        self._twin, self._loop = twin, loop

    rebuild = blocking(namespaces.Admin.rebuild)
    reembed = blocking(namespaces.Admin.reembed)
    summarize = blocking(namespaces.Admin.summarize)
    vacuum = blocking(namespaces.Admin.vacuum)
    cache = blocking(namespaces.Admin.cache)
    clear_cache = blocking(namespaces.Admin.clear_cache)
    settings = blocking(namespaces.Admin.settings)
    check = blocking(namespaces.Admin.check)
    records = blocking(namespaces.Admin.records)


class AnswerStream:
    """The pieces of an answer; after the last one, `.answer` holds it complete."""

    def __init__(self, stream: AsyncAnswerStream, loop: _Loop) -> None:
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
        """What was paid so far."""
        return self._stream.usage


def _iterating(
    method: Callable[Concatenate[AsyncLightRAG, P], AsyncGenerator[Item]],
) -> Callable[Concatenate[Any, P], Generator[Item]]:
    """An async iterator's method without await."""

    def iterate(self: _Blocking, *args: P.args, **more: P.kwargs) -> Generator[Item]:
        return self._loop.iterate(method(self._twin, *args, **more))

    return cast("Callable[Concatenate[Any, P], Generator[Item]]", update_wrapper(iterate, method))


def _streaming(
    method: Callable[Concatenate[AsyncLightRAG, P], AsyncAnswerStream],
) -> Callable[Concatenate[Any, P], AnswerStream]:
    """`stream` without await."""

    def stream(self: _Blocking, *args: P.args, **more: P.kwargs) -> AnswerStream:
        return AnswerStream(method(self._twin, *args, **more), self._loop)

    return cast("Callable[Concatenate[Any, P], AnswerStream]", update_wrapper(stream, method))


class LightRAG(_Blocking):
    """A knowledge graph over texts, kept in one folder, and answers from it; safe from any thread.

    The arguments are those of `AsyncLightRAG`. Works in scripts, notebooks and inside a running
    event loop: calls run on a private event loop in a thread, which ends with `close()` or the
    `with` block.
    """

    def __init__(
        self,
        working_dir: str | Path,
        *,
        llm: LLM | Callable[..., object] | None = None,
        embedder: Embedder | Callable[..., object] | None = None,
        tokenizer: Tokenizer | None = None,
        reranker: Reranker | None = None,
        language: str = "en",
        options: IndexOptions | None = None,
        prompts: PromptManager | Path | str | None = None,
        extractor: Extractor | None = None,
        keyword_extractor: KeywordExtractor | None = None,
        answerer: Answerer | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        self._twin: AsyncLightRAG = AsyncLightRAG(**given)
        self.working_dir = self._twin.working_dir
        self._loop = _Loop(self.working_dir)
        self.entities = Entities(self._twin.entities, self._loop)
        self.traces = Traces(self._twin.traces, self._loop)
        self.admin = Admin(self._twin.admin, self._loop)

    def __repr__(self) -> str:
        return f"LightRAG({str(self.working_dir)!r})"

    insert = blocking(AsyncLightRAG.insert)
    insert_records = blocking(AsyncLightRAG.insert_records)
    resume = blocking(AsyncLightRAG.resume)
    retry = blocking(AsyncLightRAG.retry)
    delete = blocking(AsyncLightRAG.delete)
    status = blocking(AsyncLightRAG.status)
    documents = blocking(AsyncLightRAG.documents)
    pages = blocking(AsyncLightRAG.pages)
    rejections = blocking(AsyncLightRAG.rejections)
    query = blocking(AsyncLightRAG.query)
    retrieve = blocking(AsyncLightRAG.retrieve)
    extract = blocking(AsyncLightRAG.extract)

    stream = _streaming(AsyncLightRAG.stream)
    events = _iterating(AsyncLightRAG.events)

    def run(
        self,
        function: Callable[Concatenate[AsyncLightRAG, P], Awaitable[Result]],
        *args: P.args,
        **more: P.kwargs,
    ) -> Result:
        """The result of an async function of an index, such as those of `lightrag_jsonl.tools`."""
        return self._loop.run(function, self._twin, *args, **more)

    @property
    def graph(self) -> nx.Graph:
        """A read-only networkx view: nodes by entity name, with all their attributes."""
        return self._twin.graph

    def close(self) -> None:
        """Close the index; further calls raise `StorageError`."""
        if self._loop.is_open:
            self._loop.run(self._twin.close)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
