"""Routes: the rows of the tables, the checks of requests, and responses."""

import asyncio
import contextlib
import logging
import re
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
from lightrag_jsonl.server.indexes import Index, Indexes
from lightrag_jsonl.server.jobs import Busy
from lightrag_jsonl.server.messages import without_folders

HandlerResult = TypeVar("HandlerResult")

# No page of another site can send these without being asked about it; some clients of Ollama send the second.
JSON_MEDIA: Final = ("application/json", "application/octet-stream")
HALF_CHARACTER: Final = "a text ends within a character: a surrogate without the other half"
PIECE_SECONDS: Final = 30  # the longest pause of a client that sends a body
SLOWEST: Final = 1_000  # bytes a second, on average, that a client must send
STATUS_BY_ERROR: Final[dict[type[Exception], tuple[int, str]]] = {
    Busy: (429, "busy"),
    errors.NotFoundError: (404, "not_found"),
    errors.SettingsError: (409, "settings"),
    errors.LockedError: (503, "locked"),
    errors.UnavailableError: (503, "unavailable"),
    errors.TimedOutError: (503, "unavailable"),
    errors.ConfigError: (400, "invalid"),
    errors.BudgetError: (503, "budget"),
    errors.LLMError: (502, "model"),
    errors.EmbeddingError: (502, "embedder"),
    errors.LightRAGError: (500, "index"),
}
DIFY_PATH: Final = "/retrieval"
DIFY_CODES: Final = {401: 1002, 403: 1002, 404: 2001}  # no permission, no such knowledge
CODES_BY_STATUS: Final = {404: "not_found", 405: "method", 413: "too_large", 415: "media_type"}

log = logging.getLogger(__name__)


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True)
class Call:
    """A checked request: `params` from the query of the URL, and the JSON `body`."""

    request: Request
    indexes: Indexes
    params: Any
    body: Any

    @property
    def index(self) -> Index:
        """The index named by the path."""
        return self.indexes.get(self.request.path_params["index"])


@dataclass(frozen=True)
class Route:
    """A row of the tables behind the application and the OpenAPI description.

    `run` returns a response, or a value for a response of JSON; `result` is the type of the value.
    `body` is the type of the posted JSON, or bytes, read by `run`.
    """

    method: str
    path: str
    run: Callable[[Call], Awaitable[object]]
    params: type[msgspec.Struct] = Nothing
    body: type | None = None
    result: Any = None
    media: str = "application/json"
    status: int = 200
    other_media: str = ""  # of a response in pieces, for routes where the request chooses
    large: bool = False  # whether the JSON may be as large as an upload; then `run` reads it
    weight: int = (
        0  # the share of `ServerLimits.heavy` that a request takes, if it reads the whole index
    )


class Stream(StreamingResponse):
    """A response in pieces; `slot` is released at the end, or when the client leaves."""

    def __init__(self, pieces: AsyncGenerator[str], media: str, slot: contextlib.ExitStack) -> None:
        super().__init__(pieces, media_type=media)
        self._pieces = pieces
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            async with contextlib.aclosing(self._pieces):
                await super().__call__(scope, receive, send)


def error_body(code: str, message: str) -> dict[str, dict[str, str]]:
    """The body of an error in REST and in OpenAI's protocol."""
    return {"error": {"code": code, "message": message, "type": code}}


