"""Extractors that users bring: a bad chunk is one bad chunk, whatever they raise or give."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl.types import Chunk, Document, EntityMention, Extraction, RelationMention, Usage
from tests.indexing.kit import index, problems, stored

ANN = EntityMention("Ann", "person", "A woman.")


class Reader:
    """Finds Ann everywhere, but in the text that is bad it does something else."""

    name = "reader"

    def __init__(self, otherwise: Callable[[], object]) -> None:
        self._otherwise = otherwise

    async def extract(self, chunk: Chunk) -> Extraction:
        if "bad" in chunk.text:
            return self._otherwise()  # type: ignore[return-value]
        return Extraction((ANN,))


def raising(error: BaseException) -> Callable[[], object]:
    def otherwise() -> object:
        raise error

    return otherwise


@pytest.mark.parametrize(
    "otherwise",
    [
        raising(ValueError("boom")),
        raising(asyncio.CancelledError()),
        raising(BaseExceptionGroup("all", [asyncio.CancelledError()])),
        lambda: None,
        lambda: Extraction((ANN,), (RelationMention("Ann", "Bob", (), ""),)),
        lambda: Extraction((EntityMention("", "person", ""),)),
        lambda: Extraction((EntityMention("Ann", None, ""),)),  # type: ignore[arg-type]
        lambda: Extraction((ANN,), state="fine"),  # type: ignore[arg-type]
        lambda: Extraction((ANN,), usage=None),  # type: ignore[arg-type]
        lambda: Extraction(
            (ANN, EntityMention("Bob", "", "")),
            (RelationMention("Ann", "Bob", (), "", float("nan")),),
        ),
    ],
)
async def test_one_bad_chunk_is_a_failure_of_its_own(
    tmp_path: Path, otherwise: Callable[[], object]
) -> None:
    """The others are there, nothing is passed over in silence, and a retry asks again."""
    async with index(tmp_path, extractor=Reader(otherwise)) as rag:
        texts = [Document(text, id=text) for text in ("good", "bad", "fine")]
        report = await rag.insert(texts)
        assert report.documents == ("bad", "fine", "good") and report.stopped == ""
        assert [failure.document_id for failure in report.failures] == ["bad"]
        assert "reader" in report.failures[0].reason
    async with index(tmp_path, extractor=Reader(lambda: Extraction((ANN,)))) as rag:
        assert (await rag.retry()).failures == ()
        assert {document.state for document in await rag.documents()} == {"done"}
    assert problems(tmp_path) == []


async def test_texts_are_kept_as_they_can_be(tmp_path: Path) -> None:
    """Half an emoji is replaced, as in what a model writes."""
    found = Extraction((EntityMention("Ann", "person", "half \ud83d"),), usage=Usage(calls=1))
    async with index(tmp_path, extractor=Reader(lambda: found)) as rag:
        assert (await rag.insert(Document("bad", id="bad"))).failures == ()
    assert stored(tmp_path, "SELECT description FROM entities") == [("half \ufffd",)]
