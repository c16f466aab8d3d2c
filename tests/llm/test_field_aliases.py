"""Records in the shapes that models fall into, read as what they clearly mean."""

import json
from typing import Any

import pytest

from lightrag_jsonl import parse_jsonl
from lightrag_jsonl.llm.field_aliases import (
    normalize_graph_record,
    normalize_keywords,
    read_strength,
    repair_graph_record,
    split_keywords,
)
from tests.kit import Record, prompts


def read(text: str) -> list[Record]:
    """What an answer to `extract-graph` holds; none of it is refused."""
    schema = prompts().schema("extract-graph", {})
    result = parse_jsonl(text, schema=schema, normalize=normalize_graph_record)
    assert result.rejections == ()
    return list(result.records)


ASKED = """{"type": "entity", "name": "Ann", "entity_type": "person", "description": "Ann sings."}
{"type": "relationship", "source": "Ann", "target": "Bob", "keywords": ["friends", "music"],
 "description": "They sing.", "strength": 8}"""
SHAPES = {
    "one object": """{"entities": [{"name": "Ann", "entity_type": "person",
        "description": "Ann sings."}], "relationships": [{"source": "Ann", "target": "Bob",
        "keywords": "friends、music", "description": "They sing.", "strength": 8}]}""",
    "nodes and edges": """{"nodes": [{"id": "Ann", "type": "person", "desc": "Ann sings."}],
        "edges": [{"from": "Ann", "to": "Bob", "keywords": ["friends", "music"],
        "description": "They sing.", "weight": "8"}]}""",
    "names of the tuple format": """{"type": "Entity", "entity_name": "Ann", "category": "person",
        "entity_description": "Ann sings."}
        {"type": "relation", "src_id": "Ann", "tgt_id": "Bob", "relationship_strength": "8",
        "relationship_keywords": "friends, music", "relationship_description": "They sing."}""",
    "no type at all": """{"label": "Ann", "entity_type": "person", "description": "Ann sings."}
        {"subject": "Ann", "object": "Bob", "keywords": ["friends", "music"],
        "description": "They sing.", "strength": 8}""",
    "an entity's type": """{"type": "person", "name": "Ann", "description": "Ann sings."}
        {"type": "edge", "source_entity": "Ann", "target_entity": "Bob",
        "keywords": ["friends", "music"], "description": "They sing.", "strength": 8}""",
    "Chinese keys": """{"类型": "实体", "名称": "Ann", "实体类型": "person", "描述": "Ann sings."}
        {"type": "关系", "源实体": "Ann", "目标实体": "Bob", "关键词": "friends，music",
        "描述": "They sing.", "强度": "８"}""",
    "Chinese keys that name their kind": """{"type": "实体", "实体名称": "Ann",
        "实体类型": "person", "实体描述": "Ann sings."}
        {"源实体": "Ann", "目标实体": "Bob", "关系关键词": "friends，music",
        "关系描述": "They sing.", "关系强度": "８/１０"}""",
    "Chinese lists": """{"实体列表": [{"name": "Ann", "entity_type": "person",
        "说明": "Ann sings."}], "关系列表": [{"source": "Ann", "target": "Bob",
        "keywords": ["friends", "music"], "description": "They sing.", "strength": 8}]}""",
    "several types": ASKED.replace('"person"', '["person", "singer"]'),
    "keys that hold nothing": ASKED.replace("}", ', "aliases": null, "entity": null}'),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_a_shape_with_a_plain_meaning_is_read(shape: str) -> None:
    """Aliases of keys and types, lists in one object, keywords and strengths as texts."""
    assert read(shape) == read(ASKED)


def test_a_number_may_be_a_name() -> None:
    """A year, of which models leave out the quotes."""
    year = ASKED.replace('"Ann"', "1811")
    assert read(year) == read(ASKED.replace('"Ann"', '"1811"'))


@pytest.mark.parametrize(
    "triple",
    [
        '{"subject": "Ann", "predicate": "sings with", "object": "Bob"}',
        '{"type": "relationship", "主语": "Ann", "谓语": "sings with", "宾语": "Bob"}',
        '{"edges": [{"id": 1, "source": "Ann", "target": "Bob", "label": "sings with"}]}',
        '{"edges": [{"source": "Ann", "target": "Bob", "type": "sings with"}]}',
        '{"edges": [{"from": "Ann", "to": "Bob", "type": "directed", "relation": "sings with"}]}',
        '{"type": "relation", "head": "Ann", "tail": "Bob", "relation": "sings with"}',
    ],
)
def test_a_triple_is_a_relation_that_its_words_describe(triple: str) -> None:
    """The predicate is the keyword, and the description adds nothing to the three."""
    [relation] = read(triple)
    assert (relation["source"], relation["target"]) == ("Ann", "Bob")
    assert relation["keywords"] == ["sings with"]
    assert relation["description"] == "Ann sings with Bob"


@pytest.mark.parametrize(
    ("answer", "high", "low"),
    [
        ({"高级关键词": ["主题"], "低级关键词": ["曹操", "华容道"]}, ["主题"], ["曹操", "华容道"]),
        (
            {"high_level_keywords": "trade, war", "low_level_keywords": "曹操、1976"},
            ["trade", "war"],
            ["曹操", "1976"],
        ),
        (
            {"High-level keywords": ["a"], "lowLevelKeywords": ["b", 1976, None]},
            ["a"],
            ["b", "1976"],
        ),
        ({"hl_keywords": ["a"], "ll_keywords": None}, ["a"], []),
        ({"low_level_keywords": ["b"]}, [], ["b"]),
    ],
)
def test_keywords_under_other_names_are_read(answer: Any, high: Any, low: Any) -> None:
    """Other names of the lists, a text in place of a list, a list that is missing."""
    assert normalize_keywords(answer) == {"high_level_keywords": high, "low_level_keywords": low}


@pytest.mark.parametrize(
    "field",
    [
        {"list": {"items": ["mills", "fires"], "of": "Ann"}},
        {"list": ["mills"]},
        {"list": {"items": None}},
        {"whole": "no"},
        {"question": ["Who is Ann?"]},
    ],
)
def test_an_optional_field_of_another_type_costs_no_keywords(field: Record) -> None:
    """Small models write lists where one text is asked for."""
    keywords: Record = {"high_level_keywords": ["fire"], "low_level_keywords": ["Ann"]}
    assert normalize_keywords({**keywords, **field}) == keywords


def test_what_is_to_be_listed_is_kept_without_empty_fields() -> None:
    """Null is written for what there is not."""
    answer: Record = {"low_level_keywords": ["Ann"], "list": {"items": "mills", "of": None}}
    found = normalize_keywords(answer)
    assert isinstance(found, dict) and found["list"] == {"items": "mills"}


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
        ("9/10", 9.0),
        ("４ / ５", 8.0),
        ("7/0", 7.0),
        ("85%", 8.5),
        ("8 of 10", 8.0),
        ("８分", 8.0),
    ],
)
def test_a_strength_is_a_number_from_1_to_10(value: Any, strength: float) -> None:
    """Texts that are numbers, and numbers beyond the scale, are brought onto it."""
    assert read_strength(value) == strength and isinstance(read_strength(value), float)


