"""Full text: what a question's words find among the chunks."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

import pytest

from lightrag_jsonl.storage import fulltext, schema

TEXTS = (
    "家里的猫很老，猫会捉老鼠。",
    "熊猫吃竹子。",
    "他1937年7月生于北京。",
    "今年月饼很贵。",
    "狗看家。",
    "A cat’s eye 🐈 １２.",
    "catalogue",
)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """The index of seven texts, numbered from 1."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        schema.create(opened)
        fulltext.put_terms(opened, enumerate(TEXTS, start=1))
        opened.executemany(
            "INSERT INTO chunks VALUES (?, ?, 1, ?, 0, 0, 0, ?, 0, 0, NULL, 'done', '')",
            [(row, str(row), row, text) for row, text in enumerate(TEXTS, start=1)],
        )
        yield opened


def found(connection: sqlite3.Connection, question: str, *keywords: str) -> list[int]:
    """The chunks found, the best first."""
    total = len(TEXTS)
    hits = fulltext.search(connection, question, 9, keywords=keywords, total=total)
    return [row for row, _ in hits]


@pytest.mark.parametrize(
    ("question", "keywords"),
    [("猫", ()), ("「猫」？", ()), ("什么是猫？", ("猫",)), ("猫 是什么？", ("猫",))],
)
def test_a_lone_character_is_found_inside_of_words(
    connection: sqlite3.Connection, question: str, keywords: tuple[str, ...]
) -> None:
    """A name of one character is found, whether it is all that is asked or a keyword."""
    assert found(connection, question, *keywords) == [1, 2]


@pytest.mark.parametrize(
    ("question", "keywords", "rows"),
    [
        ("鼠", (), [1]),
        ("什么是鼠？", ("鼠",), [1]),
        ("子 🐈", ("子", "家"), [5, 1, 2]),
        ("蛇", (), []),
    ],
)
def test_a_lone_character_is_found_at_the_end_of_words(
    connection: sqlite3.Connection, question: str, keywords: tuple[str, ...], rows: list[int]
) -> None:
    """No bigram begins with it there."""
    assert sorted(found(connection, question, *keywords)) == sorted(rows)


def test_the_end_of_words_is_looked_at_within_the_filter(connection: sqlite3.Connection) -> None:
    """Also where enough chunks have the character elsewhere, but none of those asked for."""
    fulltext.put_terms(connection, ((row, "家人") for row in range(100, 100 + fulltext.FEW)))

    hits = fulltext.search(connection, "家", 9, allowed=[3, 5], total=99)
    assert [row for row, _ in hits] == [5]


def test_no_text_is_read_where_enough_is_found(connection: sqlite3.Connection) -> None:
    """Reading takes the longer the more chunks there are."""
    asked: list[str] = []
    fulltext.put_terms(connection, ((row, "猫会") for row in range(100, 100 + fulltext.FEW)))
    connection.set_trace_callback(asked.append)

    assert len(fulltext.search(connection, "猫", 99, total=99)) == fulltext.FEW + 2
    assert asked and not [query for query in asked if "FROM chunks" in query]


def test_characters_between_numbers_are_no_names(connection: sqlite3.Connection) -> None:
    """年 and 月 of a date do not find every text about years."""
    assert found(connection, "1937年7月") == [3]


@pytest.mark.parametrize("keyword", ["", "cat", "家里", "🐈", "\U0003fffd"])
def test_other_keywords_change_nothing(connection: sqlite3.Connection, keyword: str) -> None:
    """A word finds itself and not what begins with it; a keyword that is no lone character none."""
    assert found(connection, "cat", keyword) == [6]


def test_a_beginning_is_counted_by_chunks(connection: sqlite3.Connection) -> None:
    """A chunk that holds several terms with one beginning counts once."""
    counts = fulltext.term_counts(connection, ["猫*", "猫会", "猫", "cat"])
    assert counts == {"猫*": 2, "猫会": 1, "猫": 0, "cat": 1}
