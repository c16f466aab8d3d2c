"""PgBouncer before the database: sessions are kept, and whoever shares them is told."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from lightrag_jsonl import LightRAG, StorageError
from lightrag_jsonl.storage.postgres import connection, database
from tests.server.running import wait_for

Url = Callable[[object], str]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not shutil.which("pgbouncer"), reason="needs pgbouncer in PATH"),
]
CONFIGURATION = """[databases]
postgres = host={host} user=postgres
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = {mode}
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
"""


@contextlib.contextmanager
def pooled(url: str, mode: str) -> Iterator[str]:
    """The URL of an index through PgBouncer with a `pool_mode`."""
    host = url.partition("host=")[2].partition("&")[0]
    folder = Path(tempfile.mkdtemp(prefix="lightrag-jsonl-pooler-"))
    folder.chmod(0o777)
    settings = folder / "pgbouncer.ini"
    settings.write_text(CONFIGURATION.format(host=host, folder=folder, mode=mode), encoding="utf-8")
    user = ["-u", "pgserver"] if os.geteuid() == 0 else []  # it does not run as root
    log = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    pooler = subprocess.Popen(["pgbouncer", *user, settings], **log)  # type: ignore[call-overload]
    try:
        wait_for((folder / ".s.PGSQL.6432").exists)
        yield url.replace(f"host={host}", f"host={folder}&port=6432")
    finally:
        pooler.terminate()
        pooler.wait()
        shutil.rmtree(folder)


def test_an_index_is_written_and_read_through_kept_sessions(url: Url) -> None:
    """With pool_mode = session, as the page for operators says."""
    with pooled(url("pooled"), "session") as address, LightRAG(address) as rag:
        rag.insert("Ann Lee met Bob Ray in Paris.")
        with LightRAG(address) as other:
            other.insert("Cy Dole met Dan Eck in Rome.")
        assert "Dan Eck" in rag.query("Whom did Cy Dole meet?").text
        assert rag.admin.check(full=True) == []


@pytest.mark.parametrize("knows_statements", [False, True])
def test_nobody_writes_under_a_lock_that_others_share(
    url: Url, monkeypatch: pytest.MonkeyPatch, knows_statements: bool
) -> None:
    """With pool_mode = transaction the lock would be everybody's: nothing is written, and the error names PgBouncer;
    also if prepared statements pass, as they do through PgBouncer 1.21 and later.
    """
    monkeypatch.setattr(database, "WAIT_SECONDS", 1.0)
    if knows_statements:  # none are prepared, which looks alike from here
        arguments = {"autocommit": True, "prepare_threshold": None}
        monkeypatch.setattr(connection, "connection_arguments", lambda _: arguments)
        monkeypatch.setattr(database, "connection_arguments", lambda _: arguments)
    index = url("shared").rpartition("=")[2]
    with LightRAG(url("shared")) as rag:
        rag.insert("Ann Lee met Bob Ray in Paris.")
    with (
        pooled(url("shared"), "transaction") as address,
        pytest.raises(StorageError, match="pool_mode = session"),
        LightRAG(address) as rag,
    ):
        rag.insert("Cy Dole met Dan Eck in Rome.")
    with psycopg.connect(url("shared").partition("&index=")[0]) as direct:
        assert direct.execute(f"SELECT count(*) FROM {index}.documents").fetchall() == [(1,)]
