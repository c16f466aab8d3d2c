"""The reader, rule by rule: what becomes a record, what is refused and why."""

from __future__ import annotations

import json

import pytest

from lightrag_jsonl.core.types import Json, JsonlResult, Record
from lightrag_jsonl.llm.reader import JsonlReader, parse_jsonl

DEFINITION: dict[str, Json] = {
    "type": "object",
    "properties": {"type": {"const": "definition"}, "entity": {"type": "string"}},
    "required": ["type", "entity", "definition"],
}
RELATIONSHIP: dict[str, Json] = {
    "type": "object",
    "properties": {"type": {"const": "relationship"}},
    "required": ["type", "subject", "predicate", "object", "object-entity"],
}
MIXED: dict[str, Json] = {"oneOf": [DEFINITION, RELATIONSHIP]}
ANY: dict[str, Json] = {"type": "object"}


def read(text: str, schema: dict[str, Json] | None = None) -> JsonlResult:
    """Read the text whole and one character at a time; both must agree."""
    whole = parse_jsonl(text, schema=schema)
    reader = JsonlReader(schema)
    streamed = [record for char in text for record in reader.feed(char)]
    result = reader.close()
    assert result == whole
    assert list(result.records[: len(streamed)]) == streamed
    return whole


def reasons(result: JsonlResult) -> list[tuple[int, str]]:
    """Line and reason of each rejection."""
    return [(rejection.line, rejection.reason) for rejection in result.rejections]


# ── the acceptance examples of the specification, and what else may stand around objects ──

CAT: Record = {"entity": "cat", "definition": "x"}
NESTED: Record = {"a": [{"x": 1}, {"x": 2}]}
FAMILY = "👨\u200d👩\u200d👧"


@pytest.mark.parametrize(
    ("text", "records", "numbers", "refused"),
    [
        (
            '{"entity":"cat","definition":"x"}\n{"entity":"dog","defi',
            [CAT],
            [1],
            [(2, "truncated")],
        ),
        ('```jsonl\n{"a":1}\n{"a":2}\n```', [{"a": 1}, {"a": 2}], [2, 3], []),
        ('[\n{"a":1},\n{"a":2}\n]', [{"a": 1}, {"a": 2}], [2, 3], []),
        ('{"a":1}{"a":2}', [{"a": 1}, {"a": 2}], [1, 1], []),
        ('[{"a":1},{"a":2},{"a":', [{"a": 1}, {"a": 2}], [1, 1], [(1, "truncated")]),
        ('[{"a":1},"x', [{"a": 1}], [1], [(1, "malformed")]),
        ('[\n{"a":1},\noops\n', [{"a": 1}], [2], [(1, "truncated"), (3, "not_json")]),
        ('{\n "a": [\n {"x":1},\n {"x":2}\n ]\n}\n{"b":1}', [NESTED, {"b": 1}], [1, 7], []),
        (
            '\ufeff{"实体":"北京大学"}\r\n{"e":"🌍"}',
            [{"实体": "北京大学"}, {"e": "🌍"}],
            [1, 2],
            [],
        ),
        ('1\nnull\n[1]\n{"a":1}', [{"a": 1}], [4], [(n, "not_object") for n in (1, 2, 3)]),
        ('\n\n{"a":1}\n \t\n{"a":2}\n\n', [{"a": 1}, {"a": 2}], [3, 5], []),
        ('[[{"a":1}],{"b":1},"x"]', [{"b": 1}], [1], [(1, "array"), (1, "not_object")]),
        ('{"a":1}\n<think>maybe\n{"a":2}\n', [{"a": 1}], [1], [(2, "truncated")]),
        ('{"a":1,"a":2}', [{"a": 2}], [1], []),
        ("", [], [], []),
    ],
)
def test_what_becomes_a_record(
    text: str, records: list[Record], numbers: list[int], refused: list[tuple[int, str]]
) -> None:
    """Whole objects, with the lines they begin on; each line that is none, with its reason."""
    result = read(text)

    assert (list(result.records), list(result.line_numbers)) == (records, numbers)
    assert reasons(result) == refused
    assert result.truncated == ("truncated" in {reason for _, reason in refused})
    assert json.dumps(result.records, ensure_ascii=False).encode("utf-8")


def test_a_line_that_breaks_the_schema_does_not_stop_its_neighbors() -> None:
    """Each line is judged alone, by the branch that its type names."""
    edge: Record = {"type": "relationship", "subject": "a", "predicate": "b", "object": "c"}
    good: Record = {"type": "definition", "entity": "cat", "definition": "x"}
    lines = [good, edge, {**edge, "object-entity": True}, {"type": "entity"}]
    result = read("\n".join(map(json.dumps, lines)), MIXED)

    assert result.records == (lines[0], lines[2]) and result.line_numbers == (1, 3)
    assert reasons(result) == [(2, "schema"), (4, "schema")]
    assert result.rejections[0].detail == "relationship: 'object-entity' is missing"
    assert "'entity' (known: definition, relationship)" in result.rejections[1].detail


