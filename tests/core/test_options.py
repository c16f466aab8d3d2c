"""Options and documents: a value that makes no sense is refused by its field, before anything is done."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import MODES, IndexOptions, QueryParam
from lightrag_jsonl.core.types import Document, Message


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
        (QueryParam, "top_k", -1),
        (QueryParam, "mode", "everything"),
        (QueryParam, "ll_keywords", "Alice"),
        (QueryParam, "lexical", "no"),
        (QueryParam, "max_relation_tokens", -1),
        (QueryParam, "chunk_share", 1.5),
        (QueryParam, "similarity_reuse", "0.9"),
        (QueryParam, "similarity_reuse", float("nan")),
        (QueryParam, "similarity_reuse", 95),
        (QueryParam, "conversation_history", None),
        (QueryParam, "where", "date"),
        (QueryParam, "where", {"at": datetime.date(2024, 1, 31)}),
        (QueryParam, "where", {"at": {1: 2}}),
        (IndexOptions, "extraction", "my-own"),
        (IndexOptions, "chunk_tokens", 100.5),
        (IndexOptions, "max_calls", "3"),
        (IndexOptions, "entity_types", "person"),
        (IndexOptions, "lock_timeout", None),
        (IndexOptions, "lock_timeout", float("nan")),
        (IndexOptions, "summarize_fragments", 0),
        (IndexOptions, "summarize_group_tokens", -1),
        (IndexOptions, "max_extract_tokens", 0),
        (IndexOptions, "max_output_tokens", -1),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(
    make: Callable[..., object], field: str, value: Any
) -> None:
    """A number that is a text, one keyword for several, no fragment at all: the error names each."""
    given = {"text": "x"} if make is Document else {}
    with pytest.raises(ConfigError, match=field):
        make(**{**given, field: value})


def test_what_is_accepted() -> None:
    """NumPy's numbers, a whole number for a broken one, a list for a tuple, None where it may be."""
    QueryParam(top_k=np.int64(3), chunk_share=np.float32(0.5), similarity_reuse=None)  # type: ignore[arg-type]
    QueryParam(chunk_share=1, ll_keywords=["爱丽丝", "👻"])
    IndexOptions(lock_timeout=0, max_calls=0, max_extract_tokens=None)
    assert Document("x", pages=["one", "两"]).pages == ("one", "两")  # type: ignore[arg-type]
    assert all(QueryParam(mode=mode).mode == mode for mode in MODES)


@given(st.integers(1, 10_000), st.floats(0, 1e6))
def test_numbers_of_other_libraries_become_pythons_own(tokens: int, seconds: float) -> None:
    """So they can be written down, compared with what is stored, and shown."""
    options = IndexOptions(chunk_tokens=np.int64(tokens), lock_timeout=np.float64(seconds))  # type: ignore[arg-type]
    assert (type(options.chunk_tokens), type(options.lock_timeout)) == (int, float)
    assert (options.chunk_tokens, options.lock_timeout) == (tokens, seconds)
    where = {"year": np.int64(tokens), "id": ("a", "乙"), "n": {"$gte": np.float64(seconds)}}
    assert QueryParam(where=where).where == {
        "year": tokens,
        "id": ["a", "乙"],
        "n": {"$gte": seconds},
    }


def test_turns_as_other_libraries_write_them() -> None:
    """Mappings with role and content are messages; anything else is refused."""
    turns = [{"role": "user", "content": "谁?"}, Message("assistant", "Ann.")]
    found = QueryParam(conversation_history=turns)
    assert found.conversation_history == (Message("user", "谁?"), Message("assistant", "Ann."))
    for bad in ("Who?", {"role": "user"}, {"role": "boss", "content": "x"}, 5):
        with pytest.raises(ConfigError, match="conversation_history"):
            QueryParam(conversation_history=(bad,))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="conversation_history"):
        QueryParam(conversation_history="Who?")  # type: ignore[arg-type]


@given(st.integers(1, 3_000))
def test_the_default_overlap_fits_small_chunks(tokens: int) -> None:
    """A chosen one does not change, and has to be smaller than a chunk."""
    assert IndexOptions(chunk_tokens=tokens).chunk_overlap == (
        100 if tokens > 100 else tokens // 12
    )
    with pytest.raises(ConfigError, match="below"):
        IndexOptions(chunk_tokens=tokens, chunk_overlap=tokens + (tokens == 100))
