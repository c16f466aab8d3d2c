"""Who may ask: checks the host, the origin and the token of every request before anything else."""

import hmac
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.server.metrics import Metrics
from lightrag_jsonl.server.routing import error_response

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN: Final = 16  # characters
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


@dataclass(frozen=True)
class Access:
    """How the server may be reached: under which names besides loopback's, and with which token.

    `public` are the paths that need no token. `ConfigError` if the server would listen beyond
    loopback without a token, or with a short one.
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    hosts: Collection[str] = ()
    public: Collection[str] = ()

    def __post_init__(self) -> None:
        token = self.token
        if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii()):
            raise ConfigError(f"the token must be ASCII, at least {SHORTEST_TOKEN} characters")
        if token is None and self.host not in LOOPBACK:
            raise ConfigError(
                f"to listen on {self.host}, beyond this machine, set a token: "
                "--token-file FILE or LIGHTRAG_JSONL_TOKEN"
            )

    def refusal(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        """The status, code and message with which a request is refused; None if it is not."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if _name(host) not in {*LOOPBACK, self.host, *self.hosts}:
            return 421, "host", "this name of the server is not allowed: start it with --allow-host"
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return 403, "origin", "pages of other origins may not use this server"
        guarded = self.token is not None and path not in self.public
        if guarded and not self._knows_token(headers):
            return 401, "token", "send the token: Authorization: Bearer … or X-API-Key: …"
        return None

    def _knows_token(self, headers: Headers) -> bool:
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            sent = headers.get("x-api-key", "")
        return hmac.compare_digest(sent.strip().encode(), str(self.token).encode())


class Guard:
    """Refuses requests as `Access` says, and adds the headers of safety to every response."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app, self._access, self._metrics = app, access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._app
        if refused := self._access.refusal(scope["path"], Headers(scope=scope)):
            status, code, words = refused
            self._metrics.count("refused_total", reason=code)
            more = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            app = error_response(Request(scope), status, code, words, more)
        await app(scope, receive, send_safely)


def _name(host: str) -> str:
    """The name in a `Host` header, without port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
