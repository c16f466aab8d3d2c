"""What is dropped without `close()` keeps no thread and no file: a server may open a thousand a day."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, LightRAG

TEXT = "Marie Curie discovered radium in Paris."
QUESTION = "What did Marie Curie discover?"
LONG = 60.0  # seconds: no thread takes so long to end unless it never does


def open_files(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for number in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(number.readlink()))
        except OSError:  # the listing's own, or one that was closed meanwhile
            continue
    return [path for path in found if path.startswith(str(folder))]


@pytest.fixture
def nothing_is_kept(tmp_path: Path) -> Iterator[None]:
    """Threads that begin meanwhile end, and files are closed."""
    before = set(threading.enumerate())
    yield
    begun = [thread for thread in threading.enumerate() if thread not in before]
    own = [thread for thread in begun if not thread.name.startswith("lightrag-jsonl-call")]
    deadline = time.monotonic() + LONG
    while any(thread.is_alive() for thread in own) and time.monotonic() < deadline:
        gc.collect()  # again, since a thread may just have held what is garbage now
        own[0].join(0.05)
        own = [thread for thread in own if thread.is_alive()]
    assert own == []
    gc.collect()
    if Path("/proc/self/fd").is_dir():
        assert open_files(tmp_path) == []


@pytest.mark.usefixtures("nothing_is_kept")
def test_nothing_is_kept_of_a_lightrag(tmp_path: Path) -> None:
    """Neither its loop's thread, nor the writer's, nor that of its searches, nor the database."""
    rag = LightRAG(tmp_path)
    rag.insert(TEXT)
    assert rag.query(QUESTION).citations
    assert rag.retrieve(QUESTION).chunks


@pytest.mark.usefixtures("nothing_is_kept")
def test_nothing_is_kept_of_an_async_lightrag(tmp_path: Path) -> None:
    """The event loop goes on, without it; what it was told is in the folder."""

    async def insert() -> None:
        assert (await AsyncLightRAG(tmp_path).insert(TEXT)).documents

    async def ask() -> None:
        assert (await AsyncLightRAG(tmp_path).query(QUESTION)).citations

    async def both() -> None:
        await insert()
        await ask()

    asyncio.run(both())


@pytest.mark.usefixtures("nothing_is_kept")
def test_a_stream_outlives_the_object_that_it_came_from(tmp_path: Path) -> None:
    """Whoever reads it still needs the loop."""
    with LightRAG(tmp_path) as rag:
        rag.insert(TEXT)
        whole = rag.query(QUESTION).text
    assert "".join(LightRAG(tmp_path).stream(QUESTION)) == whole
