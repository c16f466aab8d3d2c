"""Converts common variants of records to our form: other names for types, keys and lists, and the nodes and edges of
graph builders such as neo4j's and LangChain's.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from lightrag_jsonl.core.types import UNKNOWN_TYPE, Json, Record
from lightrag_jsonl.text.patterns import pattern_of


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
_QUESTION_KEYS = _by_alias(
    "question: question query rewritten_question standalone_question 问题 完整问题"
)
_OUR_KEYS = {"type", "name", *_KEYS.values()}
_TEXT_KEYS = {"name", "source", "target", "description", "valid_from", "valid_to"}
_DATE_KEYS = ("valid_from", "valid_to")
_PREDICATE_KEYS = _by_alias(  # of a triple
    "predicate: predicate relation relationship label 谓语 谓词 关系 关系类型"
)
_ENDS = ("source", "target")
_LABELS = ("type", "entity_type", "label", "labels")  # of a node
_NODE_KEYS = frozenset({"id", "type", "label", "labels", "description"})
_FOLDED_KEYS = {*_OUR_KEYS, *_KEYS, *_LISTS, *_PREDICATE_KEYS}  # read in any capitals, too
_CAMEL_CASE = pattern_of(r"(?<=[a-z])(?=[A-Z])")
_BETWEEN_WORDS = pattern_of(r"[\s_-]+")
_BARE_ID = pattern_of(r"[A-Za-z]{0,4}[_-]?\d+")  # "0", "n12", "node_3": tells nothing but the order
_CONSTANT = pattern_of(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")  # a type of relations in Cypher
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
    has_new_keys = False
    if not _OUR_KEYS.issuperset(record):
        folded = _with_names(_with_folded_keys(record))
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
        entities = _typed_ends(record)
        if entities:
            record = _typed("relationship", _plain_edge(record, {}))
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


# ── nodes and edges of graph builders ───────────────────────────────────────────


def _with_names(record: Record) -> Record:
    """A record with a builder's nodes and edges turned into entities and relations by name.

    Ids of nodes are resolved within the record. A record of another form is unchanged.
    """
    names_by_id: dict[str, Json] = {}
    plain = dict(record)
    lists = {key: _objects(record[key]) for key in record.keys() & _LISTS.keys()}
    for key, nodes in lists.items():
        if nodes and _LISTS[key] == "entity":
            names_by_id |= {str(node["id"]): _name_of_node(node) for node in nodes if "id" in node}
            plain[key] = [_plain_node(node) for node in nodes]
    for key, edges in lists.items():
        if edges and _LISTS[key] == "relationship":
            plain[key] = [_plain_edge(edge, names_by_id) for edge in edges]
    if _is_node(record) and ("properties" in record or _NODE_KEYS.issuperset(record)):
        return {"type": "entity", **_plain_node(record)}
    return plain


def _plain_edge(edge: Record, names_by_id: dict[str, Json]) -> Record:
    """An edge with the names of the ends in place of ids or nodes, and the type as a predicate."""
    plain = _properties(edge.get("properties"))
    plain |= {key: value for key, value in edge.items() if key != "properties"}
    for key in [key for key in edge if _KEYS.get(key, key) in _ENDS]:
        end = edge[key]
        name = _name_of_node(end) if isinstance(end, dict) else end
        plain[key] = names_by_id.get(str(name), name)
    for key in ("type", "relation", "predicate"):
        predicate = plain.get(key)
        if isinstance(predicate, str) and _CONSTANT.fullmatch(predicate):
            plain[key] = predicate.replace("_", " ").lower()
    return plain


def _typed_ends(record: Record) -> list[Record]:
    """The ends of an edge as entities, if the edge names the types."""
    values: dict[str, Json] = {}
    for key, value in record.items():
        alias = key.removesuffix("_type")
        values.setdefault(_KEYS.get(alias, alias) + key[len(alias) :], value)
    entities: list[Record] = []
    for end in _ENDS:
        name = values.get(end)
        own_type = values.get(f"{end}_type")
        if isinstance(name, dict):
            own_type = own_type or name.get("type") or name.get("label")
            name = _name_of_node(name)
        if isinstance(name, str) and isinstance(own_type, str):
            entity: Record = {"name": name, "entity_type": own_type, "description": ""}
            entities.append({"type": "entity", **entity})
    return entities


def _objects(value: Json) -> list[Record]:
    """The objects of a list that has nothing else."""
    items = value if isinstance(value, list) else []
    objects = [item for item in items if isinstance(item, dict)]
    return objects if len(objects) == len(items) else []


def _is_node(record: Record) -> bool:
    """Whether an object has an id, and a type or properties, as nodes of builders have."""
    if "id" not in record or isinstance(record.get("properties"), dict | list):
        return "id" in record
    has_label = not record.keys().isdisjoint({"label", "labels", "type"})
    return has_label and ("name" in record or not _is_bare(record["id"]))


def _plain_node(node: Record) -> Record:
    """A node as an entity, with further properties as attributes; another object is unchanged."""
    if not _is_node(node):
        return node
    name = _name_of_node(node)
    properties = _properties(node.get("properties"))
    description = node.get("description", properties.pop("description", None))
    labels = [node[key] for key in _LABELS if node.get(key) and node[key] != name]
    types = [label for label in labels if str(label).casefold() not in _RECORD_TYPES]
    used = {*_LABELS, *_NODE_KEYS, "name", "title", "properties"}
    plain: Record = {"name": name}
    plain |= {key: value for key, value in node.items() if key not in used}
    if description is not None:
        plain["description"] = description
    if types:
        plain["entity_type"] = types[0]
    attributes = {key: value for key, value in properties.items() if value != name}
    if attributes:
        plain["attributes"] = attributes
    return plain


def _name_of_node(node: Record) -> Json:
    """The name of a node: a property, or the id, or the label of a node with a meaningless id."""
    for source in (node, _properties(node.get("properties"))):
        for key in ("name", "title"):
            if source.get(key):
                return source[key]
    node_id = node.get("id")
    label = node.get("label")
    return label if _is_bare(node_id) and isinstance(label, str) else node_id


def _is_bare(node_id: Json) -> bool:
    return not isinstance(node_id, str) or _BARE_ID.fullmatch(node_id) is not None


def _properties(value: Json) -> Record:
    """Properties as a mapping, also of a list of keys and values."""
    if isinstance(value, dict):
        return dict(value)
    pairs = _objects(value)
    return {str(pair["key"]): pair["value"] for pair in pairs if {"key", "value"} <= pair.keys()}
