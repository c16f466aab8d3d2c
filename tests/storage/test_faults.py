"""Errors of the disk at every place: a clear `StorageError`, nothing lost, and the next try succeeds."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, QueryParam
from lightrag_jsonl.errors import StorageError
from lightrag_jsonl.explain.events import Answered, End, Event, Session
from lightrag_jsonl.storage import writer
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.testing import Request, ScriptedLLM
from lightrag_jsonl.types import Document
from tests.indexing.kit import index, problems, read_names, stored, view
from tests.limits import no_threads


class Faults:
    """Says which statement of the writing thread fails, and how."""

    def __init__(self) -> None:
        self.at = -1
        self.undone = False
        self.seen: list[str] = []
        self.pages = 0
        self.word = ""

    def meet(self, connection: sqlite3.Connection, statement: str) -> None:
        if threading.current_thread().name != "lightrag-jsonl-writer":
            return
        if self.word and self.word in statement:
            raise sqlite3.OperationalError("database or disk is full")
        if self.at < 0:
            return
        self.seen.append(statement)
        if len(self.seen) - 1 == self.at:
            if self.undone and connection.in_transaction:
                sqlite3.Connection.execute(connection, "ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Every connection opened from now on obeys these faults."""
    plan = Faults()

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            plan.meet(self, sql)
            if plan.pages and sql == "BEGIN IMMEDIATE":
                super().execute(f"PRAGMA max_page_count = {plan.pages}")
            return super().execute(sql, *values)

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            plan.meet(self, sql)
            return super().executemany(sql, rows)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Failing, **k))
    yield plan
    plan.at = -1


DOCUMENTS = [
    Document("Ann met Bob in Bern. They met Cid.", id="a", title="One"),
    Document("Dora met Bob in Oslo.", id="b"),
]


async def attempt(folder: Path, faults: Faults, at: int, documents: Sequence[Document]) -> bool:
    """Insert with the statement number `at` failing; whether it did."""
    faults.seen = []
    async with index(folder, ScriptedLLM(read_names)) as rag:
        faults.at = at
        try:
            async with asyncio.timeout(60):
                await rag.insert(documents)
        except StorageError as error:
            assert "disk" in str(error) and str(folder) in str(error)
            return True
        finally:
            faults.at = -1
        return False


def test_an_error_in_any_statement_loses_nothing(tmp_path: Path, faults: Faults) -> None:
    """Each write, BEGIN and COMMIT of an insert and of an update fails once: whole or absent, never else.

    In turn the statement alone fails, or SQLite undoes the whole transaction with it.
    """
    edited = [Document("Ann met Bob in Rome. They left Cid.", id="a", title="One"), DOCUMENTS[1]]
    for version, documents in enumerate((DOCUMENTS, edited)):
        at = -1
        failed = True
        while failed:
            at += 1
            faults.undone = (at + version) % 2 == 1
            before = view(tmp_path) if version else None
            failed = asyncio.run(attempt(tmp_path, faults, at, documents))
            if (tmp_path / "index.sqlite").exists():
                assert problems(tmp_path) == []
            if failed and before is not None:
                assert view(tmp_path) == before
        assert at > 30 and any("COMMIT" in one for one in faults.seen)

    async def build(folder: Path) -> None:
        async with index(folder, ScriptedLLM(read_names)) as rag:
            await rag.insert(edited)

    asyncio.run(build(tmp_path / "fresh"))
    assert view(tmp_path) == view(tmp_path / "fresh")


@pytest.mark.parametrize("word", ["INTO documents", "INTO entity_mentions", "INTO commits"])
async def test_what_was_paid_before_the_error_is_not_paid_again(
    tmp_path: Path, faults: Faults, word: str
) -> None:
    """A commit that fails leaves the answers in the cache: the same insert then asks nobody."""
    llm = ScriptedLLM(read_names)
    async with index(tmp_path, llm) as rag:
        faults.word = word
        with pytest.raises(StorageError, match="free some disk space"):
            await rag.insert(DOCUMENTS)
        faults.word = ""
        assert [d.state for d in await rag.documents()] == ["pending", "pending"]
        calls = len(llm.requests)
        assert (await rag.resume()).documents == ("a", "b")
        assert len(llm.requests) == calls == 2
    assert problems(tmp_path) == []


