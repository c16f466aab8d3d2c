"""Thoughts that reasoning models write before their answers are no part of what they say."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Completion, Document, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.reader import parse_jsonl
from lightrag_jsonl.llm.thinking import (
    ThinkingFilter,
    without_prompted_thinking,
    without_thinking,
)
from lightrag_jsonl.testing import Request, ScriptedLLM
from tests.indexing.kit import entity, prompts

CHECK = prompts().render("glean-check", {})[-1].content
TEXT = Document("Marie Curie discovered radium in Paris.", id="d1")
RADIUM = [entity("Marie Curie", "She discovered radium.")]

PIECES = (
    "<think>",
    "</think>",
    "<thinking>",
    "</THINK >",
    "<reasoning>",
    "</reasoning>",
    "[THINK]",
    "[/THINK]",
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|channel>thought",
    "<channel|>",
    "[TH",
    "<th",
    "ink>",
    "<",
    "</",
    ">",
    "\n",
    " ",
)


@pytest.mark.parametrize(
    ("answer", "said"),
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
def test_what_is_said_comes_after_the_thought(answer: str, said: str | None) -> None:
    """Only a thought at the very beginning is one; all else stays as it is."""
    assert without_thinking(answer) == (answer if said is None else said)


MARKS = [  # of DeepSeek and Qwen, MiniMax, Seed-OSS, Magistral, Kimi-VL, gpt-oss, Gemma 4, Command A, …
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


@pytest.mark.parametrize(("begin", "end"), MARKS + PLAIN_MARKS)
def test_models_mark_their_thoughts_in_many_ways(begin: str, end: str) -> None:
    """Whatever the marks: nothing of a thought is said, a value or a record."""
    thought = f'{begin}Is it [7]?\n{{"a": 0}}\nOr is it\n{end}\n'
    assert without_thinking(f"{thought}Radium [1].") == "Radium [1]."
    assert read_json(f'{thought}{{"a": 1}} it is') == {"a": 1}
    assert parse_jsonl(f'{thought}{{"a": 1}}').records == ({"a": 1},)


@pytest.mark.parametrize(("begin", "end"), MARKS)
def test_a_thought_may_be_begun_by_the_prompt(begin: str, end: str) -> None:
    """Then its end alone is in the answer."""
    thought = f'Is it [7]?\n{{"a": 0}} or {{"a": it}}\n{end}\n'
    assert without_thinking(f"{thought}Radium [1].") == "Radium [1]."
    assert read_json(f'{thought}{{"a": 1}} it is') == {"a": 1}
    answer = without_prompted_thinking(f'{thought}{{"a": 1}}')
    assert parse_jsonl(answer).records == ({"a": 1},)


@pytest.mark.parametrize(
    "text", ["see </think> [1]", "</reasoning>[1]", "<think>", "[THINK] [2] [/THINK]", "<thought>"]
)
def test_what_a_document_says_is_no_thought(text: str) -> None:
    """Inside of a value, or behind the first words, marks are text like any other."""
    value = json.dumps({"a": text})
    assert read_json(f"Sure:\n```json\n{value}\n```\nThat is it.") == {"a": text}
    answer = without_prompted_thinking(f'{value}\n{{"b": 1}}')
    assert parse_jsonl(answer).records == ({"a": text}, {"b": 1})
    assert without_thinking(f"It says: {text}, and so on.") == f"It says: {text}, and so on."


@pytest.mark.parametrize("mark", ["<thought>", "<reason>", "</reason>", "<reasoning mode='x'>"])
def test_tags_that_documents_have_are_no_thoughts_within_an_answer(mark: str) -> None:
    """A line of a document that a model repeats costs that line alone."""
    result = parse_jsonl(f'{{"a": 1}}\n{mark}\n{{"b": 1}}')
    assert result.records == ({"a": 1}, {"b": 1})


def test_half_a_value_is_none_whatever_it_speaks_of() -> None:
    """What comes after a mark in a string that has no end is a part of it."""
    with pytest.raises(ResponseError):
        read_json('{"a": 1, "b": "it wrote </think> [1, 2]')


@given(st.lists(st.sampled_from([*PIECES, "so", "🙂 "]), max_size=12), st.data())
def test_the_way_an_answer_is_cut_does_not_matter(parts: list[str], data: st.DataObject) -> None:
    """In one piece or in many, a stream tells the same."""
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    whole, cut = ThinkingFilter(), ThinkingFilter()
    edges = [0, *cuts, len(text)]
    told = [cut.feed(text[start:end]) for start, end in itertools.pairwise(edges)]
    assert "".join(told) + cut.rest() == whole.feed(text) + whole.rest()


def thinking(request: Request) -> str:
    """Answers with names, notes and numbers, each after a thought that holds others."""
    thought = "<think>Number 1 or 2? Marie Curie [7]</think>\n"
    if "high_level_keywords" in request.text:
        return thought + '{"high_level_keywords": [], "low_level_keywords": ["Marie Curie"]}'
    if "compare two questions" in request.text:
        return thought + "0.1"
    if "Notes:" in request.text:
        return thought + "She discovered radium."
    return thought + "Radium [1]."


def test_an_answer_is_without_its_thought(tmp_path: Path) -> None:
    """Asked at once or in pieces, kept or not: neither its words nor its numbers are the answer's."""
    with LightRAG(tmp_path, llm=ScriptedLLM(thinking)) as rag:
        rag.insert_records(TEXT, RADIUM)
        for _ in range(2):
            answer = rag.query("What did Marie Curie discover?")
            assert (answer.text, answer.invented) == ("Radium [1].", ())
            assert "".join(rag.stream("What was discovered?")) == "Radium [1]."
        assert rag.query("And in Rome?", mode="bypass").text == "Radium [1]."


