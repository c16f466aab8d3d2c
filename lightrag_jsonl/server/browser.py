"""Runs a server, and opens the page in the browser once the server answers."""

import asyncio
import contextlib
import sys
import webbrowser
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette

from lightrag_jsonl.server.connections import uvicorn_settings

START_FAILED: Final = 3  # the exit status of uvicorn
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
