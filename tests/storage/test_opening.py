"""Opening a folder: what cannot be opened is an error that says what to do."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import Completion, CorruptError, LockedError, Page, StorageError, VersionError
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import open_index
from lightrag_jsonl.storage.sqlite import database
from lightrag_jsonl.storage.store import FORMAT, Store
from lightrag_jsonl.storage.tables.base import only_column
from tests.kit import store_at
from tests.storage.contract import StoreContract, put_sample, stored_content

Seal = Callable[[Path], Path]


class TestSQLiteStore(StoreContract):
    """The SQLite store keeps the promises of the storage port."""

    def make(self, folder: Path) -> Store:
        """A store in this folder."""
        return store_at(folder)


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """A small index, closed."""
    folder = tmp_path / "kb"
    store = store_at(folder)
    with store.transaction() as transaction:
        put_sample(transaction, 1)
    store.close()
    return folder


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Seal]:
    """A view of a folder that cannot be written to: for root by a mount, else by permissions."""
    undo: list[Callable[[], object]] = []

    def seal(folder: Path) -> Path:
        if os.geteuid():
            folder.chmod(0o500)
            undo.append(lambda: folder.chmod(0o700))
            return folder
        mounted_folder = tmp_path / "view"
        mounted_folder.mkdir()
        for options in (
            ("--bind", folder, mounted_folder),
            ("-o", "remount,bind,ro", mounted_folder),
        ):
            if shutil.which("mount") is None or subprocess.run(("mount", *options)).returncode:
                pytest.skip("mounting is not allowed here")
        undo.append(lambda: subprocess.run(("umount", "--lazy", mounted_folder)))
        return mounted_folder

    yield seal
    for step in undo:
        step()


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """A file is no folder, nor is what would be in it."""
    (tmp_path / "kb").write_text("x", encoding="utf-8")
    for folder in (tmp_path / "kb", tmp_path / "kb" / "deeper"):
        with pytest.raises(StorageError, match="cannot make the folder"):
            store_at(folder)


@pytest.mark.parametrize(
    "statements",
    ["", "CREATE TABLE songs (title)", "CREATE TABLE s (t); PRAGMA user_version = 6"],
)
def test_a_file_of_another_program(tmp_path: Path, statements: str) -> None:
    """It is an error with the path, and not a byte of the file is changed."""
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"" if statements else b"certainly not a database" * 100)
    if statements:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(statements)
    before = path.read_bytes()
    with pytest.raises(CorruptError, match=r"another program|not a database") as caught:
        store_at(tmp_path)
    assert path.read_bytes() == before and caught.value.path == path


FOREIGN = {
    "trigger 't'": "CREATE TRIGGER t AFTER INSERT ON traces BEGIN DELETE FROM documents; END",
    "view 't'": "CREATE VIEW t AS SELECT load_extension('x')",
    "index 't'": "CREATE INDEX t ON documents (abs(characters))",
    "table 'chunks'": "ALTER TABLE chunks ADD COLUMN more TEXT AS (hex(text))",
    "table 'aliases'": "DROP TABLE aliases",
    "table 'settings'": """PRAGMA writable_schema = ON; UPDATE sqlite_schema SET
        sql = replace(sql, 'value TEXT', 'value TEXT CHECK (abs(1))') WHERE name = 'settings'""",
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_prepared_schema_is_refused(kb: Path, what: str) -> None:
    """What is not ours, or was changed, is named and never runs; statistics of ANALYZE are fine."""
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection:
        connection.executescript("ANALYZE")
        with contextlib.closing(store_at(kb)) as store:
            assert store.check() == []
        connection.executescript(FOREIGN[what])
    before = (kb / "index.sqlite").read_bytes()
    with pytest.raises(CorruptError, match=f"the {what} .*not opened"):
        store_at(kb)
    assert (kb / "index.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("number", "advice"),
    [(FORMAT + 1, "upgrade"), (FORMAT - 1, "insert the documents again into a new folder")],
)
def test_an_index_of_another_format(kb: Path, number: int, advice: str) -> None:
    """It is not touched, and the error says what to do."""
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(VersionError, match=advice):
        store_at(kb)


def test_texts_of_pages_and_answers_are_compressed(tmp_path: Path) -> None:
    """They take a fraction of the bytes, and are read as they were written."""
    text = "The salt lake lies high: 盐湖位于高原。\n" * 50
    with contextlib.closing(store_at(tmp_path)) as store, store.transaction() as transaction:
        put_sample(transaction, 1)
        (document,) = transaction.documents()
        transaction.delete_documents([document.row])
        transaction.put_documents([(document, [Page(document.id, 1, text)])])
        transaction.put_completion(b"key", Completion(text))
        assert [page.text for page in transaction.pages([document.id])] == [text]
        completion = transaction.completion(b"key")
        assert completion is not None and completion.text == text
        for table in ("pages", "completions"):
            (size,) = only_column(
                transaction.dialect.execute(f"SELECT max(length(text)) FROM {table}")
            )
            assert size < len(text) / 5


def test_a_file_cut_short(kb: Path) -> None:
    """A truncated file is an error, now or when its end is read, and never an empty index."""
    path = kb / "index.sqlite"
    whole = path.read_bytes()
    for size in (len(whole) // 8, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptError, match=r"damaged.*restore the folder from a copy"):
            stored_content(store_at(kb))


def test_damage_is_found(kb: Path) -> None:
    """`check` says in words what is wrong, and does not raise for a file that is damaged."""
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection:
        connection.executescript(
            "DELETE FROM chunks WHERE id = 1; INSERT INTO chunk_terms (chunk_terms) "
            "VALUES ('delete-all')"
        )
    problems = store_at(kb).check()
    assert "1 rows of chunk_vectors refer to rows of chunks that are missing" in problems
    assert "not in the full text: 1 chunk" in problems
    store = store_at(kb)
    with (kb / "index.sqlite").open("r+b") as file:
        file.seek(3 * database.PAGE_BYTES)
        file.write(b"x" * 30 * database.PAGE_BYTES)
    assert any("malformed" in line or "SQLite" in line for line in store.check())


def test_no_reference_is_looked_up_by_a_scan(kb: Path) -> None:
    """Every column that refers to another table begins an index, so that deleting is quick."""
    indexed = """SELECT i.name FROM pragma_index_list(?1) l, pragma_index_info(l.name) i
        WHERE i.seqno = 0 UNION SELECT name FROM pragma_table_info(?1) WHERE pk = 1"""
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as connection:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        for table in connection.execute(tables).fetchall():
            references = connection.execute('SELECT "from" FROM pragma_foreign_key_list(?)', table)
            assert set(references) <= set(connection.execute(indexed, table)), table


def test_a_busy_database(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waited in vain for another program's transaction gets an error that says so."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    store = store_at(kb)
    with contextlib.closing(
        sqlite3.connect(kb / "index.sqlite", isolation_level=None)
    ) as connection:
        connection.execute("BEGIN IMMEDIATE")
        waiting = store.transaction()
        with pytest.raises(LockedError, match="another process; try again"), waiting:
            pass
        connection.execute("ROLLBACK")
    with store.transaction() as transaction:
        put_sample(transaction, 2)


def test_the_writer_is_named(kb: Path) -> None:
    """The error says which process writes, and what to do."""
    store, second_store = store_at(kb), store_at(kb)
    writer_is_named = pytest.raises(LockedError, match=rf"process {os.getpid()} on .* wait")
    with store.writer_lock(0), writer_is_named, second_store.writer_lock(0.01):
        pass


def test_a_sealed_folder_is_read(kb: Path, sealed: Seal) -> None:
    """All is found as where it can be written to; an error says how to write: copy the folder."""
    expected = stored_content(store_at(kb))
    store = store_at(sealed(kb), create=False)
    assert store.read_only and stored_content(store) == expected and store.check() == []
    for use in (store.transaction, lambda: store.writer_lock(0)):
        with pytest.raises(StorageError, match="copy the folder to change it"), use():
            pass


def test_a_sealed_folder_is_read_beside_its_writer(kb: Path, sealed: Seal) -> None:
    """What somebody who may write commits meanwhile is seen by the next reader."""
    store = store_at(sealed(kb))
    writer = store_at(kb)
    for number in (2, 3):
        if number == 3:
            writer.close()
            writer = store_at(kb)
        with writer.transaction() as transaction:
            put_sample(transaction, number)
        assert stored_content(store) == stored_content(writer)


def test_a_sealed_folder_is_reported_once(
    kb: Path, sealed: Seal, caplog: pytest.LogCaptureFixture
) -> None:
    """However often its settings were looked up before; that nothing can be kept is all it says."""
    with open_index(Setup(sealed(kb))) as rag:
        assert len(rag.documents()) == 1
    (message,) = caplog.messages
    assert message.endswith("can only be read: answers and traces are not kept")


@pytest.mark.parametrize("name", database.FILE_NAMES)
def test_links_in_the_folder_are_refused(kb: Path, tmp_path: Path, name: str) -> None:
    """A prepared folder cannot lead to another index, or let a file of somebody else be written."""
    other_folder = tmp_path / "other"
    shutil.copytree(kb, other_folder)
    target = other_folder / name
    target.touch()
    before = target.read_bytes()
    (kb / name).unlink(missing_ok=True)
    (kb / name).symlink_to(target)
    with pytest.raises(StorageError, match="is a symbolic link"):
        store_at(kb)
    assert target.read_bytes() == before


def test_link_to_a_folder_opens_the_index_in_it(kb: Path, tmp_path: Path) -> None:
    """The folder itself may be named by a link: whoever opens it has chosen that."""
    link = tmp_path / "知识库"
    link.symlink_to(kb)
    with contextlib.closing(store_at(link)) as store, store.view() as view:
        assert view.documents()


@pytest.mark.parametrize("statement", [b"CREATE TABLE chunks (", b"CREATE INDEX chunks_document "])
def test_a_damaged_schema_is_an_error_in_words(kb: Path, statement: bytes) -> None:
    """Also where SQLite's own message quotes bytes that are no text."""
    file = kb / "index.sqlite"
    file.write_bytes(
        file.read_bytes().replace(statement, statement[:12] + b"\xe5\xb6" + statement[14:])
    )
    with (
        pytest.raises(StorageError, match=r"index\.sqlite") as caught,
        store_at(kb).view() as view,
    ):
        view.documents()
    assert "damaged" in str(caught.value)


def test_a_damaged_vector_is_an_error_in_words(kb: Path) -> None:
    """An odd number of bytes is no vector in half precision."""
    with contextlib.closing(sqlite3.connect(kb / "index.sqlite")) as database, database:
        database.execute("UPDATE entity_vectors SET data = x'010203'")
    with (
        contextlib.closing(store_at(kb)) as store,
        pytest.raises(CorruptError, match="malformed vector"),
        store.view() as view,
    ):
        view.vectors("entity", view.entity_rows())
