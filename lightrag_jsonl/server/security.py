"""Access: the checks of the host, the origin and the token of every request."""

import hmac
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.providers.connection import header_value
from lightrag_jsonl.server.metrics import Metrics
from lightrag_jsonl.server.routing import error_response

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN: Final = 16  # characters
SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Refusal(NamedTuple):
    """The response to a forbidden request."""

    status: int
    code: str
    message: str


@dataclass(frozen=True)
class Access:
    """The host names of the server besides loopback's, and the token.

    The paths in `public` need no token. `ConfigError` if the server would listen beyond loopback
    without a token, or with a short token.
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    hosts: Collection[str] = ()
    public: Collection[str] = ()

    def __post_init__(self) -> None:
        token = None if self.token is None else header_value(self.token, "the token of the server")
        object.__setattr__(self, "token", token)
        if token is not None and len(token) < SHORTEST_TOKEN:
            raise ConfigError(f"the token must be ASCII, at least {SHORTEST_TOKEN} characters")
        if token is None and self.host not in LOOPBACK:
            raise ConfigError(
                f"to listen on {self.host}, beyond this machine, set a token: "
                "--token-file FILE or LIGHTRAG_JSONL_TOKEN"
            )

    @property
    def is_personal(self) -> bool:
        """Whether the server is personal: only on loopback, without a token or other host names."""
        return self.host in LOOPBACK and self.token is None and not self.hosts

    def refusal(self, path: str, headers: Headers) -> Refusal | None:
        """The reason for refusing a request; None for an allowed request."""
        host = headers.get("host", "")
        origin = headers.get("origin")
        if _host_name(host) not in {*LOOPBACK, self.host, *self.hosts}:
            return Refusal(
                421, "host", "this host name is not allowed: start the server with --allow-host"
            )
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return Refusal(403, "origin", "pages of other origins may not use this server")
        guarded = self.token is not None and path not in self.public
        if guarded and not self._knows_token(headers):
            return Refusal(401, "token", "send the token: Authorization: Bearer … or X-API-Key: …")
        return None

    def _knows_token(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            token = headers.get("x-api-key", "")
        return hmac.compare_digest(token.strip().encode(), str(self.token).encode())


class Guard:
    """Refuses requests by the rules of `Access`, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no route speaks WebSocket
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._app
        refusal = self._access.refusal(scope["path"], Headers(scope=scope))
        if refusal is not None:
            app = self._refused(Request(scope), refusal)
        await app(scope, receive, send_safely)

    def _refused(self, request: Request, refusal: Refusal) -> Response:
        self._metrics.count_refusal(refusal.code)
        headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
        return error_response(
            request,
            refusal.status,
            code=refusal.code,
            message=refusal.message,
            headers=headers,
        )


def _host_name(host: str) -> str:
    """The name in a `Host` header, without port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
