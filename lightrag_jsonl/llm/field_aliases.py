"""Converts common variants of records (other names for types, keys, lists) to our form."""

import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Json, Record
from lightrag_jsonl.llm.builder_records import plain_edge, plain_graph, typed_ends


def _by_alias(table: str) -> dict[str, str]:
    """Our name for each alias; each line of the table is "our name: aliases"."""
    names: dict[str, str] = {}
    for row in table.strip().split("\n"):
        name, aliases = row.split(": ")
        names.update(dict.fromkeys(aliases.split(), name))
    return names


_RECORD_TYPES = _by_alias("""
entity: entity node 实体
relationship: relationship relation edge 关系
content_keywords: content_keywords content-keywords keywords 内容关键词
done: done 完成
""")
_KEYS = _by_alias("""
name: entity_name entity id label 名称 实体名称 实体
aliases: alias also_known_as aka other_names nicknames 别名 别称 又名 又称 别号 其他名称 其它名称
entity_type: category 实体类型 类型
description: desc entity_description relationship_description 描述 实体描述 关系描述 说明
source: source_entity src_id src from subject head start_node_id source_node_id start_node source_node 源 源实体 源节点 起点 头实体 主语 主体 来源实体 起始实体
target: target_entity tgt_id tgt to object tail end_node_id target_node_id end_node target_node 目标 目标实体 目标节点 终点 尾实体 宾语 客体 终止实体 目的实体
keywords: relationship_keywords high_level_keywords 关键词 关系关键词 关键字 关系关键字
attributes: properties 属性
valid_from: since start_date start_time from_date 开始时间 开始日期 起始日期 生效日期
valid_to: until end_date end_time to_date 结束时间 结束日期 截止日期 失效日期
strength: relationship_strength weight score 强度 权重 关系强度 关系权重 关联强度 关系强度评分
""")
_LISTS = _by_alias("""
entity: entities nodes 实体 实体列表 节点
relationship: relationships relations edges 关系 关系列表 边
""")
_KEYWORD_LISTS = _by_alias("""
high_level_keywords: highlevelkeywords highlevel hlkeywords 高级关键词 高层关键词 高层次关键词
low_level_keywords: lowlevelkeywords lowlevel llkeywords 低级关键词 低层关键词 低层次关键词 底层关键词
""")  # by the letters of a key alone
_QUESTION_KEYS = (
    "question",
    "query",
    "rewritten_question",
    "standalone_question",
    "问题",
    "完整问题",
)
_OUR_KEYS = {"type", "name", *_KEYS.values()}
_TEXT_KEYS = {"name", "source", "target", "description", "valid_from", "valid_to"}
_DATE_KEYS = ("valid_from", "valid_to")
_PREDICATE_KEYS = (  # of a triple
    "predicate",
    "relation",
    "relationship",
    "label",
    "谓语",
    "谓词",
    "关系",
    "关系类型",
)
_FOLDED_KEYS = {*_OUR_KEYS, *_KEYS, *_LISTS, *_PREDICATE_KEYS}  # read in any capitals, too
_CAMEL_CASE = pattern_of(r"(?<=[a-z])(?=[A-Z])")
_BETWEEN_WORDS = pattern_of(r"[\s_-]+")
_COMMA = pattern_of(r"[,，、;；]")
_NO_LETTER = pattern_of(r"[\W_]+")
_LOWEST_STRENGTH = 1.0
_HIGHEST_STRENGTH = 10.0
_SCORE = pattern_of(r"([-+]?\d+(?:\.\d+)?)(?:\s*/\s*(\d+))?(?!\d)")


class RepairedRecord(dict[str, Json]):
    """A record with a repaired key or missing field."""


def repair_graph_record(record: Record) -> tuple[Record, ...]:
    """The records of `normalize_graph_record` from a model's object, repaired where necessary.

    Keys may have capitals, spaces and hyphens. A missing entity type is unknown; an entity with a
    type needs no description, a relation with keywords neither.
    """
    folded = record
    if not _OUR_KEYS.issuperset(record):
        folded = plain_graph(_with_folded_keys(record))
    has_new_keys = folded != record
    repaired_records: list[Record] = []
    for normalized in normalize_graph_record(folded):
        missing = _missing_fields(normalized)
        if missing or has_new_keys:
            repaired_records.append(RepairedRecord({**normalized, **missing}))
        else:
            repaired_records.append(normalized)
    return tuple(repaired_records)


