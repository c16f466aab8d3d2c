"""Filters on documents: what `where` means, and that the database agrees with plain Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Chunk, Extraction, Json
from lightrag_jsonl.storage.filters import (
    OWN_FIELDS,
    All,
    Among,
    AnyOf,
    Compare,
    Condition,
    Not,
    parse_where,
)
from lightrag_jsonl.storage.rows import StoredChunk, StoredDocument
from lightrag_jsonl.storage.sqlite.database import SQLiteStore

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Documents = list[dict[str, Json]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SQLiteStore:
    """A store; each test puts other documents into it."""
    return SQLiteStore(tmp_path_factory.mktemp("filters"))


def matching(store: SQLiteStore, documents: Documents, condition: Condition) -> set[int]:
    """The numbers of the documents whose chunks a store finds; `title` is the document's own."""
    with store.transaction(durable=False) as transaction:
        transaction.delete_documents(range(1, 99))
        for number, fields in enumerate(documents, start=1):
            metadata = {name: value for name, value in fields.items() if name != "title"}
            title = fields.get("title")
            assert title is None or isinstance(title, str)
            named = (number, f"d{number}", title, None, None)
            transaction.put_document(StoredDocument(*named, metadata, "", "done", 0, 1.0), ())
            chunk = Chunk(f"c{number}", f"d{number}", 0, 1, 0, 0, "")
            transaction.put_chunks([StoredChunk(number, number, chunk, 1.0, Extraction())])
        found = transaction.matching_chunks(condition)
    assert found == sorted(found)
    return set(found)


def meets(fields: Mapping[str, Json], condition: Condition) -> bool:
    """The condition, evaluated as the tree describes it."""
    match condition:
        case Not(inner):
            return not meets(fields, inner)
        case All(conditions):
            return all(meets(fields, one) for one in conditions)
        case AnyOf(conditions):
            return any(meets(fields, one) for one in conditions)
        case Among(field, values):
            present = [value for value in values if value is not None]
            absent = fields.get(field) is None and None in values
            return absent or any(one in present for one in members(fields, field))
        case Compare(field, comparator, value):
            compare = OPERATORS[comparator]
            texts = isinstance(value, str)
            return any(
                isinstance(one, str) == texts and compare(one, value)
                for one in members(fields, field)
            )


def members(fields: Mapping[str, Json], field: str) -> list[object]:
    """The values of a field: its own, or those in its list; no objects, and nothing absent."""
    value = fields.get(field)
    values = value if isinstance(value, list) else [value]
    return [one for one in values if one is not None and not isinstance(one, dict | list)]


numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.sampled_from(["a", "b", "", "[", "2", "猫", "🙂", 'q"q', "a\\b", "x\ny"])
scalars = st.none() | st.booleans() | numbers | st.integers(0, 3) | texts
names = st.sampled_from(["n", 'a"b', "a.b", "标签", "$x", "", "[0]", "a\\u0062"])
facts = scalars | st.lists(scalars | st.just({"x": "a"}) | st.just([1]), max_size=3)
documents = st.lists(
    st.builds(
        lambda metadata, title: {**metadata, "title": title},
        st.dictionaries(names, facts | st.just({"x": 1}), max_size=3),
        st.none() | texts,
    ),
    max_size=5,
)
fields = names | st.just("title")
leaves = st.builds(Among, fields, st.lists(scalars, max_size=3).map(tuple)) | st.builds(
    Compare, fields, st.sampled_from(list(OPERATORS)), numbers | st.integers(0, 3) | texts
)
conditions = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(All, st.lists(inner, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(documents, conditions)
def test_the_database_agrees_with_python(
    store: SQLiteStore, given_documents: Documents, condition: Condition
) -> None:
    """Any condition finds the same documents as its evaluation in Python."""
    expected = {n for n, one in enumerate(given_documents, start=1) if meets(one, condition)}
    assert matching(store, given_documents, condition) == expected


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (2020, {2020}),
        ({"$gt": 2030}, set()),
        ({"$lt": "1000"}, set()),
        ({"$gte": 2020, "$lt": 2022.5}, {2020, 2022}),
        ({"$gte": [2022, "2021"]}, {2022, "2021"}),
        ({"$ne": 2020}, {"2021", 2022}),
        ({"$eq": 2020}, {2020}),
        ({"$in": [2020, "2021"]}, {2020, "2021"}),
        ({"$nin": [2020, "2021"]}, {2022}),
        ({"$in": [2020, "2021"], "$ne": 2020}, {"2021"}),
        ({"$ne": None}, {2020, "2021", 2022}),
        ({"$ne": [None, 2022]}, {2020, "2021"}),
        (None, {None}),
        ([None, 2022], {None, 2022}),
        ([], set()),
        (10**400, set()),
        ({"$lt": -(10**30)}, set()),
        ("\ud800", set()),
    ],
)
def test_values_are_compared_with_those_of_their_kind(
    store: SQLiteStore, wanted: Json, found: set[Json]
) -> None:
    """No text is greater than any number; an absent field meets no comparison, not even "$ne"."""
    years: list[Json] = [2020, "2021", None, 2022]
    condition = parse_where({"year": wanted})
    rows = matching(store, [{"year": year} for year in years], condition)
    assert {years[row - 1] for row in rows} == found


@pytest.mark.parametrize("key", ["tags", 'a"b', "标签"])
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("red", {1, 3}),
        (["red", 7], {1, 2, 3}),
        (7, {2}),
        ("[", {2}),
        ({"$ne": "red"}, {2}),
        ({"$nin": [7]}, {1, 3}),
        ({"$gt": 6}, {2}),
        ({"$gte": "round"}, {1}),
        (None, {4}),
    ],
)
def test_one_member_of_a_list_is_enough(
    store: SQLiteStore, key: str, wanted: Json, found: set[int]
) -> None:
    """A document with several tags is found by each of them, like one that has only this tag."""
    facts: list[Json] = [["red", "round"], ["[", 7, {"x": "red"}], "red", None]
    condition = parse_where({key: wanted})
    assert matching(store, [{key: fact} for fact in facts], condition) == found


def test_own_fields_hold_texts(store: SQLiteStore) -> None:
    """A number is compared with a title, date, source or id as the text that it is written as."""
    documents: Documents = [{"title": "2020"}, {"title": "2021", "date": 1}, {}]
    cases: list[tuple[Json, set[int]]] = [
        (2020, {1}),
        ({"$gt": 2020}, {2}),
        (None, {3}),
        ([None, 2021], {2, 3}),
    ]
    for wanted, found in cases:
        assert matching(store, documents, parse_where({"title": wanted})) == found
    assert matching(store, documents, parse_where({"id": "d2", "date": None})) == {2}
    assert {"id", "title", "source", "date"} == OWN_FIELDS


@pytest.mark.parametrize(
    "wanted", [{"$gt": None}, {"$gt": []}, {"$ne": {}}, {"$lt": [[1]]}, {}, {"$like": "x"}]
)
def test_what_cannot_be_compared_is_refused(wanted: Json) -> None:
    """The error names the field."""
    with pytest.raises(ConfigError, match=r"where\['year'\]"):
        parse_where({"year": wanted})