@pytest.mark.parametrize(
    "text",
    [
        '```json {"a":1}\n```',
        '{"a":1}```',
        '{"a":1}``',
        '~~~\n{"a":1}\n~~~',
        '```{.json title="x"}\n{"a":1}\n```',
        '````jsonl some info string\n{"a":1}\n````',
        '```json [{"a":1}]```',
        '```json {\n"a":1\n}```',
        '- {"a":1}',
        '* [{"a":1}]',
        '12. {"a":1}',
        '（３）{"a":1}',
        '3、{"a":1}。',
        '• {"a":1},',
        ' \u200b\x00\x1e{"a"\u200b:1}\ufeff',
        '<think>{"a":0}</think>{"a":1}',
        '<think>\n{"a":0}\nso\n</think>\n{"a":1}',
        '<THINKING mode="x">{"a":0}\n</thinking> {"a":1}',
        '</think>\n{"a":1}',
        '[\n  {\n    "a": 1\n  },\n]',
        '[\n[\n{"a":1}\n],\n,\n]',
    ],
)
def test_what_surrounds_an_object_is_dropped(text: str) -> None:
    """Fences, bullets, thinking, array scaffolding and invisible characters are no output."""
    result = read(text)

    assert result.records == ({"a": 1},)
    assert not result.rejections and not result.truncated


@pytest.mark.parametrize(
    "answer",
    ['{"a":1}，\n{"a":2}。', '[{"a":1}，{"a":2}]', '{"a":1}；{"a":2}。', '1、{"a":1}\n2、{"a":2}'],
)
def test_chinese_marks_between_objects_are_none_of_them(answer: str) -> None:
    """They part whole objects as commas do."""
    assert read(answer).records == ({"a": 1}, {"a": 2}) and not read(answer).rejections


def test_line_ends_of_other_systems_separate_objects_and_are_text_in_strings() -> None:
    """CR and U+2028 between objects separate; inside a string they belong to it."""
    result = read('{"a":"x\u2028y\u0085z"}\r{"b":1}\u2028{"c":1}\u2029{"d":"\r"}')

    assert result.records == ({"a": "x\u2028y\u0085z"}, {"b": 1}, {"c": 1}, {"d": "\r"})
    assert result.line_numbers == (1, 1, 1, 1) and not result.rejections


# ── objects over lines ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{\n "a": oops,\n "list": [\n  {"x":1},\n  {"x":2}\n ]\n}\n{"b":1}', "malformed"),
        ('Result: {\n"items": [\n{"x":1},\n{"x":2}\n]}\n{"b":1}', "malformed"),
        ('{"items": [\n{"x":1},\n{"x":2},\n{"x":3}', "truncated"),
    ],
)
def test_objects_inside_a_broken_one_are_no_records(text: str, reason: str) -> None:
    """What an envelope meant that is broken, cut or begun in prose is not known."""
    result = read(text)

    assert result.records == (({"b": 1},) if reason == "malformed" else ())
    assert reasons(result) == [(1, reason)]


@pytest.mark.parametrize(
    "broken",
    [
        '{"entity":"dog","defi',
        '{"entity":"dog","definition":"it is',
        '{"entity":"dog",',
        '{"entity":"dog"',
        '{"entity":tru',
        "{",
        '{"entity":"dog\\"}',
    ],
)
def test_a_line_broken_in_between_costs_itself_alone(broken: str) -> None:
    """The lines before and after a line that breaks off are kept."""
    before, after, last = '{"a":1}', '{"b":"x"}', '{"c":[]}'
    result = read("\n".join([before, broken, after, last]))

    assert result.records == ({"a": 1}, {"b": "x"}, {"c": []})
    assert result.line_numbers == (1, 3, 4)
    assert reasons(result) == [(2, "malformed")]


# ── what is refused ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1} // note',
        '{"a":1}}',
        '{"a":1}#{}',
        '{"a":1} "x"',
        'Here: {"a":1}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":"\\x"}',
        "{'a':1}",
        '{"a":1,}',
        "{a:1}",
        '{"a":True}',
        '{"a":/**/1}',
        '{"a":01}',
        '{"a" "b"}',
        '{"a":1]',
    ],
)
def test_what_a_strict_parser_refuses_is_malformed(text: str) -> None:
    """Without a schema to judge a guess, a line that is no JSON gives no record."""
    result = read(text + '\n{"b":1}')

    assert result.records == ({"b": 1},)
    assert reasons(result) == [(1, "malformed")]