@pytest.mark.parametrize("value", ["", "high", "高", "强烈 🙂", "-", True, [8], {}])
def test_a_strength_that_cannot_be_read_costs_the_strength_only(value: Any) -> None:
    """The relation is read as if none had been written."""
    without = ASKED.replace(', "strength": 8', "")
    assert read_strength(value) is None
    for key in ("strength", "关系强度"):
        written = f'"{key}": {json.dumps(value, ensure_ascii=False)}'
        assert read(ASKED.replace('"strength": 8', written)) == read(without)


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
def test_keywords_come_as_a_list_or_as_a_text(value: Any, words: Any) -> None:
    """Commas of both scripts separate them; doubles and blanks go."""
    assert split_keywords(value) == words


def repaired(text: str) -> tuple[list[Record], list[str]]:
    """The records of an answer to `extract-graph` after repairs, and the reasons of rejections."""
    schema = prompts().schema("extract-graph", {})
    result = parse_jsonl(text, schema=schema, normalize=repair_graph_record)
    return list(result.records), [rejection.reason for rejection in result.rejections]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ('{"type":"entity","name":"黄蓉","description":"黄蓉会做菜。"}', "entity_type", "unknown"),
        ('{"type":"entity","name":"Ann","entity_type":"person"}', "description", ""),
        ('{"type":"relationship","source":"Ann","target":"Bob","keywords":["duet"]}', "description", ""),
        ('{"type":"relation","from":"Ann","to":"Bob","keywords":"duet","description":null}', "description", ""),
        ('{"Type":"Entity","Name":"Ann","Entity Type":"person","Description":"She sings."}', "name", "Ann"),
        ('{"Entities":[{"entityName":"Ann","entity-type":"person","DESCRIPTION":"She sings."}]}', "name", "Ann"),
    ],
)  # fmt: skip
def test_a_record_with_a_small_fault_is_kept_and_reported(
    text: str, field: str, value: Any
) -> None:
    """A key in capitals, and a field that is missing beside enough others."""
    records, reasons = repaired(text)

    assert [record[field] for record in records] == [value]
    assert reasons == ["repaired"]


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"entity","name":"Ann"}',
        '{"type":"entity","entity_type":"person","description":"She sings."}',
        '{"type":"relationship","source":"Ann","target":"Bob"}',
        '{"type":"relationship","source":"Ann","keywords":["duet"]}',
        '{"type":"relationship","source":"Ann","target":"Bob","keywords":[]}',
    ],
)
def test_a_record_that_says_too_little_is_refused(text: str) -> None:
    """A name alone is no entity, two names are no relation, and no name is made up."""
    assert repaired(text) == ([], ["schema"])


