"""Records in the forms of graph builders, such as neo4j's and LangChain's: nodes with ids and properties."""

from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.types import Json, Record

NODE_LISTS = ("nodes", "entities")
EDGE_LISTS = ("relationships", "edges", "relations")
_KEYS_OF_ENDS = {
    "source": ("start_node_id", "source_node_id", "start_node", "source_node", "source", "from", "start", "head"),
    "target": ("end_node_id", "target_node_id", "end_node", "target_node", "target", "to", "end", "tail"),
}  # fmt: skip
_KEYS_OF_END_TYPES = {
    "source": ("source_node_type", "head_type", "subject_type", "source_type", "start_node_type"),
    "target": ("target_node_type", "tail_type", "object_type", "target_type", "end_node_type"),
}
_TYPES = ("type", "entity_type", "label", "labels")
_NAMES = ("name", "title", "id")
_NODE_KEYS = frozenset({"id", "type", "label", "labels", "description"})
_OWN_TYPES = frozenset({"entity", "node", "relationship", "relation", "edge"})  # of any record
_BARE_ID = pattern_of(r"[A-Za-z]{0,4}[_-]?\d+")  # "0", "n12", "node_3": tells nothing but the order
_CONSTANT = pattern_of(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
)  # as types of relations are written in Cypher


def plain_graph(record: Record) -> Record:
    """A record with a builder's nodes and edges turned into entities and relations by name.

    Ids of nodes are resolved within the record. A record of another form is unchanged.
    """
    names_by_id: dict[str, str] = {}
    plain = dict(record)
    for key in NODE_LISTS:
        nodes = _objects(record.get(key))
        names_by_id |= {str(node["id"]): str(_name_of_node(node)) for node in nodes if "id" in node}
        if any(map(_is_node, nodes)):
            plain[key] = [_plain_node(node) if _is_node(node) else node for node in nodes]
    for key in EDGE_LISTS:
        edges = _objects(record.get(key))
        if edges:
            plain[key] = [plain_edge(edge, names_by_id) for edge in edges]
    if _is_node(record) and ("properties" in record or _NODE_KEYS.issuperset(record)):
        return {"type": "entity", **_plain_node(record)}
    return plain


def plain_edge(edge: Record, names_by_id: dict[str, str]) -> Record:
    """An edge with the names of the ends in place of ids or nodes, and the type as a predicate."""
    plain: Record = {}
    taken: set[str] = set()
    for end, aliases in _KEYS_OF_ENDS.items():
        key = next((alias for alias in aliases if alias in edge), "")
        value = edge.get(key)
        if isinstance(value, dict):
            value = _name_of_node(value)
        if key and isinstance(value, str | int):
            plain[end] = names_by_id.get(str(value), value)
            taken.add(key)
    if plain.keys() != _KEYS_OF_ENDS.keys():
        return edge
    properties = {key: value for key, value in edge.items() if key not in taken}
    properties = {**_properties(properties.pop("properties", None)), **properties}
    for key in ("type", "relation", "predicate"):
        predicate = properties.get(key)
        if isinstance(predicate, str) and _CONSTANT.fullmatch(predicate):
            properties[key] = predicate.replace("_", " ").lower()
    return {**plain, **properties}


def typed_ends(record: Record) -> list[Record]:
    """The ends of an edge as entities, if the edge names the types."""
    entities: list[Record] = []
    for end, aliases in _KEYS_OF_ENDS.items():
        name = next((record[alias] for alias in aliases if alias in record), None)
        value = next((record[alias] for alias in _KEYS_OF_END_TYPES[end] if alias in record), None)
        if isinstance(name, dict):
            value = value or name.get("type") or name.get("label")
            name = _name_of_node(name)
        if isinstance(name, str) and isinstance(value, str):
            entities.append(
                {"type": "entity", "name": name, "entity_type": value, "description": ""}
            )
    return entities


def _objects(value: Json) -> list[Record]:
    items = value if isinstance(value, list) else []
    objects = [item for item in items if isinstance(item, dict)]
    return objects if len(objects) == len(items) else []


def _is_node(record: Record) -> bool:
    """Whether an object has an id, and a type or properties, as nodes of builders have."""
    if "id" not in record:
        return False
    return isinstance(record.get("properties"), dict | list) or bool(
        {"label", "labels", "type"} & record.keys()
        and ("name" in record or not _is_bare(record["id"]))
    )


def _plain_node(node: Record) -> Record:
    properties = _properties(node.get("properties"))
    name = _name_of_node(node)
    types = next(
        (
            node[key]
            for key in _TYPES
            if node.get(key) and str(node[key]).casefold() not in _OWN_TYPES and node[key] != name
        ),
        None,
    )
    plain: Record = {
        "name": name,
        "description": node.get("description", properties.pop("description", None)),
    }
    if types:
        plain["entity_type"] = types[0] if isinstance(types, list) else types
    used = {*_TYPES, *_NAMES, "properties", "description"}
    plain |= {key: value for key, value in node.items() if key not in used}
    further = {key: value for key, value in properties.items() if value != name}
    if further:
        plain["attributes"] = dict(further)
    if plain["description"] is None:
        del plain["description"]
    return plain


def _name_of_node(node: Record) -> Json:
    """The name of a node: a property, or the id, or the label of a node with a meaningless id."""
    properties = _properties(node.get("properties"))
    for source in (node, properties):
        for key in ("name", "title"):
            if source.get(key):
                return source[key]
    node_id = node.get("id")
    if _is_bare(node_id) and isinstance(node.get("label"), str):
        return node["label"]
    return node_id


def _is_bare(node_id: Json) -> bool:
    return not isinstance(node_id, str) or _BARE_ID.fullmatch(node_id) is not None


def _properties(value: Json) -> Record:
    """Properties as a mapping, also of a list of keys and values."""
    if isinstance(value, dict):
        return dict(value)
    pairs = _objects(value)
    return {str(pair["key"]): pair["value"] for pair in pairs if {"key", "value"} <= pair.keys()}
