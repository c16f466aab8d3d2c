"""A question that takes long can be ended, and stops nobody else: by real processes and signals."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from lightrag_jsonl import LightRAG
from tests.conftest import CHECKOUT
from tests.processes import heed_interrupts
from tests.server.running import free_port

pytestmark = pytest.mark.slow  # starts processes

SECONDS = 120  # the longest wait for another process; a busy machine is slow
# The rules that answer work for ever, as they would on a text that nobody has thought of.
ENDLESS = """
from lightrag_jsonl.rules import answering

def work_for_ever(*arguments):
    print("working", flush=True)
    while True:
        sum(range(1_000))

answering.select_answer = work_for_ever
from lightrag_jsonl.cli import main
main()
"""


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """An index of a single text."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert("Ann Lisle was born in Harwick in 1871. She kept the lighthouse of Port Merrin.")
    return tmp_path / "kb"


@contextmanager
def endless(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A command whose rules for answers never end; killed at the end if it is still there."""
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        preexec_fn=heed_interrupts,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def wait_for_line(child: subprocess.Popen[str], words: str) -> str:
    """The next line of a process's output with these words."""
    assert child.stdout is not None
    return next(line for line in child.stdout if words in line)


def test_an_interrupt_ends_a_question(kb: Path) -> None:
    """Ctrl-C ends a `query` whose answer never comes, with the status of an interrupt."""
    with endless("query", "-w", kb, "Where was Ann Lisle born?") as child:
        wait_for_line(child, "working")
        child.send_signal(signal.SIGINT)
        assert child.wait(SECONDS) == 130


def test_a_server_lives_beside_a_question(kb: Path) -> None:
    """While a question is worked on for ever, `/health` answers, and SIGTERM ends the server."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with endless("serve", kb, "--port", port) as server:
        with httpx2.Client(base_url=url, trust_env=False, timeout=SECONDS) as client:
            wait_for_health(client)
            asking = threading.Thread(target=ask, args=(url,), daemon=True)
            asking.start()
            wait_for_line(server, "working")
            assert client.get("/health").status_code == 200
        server.send_signal(signal.SIGTERM)
        server.wait(SECONDS)
        asking.join(SECONDS)
        assert not asking.is_alive()


def ask(url: str) -> None:
    """Ask the question whose answer never comes."""
    question = {"question": "Where was Ann Lisle born?"}
    with suppress(httpx2.HTTPError):
        httpx2.post(f"{url}/indexes/kb/query", json=question, timeout=SECONDS, trust_env=False)


def wait_for_health(client: httpx2.Client) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with suppress(httpx2.TransportError):
            if client.get("/health").status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not answer")