def error_response(
    request: Request,
    status: int,
    *,
    code: str,
    message: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error in the protocol of the request: REST and OpenAI's, Ollama's or Dify's."""
    path = request.url.path
    body: object = error_body(code, message)
    if path.startswith("/api/"):
        body = {"error": message}
    elif path == DIFY_PATH:
        body = {"error_code": DIFY_CODES.get(status, status), "error_msg": message}
    return JSONResponse(body, status, headers)


def error_status(error: Exception) -> tuple[int, str]:
    """The status and the code of an error of the package."""
    return next(STATUS_BY_ERROR[kind] for kind in type(error).__mro__ if kind in STATUS_BY_ERROR)


def error_message(error: Exception, indexes: Indexes) -> str:
    """The message of an error, without folders of the server's machine."""
    message = str(error)
    for index in indexes.by_name.values():
        message = without_folders(message, index.address)
    return message


def http_error(request: Request, error: Exception) -> Response:
    """The response to a request without a route, or of a wrong form."""
    assert isinstance(error, HTTPException)
    methods = _methods_of(request)
    if not methods:
        error = HTTPException(404)
    elif request.method not in methods:  # the page, which is mounted at /, has refused the request
        error = HTTPException(405, headers={"Allow": ", ".join(methods)})
    return error_response(
        request,
        error.status_code,
        code=CODES_BY_STATUS.get(error.status_code, "invalid"),
        message=error.detail,
        headers=error.headers,
    )


def _methods_of(request: Request) -> list[str]:
    """The methods of the routes at the path of a request."""
    path = request.scope["path"]
    routes = [route for route in request.app.routes if isinstance(route, StarletteRoute)]
    return sorted(
        {
            method
            for route in routes
            if route.path_regex.match(path)
            for method in route.methods or ()
        }
    )


def crash(request: Request, error: Exception) -> Response:
    """The response to a request with a crash; the traceback is in the log."""
    return error_response(
        request,
        500,
        code="internal",
        message="internal error: see the server's log",
        headers={"Connection": "close"},  # since uvicorn closes the connection
    )


def starlette_route(route: Route, indexes: Indexes) -> StarletteRoute:
    """The row of the table as a route of Starlette."""

    async def endpoint(request: Request) -> Response:
        started_at = time.perf_counter()
        status = 500
        try:
            response = await _response(route, request, indexes)
            status = response.status_code
        finally:
            seconds = time.perf_counter() - started_at
            indexes.metrics.count_request(f"{route.method} {route.path}", status, seconds)
        return response

    return StarletteRoute(route.path, endpoint, methods=[route.method])


async def _response(route: Route, request: Request, indexes: Indexes) -> Response:
    """The response to a request; expected errors are responses, too."""
    try:
        return await _run_handler(route, request, indexes)
    except HTTPException as error:
        return http_error(request, error)
    except (errors.LightRAGError, Busy) as error:
        status, code = error_status(error)
        message = error_message(error, indexes)
        if status >= 500:
            log.warning("%s: %s", route.path, message)
        return error_response(
            request,
            status,
            code=code,
            message=message,
            headers={"Retry-After": str(error.seconds)} if isinstance(error, Busy) else None,
        )


async def _run_handler(route: Route, request: Request, indexes: Indexes) -> Response:
    """Check a request, run its handler, and make a response of the result."""
    values: dict[str, str | list[str]] = {}
    for key in request.query_params:
        texts = request.query_params.getlist(key)
        values[key] = texts[0] if len(texts) == 1 else texts
    params = _checked(values, route.params, strict=False)
    body = None
    reads_body = route.body is bytes or route.large
    if route.body is not None and not reads_body:
        body = _checked(await _read_json(request, indexes.limits.body), route.body)
    work = route.run(Call(request=request, indexes=indexes, params=params, body=body))
    if route.weight:
        work = indexes.heavy_work(work, route.weight)
    if reads_body:  # the handler reads from the client, and notices when it leaves
        result = await work
    else:
        result = await unless_left(request, work)
    if isinstance(result, Response):
        return result
    content = msgspec.json.encode(result, enc_hook=str)
    return Response(content, route.status, media_type="application/json")


def _checked(value: object, kind: Any, *, strict: bool = True) -> Any:
    try:
        return msgspec.convert(value, kind, strict=strict)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, str(error)) from error


# The first half of a character, written as an escape sequence, without the second one.
_SURROGATE_ALONE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")


async def _read_json(request: Request, limit: int) -> object:
    check_media_type(request, *JSON_MEDIA)
    content = b"".join([piece async for piece in read_body(request, limit)])
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        reason = HALF_CHARACTER if _SURROGATE_ALONE.search(content) else error
        raise HTTPException(400, f"invalid JSON in the body: {reason}") from error


def check_media_type(request: Request, *media_types: str) -> None:
    """415 for a body of another type, such as a form, since a page of another site could send a form."""
    sent_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent_type not in media_types:
        raise HTTPException(415, f"send the body as Content-Type: {media_types[0]}")


async def read_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body in pieces; 413 for a body above the limit, 408 for a stopped or slow client."""
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


async def unless_left(request: Request, work: Awaitable[HandlerResult]) -> HandlerResult:
    """The result of `work`; the work is cancelled if the client leaves first."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_until_left(request.receive))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(499, "the client disconnected")
    finally:
        leaving.cancel()
        task.cancel()
        await asyncio.wait([task, leaving])


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
