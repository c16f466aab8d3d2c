"""Law `commit`: kill the process anywhere; each document is whole or absent, and nothing paid is lost.

`LIGHTRAG_JSONL_KILLS` says how often a process is killed (a handful by default).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl.types import Document
from tests.conftest import CHECKOUT
from tests.indexing.killed import DOCUMENTS, EDITED, SLOTS
from tests.indexing.kit import View, problems, stored, view

KILLS = int(os.environ.get("LIGHTRAG_JSONL_KILLS", "10"))
LIVES = 5  # of one folder: so many times it is killed before its work may end
LINE = 65  # bytes of the log for one call
LONGEST = 0.15  # seconds within which a process is killed after it made its last call to be


class Worker:
    """The process that forks the children; see `tests.forking`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.indexing.killed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=CHECKOUT,
            bufsize=0,
        )

    def start(self, folder: Path, log: Path) -> int:
        """Begin a child's work; its process id."""
        assert self._process.stdin is not None
        order = {"folder": str(folder), "log": str(log)}
        self._process.stdin.write((json.dumps(order) + "\n").encode())
        word, number = self._line().split()
        assert word == "started"
        return int(number)

    def kill(self, child: int, log: Path, size: int, seconds: float) -> None:
        """Kill the child so long after its log has a size in bytes, unless it is done before."""
        while log.stat().st_size < size and not self._says_something(0.001):
            pass
        if not self._says_something(seconds):
            with contextlib.suppress(ProcessLookupError):  # done this very moment
                os.kill(child, signal.SIGKILL)
        self.status()

    def _says_something(self, seconds: float) -> bool:
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def status(self) -> int:
        """How the child ended."""
        word, status = self._line().split()
        assert word == "ended"
        return int(status)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            piece = self._process.stdout.read(1)
            assert piece, "the worker is gone"
            line += piece
        return line.decode()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    process = Worker()
    yield process
    process.close()


@pytest.fixture(scope="module")
def unbroken(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> tuple[View, list[str]]:
    """What the work leaves where nobody kills it, and the calls that it takes."""
    folder = tmp_path_factory.mktemp("unbroken")
    worker.start(folder / "kb", folder / "log")
    assert worker.status() == 0
    assert problems(folder / "kb") == []
    return view(folder / "kb"), (folder / "log").read_text(encoding="utf-8").split()


def chunks_by_document(folder: Path) -> dict[str, str]:
    """The visible documents and the text of their chunks put together."""
    rows = stored(
        folder,
        "SELECT d.name, c.text, c.state, (SELECT count(*) FROM entity_mentions m WHERE m.chunk = c.id) "
        "FROM documents d JOIN chunks c ON c.document = d.id ORDER BY d.name, c.position",
    )
    found: dict[str, str] = {}
    for document, text, state, mentions in rows:
        assert state == "ok" and mentions > 0
        found[document] = found.get(document, "") + text
    return found


def whole(documents: list[Document]) -> dict[str, str]:
    return {document.id or "": document.text for document in documents}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(-(-KILLS // LIVES)))
def test_a_killed_process_loses_nothing(
    worker: Worker, unbroken: tuple[View, list[str]], tmp_path: Path, seed: int
) -> None:
    """After each kill all is sound, paid answers are not paid again, and in the end all is as it should be."""
    chance = random.Random(seed)
    folder, log = tmp_path / "kb", tmp_path / "log"
    log.touch()
    paid: set[str] = set()
    started = 0
    for life in range(LIVES + 1):
        child = worker.start(folder, log)
        if life == LIVES:
            assert worker.status() == 0
        else:
            more = chance.randint(0, len(unbroken[1]) - len(paid))
            worker.kill(
                child, log, (started + more) * LINE, chance.uniform(0, LONGEST) ** 2 / LONGEST
            )
        calls = log.read_text(encoding="utf-8").split()
        assert not paid & set(calls[started:]), "an answer that was kept is paid for again"
        assert len(set(calls[started:])) == len(calls) - started, "a call is made twice in one life"
        if (folder / "index.sqlite").exists():
            assert problems(folder) == []
            visible = chunks_by_document(folder)
            old, new = whole(DOCUMENTS), whole([EDITED])
            assert all(text in (old[id], new.get(id)) for id, text in visible.items())
            paid = {row[0] for row in stored(folder, "SELECT lower(hex(key)) FROM completions")}
            assert len({*calls[started:]} - paid) <= SLOTS, "more is lost than was in flight"
        started = len(calls)
    assert view(folder) == unbroken[0]
    assert set(calls) == set(unbroken[1])
    assert len(calls) - len(unbroken[1]) <= LIVES * SLOTS