def name_records(record: Record) -> tuple[Record, ...]:
    """The entities in an answer with names; other contents of the object do not count."""
    return tuple(
        {"type": "entity", "name": normalized["name"]} if "name" in normalized else normalized
        for normalized in repair_graph_record(record)
    )


def _with_folded_keys(record: Record) -> Record:
    """The record, and the records in lists, with the usual keys in lower case."""
    folded: Record = {}
    for key, value in record.items():
        name = _folded_key(key)
        is_usual = name in _FOLDED_KEYS and name not in record
        items = value if isinstance(value, list) else []
        if any(isinstance(item, dict) for item in items):
            value = [_with_folded_keys(item) if isinstance(item, dict) else item for item in items]
        folded.setdefault(name if is_usual else key, value)
    return folded


@lru_cache(1_000)  # the same few keys come again in each record
def _folded_key(key: str) -> str:
    return _BETWEEN_WORDS.sub("_", _CAMEL_CASE.sub("_", key.strip())).casefold()


def _missing_fields(record: Record) -> Record:
    """Values for missing fields, if the other fields say enough."""
    if record.get("type") == "entity" and "name" in record:
        if "entity_type" not in record and record.get("description"):
            return {"entity_type": UNKNOWN_TYPE}
        if "description" not in record and record.get("entity_type"):
            return {"description": ""}
    is_relation = record.get("type") == "relationship" and "description" not in record
    if is_relation and {"source", "target"} <= record.keys() and record.get("keywords"):
        return {"description": ""}
    return {}


def normalize_graph_record(record: Record) -> tuple[Record, ...]:
    """The `extract-graph` records in the items of a record's lists; without lists the record itself."""
    if _OUR_KEYS.issuperset(record) and not isinstance(record.get("source"), dict):
        return (_normalize(record),)
    lists = [key for key in record if key in _LISTS and isinstance(record[key], list)]
    if "type" in record or not lists:
        entities = typed_ends(record)
        if entities:
            record = _typed("relationship", plain_edge(record, {}))
        return (*map(_normalize, entities), _normalize(record))
    return tuple(_list_records(record, lists))


def _list_records(record: Record, lists: list[str]) -> Iterator[Record]:
    for key in lists:
        for item in record[key]:  # type: ignore[union-attr]
            if isinstance(item, dict):
                yield from normalize_graph_record(_typed(_LISTS[key], item))


def normalize_keywords(value: Json) -> Json:
    """The two keyword lists of an answer, one may be empty; an answer without lists is unchanged.

    An optional field of another type is left out, to keep the keywords.
    """
    if not isinstance(value, dict):
        return value
    lists: dict[str | None, Json] = {}
    for key in value:
        lists[_KEYWORD_LISTS.get(_NO_LETTER.sub("", key).casefold())] = value[key]
    if not any(lists):
        return value
    names = dict.fromkeys(_KEYWORD_LISTS.values())
    keywords: Record = {name: split_keywords(lists.get(name) or []) for name in names}
    if isinstance(value.get("whole"), bool):
        keywords["whole"] = value["whole"]
    listed = _texts_alone(value.get("list"))
    if listed:
        keywords["list"] = listed
    for key in _QUESTION_KEYS:
        if isinstance(value.get(key), str):
            return {**keywords, "question": value[key]}
    return keywords


def _texts_alone(value: Json) -> Record:
    """The fields of an object of texts, without null; empty if a field has another type."""
    texts: Record = {}
    for name, field in value.items() if isinstance(value, dict) else ():
        if isinstance(field, str):
            texts[name] = field
        elif field is not None:
            return {}
    return texts


def split_keywords(value: Json) -> Json:
    """A list of keywords, from a list or from a text with commas (、 and ， too)."""
    if isinstance(value, str):
        value = list(_COMMA.split(value))
    if not isinstance(value, list):
        return value
    words = [str(word).strip() for word in value if isinstance(word, str | int | float)]
    return list(dict.fromkeys(filter(None, words)))


