"""Records in the shapes models drift into: other names for types, keys and lists, led back to ours."""

from __future__ import annotations

import re
import unicodedata

from lightrag_jsonl.types import Json, Record

NUMBER = (int, float)
TEXT = (str, int, float)  # made once: a union of types is made anew wherever it is written
STRENGTHS = (1.0, 10.0)  # the least and the most a relation's strength can be

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
    "desc": "description",
    "entity_description": "description",
    "relationship_description": "description",
    "描述": "description",
    "说明": "description",
    "source_entity": "source",
    "src_id": "source",
    "src": "source",
    "from": "source",
    "subject": "source",
    "head": "source",
    "源实体": "source",
    "主体": "source",
    "target_entity": "target",
    "tgt_id": "target",
    "tgt": "target",
    "to": "target",
    "object": "target",
    "tail": "target",
    "目标实体": "target",
    "客体": "target",
    "relationship_keywords": "keywords",
    "high_level_keywords": "keywords",
    "关键词": "keywords",
    "predicate": "keywords",
    "relationship_strength": "strength",
    "weight": "strength",
    "score": "strength",
    "强度": "strength",
}
_COMMA = re.compile(r"[,，、;；]")
LISTS = {
    "entities": "entity",
    "nodes": "entity",
    "实体列表": "entity",
    "relationships": "relationship",
    "relations": "relationship",
    "edges": "relationship",
    "关系列表": "relationship",
}


def normalize_graph_record(record: Record) -> tuple[Record, ...]:
    """The `extract-graph` records that a record plainly means; itself where it means nothing else."""
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
        for meant in normalize_graph_record({**item, "type": kind, **_kind(item)})
    )


def _kind(item: Record) -> Record:
    """In a list of entities, `type` tells the entity's type."""
    kind = item.get("type")
    if isinstance(kind, str) and kind.casefold() not in TYPES:
        return {"entity_type": kind}
    return {}


def _one(record: Record) -> Record:
    if "type" not in record and "类型" in record:
        record = {"type": record["类型"], **{k: v for k, v in record.items() if k != "类型"}}
    kind = record.get("type")
    known = TYPES.get(kind.casefold()) if isinstance(kind, str) else None
    found = dict(record)
    if known != "done" and not KEYS.keys().isdisjoint(record):
        found = {_key(key, record): value for key, value in record.items()}
    if known is None:
        known = _guess(found)
        if known == "entity" and isinstance(kind, str):
            found.setdefault("entity_type", kind)
    if known is not None:
        found["type"] = known
    if "keywords" in found:
        found["keywords"] = split_keywords(found["keywords"])
    if known == "relationship" and "strength" in found:
        found["strength"] = read_strength(found["strength"])
    return found


def _key(key: str, record: Record) -> str:
    """What a key plainly means, unless that is there as well."""
    meant = KEYS.get(key, key)
    return key if meant in record else meant


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
    """A number between 1 and 10, where the value can be read as a number at all."""
    if isinstance(value, str):
        try:
            value = float(unicodedata.normalize("NFKC", value).strip())
        except ValueError:
            return value
    if isinstance(value, bool) or not isinstance(value, NUMBER):
        return value
    low, high = STRENGTHS
    return float(min(value, high)) if value > low else low  # so is what is no number
