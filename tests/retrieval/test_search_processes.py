"""Searches in further processes find what this process finds, and go on when processes are killed."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, ConfigError, Document, QueryParam, StorageError
from lightrag_jsonl.retrieval import searching
from tests.conftest import CHECKOUT
from tests.kit import index

pytestmark = pytest.mark.slow  # each process imports the package

TEXTS = {
    "mill": "Anna Berg sold the paper mill to Otto Lind in 1931. Otto Lind lived in Horten.",
    "ferry": "The ferry between Horten and Moss belongs to Anna Berg since 1950.",
    "academy": "湖山书院由陈启明创办于1904年。陈启明是画家林月的老师。",
}
QUESTIONS = (
    ("Who bought the paper mill?", QueryParam()),
    ("Which ferry belongs to Anna Berg?", QueryParam(mode="global", as_of="1960")),
    ("Who lived in Horten?", QueryParam(mode="local", where={"id": "mill"})),
    ("List all people in the documents.", QueryParam(mode="hybrid")),
    ("谁创办了湖山书院？", QueryParam(mode="naive")),
    ("What are the documents about?", QueryParam(mode="overview")),
)


SCRIPT = """
import os, sys
from lightrag_jsonl import LightRAG

rag = LightRAG(sys.argv[1], search_processes=1)
rag.insert("Anna Berg sold the paper mill to Otto Lind in 1931.")
for _ in range(2):
    print(len(rag.retrieve("Who bought the paper mill?").chunks), flush=True)
os._exit(0)
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started to search."""
    processes: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    return processes


@contextlib.asynccontextmanager
async def filled(folder: Path, processes: int) -> AsyncIterator[AsyncLightRAG]:
    """An index of the texts, searched by further processes."""
    async with index(folder, search_processes=processes) as rag:
        await rag.insert([Document(text, id=id) for id, text in TEXTS.items()])
        yield rag


async def prompts(rag: AsyncLightRAG) -> list[str]:
    """What a model would read for each question, all asked at once."""
    contexts = await asyncio.gather(
        *[rag.retrieve(question, param) for question, param in QUESTIONS]
    )
    return [context.prompt for context in contexts]


async def test_all_modes_find_the_same(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """Filters, moments, lists and overviews, too; more questions than processes wait for these."""
    async with filled(tmp_path, 2) as rag:
        found = await prompts(rag)
        assert len(started) == 2 and all(process.poll() is None for process in started)
    assert all(process.poll() is not None for process in started)
    async with index(tmp_path) as rag:
        assert found == await prompts(rag)
    assert "Otto Lind" in found[0] and "陈启明" in found[4]


async def test_changes_are_seen(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    async with filled(tmp_path, 1) as rag:
        before = await rag.retrieve("Who bought the paper mill?")
        await rag.insert([Document("Karl Moe bought the paper mill in 1977.", id="moe")])
        after = await rag.retrieve("Who bought the paper mill?")
        await rag.delete("moe")
        at_last = await rag.retrieve("Who bought the paper mill?")
    assert "Karl Moe" in after.prompt and "Karl Moe" not in before.prompt
    assert at_last.prompt == before.prompt and len(started) == 1


async def test_a_killed_process_is_replaced(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was idle or had a request; where all end at once, the error says so."""
    async with filled(tmp_path, 1) as rag:
        first = await rag.retrieve("Who bought the paper mill?")
        started[0].kill()
        started[0].wait()
        assert (await rag.retrieve("Who bought the paper mill?")).prompt == first.prompt
        assert len(started) == 2
        asked = asyncio.create_task(rag.retrieve("Who lived in Horten?"))
        while not asked.done():
            started[1].kill()
            await asyncio.sleep(0.01)
        assert "Horten" in (await asked).prompt
        monkeypatch.setattr(searching, "SEARCHING_CODE", "raise SystemExit")
        started[-1].kill()
        started[-1].wait()
        with pytest.raises(StorageError, match="search_processes=0"):
            await rag.retrieve("Who bought the paper mill?")
        monkeypatch.undo()
        assert (await rag.retrieve("Who bought the paper mill?")).prompt == first.prompt


async def test_a_cancelled_question_leaves_the_process_usable(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    async with filled(tmp_path, 1) as rag:
        await rag.retrieve("Who lived in Horten?")
        for delay in (0.0, 0.001, 0.003, 0.01):
            asked = asyncio.create_task(rag.retrieve("Who bought the paper mill?"))
            await asyncio.sleep(delay)
            asked.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asked
        assert "Otto Lind" in (await rag.retrieve("Who bought the paper mill?")).prompt
    assert len(started) == 1 and started[0].poll() is not None


async def test_errors_come_back(tmp_path: Path) -> None:
    """The error of a search is the same as in this process; a count below 0 is refused."""
    async with filled(tmp_path, 1) as rag:
        (tmp_path / "index.sqlite").rename(tmp_path / "away.sqlite")
        with pytest.raises(StorageError, match="no index") as raised:
            await rag.retrieve("Who bought the paper mill?")
        assert raised.value.path
    with pytest.raises(ConfigError, match="search_processes"):
        AsyncLightRAG(tmp_path / "other", search_processes=-1)


def test_a_script_needs_no_guard_and_leaves_no_process(tmp_path: Path) -> None:
    """A script without `if __name__ == "__main__"`, which ends without `close`; a process that stayed
    would keep the pipe open, and this test waiting.
    """
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, script, tmp_path / "kb"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split() == ["1", "1"]