def test_whole_records_are_not_reported() -> None:
    """A repair is named only where one was made."""
    assert repaired(ASKED)[1] == []


ADA: Record = {"type": "entity", "name": "Ada", "entity_type": "Person", "description": ""}
MILL: Record = {"type": "entity", "name": "The Mill", "entity_type": "Place", "description": ""}


@pytest.mark.parametrize(
    "record",
    [
        {
            "nodes": [
                {"id": "0", "label": "Person", "properties": {"name": "Ada"}},
                {"id": "1", "label": "Place", "properties": {"name": "The Mill"}},
            ],
            "relationships": [
                {"type": "OWNS_HALF_OF", "start_node_id": "0", "end_node_id": "1", "properties": {}}
            ],
        },
        {
            "nodes": [
                {"id": "Ada", "type": "Person", "properties": [{"key": "age", "value": "40"}]},
                {"id": "The Mill", "type": "Place"},
            ],
            "relationships": [
                {"source_node_id": "Ada", "target_node_id": "The Mill", "type": "OWNS_HALF_OF"}
            ],
        },
        {
            "nodes": [
                {"id": 1, "label": "Ada", "type": "Person"},
                {"id": 2, "label": "The Mill", "type": "Place"},
            ],
            "edges": [{"from": 1, "to": 2, "type": "OWNS_HALF_OF"}],
        },
        {
            "head": "Ada",
            "head_type": "Person",
            "relation": "OWNS_HALF_OF",
            "tail": "The Mill",
            "tail_type": "Place",
        },
        {
            "source": {"id": "Ada", "type": "Person"},
            "target": {"id": "The Mill", "type": "Place"},
            "type": "OWNS_HALF_OF",
        },
    ],
)
def test_the_nodes_and_edges_of_graph_builders_are_read(record: Record) -> None:
    """Of neo4j's and LangChain's builders, and of libraries that draw graphs: names in place of ids."""
    *entities, relation = repair_graph_record(record)
    for entity, expected in zip(entities, (ADA, MILL), strict=True):
        assert expected.items() <= entity.items()
    assert (relation["source"], relation["target"]) == ("Ada", "The Mill")
    assert relation["keywords"] == ["owns half of"]
    assert relation["description"] == "Ada owns half of The Mill"


def test_a_node_on_a_line_of_its_own_is_an_entity() -> None:
    """With the properties that are no name as attributes."""
    node: Record = {"id": "n7", "labels": ["Person"], "properties": {"name": "Ada", "born": "1901"}}
    (entity,) = repair_graph_record(node)
    assert {**ADA, "attributes": ["born: 1901"]}.items() <= entity.items()
