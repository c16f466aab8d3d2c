"""A folder and an index in PostgreSQL, or several there, asked as one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG, StorageError
from tests.kit import RANKING_MODES
from tests.rag.test_several import FERRIES, QUESTIONS, documents, made


@pytest.mark.parametrize("places", ["mixed", "postgres"])
def test_stores_are_mixed_as_one_likes(
    url: Callable[[object], str], tmp_path: Path, places: str
) -> None:
    """A folder beside a database, and two schemas, hold and find what one folder of all does."""
    first = tmp_path / "first" if places == "mixed" else url(tmp_path / "first")
    second = url(tmp_path / "second")
    for place, texts in ((first, documents()[::2]), (second, documents()[1::2])):
        with LightRAG(place) as rag:
            rag.insert(texts, progress=False)
    made(tmp_path / "all", documents())
    with LightRAG([first, second]) as several, LightRAG(tmp_path / "all") as one:
        assert [found.name for found in several.entities.list()] == [
            found.name for found in one.entities.list()
        ]
        for mode in RANKING_MODES:
            for question in QUESTIONS:
                ours = several.retrieve(question, mode=mode)  # type: ignore[arg-type]
                theirs = one.retrieve(question, mode=mode)  # type: ignore[arg-type]
                assert ours.chunks[0].id == theirs.chunks[0].id
                assert {chunk.id for chunk in ours.chunks} == {chunk.id for chunk in theirs.chunks}
        early = several.retrieve(QUESTIONS[1], as_of="1994-06")
        assert 0 < len(early.chunks) < len(FERRIES)
        answer = several.query(QUESTIONS[2])
        assert all(citation.index for citation in answer.citations)
        assert several.traces.verify() == ()


def test_graphs_in_the_database_join_too(url: Callable[[object], str], tmp_path: Path) -> None:
    """With `graph=database` a part reads the shape of its graph from the database."""
    place = f"{url(tmp_path / 'kb')}&graph=database"
    with LightRAG(place) as rag:
        rag.insert(documents()[:4], progress=False)
    made(tmp_path / "rest", documents()[4:])
    with LightRAG([place, tmp_path / "rest"]) as rag:
        assert rag.retrieve(QUESTIONS[1]).chunks[0].document_id == "d2"


def test_a_missing_schema_is_named(url: Callable[[object], str], tmp_path: Path) -> None:
    """The error names the database without its password, and no schema is made."""
    made(tmp_path / "kb", documents()[:1])
    for _ in range(2):
        with pytest.raises(StorageError, match="index=t"):
            LightRAG([tmp_path / "kb", url(tmp_path / "absent")])
