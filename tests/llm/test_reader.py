"""The reader, rule by rule: what becomes a record, what is refused and why."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from lightrag_jsonl import JsonlReader, JsonlResult, parse_jsonl
from tests.kit import Record


def read(text: str) -> JsonlResult:
    """Read the text whole and one character at a time; both must agree."""
    whole = parse_jsonl(text)
    reader = JsonlReader()
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
SURROGATES: Record = {"\ufffd": ["\ufffd", {"k\ufffd": "😀"}]}


def deep(levels: int) -> str:
    """An object of so many levels."""
    return '{"a":' * levels + "1" + "}" * levels


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
        (
            '{"a":"x\u2028y\u0085z"}\r{"b":1}\u2028{"c":1}\u2029{"d":"\r"}',
            [{"a": "x\u2028y\u0085z"}, {"b": 1}, {"c": 1}, {"d": "\r"}],
            [1, 1, 1, 1],
            [],
        ),
        ('{"\\ud800":["\\uDC00",{"k\ud800":"\\ud83d\\ude00"}]}', [SURROGATES], [1], []),
        ('{"a":1}，\n{"a":2}。', [{"a": 1}, {"a": 2}], [1, 2], []),
        ('[{"a":1}，{"a":2}]', [{"a": 1}, {"a": 2}], [1, 1], []),
        ('{"a":1}；{"a":2}。', [{"a": 1}, {"a": 2}], [1, 1], []),
        (
            f'{{"a":1}}\n{deep(190)}\n{deep(210)}',
            [{"a": 1}, json.loads(deep(190))],
            [1, 2],
            [(3, "too_deep")],
        ),
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
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        "{'a':'x' 'b':'y'}",
        '{"a":1,,}',
        '{"a":,}',
        '{"a":1]',
    ],
)
def test_what_a_strict_parser_refuses_is_malformed(text: str) -> None:
    """Without a schema to judge a guess, a line that is no JSON gives no record."""
    result = read(text + '\n{"b":1}')

    assert result.records == ({"b": 1},)
    assert reasons(result) == [(1, "malformed")]


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
    ("text", "value"),
    [
        (r'{"a": "$\sigma$ 是标准差"}', {"a": r"$\sigma$ 是标准差"}),
        (r'{"a": "\beta, \theta, \frac{1}{2} and \mu"}', {"a": r"\beta, \theta, \frac{1}{2} and \mu"}),
        (r'{"a": "C:\Users\me", "b": "one\nTwo \"quoted\" \\ \u4e2d"}', {"a": r"C:\Users\me", "b": 'one\nTwo "quoted" \\ 中'}),
        (r'{"a": "\_ and \t tab"}', {"a": "\\_ and \t tab"}),
    ],
)  # fmt: skip
def test_backslashes_that_escape_nothing_are_kept_as_written(text: str, value: Record) -> None:
    """As in LaTeX and in paths; escapes of JSON beside them mean what they mean."""
    result = parse_jsonl(text)
    assert result.records == (value,) and reasons(result) == [(1, "repaired")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":"x,}","b":[1,2,],}', {"a": "x,}", "b": [1, 2]}),
        ('{\n "a": {"b": "猫",},\n}', {"a": {"b": "猫"}}),
        ("{'a': 'the \"big\" cat', 'b': [\"it's\", '🙂']}", {"a": 'the "big" cat', "b": ["it's", "🙂"]}),
        (r"{'a': 'Mei\'s lamp, Lin's oil', 'b': 1,}", {"a": "Mei's lamp, Lin's oil", "b": 1}),
        ("{'a': \"x\"}", {"a": "x"}),
    ],
)  # fmt: skip
def test_a_last_comma_and_single_quotes_are_repaired(text: str, value: Record) -> None:
    """As in the objects of Python and JavaScript; commas and quotes inside strings stay."""
    result = read(text)
    assert result.records == (value,) and reasons(result) == [(1, "repaired")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "an angle \tau, then \rightarrow"}', {"a": r"an angle \tau, then \rightarrow"}),
        (r'{"a": "$\neq$ 与 $\bar x$"}', {"a": r"$\neq$ 与 $\bar x$"}),
        (r'{"a": ["\forall x_{\nu}"]}', {"a": [r"\forall x_{\nu}"]}),
        (r'{"a": "$f\to g\ne h$, $\rm d$"}', {"a": r"$f\to g\ne h$, $\rm d$"}),
        (r'{"a": "\(\text{if}\)"}', {"a": r"\(\text{if}\)"}),
        (r'{"a": "\sum and \notin"}', {"a": r"\sum and \notin"}),
    ],
)
def test_a_command_that_json_takes_for_a_control_character_is_put_back(
    text: str, value: Record
) -> None:
    """Where no text goes on with a tab, a line break or the like before these letters."""
    result = read(text)
    assert result.records == (value,) and reasons(result) == [(1, "repaired")]


@pytest.mark.parametrize(
    "text",
    [
        r"from London\tto Paris",
        r"first\nnot second",
        r"one\nexit\r\nequal",
        r"a cost of $5\nor $6",
        r"it costs $5\tto $10",
        r"姓名\t年龄\n张三\t30",
        r"a\nneutral\ttexture\nless than\nexists",
        r"written \\theta as JSON wants",
    ],
)
def test_ordinary_tabs_and_lines_stay(text: str) -> None:
    """Also before letters, and between the dollars of prices."""
    result = read(f'{{"a":"{text}"}}')
    assert result.records == (json.loads(f'{{"a":"{text}"}}'),)
    assert not result.rejections


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
        "{'source':'A,'target':'B'}",
        "{'source':'A','target':'B",
        '{"source":"A","target":"B",',
        '[{"a":"x},{"b":1}]',
    ],
)
def test_a_half_record_is_never_completed(text: str) -> None:
    """Two records run together, or a lost quote, are not made into a fact nobody stated."""
    result = read(text)

    assert result.records == () and not {"repaired"} & {reason for _, reason in reasons(result)}


# ── normalize, schemas, the reader as an object ─────────────────────────────────


def test_normalize_runs_before_the_schema() -> None:
    """One object can stand for several records, each judged alone, all on its line; one that breaks
    the schema does not stop its neighbours.
    """

    def unfold(record: Record) -> list[Record]:
        items = record.get("items", [record])
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    text = '\n{"items":[{"n":1},{"m":2},{"n":3}]}\n{"n":4}'
    result = parse_jsonl(text, schema={"required": ["n"]}, normalize=unfold)

    assert result.records == ({"n": 1}, {"n": 3}, {"n": 4})
    assert result.line_numbers == (2, 2, 3)
    assert reasons(result) == [(2, "schema")]


@pytest.mark.parametrize(
    "text",
    [
        '["乔峰", "a\\nb"]',
        '"乔峰"\n"a\\nb"\n',
        '```json\n[\n "乔峰",\n "a\\nb"\n]\n```',
        '{"name": "乔峰"}, "a\\nb"',
        '["乔峰", "a\\nb", "段',
    ],
)
def test_a_text_stands_for_a_record_with_one_text(text: str) -> None:
    """In a list, on a line, beside objects, and up to a cut; other values are still no records."""
    fields: dict[str, Any] = {"name": {"type": "string"}}
    schema: dict[str, Any] = {"type": "object", "properties": fields, "required": ["name"]}
    assert parse_jsonl(text, schema=schema).records == ({"name": "乔峰"}, {"name": "a\nb"})
    assert not parse_jsonl("[3, null]", schema=schema).records
    other_schema: dict[str, Any] = {"type": "object", "properties": fields}
    assert not parse_jsonl('["乔峰"]', schema=other_schema).records


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
        ("{\n" * 10_000, "truncated"),
        ("[" * 100_000, "truncated"),
        ("[\n" * 10_000, "truncated"),
        ('{"a":' * 40_000, "too_deep"),
        ('[{"":' * 40_000, "too_deep"),
        ('{"a":\n' * 10_000, "too_deep"),
        ('{"a":"\n' * 10_000, "truncated"),
        ('"' * 200_000, "malformed"),
        ('{"' + "\\" * 200_000, "truncated"),
        ("}\n" * 10_000, "malformed"),
        ("x\r" * 25_000, "not_json"),
        ("{x}" * 10_000, "malformed"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "too_deep"),
        ("9" * 5_000, "not_object"),
        ('{"a":"' + '"x ' * 60_000, "truncated"),
        ("{" + "'a':'" * 20_000 + "}", "malformed"),
        ("{'a':" + "{'" * 20_000, "truncated"),
        ('{"a":"' + r"\(" * 20_000 + r'\theta"', "truncated"),
        (('{"k":[1,\n' + '{"x":1},\n' * 50) * 200, "truncated"),
        ("<think>" * 10_000, "truncated"),
    ],
)
def test_hostile_text_gives_no_record_and_no_exception(text: str, last: str) -> None:
    """Whatever its shape, the text is refused and the work stays in proportion to its length."""
    result = parse_jsonl(text, schema={"type": "object"})

    assert result.records == ()
    assert result.rejections[-1].reason == last


def test_refused_lines_and_an_empty_answer_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Who takes the records alone learns from the log what is not among them."""
    assert parse_jsonl('{"a": 1}\nnothing\n{"b"').records == ({"a": 1},)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "line 2 is not a valid record (not_json): nothing" in caplog.text
    caplog.clear()
    parse_jsonl('{"a": 1}')
    assert not caplog.records
    parse_jsonl("  \n")
    assert "no record" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("words", ["the ferry 12 leaves", "渡船十二点离开码头"])
