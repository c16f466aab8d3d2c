"""The application: the tables of routes, the static files of the page, health and metrics."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from lightrag_jsonl import __version__
from lightrag_jsonl.server.agents import answer_agent, protocol_app
from lightrag_jsonl.server.dify_api import DIFY_ROUTES
from lightrag_jsonl.server.indexes import Index, Indexes
from lightrag_jsonl.server.metrics import METRICS_MEDIA
from lightrag_jsonl.server.ollama_api import OLLAMA_ROUTES
from lightrag_jsonl.server.openai_api import OPENAI_ROUTES
from lightrag_jsonl.server.openapi import describe
from lightrag_jsonl.server.rest import REST_ROUTES
from lightrag_jsonl.server.routing import Call, Route, crash, http_error, starlette_route
from lightrag_jsonl.server.security import LOOPBACK, Access, Guard
from lightrag_jsonl.storage.rows import Counts
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.tracing.page import source_hashes

STATIC: Final = Path(__file__).with_name("static")
STYLE_HASH, SCRIPT_HASH = source_hashes()  # of the trace page, which the page opens as a blob
PAGE_POLICY: Final = (
    f"default-src 'self'; style-src 'self' '{STYLE_HASH}'; script-src 'self' '{SCRIPT_HASH}'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def get_health(call: Call) -> dict[str, str]:
    """Whether the server answers."""
    return {"status": "ok", "version": __version__}


async def get_metrics(call: Call) -> Response:
    """Counters and sizes, for Prometheus."""
    indexes = call.indexes
    sizes: dict[str, Counts] = {}
    jobs: dict[str, dict[str, int]] = {}
    for name, index in indexes.by_name.items():
        sizes[name] = await read(index.rag.engine.store, lambda view: view.counts())
        jobs[name] = await index.jobs.states()
    text = indexes.metrics.render(sizes, jobs, indexes.in_flight)
    return PlainTextResponse(text, media_type=METRICS_MEDIA)


async def get_openapi(call: Call) -> dict[str, Any]:
    """The description of this server in the words of OpenAPI."""
    return describe(ROUTES, __version__, list(call.indexes.by_name))


SERVER_ROUTES: Final = (
    Route("GET", "/health", get_health, result=dict[str, str]),
    Route("GET", "/metrics", get_metrics, media="text/plain"),
    Route("GET", "/openapi.json", get_openapi, result=dict[str, Any]),
)
AGENT_ROUTE: Final = Route("POST", "/mcp/{index}", answer_agent, body=dict[str, Any])
ROUTES: Final[Sequence[Route]] = (
    SERVER_ROUTES + REST_ROUTES + OPENAI_ROUTES + OLLAMA_ROUTES + DIFY_ROUTES
)


class PageFiles(StaticFiles):
    """The files of the page, with headers that forbid to load anything else."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        response.headers["Cache-Control"] = "no-cache"
        return response


def create_app(indexes: Indexes, access: Access, *, static: Path = STATIC) -> Starlette:
    """The application for open indexes; at the end of its lifespan the indexes are closed."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        workers = [asyncio.create_task(index.jobs.run()) for index in indexes.by_name.values()]
        async with contextlib.AsyncExitStack() as stack:
            hosts = [*LOOPBACK, access.host, *access.hosts]
            for index in indexes.by_name.values():
                await stack.enter_async_context(_agents(index, hosts))
            try:
                yield
            finally:
                await _close_all(indexes, workers)

    routes: list[BaseRoute] = [starlette_route(route, indexes) for route in (*ROUTES, AGENT_ROUTE)]
    routes.append(Mount("/", PageFiles(directory=static, html=True)))
    indexes.is_personal = access.is_personal
    files = [f"/{path.relative_to(static).as_posix()}" for path in static.rglob("*")]
    access = replace(access, public=("/", "/health", *files))
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, access=access, metrics=indexes.metrics)],
        exception_handlers={HTTPException: http_error, Exception: crash},
    )


@contextlib.asynccontextmanager
async def _agents(index: Index, hosts: list[str]) -> AsyncIterator[None]:
    """The lifespan of the agents' application of an index, if the extra `mcp` is installed."""
    index.agents = protocol_app(index, hosts)
    if index.agents is None:
        yield
        return
    async with index.agents.router.lifespan_context(index.agents):
        yield


async def _close_all(indexes: Indexes, workers: Sequence[asyncio.Task[None]]) -> None:
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    for index in indexes.by_name.values():
        await index.close()
