"""A stream in which the model repeats itself is stopped; one that only looks like it is not."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from lightrag_jsonl import Completion, Message
from lightrag_jsonl.core.loops import (
    LONGEST_CYCLE,
    RecordCounter,
    ends_in_a_loop,
    repeats_a_record,
)
from lightrag_jsonl.llm.client import ModelClient
from tests.kit import prompts
from tests.llm.test_client import MemoryCache

LOOPS = (
    "刘备、关羽、张飞。",
    "I am sorry. ",
    "-",
    "１２ 🌍\n",
    "He went home.\n\n" * 3 + "She did not. ",
)


class Parrot:
    """A model that begins well, and then says the same for ever."""

    name = "parrot"

    def __init__(self, phrase: str) -> None:
        self.phrase = phrase
        self.pieces = 0
        self.closed = False

    async def complete(self, messages: Sequence[Message], **settings: object) -> Completion:
        raise AssertionError("it is streamed")

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> AsyncIterator[str]:
        try:
            yield "Radium was found in 1898 [1]. "
            while True:
                self.pieces += 1
                await asyncio.sleep(0)
                yield self.phrase
        finally:
            self.closed = True


@pytest.mark.parametrize("phrase", LOOPS)
async def test_a_stream_that_repeats_itself_is_stopped(phrase: str) -> None:
    """Its connection is closed, and the answer counts as cut off; its beginning was read."""
    llm = Parrot(phrase)
    client = ModelClient(llm, prompts(), MemoryCache(), max_concurrent_calls=1)
    heard: list[str] = []

    async def put(piece: str) -> None:
        heard.append(piece)

    reply = await client.chat([Message("user", "What?")], on_piece=put)

    assert llm.closed and reply.cut_off and reply.text.startswith("Radium was found in 1898 [1].")
    assert "".join(heard) == reply.text and len(reply.text) < 20 * LONGEST_CYCLE


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100,
        "".join(f"| {number} | 中文 | the same words in each row |\n" for number in range(500)),
        "a long passage that comes twice, and then is over. " * 3 + "x" * 500,
        ("-" * 400 + "\nA row of a table.\n") * 3,
        "",
    ],
    ids=["short", "table", "twice", "rules", "empty"],
)
def test_what_is_similar_is_no_loop(text: str) -> None:
    """Rows of a table, rules of dashes, a refrain."""
    assert not ends_in_a_loop(text)


def test_a_record_that_comes_back_ends_an_answer() -> None:
    """After four copies, in whatever pieces; not a record that is written twice, nor a line of layout."""
    record = '{"type":"entity","name":"乔峰"}'
    other = '{"type":"entity","name":"阿朱"}'
    counter = RecordCounter()
    ended = [counter.feed(piece) for piece in f"{record}\n{other}\n" * 5]
    assert ended.index(True) == len(f"{record}\n{other}\n") * 3 + len(record)
    assert not repeats_a_record(f"{record}\n{other}\n{record}\n")
    assert not repeats_a_record('  "entity_type": "person",\n' * 9 + "{\n" * 9 + "{}\n" * 9)
    assert repeats_a_record(f"{record},\n" * 4)


def test_a_list_of_names_that_begins_again_is_ended() -> None:
    """After three names in a row that were there before, however the list is laid out; one name twice, and
    the texts inside of objects, are no reason.
    """
    counter = RecordCounter()
    ended = [
        counter.feed(piece)
        for piece in '```json\n["乔峰", "阿朱", "乔峰",\n "阿朱", "乔峰", "段誉"]'
    ]
    assert True in ended
    assert repeats_a_record('["a","b","a","a","a"')
    assert repeats_a_record('"a"\n"b"\n' * 3)
    assert not repeats_a_record('["a","b","a","c","b","d","a"]')
    assert not repeats_a_record('{\n  "keywords": ["a",\n "a",\n "a",\n "a"]\n}\n' * 3)