def read_strength(value: Json) -> float | None:
    """A number between 1 and 10: 7, "７", "7 of 10", "7/10" or "70%"; None for anything else."""
    if isinstance(value, str):
        value = _read_number(unicodedata.normalize("NFKC", value).strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value > _LOWEST_STRENGTH:
        return float(min(value, _HIGHEST_STRENGTH))
    return _LOWEST_STRENGTH  # also for NaN


def _read_number(text: str) -> float | None:
    """The number at the beginning of a text; a fraction is brought onto the scale."""
    with suppress(ValueError):
        return float(text)
    score = _SCORE.match(text.replace("%", "/100"))
    if score is None:
        return None
    scale = float(score[2] or 0) or _HIGHEST_STRENGTH
    return float(score[1]) * _HIGHEST_STRENGTH / scale


def _typed(record_type: str, item: Record) -> Record:
    """An item of a list with the list's type; the item's own is an entity's, or a predicate."""
    own_type = item.get("type")
    if not isinstance(own_type, str) or own_type.casefold() in _RECORD_TYPES:
        return {**item, "type": record_type}
    if record_type == "entity":
        return {**item, "type": record_type, "entity_type": own_type}
    predicate = next((item[key] for key in _PREDICATE_KEYS if key in item), own_type)
    return {**item, "type": record_type, "predicate": predicate}


def _normalize(record: Record) -> Record:
    original: Record = {key: value for key, value in record.items() if value is not None}
    own_type = original.get("type", original.get("类型"))
    record_type = _RECORD_TYPES.get(own_type.casefold()) if isinstance(own_type, str) else None
    if record_type == "done" or _OUR_KEYS.issuperset(original):
        fields = original
    else:
        fields = _with_our_keys(original)
    if record_type is None:
        record_type = _implied_type(fields)
        if record_type == "entity":
            fields.setdefault("entity_type", own_type)
    if record_type is not None:
        fields["type"] = record_type
    for key in _TEXT_KEYS & fields.keys():
        if type(fields[key]) in (int, float):  # a year or the like
            fields[key] = str(fields[key])
    if record_type == "relationship" and fields is not original:
        fields = {**_triple_fields(original, fields), **fields}
    _convert_values(fields, is_relation=record_type == "relationship")
    return fields


def _with_our_keys(record: Record) -> Record:
    """The record with our names for the keys; our own key counts more than an alias."""
    fields: Record = {}
    for key, value in record.items():
        name = _KEYS.get(key, key)
        fields[key if name in record else name] = value
    return fields


def _implied_type(fields: Record) -> str | None:
    if "source" in fields and "target" in fields:
        return "relationship"
    if "name" in fields and "description" in fields:
        return "entity"
    return None


def _convert_values(fields: Record, *, is_relation: bool) -> None:
    """Bring strengths and lists into the form of the schema."""
    entity_types = fields.get("entity_type")
    if isinstance(entity_types, list) and entity_types:
        fields["entity_type"] = entity_types[0]
    if is_relation:
        strength = read_strength(fields.pop("strength", None))
        if strength is not None:
            fields["strength"] = strength
    for key in _DATE_KEYS:
        if not isinstance(fields.get(key, ""), str):  # costs the date, not the statement
            del fields[key]
    if "keywords" in fields:
        fields["keywords"] = split_keywords(fields["keywords"])
    if "aliases" in fields:
        aliases = split_keywords(fields.pop("aliases"))
        if isinstance(aliases, list):  # anything else costs the aliases, not the entity
            fields["aliases"] = aliases
    if "attributes" in fields:
        fields["attributes"] = _attribute_texts(fields["attributes"])


def _attribute_texts(value: Json) -> list[Json]:
    """Values as texts such as "height: 30 m", from a list of texts, a mapping, or a list of mappings."""
    texts: list[Json] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            texts += [f"{name}: {content}" for name, content in item.items()]
    return texts


def _triple_fields(record: Record, fields: Record) -> Record:
    """Keywords and, if both ends are there, a description for a relation given as a triple."""
    source = fields.get("source")
    target = fields.get("target")
    for key in _PREDICATE_KEYS:
        word = record.get(key)
        if isinstance(word, str) and isinstance(source, str) and isinstance(target, str):
            return {"keywords": word, "description": f"{source} {word} {target}"}
    return {}
