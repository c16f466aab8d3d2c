"""The nouns: what answers, contexts and extractions say about themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.types import (
    Answer,
    Chunk,
    Citation,
    Context,
    Entity,
    Extraction,
    format_position,
    known_language,
    unique_labels,
)

CITED = Citation(1, "chunk", "[1]", "d1", "红楼梦", 2, "c", 10, 24, "黛玉自幼多病。👻")


@pytest.mark.parametrize("name", ["zh", "zh-CN", "ZH-Hant", "zh_TW"])
def test_languages_are_known_by_their_codes(name: str) -> None:
    """Chinese in any spelling of its code; English stands in for all others."""
    assert known_language(name) == "zh"
    assert known_language("en-GB") == known_language("fr") == known_language("") == "en"


def test_a_position_is_written_in_the_language_of_the_index() -> None:
    """For readers, with page and characters."""
    assert format_position("carol", 2, 10, 24, "en") == "carol, page 2, characters 10–24"
    assert format_position("红楼梦", 2, 10, 24, "zh-CN") == "红楼梦，第 2 页，第 10–24 字"


@given(st.lists(st.tuples(st.text("ab１", max_size=2), st.text("x中", max_size=2)), max_size=8))
def test_labels_differ_for_different_documents(labels: list[tuple[str, str]]) -> None:
    """A title that documents share gets the id added; others stay as they are."""
    labels = list(dict(labels).items())
    found = unique_labels(labels)

    assert found.keys() == dict(labels).keys()
    titles = [title for _, title in labels]
    for id, title in labels:
        assert found[id] == (title if titles.count(title) == 1 else f"{title} ({id})")


def test_an_answer_prints_its_sources() -> None:
    """Each once, one a line; without sources it is its text."""
    answer = Answer("多病 [1]。", (CITED, CITED), Context(language="zh"))

    assert str(answer) == "多病 [1]。\n\n[1] 红楼梦，第 2 页，第 10–24 字"
    assert str(Answer("没有。")) == "没有。"
    other = replace(CITED, number=2, document_id="d2")
    assert "红楼梦 (d1)" in str(replace(answer, citations=(CITED, other)))


def test_what_is_empty_or_unfinished() -> None:
    """A context is empty without items; an extraction is unfinished if a retry could help."""
    chunk = Chunk("c", "d", 0, 1, 0, 2, "中文")
    assert Context().empty and not Context(chunks=(chunk,)).empty
    assert not Context(entities=(Entity("Ann", "", ""),)).empty
    assert not Extraction(state="empty").unfinished
    assert Extraction(state="failed").unfinished
    assert Extraction(state="partial", error="timeout").unfinished
