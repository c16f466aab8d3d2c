"""Options and documents: a value that makes no sense is refused by its field, before anything is done."""

import dataclasses
import datetime
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import ConfigError, Document, IndexOptions, Limits, Message, QueryParam
from lightrag_jsonl.core.options import QueryFields
from lightrag_jsonl.core.validation import REPLACEMENTS
from tests.kit import MODES


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (Document, "text", None),
        (Document, "id", 5),
        (Document, "date", datetime.date(2024, 1, 31)),
        (Document, "metadata", [("a", 1)]),
        (QueryParam, "top_k", "5"),
        (QueryParam, "top_k", -1),
        (QueryParam, "ll_keywords", "Alice"),
        (QueryParam, "rerank_weight", -0.1),
        (QueryParam, "similarity_reuse", float("nan")),
        (QueryParam, "conversation_history", None),
        (QueryParam, "where", "date"),
        (QueryParam, "where", {"at": datetime.date(2024, 1, 31)}),
        (IndexOptions, "extraction", "my-own"),
        (IndexOptions, "chunk_tokens", 100.5),
        (IndexOptions, "entity_types", "person"),
        (IndexOptions, "lock_timeout", float("nan")),
        (IndexOptions, "summarize_fragments", 0),
        (QueryParam, "chunk_top_k", 10**30),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(
    make: Callable[..., object], field: str, value: Any
) -> None:
    """A number that is a text, one keyword for several, no fragment at all, more than SQLite holds."""
    given = {"text": "x"} if make is Document else {}
    with pytest.raises(ConfigError, match=field):
        make(**{**given, field: value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),  # type: ignore[arg-type]
    max_leaves=5,
)


@pytest.mark.slow
@given(st.sampled_from([IndexOptions, QueryParam]), st.data())
def test_untrusted_mappings_raise_nothing_but_config_errors(
    kind: type[IndexOptions | QueryParam], data: st.DataObject
) -> None:
    """Also for unknown names and what is no mapping: a server passes on what a client sent."""
    names = st.sampled_from([*kind.__dataclass_fields__, "stream", "", 5])
    try:
        made = kind.from_mapping(data.draw(JSON | st.dictionaries(names, JSON)))  # type: ignore[arg-type]
    except ConfigError:
        return
    assert isinstance(made, kind)


def test_arguments_of_lightrag_are_refused_with_what_replaces_them() -> None:
    """People bring their calls along; "unexpected keyword argument" would not say where to look."""
    for name, replacement in (("only_need_context", "retrieve("), ("stream", "stream(question)")):
        with pytest.raises(TypeError, match=re.escape(replacement)):
            QueryParam(**{name: True})  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=re.escape(replacement)):
            QueryParam.from_mapping({name: True})
    own = {*QueryParam.__dataclass_fields__, *IndexOptions.__dataclass_fields__}
    assert not own & REPLACEMENTS.keys()


def test_a_question_takes_every_field() -> None:
    """The typed arguments of `query` and the fields of `QueryParam` are the same."""
    own = {field.name for field in dataclasses.fields(QueryParam)}
    assert QueryFields.__annotations__.keys() == own


def test_what_is_accepted() -> None:
    """A whole number for a broken one, a list for a tuple, None where it may be."""
    QueryParam(chunk_share=1, ll_keywords=["爱丽丝", "👻"], similarity_reuse=None)
    IndexOptions(lock_timeout=0, max_calls=0, max_extract_tokens=None)
    limited = IndexOptions.from_mapping({"limits": {"call_seconds": 5}})
    assert limited == IndexOptions(limits=Limits(call_seconds=5))
    with pytest.raises(ConfigError, match="call_seconds"):
        IndexOptions.from_mapping({"limits": {"call_seconds": -1}})
    assert Document("x", pages=["one", "两"]).pages == ("one", "两")  # type: ignore[arg-type]
    assert all(QueryParam(mode=mode).mode == mode for mode in MODES)


@given(st.integers(1, 10_000), st.floats(0, 1e6))
def test_numbers_of_other_libraries_become_pythons_own(tokens: int, seconds: float) -> None:
    """So they can be written down, compared with what is stored, and shown."""
    options = IndexOptions(chunk_tokens=np.int64(tokens), lock_timeout=np.float64(seconds))  # type: ignore[arg-type]
    assert (type(options.chunk_tokens), type(options.lock_timeout)) == (int, float)
    assert (options.chunk_tokens, options.lock_timeout) == (tokens, seconds)
    where = {"year": np.int64(tokens), "id": ("a", "乙"), "n": {"$gte": np.float64(seconds)}}
    expected = {"year": tokens, "id": ["a", "乙"], "n": {"$gte": seconds}}
    assert QueryParam(where=where).where == expected


def test_turns_as_other_libraries_write_them() -> None:
    """Mappings with role and content are messages; anything else is refused."""
    turns = [{"role": "user", "content": "谁?"}, Message("assistant", "Ann.")]
    found = QueryParam(conversation_history=turns)
    assert found.conversation_history == (Message("user", "谁?"), Message("assistant", "Ann."))
    for bad in ("Who?", ["Who?"], [{"role": "user"}], [{"role": "boss", "content": "x"}], [5]):
        with pytest.raises(ConfigError, match="conversation_history"):
            QueryParam(conversation_history=bad)  # type: ignore[arg-type]


@given(st.integers(1, 3_000))
def test_the_default_overlap_fits_small_chunks(tokens: int) -> None:
    """A chosen one does not change, and is at most three quarters of a chunk."""
    most = 3 * tokens // 4
    assert IndexOptions(chunk_tokens=tokens).chunk_overlap == (100 if most >= 100 else tokens // 12)
    assert IndexOptions(chunk_tokens=tokens, chunk_overlap=most).chunk_overlap <= most
    with pytest.raises(ConfigError, match="three quarters"):
        IndexOptions(chunk_tokens=tokens, chunk_overlap=most + 1 + (most + 1 == 100))


def test_a_choice_that_there_is_not_names_those_there_are() -> None:
    """For a mode, for example."""
    with pytest.raises(ConfigError, match=r"mode: .*'graph'; known are naive, local, .*bypass"):
        QueryParam(mode="graph")  # type: ignore[arg-type]
