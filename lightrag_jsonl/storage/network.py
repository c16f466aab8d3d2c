"""The graph of an index as a read-only networkx graph: its shape is the arrays in memory, and attributes are
read when they are asked for.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from lightrag_jsonl.core.errors import required_packages
from lightrag_jsonl.core.types import EDGE_FIELDS, NODE_FIELDS, Entity, Relation
from lightrag_jsonl.storage.graph_index import GraphIndex
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.patterns import pattern_of

if TYPE_CHECKING:
    import networkx as nx

GraphAttributes: TypeAlias = dict[str, Any]
NamedItem = TypeVar("NamedItem")

NOT_XML = pattern_of("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BLOCK = 256  # rows that are read together
VISITED_NODES = 10_000  # whose neighbours are kept, for algorithms that come back to them


def network(
    index: GraphIndex,
    names: Mapping[int, str],
    open_view: Callable[[], AbstractContextManager[StoreView]],
) -> "nx.Graph":
    """A frozen networkx graph over an index; nodes are the names of entities, by row id in `names`.

    Algorithms read its shape and the weights of relations from the arrays. The other attributes are read
    from a view when they are asked for: those of `Entity` and `Relation` as texts, for GraphML. Lists are
    joined with "; ", pairs are "name: value", times are in ISO form, and characters forbidden in XML are U+FFFD.
    """
    with required_packages():
        import networkx as nx

    def read_entities(rows: Collection[int]) -> Mapping[int, Entity]:
        with open_view() as view:
            return view.entities(rows)

    def read_relations(rows: Collection[int]) -> Mapping[int, Relation]:
        with open_view() as view:
            return view.relations(rows)

    names_in_xml = {row: xml_value(name) for row, name in names.items()}
    entity_attributes = _in_blocks(index.entities, read_entities, _node_attributes)
    relation_attributes = _in_blocks(index.all_relations, read_relations, _edge_attributes)
    graph = nx.freeze(nx.Graph())
    neighbours = lru_cache(VISITED_NODES)(
        partial(
            _edges_by_neighbour, index=index, names=names_in_xml, attributes=relation_attributes
        )
    )
    graph._node = _ByName(names_in_xml, entity_attributes)  # as the views of networkx itself do
    graph._adj = _ByName(names_in_xml, neighbours)
    return graph


def store_network(store: Store) -> "nx.Graph":
    """The graph of a store as it is now; attributes of rows that are deleted later are empty."""
    with store.snapshot() as snapshot:
        names = snapshot.entity_names(snapshot.graph.entities.tolist())
        return network(snapshot.graph, names, store.view)


def xml_value(value: object) -> Any:
    """A value for GraphML: a number as it is, all else as text."""
    if isinstance(value, float):
        return value
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, tuple):
        value = "; ".join(item_texts(value))
    if value is None:
        value = ""
    return NOT_XML.sub("\ufffd", str(value))


def item_texts(items: Iterable[str | tuple[str, ...]]) -> list[str]:
    """The items as texts; a pair of a name and a value becomes "name: value"."""
    return [item if isinstance(item, str) else ": ".join(item) for item in items]


def _node_attributes(entity: Entity) -> GraphAttributes:
    fields = {name: xml_value(getattr(entity, name)) for name in NODE_FIELDS}
    return {**fields, "entity_type": xml_value(entity.type)}


def _edge_attributes(relation: Relation) -> GraphAttributes:
    return {name: xml_value(getattr(relation, name)) for name in EDGE_FIELDS}


def _in_blocks(
    rows: "np.ndarray[Any, Any]",
    read: Callable[[Collection[int]], Mapping[int, Any]],
    attributes_of: Callable[[Any], GraphAttributes],
) -> Callable[[int], GraphAttributes]:
    """A function from a row id to attributes; neighbouring rows are read together, each once."""

    @cache
    def block(number: int) -> dict[int, GraphAttributes]:
        block_rows = rows[number * BLOCK : (number + 1) * BLOCK].tolist()
        return {row: attributes_of(item) for row, item in read(block_rows).items()}

    def attributes(row: int) -> GraphAttributes:
        position = int(np.searchsorted(rows, row))
        return block(position // BLOCK).get(row, {})

    return attributes


class _ByName(Mapping[str, NamedItem]):
    """What is read of an entity by its row id, by the names of entities."""

    def __init__(self, names: Mapping[int, str], read: Callable[[int], NamedItem]) -> None:
        self._rows = {name: row for row, name in names.items()}
        self._read = read

    def __getitem__(self, name: str) -> NamedItem:
        return self._read(self._rows[name])

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _edges_by_neighbour(
    row: int,
    *,
    index: GraphIndex,
    names: Mapping[int, str],
    attributes: Callable[[int], GraphAttributes],
) -> Mapping[str, "_EdgeAttributes"]:
    """The neighbours of an entity by name, with the attributes of the relations to them."""
    _, relations = index.relations_of(np.array([row]))
    ends = index.ends(relations).sum(axis=1) - row
    weights = index.weights(relations)
    return {
        names[end]: _EdgeAttributes(relation, weight, attributes)
        for end, relation, weight in zip(
            ends.tolist(), relations.tolist(), weights.tolist(), strict=True
        )
        if end in names
    }


class _EdgeAttributes(Mapping[str, Any]):
    """The attributes of a relation; its weight needs no reading."""

    __slots__ = ("_attributes", "_row", "_weight")

    def __init__(
        self, row: int, weight: float, attributes: Callable[[int], GraphAttributes]
    ) -> None:
        self._row = row
        self._weight = weight
        self._attributes = attributes

    def __getitem__(self, field: str) -> Any:
        return self._weight if field == "weight" else self._attributes(self._row)[field]

    def __contains__(self, field: object) -> bool:
        return field in EDGE_FIELDS

    def __iter__(self) -> Iterator[str]:
        return iter(EDGE_FIELDS)

    def __len__(self) -> int:
        return len(EDGE_FIELDS)

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> GraphAttributes:
        """A dictionary, as networkx asks for when it copies a graph."""
        return dict(self)
