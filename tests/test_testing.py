"""The public fakes follow their scripts, and the contract classes find what breaks a promise."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lightrag_jsonl import (
    LLM,
    Chunk,
    Completion,
    Embedder,
    EntityMention,
    LLMError,
    Message,
    Tokenizer,
    testing,
)
from lightrag_jsonl import RelationMention as Found
from lightrag_jsonl.testing import HashEmbedder, ReplayLLM, ScriptedLLM
from tests.kit import TOKENIZER, extraction


class TestScriptedKeepsTheContract(testing.LLMContract):
    def make(self) -> LLM:
        return ScriptedLLM(lambda request: "yes")


class TestReplayKeepsTheContract(testing.LLMContract):
    def make(self) -> LLM:
        return ReplayLLM({"Say yes.": ["yes"]})


class TestHashEmbedderKeepsTheContract(testing.EmbedderContract):
    def make(self) -> Embedder:
        return HashEmbedder()


class TestFittedTokenizerKeepsTheContract(testing.TokenizerContract):
    def make(self) -> Tokenizer:
        return TOKENIZER


class Short(HashEmbedder):
    async def embed(self, texts: Sequence[str], *, kind: Any) -> Any:
        return await super().embed(texts, kind=kind) * np.float32(0.5)


class Greedy:
    name = "greedy"

    def count(self, text: str) -> int:
        return len(text)

    def truncate(self, text: str, limit: int) -> str:
        return text


class Loose:
    name = "loose"

    async def extract(self, chunk: Chunk) -> Any:
        relation = Found("A", "B", (), "")
        return extraction((EntityMention("A", "x", ""),), (relation,))


class Nameless(ScriptedLLM):
    def __init__(self) -> None:
        super().__init__(["x"], name="")


@pytest.mark.parametrize(
    ("contract", "made", "test"),
    [
        (testing.EmbedderContract, Short, "test_rows_are_unit_vectors_of_the_promised_shape"),
        (testing.TokenizerContract, Greedy, "test_truncation_keeps_a_prefix_within_the_limit"),
        (testing.ExtractorContract, Loose, "test_ends_of_relations_are_entities"),
        (testing.ExtractorContract, Loose, "test_nothing_in_nothing_out"),
        (testing.LLMContract, Nameless, "test_it_has_a_stable_name"),
    ],
)
def test_a_broken_promise_is_found(contract: type[Any], made: type[Any], test: str) -> None:
    """Each contract fails for something that breaks it."""
    checked = contract()
    checked.make = made
    with pytest.raises(AssertionError):
        getattr(checked, test)()


def test_a_contract_without_make_says_so() -> None:
    """Without an override the error names the method."""
    with pytest.raises(TypeError, match=r"override make\(\)"):
        testing.LLMContract().test_it_has_a_stable_name()


def say(llm: LLM, *turns: str) -> Completion:
    """One call with user and assistant turns alternating."""
    roles = ("user", "assistant")
    return asyncio.run(llm.complete([Message(roles[n % 2], t) for n, t in enumerate(turns)]))


def test_a_script_in_a_row() -> None:
    """Texts, completions and errors in turn; what was asked is kept; a script that ran out says so."""
    llm = ScriptedLLM(["a b", Completion("c", "length"), LLMError("ill")])
    assert say(llm, "one two three").usage.output_tokens == 2
    assert say(llm, "x").finish == "length"
    with pytest.raises(LLMError, match="ill"):
        say(llm, "y")
    with pytest.raises(LLMError, match="no further answer; request: 'z'"):
        say(llm, "z")
    assert [one.question for one in llm.requests] == ["one two three", "x", "y", "z"]


async def test_a_scripted_stream_comes_word_by_word() -> None:
    """Put together it is the answer."""
    pieces = ScriptedLLM(["one two  three"]).stream([Message("user", "?")])
    assert "".join([piece async for piece in pieces]) == "one two  three"


def test_a_replay_answers_by_text_and_turn() -> None:
    """Past the last recorded answer it has nothing more; an unknown text is an error, or asked elsewhere."""
    llm = ReplayLLM({"Ann.": ["first", "second"], "Bob.": ["other"]})
    assert say(llm, "Text:\nAnn.").text == "first"
    assert say(llm, "Text:\nAnn.", "first", "more?").text == "second"
    assert say(llm, "Text:\nBob.", "other", "more?").text == llm.nothing_more
    with pytest.raises(LLMError, match="nothing was recorded"):
        say(llm, "Cid.")
    assert say(ReplayLLM({}, otherwise=lambda request: request.question), "Cid.").text == "Cid."
