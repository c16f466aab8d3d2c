"""Runs a server, and opens the page in the browser once the server answers."""

import asyncio
import contextlib
import errno
import socket
import sys
import webbrowser
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.server.connections import uvicorn_settings

START_FAILED: Final = 1
PORT_FAILURES: Final = {
    errno.EADDRINUSE: "port {port} is in use: choose another one with --port",
    errno.EACCES: "port {port} may not be listened on here: choose one above 1023 with --port",
}
HOST_FAILURE: Final = (
    "{host} is no address of this machine ({reason}): name one to listen on with --host"
)
EVERY_ADDRESS: Final = ("0.0.0.0", "::", "")


class PageServer(uvicorn.Server):
    """A server that opens the page after the start."""

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen, then open the page."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            await asyncio.to_thread(webbrowser.open, page_address(host, port))


def page_address(host: str, port: int) -> str:
    """The address of the page for a browser on the same machine."""
    name = "127.0.0.1" if host in EVERY_ADDRESS else host
    if ":" in name:
        name = f"[{name}]"
    return f"http://{name}:{port}/"


def check_port(host: str, port: int) -> None:
    """Raise `ConfigError` if a server could not listen there."""
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(HOST_FAILURE.format(host=host, reason=error.strerror)) from error
    failures: list[OSError] = []
    for family, _, _, _, address in resolved:
        try:
            _bind(family, address)
        except OSError as error:
            failures.append(error)
    for failure in failures:
        if failure.errno in PORT_FAILURES:
            raise ConfigError(PORT_FAILURES[failure.errno].format(port=port)) from failure
    if len(failures) == len(resolved):  # localhost has an address that a machine without IPv6 lacks
        raise ConfigError(HOST_FAILURE.format(host=host, reason=failures[0].strerror))


def _bind(family: socket.AddressFamily, address: Any) -> None:
    """Take a port as uvicorn does, and give it back."""
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        if sys.platform != "win32":  # there it would take a port that another program has
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)


def run_server(app: Starlette, host: str, port: int, *, opens_page: bool) -> None:
    """Answer until the process is told to end; the exit status says whether the start failed."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="info",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        **uvicorn_settings(),
    )
    server = PageServer(config) if opens_page else uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has closed the indexes
        server.run()
    if not server.started:
        sys.exit(START_FAILED)
