"""A browser for tests: Chromium by chromedriver, over WebDriver's plain HTTP."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
]


class Browser:
    """One window."""

    def __init__(self, base: str) -> None:
        self._base = base

    def open(self, path: Path) -> None:
        self._call("url", {"url": path.as_uri()})

    def resize(self, width: int, height: int) -> None:
        self._call("window/rect", {"width": width, "height": height})

    def click(self, selector: str) -> None:
        """Click as a person does: the browser refuses what is covered or not to be seen."""
        found = self._call("element", {"using": "css selector", "value": selector})
        self._call(f"element/{found[ELEMENT]}/click", {})

    def run(self, script: str) -> Any:
        return self._call("execute/sync", {"script": script, "args": []})

    def _call(self, command: str, body: dict[str, object]) -> Any:
        return _post(f"{self._base}/{command}", body)


def installed() -> bool:
    """Whether this machine has the browser."""
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium with an empty profile; both processes end with the block."""
    port = _free_port()
    driver = subprocess.Popen(
        ["chromedriver", f"--port={port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert driver.stdout is not None
        while "started successfully" not in (line := driver.stdout.readline()):
            assert line, "chromedriver did not start"
        options = {
            "args": [*FLAGS, f"--user-data-dir={profile}"],
            "binary": shutil.which("chromium"),
        }
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        base = f"http://127.0.0.1:{port}/session"
        session = f"{base}/{_post(base, wanted)['sessionId']}"
        try:
            yield Browser(session)
        finally:
            urllib.request.urlopen(urllib.request.Request(session, method="DELETE"), timeout=20)
    finally:
        driver.terminate()
        driver.wait(timeout=20)


def _post(url: str, body: dict[str, object]) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