@pytest.mark.parametrize("way", ["query", "listener", "stream", "events", "reuse"])
async def test_a_question_is_answered_though_nothing_can_be_kept(
    way: str, tmp_path: Path, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is paid for: a full disk costs its trace, and the log says so."""
    told: list[Event] = []
    param = QueryParam(ll_keywords=("Ann",), similarity_reuse=0.9 if way == "reuse" else None)

    full = ["INTO "]

    def answer(request: Request) -> str:
        faults.word = "".join(full)
        return "Ann met Bob."

    async def ask(rag: AsyncLightRAG) -> str:
        if way == "stream":
            return "".join([piece async for piece in rag.stream("Who met Bob?", param)])
        if way == "events":
            told.extend([event async for event in rag.events("Who met Bob?", param)])
            return next(event.text for event in told if isinstance(event, Answered))
        listener = told.append if way == "listener" else None
        return (await rag.query("Who met Bob?", param, listener=listener)).text

    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert(DOCUMENTS)
    async with index(tmp_path, ScriptedLLM(answer)) as rag:
        assert await ask(rag) == "Ann met Bob."
        assert {trace.status for trace in await rag.traces()} <= {"incomplete"}
        full.clear()
        faults.word = ""
        assert await ask(rag) == "Ann met Bob."
        assert (await rag.traces())[0].status == "complete"
    assert any("answer-mix: the model's answer is not kept" in one for one in caplog.messages)
    assert sum("is not stored to its end" in one for one in caplog.messages) == 1
    assert not told or [type(told[0]), type(told[-1])] == [Session, End]


async def test_what_of_a_trace_is_lost_ends_it(tmp_path: Path, faults: Faults) -> None:
    """An event that cannot be stored leaves the trace incomplete, not complete with a hole."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert(DOCUMENTS)

        def fail_once(event: Event) -> None:
            faults.word = "INTO trace_events" if isinstance(event, Session) else ""

        await rag.query("Who met Bob?", QueryParam(ll_keywords=("Ann",)), listener=fail_once)
        (trace,) = await rag.traces()
        assert trace.status == "incomplete"
        assert stored(tmp_path, "SELECT count(*) FROM trace_events") == [(1,)]


async def test_a_database_that_may_not_grow_gives_a_clear_error(
    tmp_path: Path, faults: Faults
) -> None:
    """SQLite's own full disk: the error says what to do, and the same instance goes on once there is room."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert(DOCUMENTS)
        before = view(tmp_path)
        ((used,),) = stored(tmp_path, "PRAGMA page_count")
        many = [Document(f"Person{n} met Ann. " * 40, id=f"m{n}") for n in range(40)]
        for more in (1, 2, 5, 9):
            faults.pages = used + more
            with pytest.raises(StorageError, match="free some disk space"):
                await rag.insert(many)
            assert view(tmp_path) == before and problems(tmp_path) == []
        faults.pages = 1_000_000
        assert len((await rag.insert(many)).documents) == 40
    assert problems(tmp_path) == []


def test_a_file_that_may_not_grow_gives_a_clear_error(tmp_path: Path) -> None:
    """The system refuses to write further: a clear error, nothing torn, and the same insert goes on."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    many = [Document(f"Person{n} met Ann. " * 40, id=f"m{n}") for n in range(40)]

    async def insert(*, limit: int) -> None:
        async with index(tmp_path, ScriptedLLM(read_names)) as rag:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
            try:
                await rag.insert(many)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    asyncio.run(insert_few(tmp_path))
    for limit in (60_000, 120_000):
        with pytest.raises(StorageError, match="nothing that was stored is lost"):
            asyncio.run(insert(limit=limit))
        assert problems(tmp_path) == []
        assert stored(tmp_path, "SELECT count(*) FROM documents WHERE name IN ('a', 'b')") == [(2,)]
    asyncio.run(insert(limit=limits[0]))
    assert stored(tmp_path, "SELECT count(*) FROM documents") == [(42,)]
    assert problems(tmp_path) == []


async def insert_few(folder: Path) -> None:
    async with index(folder, ScriptedLLM(read_names)) as rag:
        await rag.insert(DOCUMENTS)


def test_one_bad_job_does_not_undo_its_neighbours(tmp_path: Path) -> None:
    """Jobs committed together fail alone, whatever they raise, and the writer goes on."""
    database = Database(tmp_path)
    gate = threading.Event()

    def put(key: str) -> Any:
        return lambda c: c.execute("INSERT INTO settings VALUES (?, 'x')", (key,)).rowcount

    def bad(connection: sqlite3.Connection) -> None:
        put("never")(connection)
        raise ValueError("mine")

    first = database.submit(lambda connection: gate.wait(10))
    jobs = [database.submit(job) for job in (put("a"), bad, put("b"), put("a"))]
    gate.set()

    assert first.result(10) and jobs[0].result(10) == jobs[2].result(10) == 1
    assert isinstance(jobs[1].exception(10), ValueError)
    assert isinstance(jobs[3].exception(10), StorageError)
    assert database.write(put("c")) == 1
    database.close()
    assert stored(tmp_path, "SELECT key FROM settings ORDER BY key") == [("a",), ("b",), ("c",)]


def test_one_bad_statement_does_not_undo_its_neighbours(tmp_path: Path) -> None:
    """They share a transaction: one of many rows is undone as a whole all the same."""
    database = Database(tmp_path)
    gate = threading.Event()

    def put(*keys: str) -> Any:
        rows = ", ".join("(?, 'x')" for _ in keys)
        return lambda c: c.execute(f"INSERT INTO settings VALUES {rows}", keys).rowcount

    database.submit(lambda connection: gate.wait(10))
    jobs = [database.submit(put(*keys), single=True) for keys in ("ab", "cda", "ef")]
    gate.set()

    assert [jobs[0].result(10), jobs[2].result(10)] == [2, 2]
    assert isinstance(jobs[1].exception(10), StorageError)
    database.close()
    assert stored(tmp_path, "SELECT key FROM settings ORDER BY key") == [(k,) for k in "abef"]


def test_a_job_that_ends_the_transaction_fails_with_all_its_neighbours(tmp_path: Path) -> None:
    """Where SQLite undid everything, every waiting caller is told, none hangs, and the writer goes on."""
    database = Database(tmp_path)
    gate = threading.Event()

    def ends(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise KeyError("mine")

    def put(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO settings VALUES ('k', 'v')").rowcount

    database.submit(lambda connection: gate.wait(10))
    jobs = [database.submit(job, single=True) for job in (put, ends, put)]
    gate.set()

    assert [isinstance(job.exception(10), StorageError) for job in jobs] == [True] * 3
    assert database.write(put) == 1
    database.close()


def test_without_a_thread_a_write_is_refused_and_the_next_one_done(tmp_path: Path) -> None:
    """As where a container has too many: nobody waits for a thread that never began."""
    database = Database(tmp_path)

    def put(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO settings VALUES ('k', 'v')").rowcount

    with no_threads():
        for _ in range(2):
            with pytest.raises(StorageError, match="no thread can be started"):
                database.submit(put)
    assert database.submit(put).result(10) == 1
    database.close()


async def test_who_stops_waiting_does_not_stop_the_writing(tmp_path: Path) -> None:
    """A cancelled caller leaves its job as it is, and the writer unharmed."""
    database = Database(tmp_path)
    gate = threading.Event()
    database.submit(lambda connection: gate.wait(10))
    put = database.submit(lambda c: c.execute("INSERT INTO settings VALUES ('k', 'v')"))
    task = asyncio.ensure_future(asyncio.wrap_future(put))
    await asyncio.sleep(0)
    task.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    database.close()
    assert stored(tmp_path, "SELECT value FROM settings") == [("v",)]


class Flushes:
    """Stands in for `os.fsync`: counts, fails as often as told, and wakes who waits."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.failed, self.done = threading.Event(), threading.Event()

    def __call__(self, descriptor: int) -> None:
        if self.failures:
            self.failures -= 1
            self.failed.set()
            raise OSError(errno.EIO, "Input/output error")
        self.done.set()


def put_setting(key: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO settings VALUES (?, 'x')", (key,))


@pytest.mark.parametrize("failures", [0, 2])
def test_what_need_not_be_flushed_at_once_is_flushed_soon(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failures: int,
) -> None:
    """Without a further write, and again where the disk refuses, which a warning says once."""
    database = Database(tmp_path)
    flushes = Flushes(failures)
    monkeypatch.setattr(os, "fsync", flushes)
    database.submit(put_setting("a"), flush=False).result(30)
    assert flushes.done.wait(60) and flushes.failures == 0
    warnings = [record.getMessage() for record in caplog.records if "not flushed" in record.msg]
    assert len(warnings) == min(failures, 1) and all("Input/output" in one for one in warnings)
    database.close()
    assert stored(tmp_path, "SELECT key FROM settings") == [("a",)]


def test_of_a_disk_that_stays_full_is_warned_once(
    tmp_path: Path, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    """However much is refused meanwhile; and again once it has been written in between."""
    database = Database(tmp_path)

    def fill() -> None:
        database.submit(put_setting("a"), flush=False).result(30)
        faults.word = "COMMIT"
        for key in "bcd":
            with pytest.raises(StorageError, match="free some disk space"):
                database.submit(put_setting(key), flush=False).result(30)
        faults.word = ""
        database.write(lambda connection: connection.execute("DELETE FROM settings"))

    for times in (1, 2):
        fill()
        told = [one for one in caplog.records if "not flushed" in one.msg]
        assert len(told) == times
    database.close()


def _fails(connection: sqlite3.Connection) -> None:
    put_setting("b")(connection)
    raise ValueError("mine")


@pytest.mark.parametrize("job", [_fails, lambda connection: None])
def test_what_is_not_written_flushes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Any
) -> None:
    """A job that failed, or changed nothing, leaves what was committed before it to the next flush."""
    database = Database(tmp_path)
    flushes = Flushes(0)
    monkeypatch.setattr(os, "fsync", flushes)
    database.submit(put_setting("a"), flush=False).result(30)
    database.submit(job).exception(30)
    assert flushes.done.wait(60)
    database.close()
    assert stored(tmp_path, "SELECT key FROM settings") == [("a",)]


async def test_who_only_looks_leaves_nothing_to_be_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees all that was committed, keeps nobody else from writing, and is no reason for a flush."""
    database = Database(tmp_path)
    database.write(put_setting("a"))
    flushes = Flushes(0)
    monkeypatch.setattr(os, "fsync", flushes)
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)

    def keys(connection: sqlite3.Connection) -> list[tuple[str]]:
        found = connection.execute("SELECT key FROM settings").fetchall()
        with contextlib.closing(sqlite3.connect(database.path, timeout=0)) as other, other:
            put_setting("b")(other)
        return [*found, *connection.execute("SELECT key FROM settings")]

    assert await database.examined(keys) == [("a",), ("a",)]
    assert not flushes.done.wait(0.2)
    database.close()
    assert stored(tmp_path, "SELECT key FROM settings ORDER BY key") == [("a",), ("b",)]


def test_after_a_flush_that_failed_the_next_write_begins_with_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the log cannot be handed to the disk again, nothing is called done; then all is."""
    database = Database(tmp_path)
    flushes = Flushes(1_000_000)
    monkeypatch.setattr(os, "fsync", flushes)
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)
    database.submit(put_setting("a"), flush=False).result(30)
    assert flushes.failed.wait(60)
    with pytest.raises(StorageError, match="Input/output error: free some disk space"):
        database.write(put_setting("b"))
    flushes.failures = 0
    database.write(put_setting("c"))
    assert flushes.done.is_set()
    database.close()
    assert stored(tmp_path, "SELECT key FROM settings ORDER BY key") == [("a",), ("c",)]


def test_a_folder_without_a_write_ahead_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says nothing where it cannot make one: we do, and a later opening makes it."""
    connect = sqlite3.connect

    class Without(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute("PRAGMA journal_mode" if "= WAL" in sql else sql, *values)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Without, **k))
        with pytest.raises(StorageError, match="cannot have a write-ahead log"):
            Database(tmp_path)
    Database(tmp_path).close()
    assert stored(tmp_path, "PRAGMA journal_mode") == [("wal",)]


def test_a_stream_of_small_writes_does_not_put_off_the_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once something has waited long enough, whatever is committed next is flushed with it."""
    database = Database(tmp_path)
    gate = threading.Event()
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)

    def synchronous(connection: sqlite3.Connection) -> int:
        gate.wait(30)
        connection.execute("INSERT OR REPLACE INTO settings VALUES ('note', 'x')")
        return int(connection.execute("PRAGMA synchronous").fetchone()[0])

    def submit() -> Future[int]:
        return database.submit(synchronous, flush=False, single=True)

    first, *others = [submit() for _ in range(1 + writer.GROUP_LIMIT * 2)]
    gate.set()
    assert (first.result(30), others[writer.GROUP_LIMIT - 1].result(30)) == (1, 2)
    database.close()
