"""An index in a folder that cannot be written to: asked and looked at, and never half seen."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.errors import StorageError, VersionError
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.storage.database import FILE_NAME, Database
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Document
from tests.cli.conftest import invoke
from tests.indexing.kit import problems, stored

Mount = Callable[[Path], Path]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mount]:
    """A read-only view of a folder, which others may still write to; skipped where none is allowed."""
    views: list[Path] = []

    def mount(folder: Path) -> Path:
        view = tmp_path / f"view-{len(views)}"
        view.mkdir()
        for options in (["--bind", folder, view], ["-o", "remount,bind,ro", view]):
            try:
                subprocess.run(["mount", *options], check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("only root may mount, where it may")
            views[len(views) :] = [view] if view not in views else []
        return view

    yield mount
    for view in views:
        subprocess.run(["umount", "--lazy", view], check=True)


@pytest.fixture
def sealed(mounted: Mount) -> Iterator[Mount]:
    """A folder that cannot be written to: to root by a mount, to others by its permissions."""
    closed: list[Path] = []

    def seal(folder: Path) -> Path:
        if os.geteuid() == 0:
            return mounted(folder)
        closed.append(folder)
        folder.chmod(0o500)
        return folder

    yield seal
    for folder in closed:
        folder.chmod(0o700)


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """A small index, with one question asked of it."""
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(Document("Ann met Bob in Bern. 乔峰到了大理。", id="a"))
        rag.query("Who met Bob?")
    return tmp_path / "kb"


def test_it_is_asked_looked_at_and_exported(
    kb: Path, sealed: Mount, caplog: pytest.LogCaptureFixture
) -> None:
    """As where it can be written to; one warning says that nothing of it is kept."""
    events = []
    with LightRAG(sealed(kb), llm=ScriptedLLM(lambda request: "Ann did [1].")) as rag:
        for question in ("Who met Bob?", "乔峰到了哪里？"):
            answer = rag.query(question, QueryParam(similarity_reuse=0.9), listener=events.append)
            assert answer.text == "Ann did [1]." and answer.citations
            assert answer.trace_id is None
        assert "Ann" in rag.graph and rag.retrieve("Bern", mode="naive").chunks
        assert [one.id for one in rag.documents()] == ["a"] and rag.status().chunks == 1
        assert rag.records() and rag.pages("a") and rag.duplicates() == ()
        (trace,) = rag.traces()
        assert rag.trace(trace.id).question == "Who met Bob?" and rag.verify() == ()
    assert events[-1].stage == "end"
    assert [record.message for record in caplog.records if "no trace" in record.message] == [
        f"{rag.working_dir} cannot be written to: questions leave no trace, and what a model "
        "answers is not kept"
    ]
    assert sorted(path.name for path in kb.iterdir()) == [FILE_NAME, "writer.lock"]
    assert len(stored(kb, "SELECT * FROM traces")) == 1


def test_whoever_writes_is_told(kb: Path, sealed: Mount) -> None:
    """Before a model is asked for anything, with the folder and what to do."""
    llm = ScriptedLLM([])
    with LightRAG(sealed(kb), llm=llm) as rag:
        for write in (
            lambda: rag.insert("Cid met Dan."),
            lambda: rag.insert_records("Cid met Dan.", []),
            lambda: rag.update(Document("Cid met Dan.", id="a")),
            lambda: rag.delete("a"),
            rag.retry,
            rag.resume,
            rag.repair,
            rag.vacuum,
            rag.clear_cache,
            lambda: rag.merge_entities(["Ann"], into="Bob"),
            lambda: rag.forget_traces(keep=0),
        ):
            with pytest.raises(StorageError, match=r"cannot be written to.*copy the folder"):
                write()
    assert not llm.requests
    assert problems(kb) == []


def test_the_command_line(kb: Path, sealed: Mount) -> None:
    """Looking goes as ever; what writes ends with an error in words."""
    folder = sealed(kb)
    for command in ("status", "documents", "export", "doctor", "explain list", "explain show"):
        result = invoke(*command.split(), "-w", folder)
        assert result.exit_code == 0, result.output
    for command in ("query", "query --explain", "query --stream", "retrieve"):
        result = invoke(*command.split(), "-w", folder, "Who met Bob?")
        assert result.exit_code == 0 and "Bern" in result.stdout
    for command in ("insert README.md", "delete a", "vacuum", "doctor --repair"):
        result = invoke(*command.split(), "-w", folder)
        assert result.exit_code == 1 and "cannot be written to" in result.output


def test_what_is_in_the_log_is_seen(kb: Path, tmp_path: Path, sealed: Mount) -> None:
    """A killed process leaves commits in the log: they are read with it, or told of, not passed over."""
    left, copied = tmp_path / "left", tmp_path / "copied"
    with LightRAG(kb) as rag:
        rag.insert(Document("Cid met Dan.", id="b"))
        shutil.copytree(kb, left)
        shutil.copytree(kb, copied, ignore=shutil.ignore_patterns("*-shm"))
    with LightRAG(sealed(left)) as rag:
        assert [one.id for one in rag.documents()] == ["a", "b"]
        assert "Cid" in rag.graph
    with pytest.raises(StorageError, match="what was stored last is in a file beside it"):
        LightRAG(sealed(copied))
    with LightRAG(copied) if os.geteuid() == 0 else contextlib.nullcontext() as rag:
        assert rag is None or [one.id for one in rag.documents()] == ["a", "b"]


def test_an_earlier_format_is_not_migrated(kb: Path, sealed: Mount) -> None:
    """It cannot be; the error says where it can."""
    with contextlib.closing(sqlite3.connect(kb / FILE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(VersionError, match="format 3 and cannot be written to"):
        LightRAG(sealed(kb))


def test_what_others_write_meanwhile(kb: Path, mounted: Mount) -> None:
    """Who only reads sees each commit at the next question, wherever it stands: in the log or no more."""
    with LightRAG(mounted(kb)) as reader:
        for number in range(3):
            assert len(reader.documents()) == 1 + 2 * number
            with LightRAG(kb) as writer:
                writer.insert(Document(f"Eve met Fay{number}.", id=f"c{number}"))
                assert f"Fay{number}" in reader.graph
                assert f"Fay{number}" in reader.retrieve("Fay", mode="naive").prompt
                writer.insert(Document(f"Gil met Hal{number}.", id=f"d{number}"))
            assert f"Hal{number}" in reader.graph


def test_a_file_that_changes_while_it_is_read(kb: Path, mounted: Mount) -> None:
    """Nothing holds who writes elsewhere: what was read may be of two moments, and is an error."""
    with contextlib.closing(Database(mounted(kb))) as database:
        with (
            pytest.raises(StorageError, match="was written to while it was read"),
            database.reading(),
            LightRAG(kb) as writer,
        ):
            writer.insert(Document("Eve met Fay.", id="b"))
            writer.vacuum()
        with database.reading() as connection:
            assert connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)


def test_a_connection_serves_until_the_file_changes(kb: Path, mounted: Mount) -> None:
    """One reader after another has it, several at a time have their own; none sees an older file."""
    with contextlib.closing(Database(mounted(kb))) as database:
        with database.reading() as first, database.reading() as second:
            assert first is not second and first.in_transaction
        with database.reading(single=True) as again:
            assert again in (first, second) and not again.in_transaction
        with LightRAG(kb) as writer:
            writer.insert(Document("Eve met Fay.", id="b"))
        with database.reading() as later:
            assert later.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    for connection in (first, second, later):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
