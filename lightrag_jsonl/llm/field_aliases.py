"""Converts records in the shapes that models fall into (other names for types, keys, lists) to ours."""

import re
import unicodedata
from contextlib import suppress

from lightrag_jsonl.core.types import Json, Record


def _by_alias(table: str) -> dict[str, str]:
    """Our name for each alias; each line of the table is "our name: its aliases"."""
    rows = [line.split(": ") for line in table.strip().split("\n")]
    return {alias: name for name, aliases in rows for alias in aliases.split()}


_TYPES = _by_alias("""
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
source: source_entity src_id src from subject head 源 源实体 源节点 起点 头实体 主语 主体 来源实体 起始实体
target: target_entity tgt_id tgt to object tail 目标 目标实体 目标节点 终点 尾实体 宾语 客体 终止实体 目的实体
keywords: relationship_keywords high_level_keywords 关键词 关系关键词 关键字 关系关键字
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
_QUESTIONS = ("question", "query", "rewritten_question", "standalone_question", "问题", "完整问题")
_OUR_KEYS = {"type", "name", *_KEYS.values()}
_TEXTS = {"name", "source", "target", "description"}
# Of a triple:
_PREDICATES = ["predicate", "relation", "relationship", "label", "谓语", "谓词", "关系", "关系类型"]
_COMMA = re.compile(r"[,，、;；]")
_WORDS = (str, int, float)
_NO_LETTER = re.compile(r"[\W_]+")
_LOW, _HIGH = 1.0, 10.0  # strengths of a relation
_SCORE = re.compile(r"([-+]?\d+(?:\.\d+)?)(?:\s*/\s*(\d+))?(?!\d)")


def normalize_graph_record(record: Record) -> tuple[Record, ...]:
    """The `extract-graph` records that a record clearly means; the record itself if there are none."""
    lists = [key for key in record if key in _LISTS and isinstance(record[key], list)]
    if "type" in record or not lists:
        return (_normalize(record),)
    return tuple(
        found
        for key in lists
        for item in record[key]  # type: ignore[union-attr]
        if isinstance(item, dict)
        for found in normalize_graph_record(_typed(_LISTS[key], item))
    )


def normalize_keywords(value: Json) -> Json:
    """The two keyword lists that an answer means, one may be empty; or the answer, without any."""
    if not isinstance(value, dict):
        return value
    found = {_KEYWORD_LISTS.get(_NO_LETTER.sub("", key).casefold()): value[key] for key in value}
    if not any(found):
        return value
    names = dict.fromkeys(_KEYWORD_LISTS.values())
    lists: Record = {name: split_keywords(found.get(name) or []) for name in names}
    question = next((value[key] for key in _QUESTIONS if key in value), None)
    return lists if question is None else {**lists, "question": question}


def split_keywords(value: Json) -> Json:
    """A list of keywords, from a list or from a text with commas (、 and ， too)."""
    if isinstance(value, str):
        value = list(_COMMA.split(value))
    if not isinstance(value, list):
        return value
    words = [str(word).strip() for word in value if isinstance(word, _WORDS)]
    return list(dict.fromkeys(filter(None, words)))


def read_strength(value: Json) -> float | None:
    """A number between 1 and 10: 7, "７", "7 of 10", "7/10" or "70%"; None for anything else."""
    if isinstance(value, str):
        value = _number(unicodedata.normalize("NFKC", value).strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(min(value, _HIGH)) if value > _LOW else _LOW  # also for NaN


def _number(text: str) -> float | None:
    """The number that a text is or begins with; a fraction is brought onto the scale."""
    with suppress(ValueError):
        return float(text)
    found = _SCORE.match(text.replace("%", "/100"))
    if found is None:
        return None
    scale = float(found[2] or 0) or _HIGH
    return float(found[1]) * _HIGH / scale


def _typed(type_: str, item: Record) -> Record:
    """An item of a list with its type from there; its own is an entity's, or a predicate."""
    own = item.get("type")
    if not isinstance(own, str) or own.casefold() in _TYPES:
        return {**item, "type": type_}
    if type_ == "entity":
        return {**item, "type": type_, "entity_type": own}
    word = next((item[key] for key in _PREDICATES if key in item), own)
    return {**item, "type": type_, "predicate": word}


def _normalize(record: Record) -> Record:
    found: Record = {key: value for key, value in record.items() if value is not None}
    own = found.get("type", found.get("类型"))
    known = _TYPES.get(own.casefold()) if isinstance(own, str) else None
    given = found
    if known != "done" and not _OUR_KEYS.issuperset(given):
        names = {key: _KEYS.get(key, key) for key in given}
        found = {key if name in given else name: given[key] for key, name in names.items()}
    if known is None:
        if "source" in found and "target" in found:
            known = "relationship"
        elif "name" in found and "description" in found:
            known = "entity"
            found.setdefault("entity_type", own)
    for key in _TEXTS & found.keys():
        if type(found[key]) in (int, float):  # a year or the like
            found[key] = str(found[key])
    if isinstance(types := found.get("entity_type"), list) and types:
        found["entity_type"] = types[0]
    if known is not None:
        found["type"] = known
    if known == "relationship":
        if found is not given:
            found = {**_triple_fields(given, found), **found}
        if (strength := read_strength(found.pop("strength", None))) is not None:
            found["strength"] = strength
    if "keywords" in found:
        found["keywords"] = split_keywords(found["keywords"])
    if "aliases" in found:
        aliases = split_keywords(found.pop("aliases"))
        if isinstance(aliases, list):  # anything else costs these, not the entity
            found["aliases"] = aliases
    return found


def _triple_fields(record: Record, found: Record) -> Record:
    """Keywords and, if both ends are there, a description for a relation given as a triple."""
    source, target = found.get("source"), found.get("target")
    for key in _PREDICATES:
        word = record.get(key)
        if isinstance(word, str) and isinstance(source, str) and isinstance(target, str):
            return {"keywords": word, "description": f"{source} {word} {target}"}
    return {}
