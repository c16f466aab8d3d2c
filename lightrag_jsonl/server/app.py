"""The application: the tables of routes, the static files of the page, health and metrics."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
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
from lightrag_jsonl.server import agents, ollama_api, openai_api, openapi, rest
from lightrag_jsonl.server.indexes import Indexes
from lightrag_jsonl.server.metrics import Labels, labels
from lightrag_jsonl.server.routing import Call, Route, crash, http_error, starlette_route
from lightrag_jsonl.server.security import LOOPBACK, Access, Guard
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.tracing.page import source_hashes

STATIC: Final = Path(__file__).with_name("static")
STYLE_HASH, SCRIPT_HASH = source_hashes()  # of the trace page, which the page opens as a blob
PAGE_POLICY: Final = (
    f"default-src 'self'; style-src 'self' '{STYLE_HASH}'; script-src 'self' '{SCRIPT_HASH}'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

log = logging.getLogger(__name__)


async def health(call: Call) -> dict[str, str]:
    """Whether the server answers."""
    return {"status": "ok", "version": __version__}


async def metrics(call: Call) -> Response:
    """What was counted, for Prometheus."""
    gauges = [("questions_in_flight", labels(), float(call.indexes.in_flight))]
    for index in call.indexes.by_name.values():
        counts = await read(index.rag.engine.store, lambda view: view.counts())
        gauges += _states("jobs", index.name, Counter(job.state for job in index.jobs.newest()))
        gauges += _states("documents", index.name, counts.documents)
        for name in ("chunks", "entities", "relations"):
            gauges.append((name, labels(index=index.name), float(getattr(counts, name))))
    text = call.indexes.metrics.render(gauges)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _states(name: str, index: str, counts: Any) -> Iterator[tuple[str, Labels, float]]:
    for state, count in sorted(counts.items()):
        yield name, labels(index=index, state=state), float(count)


async def description(call: Call) -> dict[str, Any]:
    """What this server answers, in the words of OpenAPI."""
    return openapi.describe(ROUTES, __version__, list(call.indexes.by_name))


OWN: Final = (
    Route("GET", "/health", health, result=dict[str, str]),
    Route("GET", "/metrics", metrics, media="text/plain"),
    Route("GET", "/openapi.json", description, result=dict[str, Any]),
)
AGENTS: Final = Route("POST", "/mcp/{index}", agents.respond, body=dict[str, Any])
ROUTES: Final[Sequence[Route]] = (*OWN, *rest.ROUTES, *openai_api.ROUTES, *ollama_api.ROUTES)


class _Page(StaticFiles):
    """The files of the page, which may load only each other."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        response.headers["Cache-Control"] = "no-cache"
        return response


def create_app(indexes: Indexes, access: Access, *, static: Path = STATIC) -> Starlette:
    """The application for indexes that are open; they are closed when it ends."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        workers = [asyncio.create_task(one.jobs.run()) for one in indexes.by_name.values()]
        async with contextlib.AsyncExitStack() as stack:
            for index in indexes.by_name.values():
                index.agents = agents.protocol_app(index, [*LOOPBACK, access.host, *access.hosts])
                if index.agents is not None:
                    lifespan_of_agents = index.agents.router.lifespan_context(index.agents)
                    await stack.enter_async_context(lifespan_of_agents)
            try:
                yield
            finally:
                for task in workers:
                    task.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                for index in indexes.by_name.values():
                    await index.close()

    routes: list[BaseRoute] = [starlette_route(route, indexes) for route in ROUTES]
    files = [f"/{path.relative_to(static).as_posix()}" for path in static.rglob("*")]
    routes.append(starlette_route(AGENTS, indexes))
    routes.append(Mount("/", _Page(directory=static, html=True)))
    access = replace(access, public=("/", "/health", *files))
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Guard, access=access, metrics=indexes.metrics)],
        exception_handlers={HTTPException: http_error, Exception: crash},
    )
