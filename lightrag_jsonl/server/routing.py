"""From a table of routes to an application: reads requests, checks them, and writes responses."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route as StarletteRoute
from starlette.types import Receive, Scope, Send

from lightrag_jsonl.core import errors
from lightrag_jsonl.server.indexes import Busy, Index, Indexes

Result = TypeVar("Result")

PIECE_SECONDS: Final = 30  # the longest pause of a client that sends a body
SLOWEST: Final = 1_000  # bytes a second that it must send on average
STATUS: Final[dict[type[Exception], tuple[int, str]]] = {
    Busy: (429, "busy"),
    errors.NotFoundError: (404, "not_found"),
    errors.SettingsError: (409, "settings"),
    errors.LockedError: (503, "locked"),
    errors.ConfigError: (400, "invalid"),
    errors.BudgetError: (503, "budget"),
    errors.LLMError: (502, "model"),
    errors.EmbeddingError: (502, "embedder"),
    errors.LightRAGError: (500, "index"),
}

log = logging.getLogger(__name__)


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True)
class Call:
    """A request that was checked: `params` from the URL's query and `body` from its JSON."""

    request: Request
    indexes: Indexes
    params: Any
    body: Any

    @property
    def index(self) -> Index:
        """The index that the path names."""
        return self.indexes.get(self.request.path_params["index"])


@dataclass(frozen=True)
class Route:
    """One row of the table, from which the application and its description are made.

    `run` returns a value, which becomes JSON, or a response. `body` is the type of the JSON that
    is posted, or bytes, which `run` reads itself. `result` is the type of a response of JSON.
    """

    method: str
    path: str
    run: Callable[[Call], Awaitable[object]]
    params: type[msgspec.Struct] = Nothing
    body: type | None = None
    result: Any = None
    media: str = "application/json"
    status: int = 200
    other_media: str = ""  # of a response in pieces, where the request may ask for one
    large: bool = False  # whether the JSON may be as large as an upload


class Stream(StreamingResponse):
    """A response in pieces; when it has ended, or the client has left, `slot` is given back."""

    def __init__(self, pieces: AsyncGenerator[str], media: str, slot: contextlib.ExitStack) -> None:
        super().__init__(pieces, media_type=media)
        self._pieces, self._slot = pieces, slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            async with contextlib.aclosing(self._pieces):
                await super().__call__(scope, receive, send)


def error_body(code: str, message: str) -> dict[str, dict[str, str]]:
    """An error as REST and OpenAI's protocol write it."""
    return {"error": {"code": code, "message": message, "type": code}}


def error_response(
    request: Request, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """An error in the request's protocol; Ollama's writes the message alone."""
    is_ollama = request.url.path.startswith("/api/")
    body = {"error": message} if is_ollama else error_body(code, message)
    return JSONResponse(body, status, headers)


def described(error: Exception, indexes: Indexes) -> tuple[int, str, str]:
    """The status, code and message of an error of ours, without the folders of this machine."""
    status, code = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    message = str(error)
    for index in indexes.by_name.values():
        message = message.replace(str(index.folder), index.name)
    return status, code, message


def http_error(request: Request, error: Exception) -> Response:
    """The response to a request that no route takes, or that is wrong in its form."""
    assert isinstance(error, HTTPException)
    routes = [one for one in request.app.routes if isinstance(one, StarletteRoute)]
    known = [one for one in routes if one.path_regex.match(request.scope["path"])]
    methods = sorted({method for one in known for method in one.methods or ()})
    if request.method not in methods:  # the page has refused it, which takes all other paths
        allowed = {"Allow": ", ".join(methods)}
        error = HTTPException(405, headers=allowed) if methods else HTTPException(404)
    codes = {404: "not_found", 405: "method", 413: "too_large", 415: "media_type"}
    code = codes.get(error.status_code, "invalid")
    return error_response(request, error.status_code, code, error.detail, error.headers)


def crash(request: Request, error: Exception) -> Response:
    """The response to a request that failed for a mistake of ours, whose traceback is logged."""
    closed = {"Connection": "close"}  # uvicorn closes it, so that no client may use it again
    return error_response(request, 500, "internal", "internal error: see the server's log", closed)


def starlette_route(route: Route, indexes: Indexes) -> StarletteRoute:
    """The row as Starlette has it."""

    async def endpoint(request: Request) -> Response:
        started, response = time.perf_counter(), Response(status_code=500)
        try:
            response = await _respond(route, request, indexes)
        except HTTPException as error:
            response = http_error(request, error)
        except (errors.LightRAGError, Busy) as error:
            status, code, words = described(error, indexes)
            if status >= 500:
                log.warning("%s: %s", route.path, words)
            wait = {"Retry-After": str(error.seconds)} if isinstance(error, Busy) else None
            response = error_response(request, status, code, words, wait)
        finally:
            count, row = indexes.metrics, f"{route.method} {route.path}"
            count.observe(time.perf_counter() - started, route=row)
            count.count("requests_total", route=row, status=response.status_code)
        return response

    return StarletteRoute(route.path, endpoint, methods=[route.method])


async def _respond(route: Route, request: Request, indexes: Indexes) -> Response:
    given = {key: request.query_params.getlist(key) for key in request.query_params}
    flat = {key: found[0] if len(found) == 1 else found for key, found in given.items()}
    params, body = _checked(flat, route.params, strict=False), None
    if route.body not in (None, bytes):
        limit = indexes.limits.upload if route.large else indexes.limits.body
        body = _checked(await _read_json(request, limit), route.body)
    work = route.run(Call(request, indexes, params, body))
    done = await (work if route.body is bytes else unless_left(request, work))
    if isinstance(done, Response):
        return done
    content = msgspec.json.encode(done, enc_hook=str)
    return Response(content, route.status, media_type="application/json")


def _checked(value: object, kind: Any, *, strict: bool = True) -> Any:
    try:
        return msgspec.convert(value, kind, strict=strict)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, str(error)) from error


async def _read_json(request: Request, limit: int) -> object:
    check_media_type(request, "application/json")
    content = b"".join([piece async for piece in read_body(request, limit)])
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"invalid JSON in the body: {error}") from error


def check_media_type(request: Request, wanted: str) -> None:
    """415 for a body of another type, such as those that forms of other sites can send."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != wanted:
        raise HTTPException(415, f"send the body as Content-Type: {wanted}")


async def read_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body in pieces; 413 as soon as it is too large, 408 if the client stops sending, or sends
    too slowly.
    """
    size = 0
    started = time.monotonic()
    too_large = HTTPException(413, f"the body has more than {limit:,} bytes")
    if int(request.headers.get("content-length", 0)) > limit:
        raise too_large
    pieces = aiter(request.stream())
    try:
        while True:
            piece = await asyncio.wait_for(anext(pieces), PIECE_SECONDS)
            size += len(piece)
            if size > limit:
                raise too_large
            if time.monotonic() - started > PIECE_SECONDS + size / SLOWEST:
                raise TimeoutError
            yield piece
    except StopAsyncIteration:
        return
    except TimeoutError as error:
        raise HTTPException(408, "the body is incomplete") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "the client disconnected") from error


async def unless_left(request: Request, work: Awaitable[Result]) -> Result:
    """The result of `work`, which is cancelled if the client leaves first."""
    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request.receive))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(499, "the client disconnected")
    finally:
        leaving.cancel()
        task.cancel()
        await asyncio.wait([task, leaving])


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
