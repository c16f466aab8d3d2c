"""Files of the graph and the vectors: mapped by every process, never the truth, gone after a purge."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from lightrag_jsonl.storage.sqlite import memory
from lightrag_jsonl.storage.sqlite.memory import FOLDER
from lightrag_jsonl.storage.store import Store
from tests.kit import store_at
from tests.storage.contract import put_sample, stored_content


@pytest.fixture(autouse=True)
def files_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files of the smallest index."""
    monkeypatch.setattr(memory, "SMALLEST_FILES", 1)


def folders(index: Path) -> list[Path]:
    """The folders with files of an index."""
    return list(index.glob(FOLDER.format("*")))


def add_documents(store: Store, *numbers: int) -> None:
    """Store documents, a commit each."""
    for number in numbers:
        with store.transaction() as transaction:
            put_sample(transaction, number)


def read_from_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What a store holds that maps no files."""
    with monkeypatch.context() as patch:
        patch.setattr(memory.MemoryFiles, "read", lambda self, view: None)
        patch.setattr(memory, "SMALLEST_FILES", 1_000_000)
        return stored_content(store_at(folder))


def test_the_next_process_reads_no_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search after an insert writes files; who opens the index then only maps these."""
    store = store_at(tmp_path)
    add_documents(store, 1, 2, 3)
    content = stored_content(store)

    def refused(*arguments: object) -> None:
        raise AssertionError("vectors are read from the database")

    monkeypatch.setattr(memory.SQLiteMemory, "load", refused)
    further = store_at(tmp_path)
    assert stored_content(further) == content
    with further.snapshot() as snapshot:
        for column in snapshot.graph.columns.values():
            assert isinstance(column.base, np.memmap)


def test_files_without_relations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index in which a kind has no vectors, or no rows at all, is mapped like any other."""
    store = store_at(tmp_path)
    add_documents(store, 1)
    with store.transaction() as transaction:
        transaction.dialect.execute("UPDATE relation_mentions SET relation = NULL")
        transaction.delete_graph_rows("relation", transaction.relation_rows())
    content = stored_content(store)
    monkeypatch.setattr(memory.SQLiteMemory, "load", lambda self, view: pytest.fail("loaded"))
    assert stored_content(store_at(tmp_path)) == content


def test_stale_files_are_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From older files on, a process reads what changed since, and finds the same as any other."""
    store = store_at(tmp_path)
    add_documents(store, 1, 2, 3, 4)
    stored_content(store)
    with store.transaction() as transaction:
        transaction.delete_documents([2])
        put_sample(transaction, 5)
        transaction.put_vectors("chunk", {1: (b"new", np.ones(4, np.float32))})
    further = store_at(tmp_path)
    content = stored_content(further)
    assert content == stored_content(store) == read_from_database(tmp_path, monkeypatch)