def test_a_thought_without_an_end_is_better_than_nothing(tmp_path: Path) -> None:
    """Where the token limit cut the answer off before it began, that can be seen."""

    def cut(request: Request) -> str | Completion:
        asks = "high_level_keywords" in request.text
        return thinking(request) if asks else Completion("<think>Is it so", "length")

    with LightRAG(tmp_path, llm=ScriptedLLM(cut)) as rag:
        rag.insert_records(TEXT, RADIUM)
        assert rag.query("What did she discover?").text == "<think>Is it so"
        assert "".join(rag.stream("What was discovered?")) == "<think>Is it so"


def test_no_question_is_taken_for_another_by_a_number_in_a_thought(tmp_path: Path) -> None:
    """The model's judgment is the number that it says."""
    param = QueryParam(similarity_reuse=0.0, similarity_check=True)
    with LightRAG(tmp_path, llm=ScriptedLLM(thinking)) as rag:
        rag.insert_records(TEXT, RADIUM)
        rag.query("Who discovered radium?", param)
        again = rag.query("Where was radium discovered?", param)
        assert not rag.trace(str(again.trace_id)).reused


def test_a_summary_is_without_its_thought(tmp_path: Path) -> None:
    """What is told of an entity is no musing about it."""
    options = IndexOptions(summarize_fragments=2)
    with LightRAG(tmp_path, llm=ScriptedLLM(thinking), options=options) as rag:
        rag.insert_records(TEXT, RADIUM)
        rag.insert_records(Document("More.", id="d2"), [entity("Marie Curie", "She was Polish.")])
        assert rag.graph.nodes["Marie Curie"]["description"] == "She discovered radium."


def test_a_no_after_a_thought_ends_the_gleaning(tmp_path: Path) -> None:
    """Nothing more is asked, and paid, for a text that the model finds nothing more in."""
    records = [*RADIUM, {"type": "done", "entities": 1, "relationships": 0}]

    def model(request: Request) -> str:
        if request.question == CHECK:
            return "<think>Did I miss any?</think>\n\nNO"
        return "\n".join(json.dumps(record) for record in records)

    llm = ScriptedLLM(model)
    with LightRAG(tmp_path, llm=llm, options=IndexOptions(glean_min_tokens=1)) as rag:
        rag.insert(TEXT)
    assert [request.question for request in llm.requests][1:] == [CHECK]
