"""What docs/operators.md says: roles with least privilege, locks, full servers, and wrong addresses in words."""

import contextlib
from collections.abc import Callable
from urllib.parse import quote, unquote

import psycopg
import pytest

from lightrag_jsonl import ConfigError, LightRAG, LockedError, StorageError, UnavailableError
from lightrag_jsonl.core.address import DatabaseURL, as_address
from tests.kit import store_at

Url = Callable[[object], str]


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url.partition("&index=")[0], autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("indx=x", "'indx'; did you mean index"),
        ("pool_sise=3", "did you mean pool_size"),
        ("pool_size=many", "pool_size='many' must be a whole number"),
        ("lock_timeout=-1", "lock_timeout='-1' must be a number of seconds"),
        ("graph=database&graph=memory", "graph is given twice"),
    ],
)
def test_a_wrong_parameter_is_named(url: Url, parameter: str, words: str) -> None:
    """A typo does not become another setting."""
    with pytest.raises(ConfigError, match=words):
        LightRAG(f"{url('typo')}&{parameter}")


def test_a_url_keeps_its_values() -> None:
    """Spaces, plus signs and an empty host reach libpq as they were written."""
    address = as_address("postgresql:///db?host=/my%20dir&options=-c%20a%3Db&application_name=a+b")
    assert isinstance(address, DatabaseURL)
    assert address.uri.startswith("postgresql:///db?") and "+" not in address.uri
    parts = psycopg.conninfo.conninfo_to_dict(address.uri)
    assert parts["host"] == "/my dir" and parts["options"] == "-c a=b"
    assert parts["application_name"] == "a+b" == unquote("a%2Bb")


@pytest.mark.parametrize("name", ["My Books", 'of "1984"', "图书", "sELECT", "a'b\\c", "%20"])
def test_an_index_of_any_name(url: Url, name: str) -> None:
    """What can be the name of a schema, with spaces, capitals, quotes or in another script, is written and read."""
    address = f"{url('x').rpartition('=')[0]}={quote(name, safe='')}"
    with LightRAG(address) as rag:
        rag.insert("Ann met Bob in Paris.")
        assert "Paris" in rag.query("Where did Ann meet Bob?").text
        assert rag.status().bytes_on_disk and rag.admin.check(full=True) == []
        rag.admin.vacuum()
        rag.admin.snapshot("before")
        assert len(rag.admin.snapshots()) == 1
        rag.delete(rag.documents()[0].id)
        assert rag.documents() == ()
    run(address, f'DROP SCHEMA "{name.replace(chr(34), 2 * chr(34))}" CASCADE')


@pytest.mark.parametrize(
    "address",
    [
        "mysql://root@host/db",
        "https://host/db",
        "POSTGRESQL://host/db",
        "postgresql+psycopg://host/db",
        "postgresql:/host/db",
        "postgresql:library",
        " sqlite:///kb",
    ],
)
def test_the_url_of_something_else_is_no_folder(address: str) -> None:
    """An insert would make folders of that name."""
    with pytest.raises(ConfigError, match="in a folder, or at postgresql://"):
        LightRAG(address)


def test_a_schema_made_by_the_owner_is_enough(url: Url) -> None:
    """A writer without rights on the database; it goes on when its connections were ended."""
    schema = url("owned").rpartition("=")[2]
    run(
        url("owned"),
        "CREATE EXTENSION IF NOT EXISTS vector",
        "CREATE ROLE kb_writer LOGIN",
        f"CREATE SCHEMA {schema} AUTHORIZATION kb_writer",
    )
    try:
        with LightRAG(url("owned").replace("//postgres:", "//kb_writer:")) as rag:
            rag.insert("Ann met Bob in Paris.")
            run(
                url("owned"),
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'kb_writer'",
            )
            assert len(rag.insert("Cy met Dan in Rome.").documents) == 1
    finally:
        run(url("owned"), "DROP OWNED BY kb_writer CASCADE", "DROP ROLE kb_writer")


def test_a_reader_does_not_wait_without_end_behind_a_lock(url: Url) -> None:
    """The error says what to do, and the next question is answered."""
    with contextlib.closing(store_at(url("lock"))) as made:
        assert made.is_empty()
    schema = url("lock").rpartition("=")[2]
    with contextlib.closing(store_at(f"{url('lock')}&lock_timeout=0.1")) as store:
        with psycopg.connect(url("lock").partition("&index=")[0]) as other:
            other.execute(f"LOCK TABLE {schema}.chunks")
            with pytest.raises(LockedError, match="lock_timeout"):
                store.is_empty()
        assert store.is_empty()


def test_a_missing_database_and_a_full_server_are_told(url: Url) -> None:
    """Each in its own words."""
    missing = url("none").replace("/postgres?", "/nowhere?")
    with pytest.raises(StorageError, match="createdb"):
        store_at(missing)
    for login in ("//nobody_of_that_name:", "//kb_no_login:"):
        run(url("none"), "DROP ROLE IF EXISTS kb_no_login", "CREATE ROLE kb_no_login")
        with pytest.raises(StorageError, match="lets nobody in") as caught:
            store_at(url("none").replace("//postgres:", login))
        assert not isinstance(caught.value, UnavailableError)
    with pytest.raises(StorageError, match="wrong value"):
        store_at(f"{url('none')}&sslmode=maybe")
    run(url("full"), "CREATE ROLE kb_full LOGIN CONNECTION LIMIT 0")
    try:
        with pytest.raises(UnavailableError, match="pool_size"):
            store_at(url("full").replace("//postgres:", "//kb_full:"))
    finally:
        run(url("full"), "DROP ROLE kb_full")
