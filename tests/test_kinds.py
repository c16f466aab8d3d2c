"""Values of another kind than is declared: the field is named, before anything is done with it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import Document, IndexOptions, QueryParam
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.types import Message


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (Document, "text", None),
        (Document, "id", 5),
        (Document, "source", Path("a.txt")),
        (Document, "date", datetime.date(2024, 1, 31)),
        (Document, "pages", "all of it"),
        (Document, "pages", ("one", 2)),
        (Document, "metadata", [("a", 1)]),
        (QueryParam, "top_k", "5"),
        (QueryParam, "top_k", True),
        (QueryParam, "ll_keywords", "Alice"),
        (QueryParam, "lexical", "no"),
        (QueryParam, "similarity_reuse", "0.9"),
        (QueryParam, "where", "date"),
        (IndexOptions, "chunk_tokens", 100.5),
        (IndexOptions, "max_calls", "3"),
        (IndexOptions, "entity_types", "person"),
        (IndexOptions, "lock_timeout", None),
    ],
)
def test_another_kind_is_told(make: Callable[..., object], field: str, value: Any) -> None:
    """A number that is a text, one keyword for several, a date: each is refused by its name."""
    given = {"text": "x"} if make is Document else {}
    with pytest.raises(ConfigError, match=rf"^{field} must be .*, not "):
        make(**{**given, field: value})


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (IndexOptions, "summarize_fragments", 0),
        (IndexOptions, "summarize_tokens", 0),
        (IndexOptions, "summarize_group_tokens", -1),
        (IndexOptions, "max_extract_tokens", 0),
        (IndexOptions, "max_output_tokens", -1),
        (IndexOptions, "lock_timeout", float("nan")),
        (QueryParam, "max_relation_tokens", -1),
        (QueryParam, "similarity_reuse", float("nan")),
        (QueryParam, "similarity_reuse", 95),
        (QueryParam, "conversation_history", None),
    ],
)
def test_a_value_that_makes_no_sense_is_told(
    make: Callable[..., object], field: str, value: Any
) -> None:
    """Before anything is read with it: no fragment shown would be no description at all."""
    with pytest.raises(ConfigError, match=field):
        make(**{field: value})


def test_what_will_do() -> None:
    """NumPy's numbers, a whole number for a broken one, a list for a tuple, None where it may be."""
    QueryParam(top_k=np.int64(3), chunk_share=np.float32(0.5), similarity_reuse=None)  # type: ignore[arg-type]
    QueryParam(chunk_share=1, ll_keywords=["Alice"])  # type: ignore[arg-type]
    IndexOptions(lock_timeout=3, max_calls=None)
    IndexOptions(lock_timeout=0, max_calls=0, max_extract_tokens=None)
    Document("x", pages=["one", "two"])  # type: ignore[arg-type]


def test_numbers_of_other_libraries_become_pythons_own() -> None:
    """They are written down, compared with what is stored, and told of."""
    options = IndexOptions(chunk_tokens=np.int64(300), lock_timeout=np.float32(0.5))  # type: ignore[arg-type]
    assert (type(options.chunk_tokens), type(options.lock_timeout)) == (int, float)
    where = {"year": np.int64(1900), "id": ("a", "b"), "n": {"$gte": np.float32(0.5)}, "t": {"x"}}
    found = QueryParam(where=where).where
    assert found == {"year": 1900, "id": ["a", "b"], "n": {"$gte": 0.5}, "t": ["x"]}
    assert type(found["year"]) is int and type(found["n"]["$gte"]) is float


@pytest.mark.parametrize("where", [{"at": datetime.date(2024, 1, 31)}, {"at": {1: 2}}, {3: "x"}])
def test_what_no_filter_can_compare_is_told(where: dict[Any, Any]) -> None:
    """By the name of its field."""
    with pytest.raises(ConfigError, match="where"):
        QueryParam(where=where)


def test_a_long_value_is_shown_in_part() -> None:
    """The message stays a line."""
    with pytest.raises(ConfigError) as told:
        Document(b"x" * 10_000)  # type: ignore[arg-type]
    assert len(str(told.value)) < 120


def test_turns_as_other_libraries_write_them() -> None:
    """Mappings with role and content are messages; anything else is told."""
    turns = [{"role": "user", "content": "Who?"}, Message("assistant", "Ann.")]
    found = QueryParam(conversation_history=turns)  # type: ignore[arg-type]
    assert found.conversation_history == (Message("user", "Who?"), Message("assistant", "Ann."))
    for bad in ("Who?", {"role": "user"}, {"role": "boss", "content": "x"}):
        with pytest.raises(ConfigError, match="a turn of conversation_history is"):
            QueryParam(conversation_history=(bad,))  # type: ignore[arg-type]


def test_the_usual_overlap_fits_small_chunks() -> None:
    """One that was chosen does not change, and has to fit."""
    assert IndexOptions(chunk_tokens=50).chunk_overlap == 4
    assert IndexOptions(chunk_tokens=101).chunk_overlap == 100
    with pytest.raises(ConfigError, match="below"):
        IndexOptions(chunk_tokens=50, chunk_overlap=60)
