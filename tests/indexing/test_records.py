"""Records to mentions: shapes that models drift into, and the checks on each mention."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.drift import (
    normalize_graph_record,
    normalize_keywords,
    read_strength,
    split_keywords,
)
from lightrag_jsonl.indexing.extraction import from_records
from lightrag_jsonl.indexing.records import ADAPTERS, MentionCollector
from lightrag_jsonl.jsonl import parse_jsonl
from lightrag_jsonl.types import Chunk, Extraction, Json, Record, RelationMention
from tests.indexing.kit import entity, prompts, relation


def said(*records: Record, text: str = "Ann met Bob.") -> Extraction:
    """What the given records of one chunk amount to."""
    chunk = Chunk("c", "d", 0, 1, 0, len(text), text)
    return from_records(chunk, list(enumerate(records, 1)))


def read(answer: str) -> Extraction:
    """What an answer to `extract-graph` amounts to."""
    schema = prompts().prompt("extract-graph").schema
    result = parse_jsonl(answer, schema=schema, normalize=normalize_graph_record)
    assert result.rejections == ()
    return said(*result.records)


# ── drift ───────────────────────────────────────────────────────────────────────

ANN = {"name": "Ann", "entity_type": "person", "description": "Ann sings."}
BOB = {"name": "Bob", "entity_type": "person", "description": "Bob sails."}
ENDS = {"source": "Ann", "target": "Bob"}
REST = {"keywords": ["friends", "music"], "description": "They sing.", "strength": 8}
ASKED = [
    {"type": "entity", **ANN},
    {"type": "entity", **BOB},
    {"type": "relationship", **ENDS, **REST},
]
DRIFTS: dict[str, list[Record]] = {
    "one object": [{"entities": [ANN, BOB], "relationships": [{**ENDS, **REST}]}],
    "nodes and edges": [
        {
            "nodes": [
                {"id": "Ann", "type": "person", "description": "Ann sings."},
                {"label": "Bob", "category": "person", "desc": "Bob sails."},
            ],
            "edges": [{"from": "Ann", "to": "Bob", **REST}],
        }
    ],
    "names of the tuple format": [
        {"type": "entity", "entity_name": "Ann", "entity_type": "person", "entity_description": "Ann sings."},
        {"type": "Entity", "entity": "Bob", "category": "person", "description": "Bob sails."},
        {
            "type": "relation",
            "src_id": "Ann",
            "tgt_id": "Bob",
            "relationship_keywords": "friends, music",
            "relationship_description": "They sing.",
            "relationship_strength": "8",
        },
    ],
    "subject and object": [
        ASKED[0],
        ASKED[1],
        {"type": "edge", "subject": "Ann", "object": "Bob", **REST, "keywords": "friends、music"},
    ],
    "no type at all": [ANN, BOB, {"source_entity": "Ann", "target_entity": "Bob", **REST}],
    "the type says what it is": [
        {"type": "person", "name": "Ann", "description": "Ann sings."},
        {"type": "person", "name": "Bob", "description": "Bob sails."},
        ASKED[2],
    ],
    "Chinese keys": [
        {"类型": "实体", "名称": "Ann", "实体类型": "person", "描述": "Ann sings."},
        {"type": "实体", "实体名称": "Bob", "实体类型": "person", "说明": "Bob sails."},
        {"type": "关系", "源实体": "Ann", "目标实体": "Bob", "关键词": "friends，music", "描述": "They sing.", "强度": "８"},
    ],
    "Chinese lists": [{"实体列表": [ANN, BOB], "关系列表": [{**ENDS, **REST}]}],
    "Chinese lists of Chinese records": [
        {
            "实体": [
                {"名称": "Ann", "类型": "person", "描述": "Ann sings."},
                {"名称": "Bob", "类型": "person", "实体描述": "Bob sails."},
            ],
            "关系": [{"源": "Ann", "目标": "Bob", "关键词": "friends、music", "关系描述": "They sing.", "权重": 8}],
        }
    ],
    "keys that hold nothing": [
        {**ASKED[0], "keywords": None, "strength": None},
        {**ASKED[1], "source": None},
        {**ASKED[2], "name": None, "entity_type": None},
    ],
}  # fmt: skip


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS.keys())
def test_a_shape_with_a_plain_meaning_is_read(drift: list[Record]) -> None:
    """Aliases of keys and kinds, lists in one object, keywords and strengths as texts: all the same claims."""
    asked = read("\n".join(json.dumps(record) for record in ASKED))
    drifted = read("\n".join(json.dumps(record, ensure_ascii=False) for record in drift))
    assert (drifted.entities, drifted.relations) == (asked.entities, asked.relations)


@pytest.mark.parametrize(
    "triple",
    [
        {"subject": "Ann", "predicate": "sings with", "object": "Bob"},
        {"type": "relationship", "主语": "Ann", "谓语": "sings with", "宾语": "Bob"},
        {"edges": [{"id": 1, "source": "Ann", "target": "Bob", "label": "sings with"}]},
        {"edges": [{"source": "Ann", "target": "Bob", "type": "sings with"}]},
        {"edges": [{**ENDS, "type": "directed", "relation": "sings with"}]},
        {"type": "relation", **ENDS, "relation": "sings with", "keywords": None},
    ],
)
def test_a_triple_is_a_relation_that_its_words_describe(triple: Record) -> None:
    """As in `agent-kg-extract`: the predicate is the keyword, and nothing is said but what it says."""
    [relation] = read(json.dumps(triple, ensure_ascii=False)).relations
    assert relation == RelationMention("Ann", "Bob", ("sings with",), "Ann sings with Bob")


def test_what_a_relation_says_itself_comes_before_its_predicate() -> None:
    """A description and keywords of its own are kept."""
    [relation] = read(json.dumps({**ASKED[2], "predicate": "sings with"})).relations
    assert (relation.keywords, relation.description) == (("friends", "music"), "They sing.")


@pytest.mark.parametrize(
    ("answer", "high", "low"),
    [
        ({"高级关键词": ["主题"], "低级关键词": ["曹操", "华容道"]}, ["主题"], ["曹操", "华容道"]),
        ({"high_level_keywords": "trade, war", "low_level_keywords": "曹操、1976"}, ["trade", "war"], ["曹操", "1976"]),
        ({"High-level keywords": ["a"], "lowLevelKeywords": ["b", 1976, None]}, ["a"], ["b", "1976"]),
        ({"hl_keywords": ["a"], "ll_keywords": None}, ["a"], []),
        ({"low_level_keywords": ["b"]}, [], ["b"]),
    ],
)  # fmt: skip
def test_keywords_under_other_names_are_read(answer: Json, high: Json, low: Json) -> None:
    """Names of the lists, a text in a list's place, a list that is not there: all the same two lists."""
    asked = {"high_level_keywords": high, "low_level_keywords": low}
    assert normalize_keywords(answer) == asked


