"""Filters and full text find exactly the chunks that they should, as plain Python says."""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, ConfigError
from lightrag_jsonl.storage.filters import OPPOSITES, TEXT_COMPARATORS, Condition, parse_where
from lightrag_jsonl.storage.rows import StoredChunk, StoredDocument
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.text.terms import search_terms
from tests.kit import extraction, store_at

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    **{"=": operator.eq, "!=": operator.eq, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
    "contains": lambda text, part: isinstance(text, str) and part in text,
    "not contains": lambda text, part: isinstance(text, str) and part in text,
    "starts with": lambda text, part: isinstance(text, str) and text.startswith(part),
    "ends with": lambda text, part: isinstance(text, str) and text.endswith(part),
}
Documents = list[dict[str, Any]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store; each test puts other documents into it."""
    return store_at(tmp_path_factory.mktemp("filters"))


def put(store: Store, documents: Documents, *, deleted: Iterable[int] = ()) -> None:
    """Store documents of one chunk each, with row ids from 1, in place of all others; `title`, `text`
    and a `date` that is a text are their own, all other fields metadata.
    """
    with store.transaction(durable=False) as transaction:
        transaction.delete_documents(range(1, 99))
        for row, fields in enumerate(documents, start=1):
            metadata = {name: fields[name] for name in fields.keys() - {"title", "text"}}
            title, text = fields.get("title"), fields.get("text", "")
            date = fields.get("date")
            assert isinstance(title, str | None) and isinstance(text, str)
            document = StoredDocument(
                row=row,
                id=f"d{row}",
                title=title,
                source=None,
                date=date if isinstance(date, str) else None,
                metadata=metadata,
                content="",
                state="done",
                characters=0,
                created_at=1.0,
            )
            transaction.put_documents([(document, ())])
            chunk = Chunk(f"c{row}", f"d{row}", 0, 1, 0, len(text), text)
            transaction.put_chunks([StoredChunk(row, row, chunk, 1.0, extraction())])
        transaction.delete_documents(deleted)


def matching(store: Store, documents: Documents, *conditions: Condition) -> set[int]:
    """The numbers of the documents whose chunks a store finds."""
    put(store, documents)
    with store.view() as view:
        rows = view.matching_chunks(conditions)
    assert rows == sorted(rows)
    return set(rows)


def meets(fields: Mapping[str, Any], condition: Condition) -> bool:
    """The condition, evaluated as its class describes it."""
    compare = OPERATORS[condition.comparator]
    met = any(
        isinstance(member, str) == isinstance(value, str) and compare(member, value)
        for member in members(fields, condition.field)
        for value in condition.values
        if value is not None
    )
    absent = fields.get(condition.field) is None
    if condition.comparator in OPPOSITES:
        return not absent and not met
    return met or (absent and condition.comparator == "=" and None in condition.values)


def members(fields: Mapping[str, Any], field: str) -> list[object]:
    """The values of a field: its own, or those in its list; no objects, and nothing absent."""
    value = fields.get(field)
    values = value if isinstance(value, list) else [value]
    return [
        member for member in values if member is not None and not isinstance(member, dict | list)
    ]


numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.sampled_from(["a", "b", "", "[", "2", "猫", "🙂", 'q"q', "a\\b", "x\ny"])
wanted_values = st.none() | numbers | st.integers(0, 3) | texts
scalars = wanted_values | st.booleans()
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
value_comparators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
text_comparators = st.sampled_from(list(TEXT_COMPARATORS.values()))
value_lists = st.lists(wanted_values, max_size=3).map(tuple)
text_lists = st.lists(st.none() | texts, max_size=3).map(tuple)
conditions = (
    st.builds(Condition, names, value_comparators, value_lists)
    | st.builds(Condition, names, text_comparators, text_lists)
    | st.builds(Condition, st.just("title"), value_comparators | text_comparators, text_lists)
)


condition_lists = st.lists(conditions, max_size=2)


def check_conditions(store: Store, contents: Documents, all_conditions: list[Condition]) -> None:
    """The conditions find the documents that meet them as their class says."""
    expected = {
        row
        for row, fields in enumerate(contents, start=1)
        if all(meets(fields, condition) for condition in all_conditions)
    }
    assert matching(store, contents, *all_conditions) == expected


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(documents, condition_lists)
def test_the_database_agrees_with_python(
    store: Store, contents: Documents, all_conditions: list[Condition]
) -> None:
    """Whatever the conditions and the documents are."""
    check_conditions(store, contents, all_conditions)


@pytest.mark.parametrize(
    ("condition", "matching_years"),
    [
        (2020, {2020}),
        ({"$lt": "1000"}, set()),
        ({"$gte": 2020, "$lt": 2022.5}, {2020, 2022}),
        ({"$gte": [2022, "2021"]}, {2022, "2021"}),
        ({"$ne": 2020}, {"2021", 2022}),
        ({"$in": [2020, "2021"]}, {2020, "2021"}),
        ({"$nin": [2020, "2021"]}, {2022}),
        ({"$in": [2020, "2021"], "$ne": 2020}, {"2021"}),
        ({"$ne": None}, {2020, "2021", 2022}),
        ({"$contains": "02"}, {"2021"}),
        ({"$not_contains": "02"}, {2020, 2022}),
        ({"$starts_with": ["19", "20"]}, {"2021"}),
        ({"$ends_with": "21", "$starts_with": "2"}, {"2021"}),
        (None, {None}),
        ([None, 2022], {None, 2022}),
        (10**400, set()),
        ("\ud800", set()),
    ],
)
def test_values_are_compared_with_those_of_their_kind(
    store: Store, condition: Any, matching_years: set[Any]
) -> None:
    """No text is greater than any number; an absent field meets no comparison, not even "$ne"."""
    years: list[Any] = [2020, "2021", None, 2022]
    rows = matching(store, [{"year": year} for year in years], *parse_where({"year": condition}))
    assert {years[row - 1] for row in rows} == matching_years


def test_own_fields_hold_texts(store: Store) -> None:
    """A number is compared with a title, date, source or id as the text that it is written as."""
    documents: Documents = [{"title": "2020"}, {"title": "2021", "date": 1}, {}]
    cases: list[tuple[Any, set[int]]] = [(2020, {1}), ({"$gt": 2020}, {2}), ([None, 2021], {2, 3})]
    for condition, rows in cases:
        assert matching(store, documents, *parse_where({"title": condition})) == rows
    assert matching(store, documents, *parse_where({"id": "d2", "date": None})) == {2}


@pytest.mark.parametrize(
    "condition",
    [{"$gt": None}, {"$gt": []}, {"$ne": {}}, {"$lt": [[1]]}, {}, {"$like": "x"}, {"$contains": 2}],
)
def test_what_cannot_be_compared_is_refused(condition: Any) -> None:
    """The error names the field."""
    with pytest.raises(ConfigError, match=r"where\['year'\]"):
        parse_where({"year": condition})


@pytest.mark.parametrize("comparison", ["$gt", "$gte", "$lt", "$lte"])
@pytest.mark.parametrize("value", ["soon", "昨天", "", "13", ["2021", "2021-13"], "03/04/2023"])
def test_no_date_is_before_or_after_another_text(comparison: str, value: Any) -> None:
    """A text that is no date is refused, with the forms that are taken; nothing would meet it."""
    with pytest.raises(
        ConfigError, match=r"where\['date'\].*[<>].* 2021-06-15, June 2021 or 2021年6月"
    ):
        parse_where({"date": {comparison: value}})


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ({"$gte": "2023-05-06"}, {2, 3, 4}),
        ({"$gt": "2023-05-06"}, {4}),
        ({"$lte": "2023-05-06"}, {1, 2, 3}),
        ({"$lt": "2023-05-06"}, {1}),
        ("2023-05-06", {2, 3}),
        ({"$ne": "2023-05-06"}, {1, 4, 5}),
        ({"$gte": "2023-05-06T11:30"}, {3, 4}),
        ({"$lt": "2023-05-06T11:30"}, {1, 2}),
        ({"$gt": "２０２３年５月"}, set()),
        ("次年春 🌱", {5}),
        ({"$contains": "春"}, {5}),
    ],
)
def test_dates_are_as_long_as_they_are_precise(
    store: Store, condition: Any, rows: set[int]
) -> None:
    """A day has all its hours in it; what is no date is the same text or another one, and at no time."""
    texts = ["May 5, 2023", "2023-05-06T09:15", "2023-05-06T12:00", "2023-05-07", "次年春 🌱"]
    dates: Documents = [{"date": text} for text in texts]
    assert matching(store, dates, *parse_where({"date": condition})) == rows


WORDS = [
    "Ann",
    "ANN",
    "O'Brien",
    "café",
    "12",
    "１２",
    "or",
    "NOT",
    "镭",
    "发现了镭",
    "東京タワー",
    "서울",
    "🙂",
]
passages = st.lists(st.sampled_from([*WORDS, " ", "，", ". "]), max_size=8).map(" ".join)


passage_lists = st.lists(passages, max_size=6)
deleted_rows = st.sets(st.integers(1, 6))


def check_terms(store: Store, given_texts: list[str], deleted: set[int], rebuilt: bool) -> None:
    """Each term finds its chunks, also by its beginning and among some of the chunks only."""
    put(store, [{"text": text} for text in given_texts], deleted=deleted)
    if rebuilt:
        with store.transaction() as transaction:
            transaction.rebuild_terms()
    terms = {
        row: set(search_terms(text, endings=True)) for row, text in enumerate(given_texts, start=1)
    }
    queries = {
        query
        for chunk_terms in terms.values()
        for term in chunk_terms
        for query in (term, term[0] + "*")
    }
    with store.snapshot() as snapshot:
        for query in queries:
            start = query.removesuffix("*")
            rows = {
                row
                for row, chunk_terms in terms.items()
                if row not in deleted
                and any(
                    term == query or (term[0] == start and query != start) for term in chunk_terms
                )
            }
            assert {row for row, _ in snapshot.search_terms([query], 99)} == rows
            allowed = snapshot.search_terms([query], 99, allowed=[1, 2])
            assert {row for row, _ in allowed} == rows & {1, 2}
            assert snapshot.term_counts([query])[1] == {query: len(rows)}


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(passage_lists, deleted_rows, st.booleans())
def test_each_term_finds_its_chunks(
    store: Store, given_texts: list[str], deleted: set[int], rebuilt: bool
) -> None:
    """Also after deletions, and when all terms were made anew."""
    check_terms(store, given_texts, deleted, rebuilt)


def test_the_rarer_term_weighs_more(store: Store) -> None:
    """The ranking is that of BM25; equal chunks are in the order of their row ids."""
    texts = ("ann bob", "bob cid", "ann bob", "dan eve", "dan eve")
    put(store, [{"text": text} for text in texts])
    with store.snapshot() as snapshot:
        hits = snapshot.search_terms(["bob", "cid"], 9)
        assert [row for row, _ in hits] == [2, 1, 3] and hits[1][1] == hits[2][1] > 0
        assert snapshot.search_terms(["bob", "cid"], 1) == hits[:1]


def test_no_term_is_taken_for_a_query(store: Store) -> None:
    """Whatever is looked for, it is a term and no operator of the query language."""
    put(store, [{"text": "ann"}, {"text": "bob"}])
    with store.snapshot() as snapshot:
        for term in ('"', '"; DROP', "a b", "*", "NEAR(", "col:x", "'", "-x", ""):
            assert snapshot.search_terms([term], 9) == []
            assert snapshot.search_terms([term, "ann"], 9)[0][0] == 1
