"""One writer and many readers, between processes and threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import IndexOptions
from lightrag_jsonl.errors import ConfigError, LightRAGError, LockedError
from lightrag_jsonl.storage import opening, schema, snapshot
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.lock import writing
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Document
from tests.conftest import CHECKOUT
from tests.indexing.kit import entity, index, problems, read_names, relation, stored

HOLD = """
import asyncio
import sys
from pathlib import Path
from lightrag_jsonl.storage.lock import writing
async def hold():
    async with writing(Path(sys.argv[1]), 0):
        print("held", flush=True)
        sys.stdin.read()
asyncio.run(hold())
"""
WATCH = """
import sys
from lightrag_jsonl.storage import schema
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper
database = Database(sys.argv[1])
keeper = SnapshotKeeper(database)
for line in sys.stdin:
    with keeper.snapshot() as seen:
        names = [r[0] for r in seen.connection.execute("SELECT name FROM entities ORDER BY name")]
        print(seen.graph.entity_count, len(seen.vectors["entity"]), ",".join(names), flush=True)
"""


HOLD_BOTH = """
import asyncio
import sqlite3
import sys
from pathlib import Path
from lightrag_jsonl.storage.lock import writing
async def hold():
    async with writing(Path(sys.argv[1]), 0):
        sqlite3.connect(Path(sys.argv[1], "index.sqlite"), isolation_level=None).execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.read()
asyncio.run(hold())
"""
REWRITE = """
import asyncio
import sys
from pathlib import Path
from lightrag_jsonl.storage.database import Database
def fill(connection):
    for number in range(200):
        connection.execute("INSERT INTO settings VALUES (?, zeroblob(1000000))", (str(number),))
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
database = Database(sys.argv[1])
database.write(fill)
before = peak()
asyncio.run(database.vacuum())
print((peak() - before) // 1000, flush=True)
database.close()
"""
TRY = """
import asyncio
import sys
from pathlib import Path
from lightrag_jsonl.errors import LockedError
from lightrag_jsonl.storage.lock import writing
async def attempt():
    async with writing(Path(sys.argv[1]), 0):
        print("held")
try:
    asyncio.run(attempt())
except LockedError:
    print("refused")
"""


@contextlib.contextmanager
def process(script: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another Python that runs the script with the folder as its argument."""
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        text=True,
        encoding="utf-8",
    )
    assert other.stdin is not None and other.stdout is not None
    try:
        yield other
    finally:
        other.stdin.close()
        other.wait()
        other.stdout.close()


def line_of(other: subprocess.Popen[str]) -> str:
    assert other.stdout is not None
    return other.stdout.readline().strip()


async def test_a_second_writer_is_told_who_writes_and_readers_go_on(tmp_path: Path) -> None:
    """`LockedError` names the process; looking and asking work meanwhile; a killed holder holds nothing."""
    options = IndexOptions(lock_timeout=0.1)
    async with index(tmp_path, ScriptedLLM(read_names), options=options) as rag:
        await rag.insert(Document("Ann met Bob.", id="x"))
        with process(HOLD, tmp_path) as other:
            assert line_of(other) == "held"
            with pytest.raises(LockedError, match=f"process {other.pid} on ") as caught:
                await rag.insert(Document("Cid left.", id="y"))
            assert caught.value.path == tmp_path and "readers may go on" in str(caught.value)
            assert (await rag.retrieve("Ann", mode="naive")).chunks
            os.kill(other.pid, signal.SIGKILL)
            other.wait()
            assert (await rag.insert(Document("Cid left.", id="y"))).documents == ("y",)


async def test_a_question_is_answered_while_another_process_rewrites_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is paid for; the log says that it is not kept, and who was in the way."""
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.1)
    async with index(tmp_path, ScriptedLLM(lambda request: "no keywords")) as rag:
        await rag.insert_records("Ann met Bob.", [entity("Ann"), entity("Bob")])
        with process(HOLD_BOTH, tmp_path) as other:
            assert line_of(other) == "held"
            assert (await rag.query("Who met Bob?")).text == "no keywords"
            said = f"answer is not kept: {tmp_path / 'index.sqlite'} is being written to by process {other.pid} on"
            assert any(said in message for message in caplog.messages)


async def test_a_vacuum_waits_for_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what comes later for the vacuum: within one object nobody is told that it is busy."""
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.1)
    database, gate = Database(tmp_path), threading.Event()
    written = database.submit(lambda connection: gate.wait(20))
    vacuum = asyncio.create_task(database.vacuum())
    done, _ = await asyncio.wait([vacuum], timeout=0.5)
    assert not done
    gate.set()
    await vacuum
    assert written.result()
    database.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told there")
def test_a_vacuum_needs_no_memory_for_the_whole_index(tmp_path: Path) -> None:
    """Of an index of 200 MB the copy is made in files."""
    with process(REWRITE, tmp_path) as other:
        megabytes = line_of(other)
    assert int(megabytes) < 100