@pytest.mark.parametrize("answer", [[], "keywords", 7, {}, {"themes": ["a"]}])
def test_what_holds_no_keywords_stays_for_the_schema_to_refuse(answer: Json) -> None:
    """No empty lists are made of an answer to something else."""
    assert normalize_keywords(answer) == answer


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        "type",
        "name",
        "source",
        "target",
        "to",
        "entities",
        "edges",
        "keywords",
        "strength",
        "描述",
        "类型",
        "x",
    ]
)


@given(st.dictionaries(keys, plain | st.sampled_from(["entity", "关系", "done"]), max_size=6))
def test_no_record_is_an_error(record: Record) -> None:
    """Whatever a line holds, normalizing it gives records, and reading those gives an extraction."""
    given_, schema = list(normalize_graph_record(record)), prompts().prompt("extract-graph").schema
    assert schema is not None
    found = said(*(one for one in given_ if schema.error(one) is None))
    assert all(1.0 <= relation.strength <= 10.0 for relation in found.relations)


@pytest.mark.parametrize(
    ("value", "strength"),
    [
        (5, 5.0),
        ("7", 7.0),
        (" ８ ", 8.0),
        (0, 1.0),
        (-3.5, 1.0),
        (99, 10.0),
        (10**400, 10.0),
        (-(10**400), 1.0),
        (float("inf"), 10.0),
        (float("nan"), 1.0),
        ("NaN", 1.0),
        ("1e400", 10.0),
    ],
)
def test_a_strength_is_a_number_from_1_to_10(value: Json, strength: float) -> None:
    """Texts that are numbers, numbers beyond the scale and numbers that are none are brought onto it."""
    assert read_strength(value) == strength and isinstance(read_strength(value), float)


def test_what_is_no_number_stays_for_the_schema_to_refuse() -> None:
    """No strength is guessed."""
    assert [read_strength(v) for v in ("high", None, True, [1])] == ["high", None, True, [1]]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a, b，c、d;e；f", ["a", "b", "c", "d", "e", "f"]),
        (["a", " a ", "", "b", 7], ["a", "b", "7"]),
        ("", []),
        ("，、", []),
        (None, None),
    ],
)
def test_keywords_come_as_a_list_or_as_a_text(value: Json, words: Json) -> None:
    """Commas of both scripts part them; doubles and blanks go."""
    assert split_keywords(value) == words