def test_lone_surrogates_are_replaced() -> None:
    """Escaped or raw, in keys or values, at any depth: the records can be written as UTF-8."""
    result = read('{"\\ud800":["\\uDC00",{"k\ud800":"\\ud83d\\ude00"}]}')

    assert result.records == ({"\ufffd": ["\ufffd", {"k\ufffd": "😀"}]},)


# ── repairs ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":"the "big" cat","b":1}', {"a": 'the "big" cat', "b": 1}),
        ('{"a":"a 5" pipe"}', {"a": 'a 5" pipe'}),
        ('{"a":["他说"你好"了"]}', {"a": ['他说"你好"了']}),
        ('{"a":"he said, "no" to it"}', {"a": 'he said, "no" to it'}),
        ('{\n "a": "the "big" cat"\n}', {"a": 'the "big" cat'}),
    ],
)
def test_inner_quotes_are_repaired_in_an_object_that_closes(text: str, value: Record) -> None:
    """The record is kept as it was said, with a note."""
    result = read(text)

    assert result.records == (value,) and reasons(result) == [(1, "repaired")]
    assert result.rejections[0].text == text


@pytest.mark.parametrize(
    "text",
    [
        '{"entity":"dog","defi{"entity":"bird","definition":"y"}',
        '{"entity":"dog","definition":"it is {"entity":"bird","definition":"y"}',
        '{"entity":"dog","definition":"a pet, "entity":"bird"}',
        '{"source":"A,"target":"B"}',
        '{"source":"A,"B","target":"C"}',
        '{"source":"A" "target":"B"}',
        '{"source":"A":"B"}',
        '[{"a":"x},{"b":1}]',
    ],
)
def test_a_half_record_is_never_completed(text: str) -> None:
    """Two records run together, or a lost quote, are not made into a fact nobody stated."""
    result = read(text)

    assert result.records == () and not {"repaired"} & {reason for _, reason in reasons(result)}


# ── normalize, schemas, the reader as an object ─────────────────────────────────


def test_normalize_runs_before_the_schema() -> None:
    """One object can stand for several records, each judged alone, all on its line."""

    def unfold(record: Record) -> list[Record]:
        items = record.get("items", [record])
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    text = '\n{"items":[{"n":1},{"m":2},{"n":3}]}\n{"n":4}'
    result = parse_jsonl(text, schema={"required": ["n"]}, normalize=unfold)

    assert result.records == ({"n": 1}, {"n": 3}, {"n": 4})
    assert result.line_numbers == (2, 2, 3)
    assert reasons(result) == [(2, "schema")]


def test_a_record_is_there_as_soon_as_its_line_is() -> None:
    """`feed` returns what it completed; `close` returns all, twice the same."""
    reader = JsonlReader()

    assert reader.feed('{"a":1}') == []
    assert reader.feed('\n{"a":2}\n{"a"') == [{"a": 1}, {"a": 2}]
    assert reader.feed(":3}") == []
    result = reader.close()
    assert result.records == ({"a": 1}, {"a": 2}, {"a": 3})
    assert reader.close() is result


# ── hostile input ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("{" * 200_000, "truncated"),
        ("{\n" * 20_000, "truncated"),
        ("[" * 100_000, "truncated"),
        ("[\n" * 20_000, "truncated"),
        ('{"a":' * 40_000, "too_deep"),
        ('[{"":' * 40_000, "too_deep"),
        ('{"a":\n' * 20_000, "too_deep"),
        ('{"a":"\n' * 20_000, "truncated"),
        ('"' * 200_000, "malformed"),
        ('{"' + "\\" * 200_000, "truncated"),
        ("}\n" * 20_000, "malformed"),
        ("x\r" * 50_000, "not_json"),
        ("{x}" * 20_000, "malformed"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "too_deep"),
        ("9" * 5_000, "not_object"),
        ('{"a":"' + '"x ' * 60_000, "truncated"),
        (('{"k":[1,\n' + '{"x":1},\n' * 50) * 200, "truncated"),
        ("<think>" * 20_000, "truncated"),
    ],
)
def test_hostile_text_gives_no_record_and_no_exception(text: str, last: str) -> None:
    """Whatever its shape, the text is refused and the work stays in proportion to its length."""
    result = parse_jsonl(text, schema=ANY)

    assert result.records == ()
    assert result.rejections[-1].reason == last


def test_a_deep_object_closes_without_recursion() -> None:
    """Nesting up to the limit is a record, beyond it `too_deep`; the next line is unharmed."""
    deep, deeper = ['{"a":' * levels + "1" + "}" * levels for levels in (190, 210)]
    result = read(f'{deep}\n{deeper}\n{{"b":1}}')

    assert result.line_numbers == (1, 3)
    assert reasons(result) == [(2, "too_deep")]
