"""Two laws of the reader: prefix (a cut loses only what it cuts) and split (pieces do not matter)."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import JsonlReader, parse_jsonl
from tests.kit import Record

WORDS = st.sampled_from(
    ["", "a", "北京", "１２", "🌍", '"', "\\", "\n", "{", "}", "[", '{"x":1}', ", ", ": ", "\u2028",
     "\u200d", "```"]
)  # fmt: skip
STRINGS = st.lists(WORDS, max_size=4).map("".join)
SCALARS = st.one_of(st.sampled_from([None, True, False, 0, -12, 1.5, -3e-7]), STRINGS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)
RECORDS: st.SearchStrategy[Record] = st.dictionaries(STRINGS, VALUES, max_size=4)

# Shapes in which a model may write its records, with the text after which each one is whole.
FRAMES = st.sampled_from(
    [
        ("", "\n", ""),
        ("```jsonl\n", "\n", "\n```"),
        ("[", ", ", "]"),
        ("[\n", ",\n", "\n]"),
        ("[\n  ", ",\n  ", "\n]\n"),
        ("", "", ""),
        ("- ", "\n- ", ""),
        ("<think>{}</think>\n", "\r\n", "\n"),
        ("Sure:\n\n", "\n\n", "\n\nDone."),
    ]
)
INDENTS = st.sampled_from([None, 0, 1, 2])

SCRAPS = st.sampled_from(
    ['{"a":1}', '{"a":"x', '{"a":[', '"', "{", "}", "[", "]", ",", "\n", "\n", "\r", " ", "x", "1",
     '{"b":"the "big" cat"}', "{'c': None,}", "<think>", "</think>", "```json", "- ", '\\"', "\\",
     ":", "\u2028", "\u200b", "\ufeff", "\ud800", "\\ud800", "tru", '"k":', "中文", "NaN"]
)  # fmt: skip
TEXTS = st.lists(SCRAPS, max_size=25).map("".join)


def write(records: list[Record], frame: tuple[str, str, str], indent: int | None) -> list[str]:
    """The text, as one piece a record and one for what comes after the last."""
    opening, between, closing = frame
    pieces = []
    for number, record in enumerate(records):
        before = between if number else opening
        pieces.append(before + json.dumps(record, ensure_ascii=False, indent=indent))
    return [*pieces, closing if records else opening + closing]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(RECORDS, max_size=5), FRAMES, INDENTS, st.data())
def test_a_cut_loses_only_what_it_cuts(
    records: list[Record], frame: tuple[str, str, str], indent: int | None, data: st.DataObject
) -> None:
    """Every whole record before the cut survives, in order, and nothing else is read."""
    pieces = write(records, frame, indent)
    text = "".join(pieces)
    cut = data.draw(st.integers(0, len(text)))
    ends = [len("".join(pieces[: n + 1])) for n in range(len(records))]
    whole = sum(end <= cut for end in ends)

    assert parse_jsonl(text).records == tuple(records)
    assert parse_jsonl(text[:cut]).records == tuple(records[:whole])


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    TEXTS, st.lists(st.integers(0, 200), max_size=6), st.sampled_from([None, {"type": "object"}])
)
def test_pieces_do_not_matter(text: str, cuts: list[int], schema: dict[str, Any] | None) -> None:
    """Any text in any pieces gives the records, line numbers and rejections of the whole."""
    whole = parse_jsonl(text, schema=schema)
    marks = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    reader = JsonlReader(schema)
    streamed = [record for start, end in pairwise(marks) for record in reader.feed(text[start:end])]

    assert reader.close() == whole
    assert list(whole.records[: len(streamed)]) == streamed


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_any_text_can_be_read(text: str) -> None:
    """Results are consistent and writable: numbered, in order, free of surrogates."""
    result = parse_jsonl(text, schema={"type": "object"})
    lines = text.count("\n") + 1

    assert len(result.records) == len(result.line_numbers)
    assert list(result.line_numbers) == sorted(result.line_numbers)
    assert all(1 <= number <= lines for number in result.line_numbers)
    found = [rejection.line for rejection in result.rejections]
    assert found == sorted(found) and all(1 <= line <= lines for line in found)
    assert result.truncated == any(item.reason == "truncated" for item in result.rejections)
    assert json.dumps(result.records, ensure_ascii=False, allow_nan=False).encode("utf-8")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(RECORDS, st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_a_line_cut_in_between_costs_itself_alone(
    broken: Record, others: list[Record], data: st.DataObject
) -> None:
    """The lines around one that breaks off are kept, and nothing is made of what broke off."""
    line = json.dumps(broken, ensure_ascii=False)
    half = line[: data.draw(st.integers(1, len(line) - 1))]
    lines = [json.dumps({"first": 1, **record}, ensure_ascii=False) for record in others]
    text = "\n".join([lines[0], half, *lines[1:], lines[0]])
    wanted = [{"first": 1, **record} for record in [*others, others[0]]]
    found = list(parse_jsonl(text).records)

    assert all(record in wanted for record in found)
    assert found[0] == wanted[0]
