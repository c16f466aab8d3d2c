"""A real server on loopback for the server's tests, and a model that writes when it is let."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")
import uvicorn

from lightrag_jsonl import AsyncLightRAG, Completion, Message
from lightrag_jsonl.core.address import Address
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.server.app import STATIC, create_app
from lightrag_jsonl.server.connections import uvicorn_settings
from lightrag_jsonl.server.indexes import Indexes, Opener, ServerLimits
from lightrag_jsonl.server.security import Access
from tests.cli.conftest import process
from tests.conftest import CHECKOUT

LOST_SECONDS = 10  # after which a request to a server that has just started is sent again
LOOK_SECONDS = 0.02  # between two looks
SECONDS = 240  # the longest wait for another thread or process; a busy machine is slow


@dataclass
class Running:
    """A server that runs: its address, its indexes, and a client that sends what it must."""

    url: str
    indexes: Indexes
    client: httpx2.Client

    def get(self, path: str, **params: Any) -> Any:
        """The JSON of a GET, which must succeed."""
        response = self.client.get(path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, body: object, status: int = 200) -> Any:
        """The JSON of a POST of JSON, which must have this status."""
        response = self.client.post(path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    def upload(self, name: str, content: Any, status: int = 202, **params: str) -> Any:
        """The JSON of an upload to the index `kb`, which must have this status."""
        response = self.client.post(
            "/indexes/kb/upload",
            params={"name": name, **params},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )
        assert response.status_code == status, response.text
        return response.json()

    def job(self, job: dict[str, Any], index: str = "kb") -> Any:
        """A job once it has ended."""
        return wait_for(
            lambda: self.get(f"/indexes/{index}/jobs/{job['id']}"),
            lambda found: found["state"] in ("done", "failed", "cancelled"),
        )

    def events(self, path: str, body: object) -> list[tuple[str, Any]]:
        """The names and values of a stream of server-sent events."""
        response = self.client.post(path, json=body)
        assert response.headers["content-type"].startswith("text/event-stream"), response.text
        return parse_events(response.text)


def parse_events(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.split("\n\n") if block]
    return [(name[7:], json.loads(data[6:])) for name, data in blocks]


def wait_for(look: Callable[[], Any], right: Callable[[Any], bool] = bool) -> Any:
    """What is seen once it is right; counts looks, since the clock of a machine that stood still has jumped."""
    looks_left = int(SECONDS / LOOK_SECONDS)
    while not right(found := look()):
        looks_left -= 1
        assert looks_left, f"still {found!r}"
        time.sleep(LOOK_SECONDS)
    return found


class PromptServer(uvicorn.Server):
    """A server that ends as soon as it is told, not at its next look ten times a second."""

    async def main_loop(self) -> None:
        """Serve until `end`."""
        self._loop = asyncio.get_running_loop()
        self._told = asyncio.Event()
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 0.1)

    def end(self) -> None:
        """Called by another thread."""
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._told.set)


@contextlib.contextmanager
def serving(
    *folders: Path,
    token: str | None = None,
    hosts: tuple[str, ...] = (),
    limits: Mapping[str, Any] | None = None,
    models: Mapping[str, Any] | None = None,
    opener: Opener | None = None,
    static: Path = STATIC,
    **connections: Any,
) -> Iterator[Running]:
    """A server in a thread, on a free port; the rest are the options of `lightrag-jsonl serve`.

    `limits` are those of the server, `models` the options of models, by their names; `connections` are
    the arguments of `uvicorn_settings`.
    """
    setup = None if models is None else Setup(**models)
    indexes = Indexes(ServerLimits(**(limits or {})), setup, opener=opener)
    indexes.open(folders)
    access = Access(token=token, hosts=hosts)
    app = create_app(indexes, access, static=static)
    limited = uvicorn_settings(**connections)
    config = uvicorn.Config(app, port=0, log_level="critical", access_log=False, **limited)
    server = PromptServer(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    headers = {"X-API-Key": access.token} if access.token else {}
    try:
        with httpx2.Client(
            base_url=url, headers=headers, timeout=SECONDS, trust_env=False
        ) as client:
            yield Running(url, indexes, client)
    finally:
        server.end()
        thread.join(SECONDS)


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives to clients and other tests' servers."""
    while True:
        port = random.randrange(10_000, 32_000)
        with (
            contextlib.suppress(OSError),
            contextlib.closing(socket.create_server(("127.0.0.1", port))),
        ):
            return port


@contextlib.contextmanager
def process_serving(*arguments: object, token: str = "") -> Iterator[tuple[Any, httpx2.Client]]:
    """`lightrag-jsonl serve` in a process of its own; killed at the end if it still runs."""
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "LIGHTRAG_JSONL_TOKEN": token}
    environment["PYTHONFAULTHANDLER"] = "1"
    command = process(["serve", *arguments, "--port", port])
    log = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    server = subprocess.Popen(command, env=environment, **log)  # type: ignore[call-overload]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=url, headers=headers, timeout=SECONDS, trust_env=False) as client:
        attempts: list[str] = []

        def answers() -> bool:
            if server.poll() is not None:  # another program may have taken the port
                return True
            try:
                response = client.get("/health", timeout=LOST_SECONDS)
                attempts.append(str(response.status_code))
            except httpx2.TransportError as error:
                attempts.append(f"{type(error).__name__} {error}")
                return False
            return response.status_code == 200

        try:
            try:
                wait_for(answers)
            except AssertionError:
                server.send_signal(signal.SIGABRT)  # faulthandler writes where each thread is
                log_text = server.communicate()[0].decode()
                pytest.fail(f"no answer from the server: {Counter(attempts)} {log_text}")
            yield server, client
        finally:
            server.kill()
            server.wait()


class PacedLLM:
    """A model that writes a piece of its answer each time it is let, and notes what was asked."""

    name = "paced"

    def __init__(self, pieces: Sequence[str] = ("one ", "two ", "three")) -> None:
        self.calls: list[str] = []
        self.cancelled = 0
        self.turns = threading.Semaphore(0)
        self._pieces = pieces

    async def complete(self, messages: Sequence[Message], **more: object) -> Completion:
        """All of the answer at once."""
        self.calls.append(messages[-1].content)
        return Completion("".join(self._pieces))

    async def stream(self, messages: Sequence[Message], **more: object) -> AsyncIterator[str]:
        """The pieces, each when `turns` is released."""
        self.calls.append(messages[-1].content)
        try:
            for piece in self._pieces:
                while not self.turns.acquire(blocking=False):
                    await asyncio.sleep(0.005)
                yield piece
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise


@contextlib.contextmanager
def serving_model(kb: Path, llm: object, **more: Any) -> Iterator[Running]:
    """A server whose index asks this model."""

    def opener(address: Address) -> AsyncLightRAG:
        return AsyncLightRAG(address, llm=llm)  # type: ignore[arg-type]

    with serving(kb, opener=opener, **more) as running:
        yield running