# ── checks on each mention ──────────────────────────────────────────────────────


def test_names_are_cleaned_without_losing_numbers() -> None:
    """Quotes, brackets, full-width forms and HTML go; 42, 3.14, C++ and AT&T stay what they are."""
    given_ = ('"Ann"', "《红楼梦》", "Ｂｏｂ１２", "AT&amp;T", "<b>Cid</b>", "42", "3.14", "C++")
    found = said(*(entity(name) for name in given_))
    assert {mention.name for mention in found.entities} == {
        "Ann", "红楼梦", "Bob12", "AT&T", "Cid", "42", "3.14", "C++",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["", "  ", "\u200b", '""', "《》"])
def test_a_claim_without_a_name_is_refused(name: str) -> None:
    """Of an entity or of an end of a relation; the line is kept with the reason."""
    found = said(entity(name, "x"), relation(name, "Bob"), relation("Ann", name))
    assert found.entities == found.relations == () and found.state == "partial"
    assert [(one.line, one.reason) for one in found.rejections] == [
        (1, "empty_name"), (2, "empty_name"), (3, "empty_name"),
    ]  # fmt: skip


def test_a_relation_with_itself_is_refused() -> None:
    """However its ends are spelled."""
    found = said(entity("Apple Inc."), relation("Apple Inc.", "APPLE INC"), relation("１２", "12"))
    assert found.relations == () and found.state == "partial"
    assert [one.reason for one in found.rejections] == ["self_relation"] * 2


def test_ends_that_nothing_named_become_unknown_entities() -> None:
    """Once each, without a word of the relation's text, and only where no entity has the name."""
    found = said(relation("Ann", "Bob"), relation("bob", "Cid"), entity("ANN", "Sings."))
    assert [(m.name, m.type, m.description) for m in found.entities] == [
        ("ANN", "person", "Sings."), ("Bob", "unknown", ""), ("Cid", "unknown", ""),
    ]  # fmt: skip


def test_names_that_do_not_occur_are_kept_and_flagged() -> None:
    """In any form: other case, width, white space or punctuation is still there."""
    text = "Tiny\n  Tim met Apple Inc. and 马利 １２ times, said “Bob”."
    there = ("tiny tim", "APPLE INC", "马利", "12", '"Bob"')
    found = said(*(entity(name) for name in (*there, "Scrooge")), text=text)
    assert {m.name for m in found.entities if not m.grounded} == {"Scrooge"}
    assert len(found.entities) == 6


def test_claims_stand_in_the_order_of_the_text_each_once() -> None:
    """The order and number of the lines leave no mark."""
    records = [
        entity("Bob"),
        relation("Bob", "Ann"),
        entity("Ann"),
        entity("Zoe"),
        entity("Ann", "Old."),
    ]
    found, turned = said(*records), said(*reversed(records), *records)
    assert (found.entities, found.relations) == (turned.entities, turned.relations)
    assert [m.name for m in found.entities] == ["Ann", "Ann", "Bob", "Zoe"]


def test_a_relation_without_keywords_or_strength_counts_one() -> None:
    """What is optional may be missing."""
    (mention,) = said(
        {"type": "relationship", "source": "Ann", "target": "Bob", "description": "x"}
    ).relations
    assert mention == RelationMention("Ann", "Bob", (), "x", 1.0)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("They met O’Brien there.", "O'Brien"),
        ("皮埃尔•居里在巴黎。", "皮埃尔·居里"),
        ("COVID‑19 spread.", "COVID-19"),
        ("The war of 1914–1918 ended.", "1914-1918"),
        ("刘\u200b备在涿郡。", "刘备"),
        ("蜀汉丞相诸葛\n亮住在隆中。", "诸葛亮"),
        ("AT&amp;T paid.", "AT&T"),
    ],
)
def test_a_name_is_grounded_in_any_form(text: str, name: str) -> None:
    """Other quotes, dots and dashes, invisible characters, markup, and line breaks in Chinese."""
    collector = MentionCollector(text)
    collector.add([(1, entity(name))], ADAPTERS["extract-graph"])
    assert [mention.grounded for mention in collector.entities] == [True]


def test_a_name_over_a_line_break_of_english_is_two_words() -> None:
    """Without spaces "her mine" would hold a Hermine."""
    collector = MentionCollector("It was her\nmine.")
    collector.add([(1, entity("Hermine"))], ADAPTERS["extract-graph"])
    assert [mention.grounded for mention in collector.entities] == [False]