async def test_an_insert_of_all_that_lies_beside_the_index_keeps_its_lock(tmp_path: Path) -> None:
    """`insert -w . *` names the index's own files, too: whoever opened one would drop its locks."""
    seen: list[str] = []

    def answer(request: Request) -> str:
        with process(TRY, tmp_path) as other:
            seen.append(line_of(other))
        return read_names(request)

    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert("Ann met Bob.")
    (tmp_path / "x.txt").write_text("Cid met Dan.", encoding="utf-8")
    options = IndexOptions(max_gleanings=0, max_concurrent_calls=1)
    async with index(tmp_path, ScriptedLLM(answer), options=options) as rag:
        os.link(tmp_path / "index.sqlite", tmp_path / "a.txt")
        names = [path.name for path in tmp_path.iterdir()]
        assert {"writer.lock", "index.sqlite-shm"} <= set(names)
        report = await rag.insert(tmp_path / name for name in sorted(names))
        assert len(report.documents) == 1 and not report.failures
        (tmp_path / "y.txt").write_text("Eve met Fay.", encoding="utf-8")
        assert len((await rag.insert(tmp_path)).documents) == 1
        with pytest.raises(ConfigError, match="belongs to an index"):
            await rag.insert(tmp_path / "writer.lock")
    assert set(seen) == {"refused"} and len(seen) == 2


async def test_a_writer_waits_for_the_one_before_it(tmp_path: Path) -> None:
    """Within `lock_timeout` a second writer waits, and then writes."""
    Database(tmp_path).close()
    order: list[str] = []

    async def other() -> None:
        async with writing(tmp_path, 20):
            order.append("second")

    async with writing(tmp_path, 0):
        waiting = asyncio.create_task(other())
        with pytest.raises(LockedError):
            async with writing(tmp_path, 0.1):
                pass
        order.append("first")
    await waiting
    assert order == ["first", "second"]


async def test_who_is_cancelled_waiting_for_a_writer_waits_no_longer(tmp_path: Path) -> None:
    """It does not take the lock later: the next insert of the same object has it, and a program ends."""
    async with index(tmp_path, options=IndexOptions(lock_timeout=60)) as rag:
        async with writing(tmp_path, 0):
            waiting = asyncio.create_task(rag.insert("Ann sang."))
            await asyncio.sleep(0.1)
            waiting.cancel()
            kept = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(kept[0], asyncio.CancelledError)
        async with writing(tmp_path, 0):
            pass
        assert len((await rag.insert("Ann sang.")).documents) == 1


async def test_a_reader_in_another_process_sees_each_commit_at_its_next_look(
    tmp_path: Path,
) -> None:
    """Graph and vectors of a process that only reads follow inserts, updates and deletions of another."""
    async with index(tmp_path) as rag:
        with process(WATCH, tmp_path) as other:

            def look() -> str:
                assert other.stdin is not None
                other.stdin.write("\n")
                other.stdin.flush()
                return line_of(other)

            assert look() == "0 0"
            await rag.insert_records(
                Document("x", id="x"), [entity("Ann"), entity("Bob"), relation("Ann", "Bob")]
            )
            assert look() == "2 2 Ann,Bob"
            await rag.insert_records(Document("y", id="y"), [entity("Cid"), entity("Ann")])
            await rag.delete("x")
            assert look() == "2 2 Ann,Cid"
            await rag.delete("y")
            assert look() == "0 0"


def test_the_same_folder_may_be_made_by_many_at_once(tmp_path: Path) -> None:
    """Whoever comes first makes the tables; the others find them."""
    failed: list[str] = []

    def open_often() -> None:
        for number in range(6):
            try:
                Database(tmp_path / str(number)).close()
            except LightRAGError as error:
                failed.append(str(error))

    opening = [threading.Thread(target=open_often) for _ in range(8)]
    for thread in opening:
        thread.start()
    for thread in opening:
        thread.join(60)
    assert failed == [] and stored(tmp_path / "0", "PRAGMA user_version") == [(schema.FORMAT,)]


def test_a_snapshot_shows_one_moment_while_documents_come_and_go(tmp_path: Path) -> None:
    """Readers in threads see whole documents only, and graph, vectors and rows that agree."""
    torn: list[object] = []
    done = threading.Event()
    pair = [entity("Ann"), entity("Bob"), relation("Ann", "Bob")]

    def read(database: Database) -> None:
        keeper = SnapshotKeeper(database)
        while not done.is_set():
            with keeper.snapshot() as seen:
                count = seen.connection.execute("SELECT count(*) FROM entities").fetchone()[0]
                shown = (count, seen.graph.entity_count, len(seen.vectors["entity"]))
                if len(set(shown)) > 1 or count not in (0, 2):
                    torn.append(shown)

    async def write() -> None:
        async with index(tmp_path) as rag:
            for _ in range(8):
                await rag.insert_records(Document("x", id="x"), pair)
                await rag.insert_records(Document("y", id="y"), pair)
                await rag.delete("x")
                await rag.delete("y")

    with contextlib.closing(Database(tmp_path)) as database:
        readers = [threading.Thread(target=read, args=(database,)) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            asyncio.run(write())
        finally:
            done.set()
            for reader in readers:
                reader.join(30)
    assert torn == [] and problems(tmp_path) == []


async def test_who_missed_more_than_is_kept_of_the_changes_sees_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each commit touched is kept for the last ones only, so that the list does not grow."""
    monkeypatch.setattr(snapshot, "COMMITS_KEPT", 3)
    async with index(tmp_path) as writer:
        with contextlib.closing(Database(tmp_path)) as database:
            keeper = SnapshotKeeper(database)
            for n in range(6):
                await writer.insert_records(f"Text {n}.", [entity(f"Name{n}")])
                if n in (0, 5):
                    with keeper.snapshot() as now:
                        assert now.graph.entity_count == n + 1
    assert stored(tmp_path, "SELECT count(*) FROM commits") == [(3,)]
