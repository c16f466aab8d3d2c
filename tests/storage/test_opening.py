"""Opening a folder that cannot be used, or was made by something else: the error says what to do."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import shutil
import socket
import sqlite3
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG
from lightrag_jsonl.adapters.offline import HashEmbedder
from lightrag_jsonl.errors import (
    ConfigError,
    CorruptError,
    SettingsError,
    StorageError,
    VersionError,
)
from lightrag_jsonl.storage import checks, schema
from lightrag_jsonl.storage.database import FILE_NAME, Database
from lightrag_jsonl.storage.embeddings import stored_keys
from lightrag_jsonl.testing import ScriptedLLM
from lightrag_jsonl.types import Document
from tests.indexing.kit import index, read_names, stored


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """A file is no folder, nor is what would lie in it."""
    (tmp_path / "kb").write_text("x", encoding="utf-8")
    with pytest.raises(StorageError, match="is a file; name a folder"):
        Database(tmp_path / "kb")
    with pytest.raises(StorageError, match="cannot make the folder"):
        Database(tmp_path / "kb" / "deeper")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    """The error names the folder and the permissions."""
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match=r"can be written to|permissions"):
        Database(tmp_path)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Something else under the name of the index is damaged, not empty, and stays as it is."""
    (tmp_path / FILE_NAME).write_bytes(b"not a database at all" * 100)
    with pytest.raises(CorruptError, match="damaged or no database"):
        Database(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes().startswith(b"not a database")


def test_a_database_of_another_program(tmp_path: Path) -> None:
    """Not a byte of somebody else's tables is changed."""
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
        other.execute("CREATE TABLE songs (title)")
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(CorruptError, match="another program"):
        Database(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_database_of_a_newer_version(tmp_path: Path) -> None:
    """It is not touched, and the error says to upgrade."""
    Database(tmp_path).close()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as newer:
        newer.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    with pytest.raises(VersionError, match="upgrade lightrag-jsonl") as caught:
        Database(tmp_path)
    assert caught.value.path == tmp_path / FILE_NAME


async def test_a_database_cut_short(tmp_path: Path) -> None:
    """A truncated file is an error with the path, never an empty index."""
    async with index(tmp_path, ScriptedLLM(read_names)) as rag:
        await rag.insert(Document("Ann met Bob in Bern. " * 30, id="x"))
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StorageError):
        for table in ("chunks", "vectors", "entity_mentions", "completions"):
            stored(tmp_path, f"SELECT * FROM {table}")


def test_a_copy_beside_the_log_of_another_file(tmp_path: Path) -> None:
    """As where a backup is put in the place of what a killed process left: the error says what goes first."""
    kb, backup, left = tmp_path / "kb", tmp_path / "backup.sqlite", tmp_path / "left"
    with LightRAG(kb) as rag:
        rag.insert(Document("Ann met Bob.", id="a"))
    shutil.copy(kb / FILE_NAME, backup)
    with LightRAG(kb) as rag:
        rag.insert(Document(f"Ann{n} met Bob{n} in Bern.", id=f"{n}") for n in range(60))
    with LightRAG(kb) as rag:
        rag.insert(Document("Cid met Dan in 北京.", id="z"))
        shutil.copytree(kb, left)  # as a kill leaves it
    shutil.copy(backup, left / FILE_NAME)
    said = f"delete it, {FILE_NAME}-wal and {FILE_NAME}-shm, then"
    with pytest.raises(CorruptError, match=said), LightRAG(left) as rag:
        rag.retrieve("Who met Bob?")
    for path in left.glob(f"{FILE_NAME}*"):
        path.unlink()
    shutil.copy(backup, left / FILE_NAME)
    with LightRAG(left) as rag:
        assert [document.id for document in rag.documents()] == ["a"]


def test_settings_that_may_not_change(tmp_path: Path) -> None:
    """Another embedder, dimension, tokenizer or language is refused, with what to do, before anything is written."""

    async def build(language: str, dim: int) -> None:
        async with index(
            tmp_path, ScriptedLLM(read_names), language=language, embedder=HashEmbedder(dim=dim)
        ) as rag:
            await rag.insert(Document("Ann met Bob.", id="x"))

    asyncio.run(build("en", 64))
    for language, dim, advice in (("en", 128, "reembed"), ("zh", 64, "language")):
        with pytest.raises(SettingsError, match=advice) as caught:
            asyncio.run(build(language, dim))
        assert isinstance(caught.value, ConfigError) and str(tmp_path) in str(caught.value)
    assert stored(tmp_path, "SELECT value FROM settings WHERE key = 'language'") == [("en",)]
    asyncio.run(build("en", 64))


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    """Reading and writing after `close` is a `StorageError`; closing twice is fine."""
    rag = LightRAG(tmp_path, llm=ScriptedLLM(read_names))
    rag.insert("Ann met Bob.")
    rag.close()
    rag.close()
    with pytest.raises(StorageError, match="was closed"):
        rag.status()
    database = Database(tmp_path)
    database.close()
    with pytest.raises(StorageError, match="was closed"):
        database.submit(lambda connection: None)


def test_no_migration_is_missing() -> None:
    """From format 1 on each format has its step to the next one."""
    assert sorted(schema.MIGRATIONS) == list(range(1, schema.FORMAT))


@pytest.mark.parametrize("number", range(1, schema.FORMAT + 1))
def test_an_index_of_any_format_is_opened(tmp_path: Path, number: int) -> None:
    """An index written by each format so far is migrated, answers, is sound, and can be changed."""
    packed = Path(__file__).with_name(f"format-{number}.sqlite.gz").read_bytes()
    (tmp_path / FILE_NAME).write_bytes(gzip.decompress(packed))
    with LightRAG(tmp_path, embedder=HashEmbedder(dim=16)) as rag:
        assert rag.status().format == schema.FORMAT
        context = rag.retrieve("Where did Pierre Curie teach?", mode="walk")
        assert {chunk.document_id for chunk in context.chunks} == {"curie", "pierre"}
        assert "Marie Curie" in {entity.name for entity in context.entities}
        assert rag.verify() == ()
        rag.insert(Document("Irène Curie was born in Paris.", id="irene"))
        rag.delete("curie", "pierre")
        assert [chunk.document_id for chunk in rag.retrieve("Paris").chunks] == ["irene"]
    with (
        contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection,
        contextlib.closing(sqlite3.connect(":memory:")) as fresh,
    ):
        assert checks.problems(connection) == []
        schema.create(fresh)
        shape = "SELECT s.type, s.name, c.name FROM sqlite_schema s, pragma_table_xinfo(s.name) c ORDER BY 1, 2, 3"
        assert connection.execute(shape).fetchall() == fresh.execute(shape).fetchall()


def test_a_summary_of_format_1_is_renewed_when_it_is_due(tmp_path: Path) -> None:
    """What it covers is counted once, when the index is led to format 2."""
    facts = [
        {"type": "entity", "name": "Hub", "entity_type": "place", "description": f"Fact {n}."}
        for n in range(20)
    ]
    llm = ScriptedLLM(lambda request: "A summary.")

    def tell(number: int) -> None:
        with LightRAG(tmp_path, llm=llm, embedder=HashEmbedder(dim=16)) as rag:
            rag.insert_records(Document(f"Text {number}.", id=f"d{number}"), [facts[number]])

    for number in range(10):
        tell(number)
    assert len(llm.requests) == 1
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as old:
        for table in ("entities", "relations"):
            old.execute(f"ALTER TABLE {table} DROP COLUMN covered_mentions")
        old.execute("CREATE INDEX relations_high ON relations (high)")
        rows = old.execute("SELECT data FROM vectors ORDER BY block").fetchall()
        single = [row[0][at : at + 64] for row in rows for at in range(0, len(row[0]), 64)]
        keys = stored_keys(old)
        old.execute("CREATE TABLE embeddings (id INTEGER PRIMARY KEY, digest BLOB, vector BLOB)")
        old.executemany(
            "INSERT INTO embeddings VALUES (?, ?, ?)",
            [(*key, vector) for key, vector in zip(keys, single, strict=True)],
        )
        old.execute("DROP TABLE vectors")
        old.execute("DROP TABLE vector_keys")
        old.execute("DROP TABLE earlier_summaries")
        old.execute("PRAGMA user_version = 1")
        old.commit()
    for number in range(10, 15):
        tell(number)
    assert len(llm.requests) == 1
    tell(15)
    assert len(llm.requests) == 2
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert checks.problems(connection) == []


def test_a_folder_that_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links in a circle, and a relative path where the current folder is gone, are errors in words."""
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(StorageError, match=r"the folder .*circle"):
        Database(tmp_path / "circle" / "kb")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StorageError, match="no place for the folder kb"):
        Database("kb")


def test_a_damaged_lock_is_no_damaged_index(tmp_path: Path) -> None:
    """A power cut may leave it so: the error says that it can go, and without it all is well."""
    with LightRAG(tmp_path) as rag:
        rag.insert(Document("Ann met Bob.", id="a"))
        (tmp_path / "writer.lock").write_bytes(b"not a database at all" * 100)
        with pytest.raises(CorruptError, match="nothing but who is writing: delete it"):
            rag.insert(Document("Cid met Dan.", id="b"))
        (tmp_path / "writer.lock").unlink()
        assert rag.insert(Document("Cid met Dan.", id="b")).documents == ("b",)


@pytest.mark.parametrize("name", ["caf\udce9", "", "乔峰"])
def test_a_machine_of_an_odd_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes leaves word of who it is, as far as it can be stored."""
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    with LightRAG(tmp_path) as rag:
        assert rag.insert(Document("Ann met Bob.", id="a")).documents == ("a",)
