"""One OpenAI-compatible endpoint: a client for each event loop, and requests through it."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import json
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from lightrag_jsonl.adapters.faults import (
    LONGEST_ASKED,
    NO_UTF8,
    EndpointError,
    cause,
    detail,
    explain,
    failures,
    is_unheard,
    pause,
    redact,
    set_up_failures,
)
from lightrag_jsonl.errors import FREE, ConfigError
from lightrag_jsonl.types import Json, Usage

if TYPE_CHECKING:
    import openai
    from openai._types import RequestOptions

JsonObject: TypeAlias = dict[str, Json]
Made = TypeVar("Made")
_Session: TypeAlias = "tuple[openai.AsyncOpenAI, AsyncGenerator[None, None]]"

OPENAI_HOST = "api.openai.com"
NO_KEY = "no-key"  # sent to a user's own server if no key was given
TRICKLE = 10  # times `timeout`: the longest time for an answer that arrives bit by bit

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Lost:
    """Requests of one call that were sent again because their answers were lost; each may be billed."""

    count: int = 0

    @property
    def cost(self) -> Usage:
        """One call each."""
        return Usage(calls=self.count)


class Endpoint:
    """Where to send requests, and with which key.

    The constructor reads no environment and opens nothing. A client is made for each event loop at
    its first request and closed with that loop; the SDK then reads `OPENAI_API_KEY` and
    `OPENAI_BASE_URL` if no key or URL was given. `timeout` is how many seconds a server may be
    silent; a whole answer may take about ten times as long. After lost connections and statuses
    408, 409, 425, 429 and 5xx a request is sent again up to `max_retries` times, waiting as long as
    `Retry-After` says (if that is more than two minutes, it is not sent again).

    Requests raise `EndpointError`, or `ConfigError` if there is no key or the environment's proxies
    or certificates cannot be used. The constructor raises `ConfigError` for an invalid URL.
    """

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        max_retries: int,
        extra_headers: Mapping[str, str] | None,
        client: openai.AsyncOpenAI | None,
    ) -> None:
        check_url(base_url)
        self._base_url = base_url
        self._api_key = NO_KEY if api_key is None and is_own(base_url) else api_key
        self._timeout = timeout
        self._max_retries = max_retries
        self._headers = dict(extra_headers or {})
        self._given = client
        self._lock = threading.Lock()
        self._sessions: dict[asyncio.AbstractEventLoop, _Session] = {}

    @property
    def host(self) -> str:
        """The server's name and port, for error messages."""
        url = self._base_url if self._given is None else str(self._given.base_url)
        parts = urlsplit(url or "")
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname}{port}" if parts.hostname else OPENAI_HOST

    async def post(self, path: str, body: JsonObject, lost: Lost | None = None) -> JsonObject:
        """The answer to `body`, a JSON object; `lost` counts what was sent again unheard."""
        client = await self._client()
        with self._explaining(client):
            async with self._limited():
                content = await self._sent(
                    client,
                    lambda: client.post(path, cast_to=bytes, body=body, options=self._once()),
                    lost,
                )
        return self._object(content)

    def post_blocking(self, path: str, body: JsonObject) -> JsonObject:
        """Like `post`, on the calling thread."""
        if self._given is not None:
            raise ConfigError("a client given as client= can only be used from an event loop")
        with self._blocking_client() as client, self._explaining(client):
            content = client.post(path, cast_to=bytes, body=body, options=self._options())
        return self._object(content)

    async def get(self, path: str, *, timeout: float) -> JsonObject:
        """The response at `path`, requested once, waiting at most `timeout` seconds."""
        client = await self._client()
        options: RequestOptions = {**self._once(), "timeout": timeout}
        with self._explaining(client):
            content = await client.get(path, cast_to=bytes, options=options)
        return self._object(content)

    async def stream(
        self, path: str, body: JsonObject, lost: Lost | None = None
    ) -> AsyncGenerator[JsonObject, None]:
        """The events of an answer as they come; the connection is freed when the iteration ends.

        `lost` counts requests that were sent again, before the first event, because they got lost.
        """
        client = await self._client()
        with self._explaining(client):
            async with aclosing(self._events(client, path, body, lost)) as events:
                while (event := await self._next(events)) is not None:
                    yield event

    async def _next(self, events: AsyncGenerator[JsonObject, None]) -> JsonObject | None:
        async with self._limited():
            return await anext(events, None)

    async def _events(
        self, client: openai.AsyncOpenAI, path: str, body: JsonObject, lost: Lost | None
    ) -> AsyncGenerator[JsonObject, None]:
        """The events of an answer, or the whole answer if the server does not stream."""
        from openai import AsyncStream

        def send() -> Awaitable[openai.AsyncStream[object]]:
            return client.post(
                path,
                cast_to=object,
                body={**body, "stream": True},
                options=self._once(),
                stream=True,
                stream_cls=AsyncStream[object],
            )

        events = await self._sent(client, send, lost)
        async with events:
            if not await _is_streamed(events.response):
                yield self._object(events.response.content)
                return
            async for event in events:
                if isinstance(event, dict):
                    yield event

    async def _sent(
        self, client: openai.AsyncOpenAI, send: Callable[[], Awaitable[Made]], lost: Lost | None
    ) -> Made:
        """What a request brings, which is sent again where that may help."""
        for sent in itertools.count(1):
            try:
                return await send()
            except failures() as error:
                wait = pause(error, sent)
                if wait is None or sent > client.max_retries:
                    raise
                if lost is not None:
                    lost.count += is_unheard(error)
                log.debug("%s: %s; again in %.3f s", self.host, type(error).__name__, wait)
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    def unusable(
        self,
        problem: str,
        *,
        transient: bool = False,
        unheard: bool = False,
        cost: Usage = FREE,
    ) -> EndpointError:
        """The error for an answer that arrived and cannot be used."""
        told = f"{self.host}: {redact(problem, self._secrets(self._api_key))}"
        return EndpointError(told, transient=transient, unheard=unheard, cost=cost)

    async def _client(self) -> openai.AsyncOpenAI:
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            session = await self._open()
            with self._lock:
                for ended in [known for known in self._sessions if known.is_closed()]:
                    del self._sessions[ended]
                self._sessions[loop] = session
        return self._sessions[loop][0]

    async def _open(self) -> _Session:
        """A new client, closed when the running loop shuts down its async generators."""
        import openai

        # The SDK's default client would close itself in __del__, on whichever loop runs then.
        transport = self._transport(openai.DefaultAsyncHttpxClient)
        client = self._made(openai.AsyncOpenAI, transport)

        async def keep_headers(request: Any) -> None:
            self._keep_headers(request, client.base_url)

        transport.event_hooks = {"request": [keep_headers]}
        guard = _closing(client)
        await anext(guard)
        return client, guard

    def _blocking_client(self) -> openai.OpenAI:
        import openai

        transport = self._transport(openai.DefaultHttpxClient)
        client = self._made(openai.OpenAI, transport)
        transport.event_hooks = {
            "request": [lambda request: self._keep_headers(request, client.base_url)]
        }
        return client

    def _made(self, kind: Callable[..., Made], transport: object) -> Made:
        """A client of the SDK."""
        import openai

        try:
            return kind(
                api_key=self._api_key,
                base_url=self._base_url,
                timeout=self._timeout,
                max_retries=self._max_retries,
                http_client=transport,
            )
        except openai.OpenAIError as error:
            raise ConfigError(
                f"no API key for {self.host}: set OPENAI_API_KEY, or give api_key= "
                "(where no model is named, the offline adapters work without a key)"
            ) from error

    def _transport(self, kind: Callable[..., Made]) -> Made:
        """An HTTP client, which takes proxies and certificates from the environment."""
        try:
            return kind(timeout=self._timeout)
        except set_up_failures() as error:
            raise ConfigError(
                f"{self.host} cannot be asked with the proxies and certificates that the environment "
                "names (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE, SSL_CERT_DIR): "
                f"{error}"
            ) from error

    def _limited(self) -> asyncio.Timeout:
        """A time limit for the whole answer, however slowly the server sends it."""
        if self._given is not None or not isinstance(self._timeout, int | float):
            return asyncio.timeout(None)  # a timeout object of httpx has limits of its own
        tries = self._max_retries
        return asyncio.timeout(self._timeout * (TRICKLE + tries) + LONGEST_ASKED * tries)

    def _keep_headers(self, request: Any, named: Any) -> None:
        """Remove the user's headers, which may be keys, from a request that was redirected to another host.

        The HTTP client (httpx or httpx2) does so itself with `Authorization` only.
        """
        to, here = request.url, (named.scheme, named.host, named.port)
        upgraded = here == ("http", to.host, None) and (to.scheme, to.port) == ("https", None)
        if upgraded or (to.scheme, to.host, to.port) == here:
            return
        for name in self._headers:
            request.headers.pop(name, None)

    def _once(self) -> RequestOptions:
        """Options of a request that the SDK does not send again by itself."""
        return {**self._options(), "max_retries": 0}

    def _options(self) -> RequestOptions:
        return {"headers": self._headers} if self._headers else {}

    @contextmanager
    def _explaining(self, client: openai.AsyncOpenAI | openai.OpenAI) -> Iterator[None]:
        """Turn whatever a request raises into an `EndpointError`."""
        try:
            yield
        except TimeoutError as error:
            trickles = "its answer trickles and comes to no end; raise the timeout"
            raise self.unusable(trickles, unheard=True) from error
        except failures() as error:
            raise explain(
                error,
                host=self.host,
                secrets=self._secrets(client.api_key),
                keyless=client.api_key == NO_KEY,
                proxied=self._given is None and is_proxied(str(client.base_url)),
            ) from cause(error)

    def _secrets(self, key: object) -> set[str]:
        known = {key, *self._headers.values()} - {NO_KEY}
        return {secret for secret in known if isinstance(secret, str) and len(secret) >= 6}

    def _object(self, content: bytes) -> JsonObject:
        """The JSON object of an answer; an error says what came instead."""
        answer = Usage(calls=1)  # it cannot be read, but may be billed
        if not content.strip():
            raise self.unusable("it answered with an empty body", transient=True, cost=answer)
        try:
            value = json.loads(content)
        except UnicodeDecodeError as error:
            raise self.unusable(NO_UTF8, transient=True, cost=answer) from error
        except (ValueError, RecursionError) as error:
            is_page = content.lstrip().startswith(b"<")
            kind = "an HTML page" if is_page else "no JSON"
            raise self.unusable(
                f"it answered with {kind}; check the base URL (it usually ends in /v1)",
                cost=FREE if is_page else answer,
            ) from error
        if not isinstance(value, dict):
            raise self.unusable("it answered with JSON that is no object; check the base URL")
        if value.get("error"):
            reported = detail(value)
            raise self.unusable(f"the server reported an error: {reported}", transient=True)
        return value


async def _is_streamed(response: Any) -> bool:
    """Whether an answer comes as events; some servers call them JSON, others send no content type."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", "text/html"):
        return True
    content = await response.aread()
    return not content.lstrip().startswith((b"{", b"<"))


async def _closing(client: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
    """A generator that closes the client when its loop ends, since a loop finalizes its generators."""
    try:
        yield
    finally:
        await client.close()


def check_url(base_url: str | None) -> None:
    """Raise `ConfigError` for an invalid URL."""
    try:
        parts = urlsplit(base_url or f"https://{OPENAI_HOST}")
        problem = "" if parts.hostname and parts.port != 0 else "it names no server"
    except ValueError as error:
        problem = str(error)
    if problem:
        raise ConfigError(f"the base URL is no URL such as http://localhost:8000/v1: {problem}")


def is_own(base_url: str | None) -> bool:
    """Whether a URL is on this machine or in the local network, where servers seldom ask for keys."""
    host = urlsplit(base_url).hostname if base_url else None
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))


def is_proxied(url: str) -> bool:
    """Whether the environment names a proxy for a URL."""
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(url), getproxies()
    named = parts.scheme in proxies or "all" in proxies
    return named and not proxy_bypass(parts.netloc.rpartition("@")[2])
