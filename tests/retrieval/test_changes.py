"""What is found never outlives a change, and several questions may be asked at once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lightrag_jsonl import AsyncLightRAG, Document, Keywords, QueryParam, StorageError
from tests.kit import SEARCHING_MODES, index

QUESTIONS = ("Who knew Scrooge in London?", "Where did Jacob Marley visit Bob Cratchit?")
TEXTS = {
    "a": "Jacob Marley knew Ebenezer Scrooge. Scrooge paid Bob Cratchit in London.",
    "b": "Bob Cratchit visited Scrooge. Jacob Marley lived in Camden Town near London.",
    "c": "JACOB MARLEY met SCROOGE. JACOB MARLEY warned SCROOGE. JACOB MARLEY left LONDON.",
    "d": "JACOB MARLEY haunted SCROOGE in LONDON. JACOB MARLEY rattled. SCROOGE saw JACOB MARLEY.",
}

CHANGES: dict[str, Callable[[AsyncLightRAG], Awaitable[object]]] = {
    "more about the same names": lambda rag: rag.insert(_document("b")),
    "names spelled otherwise by most": lambda rag: rag.insert([_document("c"), _document("d")]),
    "a name merged into another": lambda rag: rag.entities.merge(
        ["Bob Cratchit", "Camden Town"], into="Somebody"
    ),
    "a document updated": lambda rag: rag.insert(Document("Marley knew Scrooge of old.", id="a")),
    "a title of its own": lambda rag: rag.insert(Document(TEXTS["b"], id="b", title="Stave one")),
    "a document deleted": lambda rag: rag.delete("c"),
    "all rebuilt": lambda rag: rag.admin.rebuild(),
}


def _document(id: str) -> Document:
    return Document(TEXTS[id], id=id)


async def _contexts(rag: AsyncLightRAG) -> list[object]:
    params = [QueryParam(mode=mode) for mode in SEARCHING_MODES]
    return [await rag.retrieve(question, param) for question in QUESTIONS for param in params]


@pytest.mark.slow
async def test_a_warm_index_answers_as_a_fresh_one(tmp_path: Path) -> None:
    """After each kind of change, contexts are those of an index that was opened after it."""
    async with index(tmp_path) as warm:
        await warm.insert(_document("a"))
        before = await _contexts(warm)
        for name, change in CHANGES.items():
            await change(warm)
            after = await _contexts(warm)
            async with index(tmp_path) as fresh:
                assert after == await _contexts(fresh), name
            assert name == "all rebuilt" or after != before, name
            before = after


@pytest.mark.slow
async def test_questions_side_by_side_find_what_they_find_alone(tmp_path: Path) -> None:
    """Searches share one index, and do not disturb each other."""
    async with index(tmp_path) as rag:
        await rag.insert([_document(id) for id in TEXTS])
        params = [QueryParam(mode=mode) for mode in SEARCHING_MODES]
        asked = [(question, param) for question in QUESTIONS for param in params]
        together = await asyncio.gather(*(rag.retrieve(*one) for one in asked * 2))
        assert together == (await _contexts(rag)) * 2


async def test_closing_ends_a_question_with_a_clear_error(tmp_path: Path) -> None:
    """A question that is under way when the index is closed says so."""
    asked, closed = asyncio.Event(), asyncio.Event()

    class Slow:
        async def keywords(self, question: str, history: object) -> Keywords:
            asked.set()
            await closed.wait()
            return Keywords()

    async with index(tmp_path, keyword_extractor=Slow()) as rag:
        await rag.insert(_document("a"))
        query = asyncio.create_task(rag.retrieve(QUESTIONS[0]))
        await asked.wait()
        await rag.close()
        closed.set()
        with pytest.raises(StorageError, match="closed"):
            await query
