"""An answer in which the model repeats itself is read until then, and no further."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import JsonlReader, parse_jsonl
from lightrag_jsonl.llm.reader import REPEATS


def entity(name: str, **more: Any) -> str:
    return json.dumps({"type": "entity", "name": name, **more}, ensure_ascii=False)


def test_a_loop_ends_the_reading() -> None:
    """What was written before it is kept, the loop is named once, and nothing after it is read; also
    a loop of several records, and one of lines that are no records.
    """
    start = [entity("曹操"), entity("１２ 🌍")]
    for loop in (
        [entity("刘备")],
        [entity("刘备"), entity("关羽"), entity("张飞")],
        ["I am sorry, I cannot go on with this."],
        [json.dumps({"type": "entity", "name": "刘备"}, indent=1, ensure_ascii=False)],
    ):
        result = parse_jsonl("\n".join([*start, *loop * 500, entity("孙权")]))
        names = [record["name"] for record in result.records]
        refused = [one for one in result.rejections if one.reason == "repeated"]

        assert names[:2] == ["曹操", "１２ 🌍"] and "孙权" not in names
        assert len(names) < 2 + REPEATS * len(loop) and len(refused) == 1
        assert not result.truncated


def test_a_record_that_comes_back_now_and_then_is_no_loop() -> None:
    """Some models repeat a record for each relation, and print brackets a thousand times."""
    lines = [entity("刘备")] * (REPEATS - 1) + ["}"] * 100 + [entity("孙权")]

    names = [record["name"] for record in parse_jsonl("\n".join(lines)).records]

    assert names == ["刘备"] * (REPEATS - 1) + ["孙权"]


@given(st.lists(st.sampled_from([entity("a"), entity("b"), "no record, but a long line", "{"])))
def test_a_loop_is_the_same_in_pieces(lines: list[str]) -> None:
    """However the answer arrives, the same is read."""
    text = "\n".join(lines * 5)
    reader = JsonlReader()
    for start in range(0, len(text), 11):
        reader.feed(text[start : start + 11])

    assert reader.close() == parse_jsonl(text)


def test_a_list_that_is_too_long_is_cut() -> None:
    """It costs what is beyond the limit, not the whole record; each kind of record has its own."""
    texts: Any = {"type": "array", "items": {"type": "string"}}
    kinds: list[Any] = [
        {
            "type": "object",
            "properties": {"type": {"const": kind}, "aliases": {**texts, "maxItems": most}},
        }
        for kind, most in (("person", 2), ("place", 3))
    ]
    lines = [
        '{"type":"person","aliases":["a","b","c","d"]}',
        '{"type":"place","aliases":["a","b","c","d"]}',
        '{"type":"person","aliases":["a",1]}',
    ]

    result = parse_jsonl("\n".join(lines), schema={"oneOf": kinds})

    assert [record["aliases"] for record in result.records] == [["a", "b"], ["a", "b", "c"]]
    assert [one.reason for one in result.rejections] == ["schema"]
    plain = parse_jsonl('{"tags":[1,2]}', schema={"properties": {"tags": {"maxItems": 1}}})
    assert plain.records == ({"tags": [1]},)