def test_files_are_written_anew_after_many_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once much has changed, there are new files in place of the old ones."""
    monkeypatch.setattr("lightrag_jsonl.storage.vector_index.LONGEST_TAIL", 0)
    store = store_at(tmp_path)
    add_documents(store, 1, 2)
    stored_content(store)
    (old_folder,) = folders(tmp_path)
    add_documents(store, 3, 4)
    content = stored_content(store)
    (new_folder,) = folders(tmp_path)
    assert new_folder != old_folder
    assert content == read_from_database(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["chunks.npy", "entity.faiss", "relation_ids.npy"])
@pytest.mark.parametrize(
    "damage", ["missing", "empty", "foreign", "cut", "longer", "header", "middle", "end"]
)
def test_damaged_files_are_ignored(tmp_path: Path, name: str, damage: str) -> None:
    """What is missing, empty, cut off or of another kind is made anew from the database."""
    store = store_at(tmp_path)
    add_documents(store, 1, 2)
    content = stored_content(store)
    (folder,) = folders(tmp_path)
    path = folder / name
    whole = path.read_bytes()
    path.unlink()
    if damage != "missing":
        contents = {"empty": b"", "foreign": b"IxF2" + whole, "cut": whole[:-5]}
        contents |= {"longer": whole + b"\0", "header": changed_byte(whole, 20)}
        contents |= {"middle": changed_byte(whole, len(whole) // 2), "end": changed_byte(whole, -1)}
        path.write_bytes(contents[damage])
    assert stored_content(store_at(tmp_path)) == content


def changed_byte(data: bytes, position: int) -> bytes:
    """The bytes with another one at a position."""
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)


def test_a_check_finds_damage_to_a_file_in_use(tmp_path: Path) -> None:
    """Whoever opens the index later does not use it; `doctor` names it to whoever does already."""
    store = store_at(tmp_path)
    add_documents(store, 1, 2)
    content = stored_content(store)
    assert not store.check()
    (folder,) = folders(tmp_path)
    path = folder / "entity.faiss"
    path.write_bytes(changed_byte(path.read_bytes(), path.stat().st_size - 1))
    (problem,) = store.check()
    assert f"{folder.name}/entity.faiss is damaged" in problem
    shutil.rmtree(folder)
    assert stored_content(store_at(tmp_path)) == content
    assert not store.check()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"chunks.npy": 1}', b"\xff", b'{"gone.npy": [1, 2, 3]}']
)
def test_files_with_damaged_checksums_are_ignored(tmp_path: Path, content: bytes) -> None:
    """They are made anew, like files of which some are missing."""
    store = store_at(tmp_path)
    add_documents(store, 1, 2)
    expected = stored_content(store)
    (folder,) = folders(tmp_path)
    (folder / "checksums.json").write_bytes(content)
    assert stored_content(store_at(tmp_path)) == expected
    assert not store.check()


def test_files_of_another_history_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that was restored from a copy does not take over the files that came later, although
    it reaches the number of their generation again.
    """
    index = tmp_path / "index"
    store = store_at(index)
    add_documents(store, 1)
    stored_content(store)
    store.close()
    shutil.copytree(index, tmp_path / "copy")
    store = store_at(index)
    add_documents(store, 2, 3)
    with store.transaction() as transaction:
        transaction.put_vectors("chunk", {1: (b"late", np.full(4, 0.5, np.float32))})
    monkeypatch.setattr("lightrag_jsonl.storage.vector_index.LONGEST_TAIL", 0)
    stored_content(store)
    store.close()
    for path in index.glob("index.sqlite*"):
        path.unlink()
    shutil.copy(tmp_path / "copy" / "index.sqlite", index / "index.sqlite")
    store = store_at(index)
    add_documents(store, 4, 5, 6)
    assert stored_content(store) == read_from_database(index, monkeypatch)


def test_nothing_is_left_after_vacuum(tmp_path: Path) -> None:
    """`vacuum` deletes all files, also those of a process that was killed; the index stays whole."""
    store = store_at(tmp_path)
    add_documents(store, 1, 2)
    content = stored_content(store)
    (tmp_path / FOLDER.format("0123456789abcdef")).mkdir()
    (tmp_path / FOLDER.format("0123456789abcdef") / "chunks.npy").write_bytes(b"left over")
    (tmp_path / "copy-0123456789abcdef").mkdir()
    (tmp_path / "copy-0123456789abcdef" / "index.sqlite").write_bytes(b"left over")
    outside = tmp_path.parent / "outside"
    outside.write_bytes(b"of somebody else")
    (tmp_path / "copy-0123456789abcdef.lock").symlink_to(outside)
    size = store.size()
    store.vacuum()
    assert not folders(tmp_path) and store.size() < size
    assert not [*tmp_path.glob("copy-*")] and outside.read_bytes() == b"of somebody else"
    assert stored_content(store) == content
    assert stored_content(store_at(tmp_path)) == content


def test_an_index_for_reading_gets_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not write maps what there is, and writes nothing."""
    add_documents(store_at(tmp_path), 1, 2)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    store = store_at(tmp_path)
    assert store.read_only and stored_content(store)
    assert not folders(tmp_path)
