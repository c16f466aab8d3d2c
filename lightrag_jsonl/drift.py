"""Converts records in the shapes that models drift into (other names for types, keys, lists) to ours."""

from __future__ import annotations

import re
import unicodedata

from lightrag_jsonl.types import Json, Record

NUMBER = (int, float)
TEXT = (str, int, float)  # a tuple made once; `str | int | float` would be made at each check
STRENGTHS = (1.0, 10.0)  # the least and the greatest strength of a relation

TYPES = {
    "entity": "entity",
    "node": "entity",
    "实体": "entity",
    "relationship": "relationship",
    "relation": "relationship",
    "edge": "relationship",
    "关系": "relationship",
    "content_keywords": "content_keywords",
    "content-keywords": "content_keywords",
    "keywords": "content_keywords",
    "内容关键词": "content_keywords",
    "done": "done",
    "完成": "done",
}
KEYS = {
    "entity_name": "name",
    "entity": "name",
    "id": "name",
    "label": "name",
    "名称": "name",
    "实体名称": "name",
    "实体": "name",
    "category": "entity_type",
    "实体类型": "entity_type",
    "类型": "entity_type",
    "desc": "description",
    "entity_description": "description",
    "relationship_description": "description",
    "描述": "description",
    "实体描述": "description",
    "关系描述": "description",
    "说明": "description",
    "source_entity": "source",
    "src_id": "source",
    "src": "source",
    "from": "source",
    "subject": "source",
    "head": "source",
    "源": "source",
    "源实体": "source",
    "源节点": "source",
    "起点": "source",
    "头实体": "source",
    "主语": "source",
    "主体": "source",
    "target_entity": "target",
    "tgt_id": "target",
    "tgt": "target",
    "to": "target",
    "object": "target",
    "tail": "target",
    "目标": "target",
    "目标实体": "target",
    "目标节点": "target",
    "终点": "target",
    "尾实体": "target",
    "宾语": "target",
    "客体": "target",
    "relationship_keywords": "keywords",
    "high_level_keywords": "keywords",
    "关键词": "keywords",
    "relationship_strength": "strength",
    "weight": "strength",
    "score": "strength",
    "强度": "strength",
    "权重": "strength",
}
PREDICATES = (
    "predicate",
    "relation",
    "relationship",
    "label",
    "谓语",
    "谓词",
    "关系",
)  # of a triple
_COMMA = re.compile(r"[,，、;；]")
LISTS = {
    "entities": "entity",
    "nodes": "entity",
    "实体": "entity",
    "实体列表": "entity",
    "节点": "entity",
    "relationships": "relationship",
    "relations": "relationship",
    "edges": "relationship",
    "关系": "relationship",
    "关系列表": "relationship",
    "边": "relationship",
}
OTHER_KEYS = frozenset({*KEYS, *PREDICATES})
KEYWORDS = {
    "highlevelkeywords": "high_level_keywords",
    "highlevel": "high_level_keywords",
    "hlkeywords": "high_level_keywords",
    "高级关键词": "high_level_keywords",
    "高层关键词": "high_level_keywords",
    "高层次关键词": "high_level_keywords",
    "lowlevelkeywords": "low_level_keywords",
    "lowlevel": "low_level_keywords",
    "llkeywords": "low_level_keywords",
    "低级关键词": "low_level_keywords",
    "低层关键词": "low_level_keywords",
    "低层次关键词": "low_level_keywords",
    "底层关键词": "low_level_keywords",
}  # by the letters of a key alone
_NO_LETTER = re.compile(r"[\W_]+")


def normalize_graph_record(record: Record) -> tuple[Record, ...]:
    """The `extract-graph` records that a record clearly means; the record itself if there are none."""
    if "type" in record:
        return (_one(record),)
    lists = [key for key in record if key in LISTS and isinstance(record[key], list)]
    if not lists:
        return (_one(record),)
    items = [(LISTS[key], item) for key in lists for item in record[key]]  # type: ignore[union-attr]
    return tuple(
        meant
        for kind, item in items
        if isinstance(item, dict)
        for meant in normalize_graph_record({**item, "type": kind, **_kind(kind, item)})
    )


def normalize_keywords(value: Json) -> Json:
    """The two keyword lists that an answer clearly means; the answer itself if there are none.

    If only one of the lists is there, the other one is empty.
    """
    if not isinstance(value, dict):
        return value
    found = {
        KEYWORDS.get(_NO_LETTER.sub("", key).casefold(), key): words for key, words in value.items()
    }
    if found.keys().isdisjoint(KEYWORDS.values()):
        return value
    kinds = dict.fromkeys(KEYWORDS.values())
    return {kind: split_keywords(found.get(kind) or []) for kind in kinds}


def _kind(kind: str, item: Record) -> Record:
    """The record's kind, from the list it stood in: there `type` is an entity's type, or a
    relation's keyword.
    """
    said = item.get("type")
    if not isinstance(said, str) or said.casefold() in TYPES:
        return {}
    if kind == "entity":
        return {"entity_type": said}
    return {"predicate": said} if item.keys().isdisjoint(PREDICATES) else {}


def _one(record: Record) -> Record:
    if None in record.values():  # null counts as absent
        record = {key: value for key, value in record.items() if value is not None}
    if "type" not in record and "类型" in record:
        record = {"type": record["类型"], **{k: v for k, v in record.items() if k != "类型"}}
    kind = record.get("type")
    known = TYPES.get(kind.casefold()) if isinstance(kind, str) else None
    drifted = known != "done" and not OTHER_KEYS.isdisjoint(record)
    found = {_key(key, record): value for key, value in record.items()} if drifted else {**record}
    if known is None:
        known = _guess(found)
        if known == "entity" and isinstance(kind, str):
            found.setdefault("entity_type", kind)
    if known is not None:
        found["type"] = known
    if drifted and known == "relationship":
        found = {**_triple(record, found), **found}
    if "keywords" in found:
        found["keywords"] = split_keywords(found["keywords"])
    if known == "relationship" and "strength" in found:
        found["strength"] = read_strength(found["strength"])
    return found


def _key(key: str, record: Record) -> str:
    """Our name for a key, unless the record has that key as well."""
    meant = KEYS.get(key, key)
    return key if meant in record else meant


def _triple(record: Record, found: Record) -> Record:
    """Keywords and, if both ends are there, a description for a relation given as a triple."""
    predicate = next((record[key] for key in PREDICATES if key in record), None)
    ends = found.get("source"), found.get("target")
    if not all(isinstance(word, str) for word in (predicate, *ends)):
        return {}
    return {"keywords": predicate, "description": f"{ends[0]} {predicate} {ends[1]}"}


def _guess(record: Record) -> str | None:
    if "source" in record and "target" in record:
        return "relationship"
    return "entity" if "name" in record and "description" in record else None


def split_keywords(value: Json) -> Json:
    """A list of keywords, from a list or from a text with commas (、 and ， too)."""
    if isinstance(value, str):
        value = list(_COMMA.split(value))
    if not isinstance(value, list):
        return value
    words = [str(word).strip() for word in value if isinstance(word, TEXT)]
    return list(dict.fromkeys(filter(None, words)))


def read_strength(value: Json) -> Json:
    """A number between 1 and 10, if the value can be read as a number at all."""
    if isinstance(value, str):
        try:
            value = float(unicodedata.normalize("NFKC", value).strip())
        except ValueError:
            return value
    if isinstance(value, bool) or not isinstance(value, NUMBER):
        return value
    low, high = STRENGTHS
    return float(min(value, high)) if value > low else low  # NaN gives `low`, too
