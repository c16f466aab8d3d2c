"""A disk that fails under SQLite, and power cuts: nothing that was promised durable is lost.

`LIGHTRAG_JSONL_CUTS` says how often the power is cut (some dozens by default), and
`LIGHTRAG_JSONL_FAULTS` at how many places the disk fails.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lightrag_jsonl.testing import ScriptedLLM
from tests.conftest import CHECKOUT
from tests.indexing.killed import EDITED, OPTIONS, SLOTS
from tests.indexing.kit import View, index, problems, read_names, stored, view
from tests.storage.faulty import GIVEN
from tests.storage.power import Note, cut, read_notes

CUTS = int(os.environ.get("LIGHTRAG_JSONL_CUTS", "30"))
PLACES = int(
    os.environ.get("LIGHTRAG_JSONL_FAULTS", "4")
)  # where the disk begins to fail, from the first time it could to the last
FINISHED = 3  # of the cuts after which the work is gone on with to its end
OFTEN = 1_000_000  # failures: until the disk is made well
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="no C compiler for the failing disk"
)


@dataclass(frozen=True)
class Worker:
    """The process that forks the children; see `tests.storage.faulty`."""

    process: subprocess.Popen[bytes]
    home: Path

    def work(self, name: str, fail: tuple[str, int, int, int] | None = None) -> list[Note]:
        """Let a child do its work in the folder of this name; what its disk was given."""
        assert self.process.stdin is not None and self.process.stdout is not None
        notes = self.home / f"{name}.notes"
        notes.unlink(missing_ok=True)
        order = {"folder": str(self.home / name), "notes": str(notes), "fail": fail}
        self.process.stdin.write((json.dumps(order) + "\n").encode())
        assert self.process.stdout.readline().startswith(b"started ")
        assert self.process.stdout.readline() == b"ended 0\n"
        return read_notes(notes)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    home = tmp_path_factory.mktemp("disk")
    library = home / "disk.so"
    source = Path(__file__).with_name("disk.c")
    command = [COMPILER or "cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.faulty"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        bufsize=0,
        env={**os.environ, "LD_PRELOAD": str(library)},
    )
    yield Worker(process, home)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def unbroken(worker: Worker) -> tuple[View, list[Note]]:
    """What the work leaves on a disk that is well, and what the disk was given."""
    notes = worker.work("unbroken")
    assert problems(worker.home / "unbroken") == []
    return view(worker.home / "unbroken"), notes


def texts_after(steps: int) -> dict[str, str]:
    """The documents and their texts once so many steps of the work are done."""
    texts = {document.id or "": document.text for document in GIVEN[:steps]}
    if steps > len(GIVEN):
        texts[EDITED.id or ""] = EDITED.text
    if steps > len(GIVEN) + 1:
        del texts["d1"]
    return texts


def texts_in(folder: Path) -> dict[str, str]:
    """The visible documents and the text of their chunks put together."""
    texts: dict[str, str] = {}
    query = "SELECT d.name, c.text FROM documents d JOIN chunks c ON c.document = d.id ORDER BY d.name, c.position"
    for document, text in stored(folder, query):
        texts[document] = texts.get(document, "") + text
    return texts


def facts(notes: list[Note], key: str) -> list[object]:
    """All that was marked under a key."""
    return [note.facts[key] for note in notes if key in note.facts]


FAULTS = {
    "a flush": ("S", 1, errno.EIO),
    "a write": ("W", 1, errno.EIO),
    "a full disk": ("W", OFTEN, errno.ENOSPC),
    "flushes until mended": ("S", OFTEN, errno.EIO),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_fails_loses_nothing(
    worker: Worker, unbroken: tuple[View, list[Note]], fault: str
) -> None:
    """Wherever it fails: a clear error, a sound index, and the same graph once it is well again."""
    operation, times, error = FAULTS[fault]
    number = sum(note.op == operation for note in unbroken[1])
    for after in sorted({place * (number - 1) // max(1, PLACES - 1) for place in range(PLACES)}):
        name = f"{fault}-{after}".replace(" ", "-")
        notes = worker.work(name, (operation, after, times, error))
        errors = facts(notes, "error")
        for text in errors:
            assert "free some disk space" in str(text) and str(worker.home / name) in str(text)
        assert problems(worker.home / name) == []
        assert view(worker.home / name) == unbroken[0]
        paid, least = facts(notes, "calls")[0], facts(unbroken[1], "calls")[0]
        assert isinstance(paid, int) and isinstance(least, int)
        assert paid - least <= SLOTS * len(errors), "more is paid again than was in flight"


def test_a_power_cut_takes_nothing_that_was_flushed(
    worker: Worker, unbroken: tuple[View, list[Note]]
) -> None:
    """Unflushed writes lost, torn or spoiled: all invariants hold, documents told done are there, the rest resumes."""
    chance = random.Random(1)
    for number in range(CUTS):
        at = chance.randrange(len(unbroken[1]))
        name = f"cut-{number}"
        after_cut(unbroken[1][:at], worker.home / name, chance)
        if number < FINISHED:
            resumed(worker.home / name)
            worker.work(name)
            assert problems(worker.home / name) == []
            assert view(worker.home / name) == unbroken[0]


def test_a_power_cut_after_a_failed_flush(worker: Worker, tmp_path: Path) -> None:
    """What the failed flush left out is written again before anything is called done after it."""
    chance = random.Random(2)
    for after in (2, 5, 8):
        notes = worker.work(f"flush-{after}", ("S", after, 1, errno.EIO))
        failed = next((at for at, note in enumerate(notes) if note.op == "F"), None)
        assert failed is not None
        for number in range(CUTS // 3):
            at = chance.randrange(failed, len(notes))
            after_cut(notes[:at], tmp_path / f"{after}-{number}", chance)


def after_cut(notes: list[Note], folder: Path, chance: random.Random) -> None:
    """Cut the power here: what is left is sound and has every document that was called done."""
    cut(notes, folder, chance)
    assert problems(folder) == []
    done = max([0, *(int(str(one)) for one in facts(notes, "done"))])
    assert texts_in(folder) in (texts_after(done), texts_after(done + 1))


def resumed(folder: Path) -> None:
    """Go on with what was waiting: nothing waits any longer, and all is read."""

    async def run() -> None:
        async with index(folder, ScriptedLLM(read_names), options=OPTIONS) as rag:
            await rag.resume()
            assert all(document.state == "done" for document in await rag.documents())

    asyncio.run(run())
    assert problems(folder) == []
