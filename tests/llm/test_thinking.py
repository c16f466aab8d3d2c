"""The thinking that models write before their answers is no part of these."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import parse_jsonl
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.thinking import (
    ThinkingFilter,
    without_prompted_thinking,
    without_thinking,
)

PIECES = (
    "<think>", "</think>", "<thinking>", "</THINK >", "<reasoning>", "</reasoning>",
    "[THINK]", "[/THINK]", "<|channel|>analysis<|message|>", "<|channel|>final<|message|>",
    "<|channel>thought", "<channel|>", "[TH", "<th", "ink>", "<", "</", ">", "\n", " ",
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("<think>Is it [7]?</think>\n\nRadium [1].", "Radium [1]."),
        ("\n<Thinking>\n居里夫人…\n</Thinking>镭 [1]。", "镭 [1]。"),
        ("<think></think><think>again</think> Yes.", "Yes."),
        ("The prompt began it: [7].\n\nSo.\n</think>\n\nRadium [1].", "Radium [1]."),
        ("<think>It has no end", ""),
        ("Models write <think> and then\n</think>\nthe answer.", None),
        ("Its last word is </think>", None),
        ("<thinker> is a tag", None),
        ("  \n", None),
        ("<thi", None),
    ],
)
def test_an_answer_comes_after_the_thinking(answer: str, text: str | None) -> None:
    """Only thinking at the very beginning is removed; all else stays as it is."""
    assert without_thinking(answer) == (answer if text is None else text)


MARKS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<mm:think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
]
PLAIN_MARKS = [
    ("<thought>", "</thought>"),
    ("<reason>", "</reason>"),
    ("<reasoning>", "</reasoning>"),
]


@pytest.mark.parametrize(
    ("begin", "end", "prompted"),
    [(*marks, False) for marks in MARKS + PLAIN_MARKS] + [(*marks, True) for marks in MARKS],
)
def test_models_mark_their_thinking_in_many_ways(begin: str, end: str, prompted: bool) -> None:
    """Nothing of the thinking is text, a value or a record, even if the prompt began it."""
    thinking = f'{"" if prompted else begin}Is it [7]?\n{{"a": 0}} or {{"a": it}}\n{end}\n'
    assert without_thinking(f"{thinking}Radium [1].") == "Radium [1]."
    assert read_json(f'{thinking}{{"a": 1}} it is') == {"a": 1}
    answer = without_prompted_thinking(f'{thinking}{{"a": 1}}')
    assert parse_jsonl(answer).records == ({"a": 1},)


def test_thinking_may_end_on_the_line_of_the_answer() -> None:
    """What stands before its end on that line is no value and no record."""
    answer = 'thinking {"a": 0}</think>{"a": 1}\n{"b": 2}'
    assert parse_jsonl(without_prompted_thinking(answer)).records == ({"a": 1}, {"b": 2})
    assert read_json('thinking {"a": 0}</think>{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    "text", ["see </think> [1]", "</reasoning>[1]", "<think>", "[THINK] [2] [/THINK]", "<thought>"]
)
def test_what_a_document_says_is_no_thinking(text: str) -> None:
    """Inside of a value, or behind the first words, marks are text like any other."""
    value = json.dumps({"a": text})
    assert read_json(f"Sure:\n```json\n{value}\n```\nThat is it.") == {"a": text}
    answer = without_prompted_thinking(f'{value}\n{{"b": 1}}')
    assert parse_jsonl(answer).records == ({"a": text}, {"b": 1})
    assert without_thinking(f"It says: {text}, and so on.") == f"It says: {text}, and so on."


@given(st.lists(st.sampled_from([*PIECES, "so", "🙂 "]), max_size=12), st.data())
def test_the_way_an_answer_is_cut_does_not_matter(parts: list[str], data: st.DataObject) -> None:
    """In one piece or in many, the same text is passed on."""
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    whole, cut = ThinkingFilter(), ThinkingFilter()
    edges = [0, *cuts, len(text)]
    pieces = [cut.feed(text[start:end]) for start, end in itertools.pairwise(edges)]
    assert "".join(pieces) + cut.rest() == whole.feed(text) + whole.rest()
