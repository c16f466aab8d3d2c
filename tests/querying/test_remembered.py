"""What is remembered between questions never outlives a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import (
    AsyncLightRAG,
    Document,
    Keywords,
    LightRAG,
    QueryParam,
    StorageError,
)
from lightrag_jsonl.storage.remembered import Remembered
from lightrag_jsonl.vectors import Floats, Ids, VectorIndex
from tests.indexing.kit import damage

MODES = ("naive", "local", "global", "hybrid", "mix", "walk")
QUESTIONS = ("Who knew Scrooge in London?", "Where did Jacob Marley visit Bob Cratchit?")
TEXTS = {
    "a": "Jacob Marley knew Ebenezer Scrooge. Scrooge paid Bob Cratchit in London.",
    "b": "Bob Cratchit visited Scrooge. Jacob Marley lived in Camden Town near London.",
    "c": "JACOB MARLEY met SCROOGE. JACOB MARLEY warned SCROOGE. JACOB MARLEY left LONDON.",
    "d": "JACOB MARLEY haunted SCROOGE in LONDON. JACOB MARLEY rattled. SCROOGE saw JACOB MARLEY.",
}

Change = Callable[[LightRAG], object]
CHANGES: dict[str, Change] = {
    "more said of the same names": lambda rag: rag.insert(_document("b")),
    "names spelled otherwise by most": lambda rag: rag.insert([_document("c"), _document("d")]),
    "a name merged into another": lambda rag: rag.merge_entities(
        ["Bob Cratchit", "Camden Town"], into="Somebody"
    ),
    "a document updated": lambda rag: rag.update(Document("Marley knew Scrooge of old.", id="a")),
    "a title of its own": lambda rag: rag.update(Document(TEXTS["b"], id="b", title="Stave one")),
    "a document deleted": lambda rag: rag.delete("c"),
    "all rebuilt": lambda rag: rag.repair(),
}


def test_a_warm_index_answers_as_a_fresh_one(tmp_path: Path) -> None:
    """After each kind of change, contexts are those of a process that never looked before."""
    with LightRAG(tmp_path) as warm:
        warm.insert(_document("a"))
        _contexts(warm)
        for name, change in CHANGES.items():
            before = _contexts(warm)
            change(warm)
            with LightRAG(tmp_path) as fresh:
                assert _contexts(warm) == _contexts(fresh), name
            assert name == "all rebuilt" or _contexts(warm) != before, name


def test_what_another_repairs_is_not_remembered_as_it_was(tmp_path: Path) -> None:
    """Who looked at damaged rows tells, after a repair by somebody else, what a fresh look tells."""
    with LightRAG(tmp_path) as warm, LightRAG(tmp_path) as other:
        warm.insert(_document("a"))
        sound = _contexts(warm)
        damage(tmp_path, "UPDATE entities SET description = 'Damaged.'")
        damage(tmp_path, "UPDATE relations SET description = 'Damaged.'")
        with LightRAG(tmp_path) as looked:
            assert _contexts(looked) != sound
            other.repair()
            assert _contexts(looked) == sound


def test_a_look_that_fails_half_way_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was half brought up to date is thrown away, not built upon."""
    with LightRAG(tmp_path) as warm:
        warm.insert(_document("a"))
        _contexts(warm)
        warm.insert(_document("b"))
        whole, times = VectorIndex.update, iter(range(9))

        def failing(index: VectorIndex, ids: Ids, vectors: Floats) -> None:
            whole(index, ids, vectors)
            if next(times) == 1:
                raise MemoryError("no room")

        with monkeypatch.context() as patched:
            patched.setattr(VectorIndex, "update", failing)
            with pytest.raises(MemoryError):
                _contexts(warm)
        with LightRAG(tmp_path) as fresh:
            assert _contexts(warm) == _contexts(fresh)


async def _asked_while_closing(folder: Path) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    class Slow:
        async def keywords(self, question: str, history: object) -> Keywords:
            asked.set()
            await closed.wait()
            return Keywords()

    rag = AsyncLightRAG(folder, keyword_extractor=Slow())
    await rag.insert(_document("a"))
    query = asyncio.create_task(rag.retrieve(QUESTIONS[0]))
    await asked.wait()
    await rag.close()
    closed.set()
    await query


def test_closing_ends_a_question_with_a_clear_error(tmp_path: Path) -> None:
    """A question that is under way when the index is closed says so."""
    with pytest.raises(StorageError, match="was closed"):
        asyncio.run(_asked_while_closing(tmp_path))


def test_only_what_is_missing_is_read() -> None:
    """Known rows are not read again until they are forgotten, and of too many all are."""
    asked: list[list[int]] = []

    def read(rows: list[int]) -> dict[int, int]:
        asked.append(rows)
        return {row: row * row for row in rows if row < 10}

    kept = Remembered[int, int](4)
    assert kept.of([3, 1, 3], read) == {3: 9, 1: 1}
    assert kept.of([1, 2, 99], read) == {1: 1, 2: 4}
    kept.forget([1, 50])
    assert kept.of([1, 2, 3], read) == {1: 1, 2: 4, 3: 9}
    assert kept.of([4, 5, 3], read) == {4: 16, 5: 25, 3: 9}
    assert asked == [[3, 1], [2, 99], [1], [4, 5, 3]]


@pytest.mark.parametrize("limit", [0, 1])
def test_more_than_fits_is_still_given(limit: int) -> None:
    """A limit bounds what is kept, not what one question may ask for."""
    kept = Remembered[int, str](limit)
    for _ in range(2):
        assert kept.of([1, 2], lambda rows: {row: str(row) for row in rows}) == {1: "1", 2: "2"}


def _document(id: str) -> Document:
    return Document(TEXTS[id], id=id)


def _contexts(rag: LightRAG) -> list[object]:
    params = [QueryParam(mode=mode) for mode in MODES]
    return [rag.retrieve(question, param) for question in QUESTIONS for param in params]
