"""What writes to an index that somebody damaged by hand says so, and leaves it as it is."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.errors import CorruptError
from lightrag_jsonl.storage.database import FILE_NAME

TEXT = "Marie Curie discovered radium in Paris. Her husband was Pierre Curie. "
KNOWN = ("documents", "pages", "chunks", "entities", "relations", "entity_mentions", "aliases")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    with LightRAG(folder) as rag:
        rag.insert([Document(TEXT, id="a"), Document(TEXT + "He taught physics.", id="b")])
        rag.merge_entities(["Marie Curie"], into="Maria")
    return folder


def rows(folder: Path) -> list[list[tuple[object, ...]]]:
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in KNOWN]


CHANGES: dict[str, Callable[[LightRAG], object]] = {
    "recut": lambda rag: rag.insert(Document(TEXT + "She taught, too.", id="a")),
    "update": lambda rag: rag.update(Document("Pierre Curie taught physics.", id="a")),
    "delete": lambda rag: rag.delete("a"),
    "merge": lambda rag: rag.merge_entities(["Maria", "Pierre Curie"], into="The Curies"),
    "unmerge": lambda rag: rag.unmerge("Marie Curie"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entities SET tally = 'x'",
        "UPDATE entities SET tally = '[[]]'",
        "UPDATE entity_mentions SET attributes = '{'",
    ],
)
def test_a_change_that_meets_damage_says_so_and_is_undone(
    sound: Path, tmp_path: Path, damage: str, change: str
) -> None:
    """With what to do, and with the error that was met as its cause."""
    folder = Path(shutil.copytree(sound, tmp_path / "damaged"))
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute(damage)
    before = rows(folder)
    with (
        LightRAG(folder) as rag,
        pytest.raises(CorruptError, match="doctor --repair") as caught,
    ):
        CHANGES[change](rag)
    assert caught.value.__cause__ is not None and rows(folder) == before


def test_a_vacuum_that_meets_damage_says_so(sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "damaged"))
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE chunks SET embedding = 'x'")
    with LightRAG(folder) as rag, pytest.raises(CorruptError, match="doctor --repair"):
        rag.vacuum()


def test_a_context_of_what_is_no_text_says_so(sound: Path, tmp_path: Path) -> None:
    """It is written after the reading: of values that were read as they are."""
    folder = Path(shutil.copytree(sound, tmp_path / "damaged"))
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE entities SET type = x'00ff'")
    with LightRAG(folder) as rag, pytest.raises(CorruptError, match="doctor --repair"):
        rag.retrieve("What did Marie Curie discover?")