def test_reading_takes_no_more_memory_than_a_line_by_line_parser(words: str) -> None:
    """The text of the records is not kept beside them."""
    lines = [json.dumps({"name": f"{words} {n}", "description": words * 9}) for n in range(3_000)]
    text = "\n".join(lines)

    def peak(read: Callable[[], object]) -> int:
        tracemalloc.start()
        records = read()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del records
        return most

    plain = peak(lambda: [json.loads(line) for line in text.split("\n")])
    assert peak(lambda: parse_jsonl(text)) <= plain


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"It is in D:\backup\north\tools.", r"It is in D:\backup\north\tools."),
        (r"E:\My Files\new\temp is full", r"E:\My Files\new\temp is full"),
        (r"lib\data\new\table.csv", r"lib\data\new\table.csv"),
        (r"\w+\b and \bfoo\b match", r"\w+\b and \bfoo\b match"),
        (r"^\s*\n$ is an empty line", r"^\s*\n$ is an empty line"),
        (r"C:\\new as JSON wants it", r"C:\new as JSON wants it"),
        (r"Q:\nWhy?\nA:\nBecause.", "Q:\nWhy?\nA:\nBecause."),
        (r"一\n二\t三", "一\n二\t三"),
        (r"A line.\nIn C:\bin\nThe end.", "A line.\nIn C:\\bin\nThe end."),
    ],
)
def test_backslashes_of_paths_and_patterns_stay(written: str, meant: str) -> None:
    """A model that does not double them means no control characters; line ends and tabs stay as they are."""
    (record,) = parse_jsonl(f'{{"a": "{written}"}}').records
    assert record == {"a": meant}
