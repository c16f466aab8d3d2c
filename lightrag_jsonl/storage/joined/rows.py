"""Which rows of several indexes are the rows of one: entities by name, relations by both names."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from msgspec import structs

from lightrag_jsonl.core.types import Chunk, chunk_id
from lightrag_jsonl.storage.graph_index import GraphRows, distinct_rows
from lightrag_jsonl.storage.rows import Aliases, EntityRow, Names, RelationRow, RowIds
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import StoreView

NO_ROW = 0  # row ids are positive
# Fields of a row that are no votes or sums of its mentions, or of one index only.
ONE_INDEX = ("id", "low", "high", "reversed", "summarized_to", "summarized_mentions", "edited")
BITS_OF_AN_END = 32  # bits for each end of a pair in one number


class JoinedRows:
    """The rows of one kind: those of the first part, then those of the second, and so on.

    `sizes` are the greatest row ids of the parts. `owners` has for each row the row that it counts as, if
    several are one; `NO_ROW` for a row that counts as none.
    """

    def __init__(self, sizes: Sequence[int], owners: Ids | None = None) -> None:
        self.starts = [0, *itertools.accumulate(sizes)]
        self.owners = owners
        self._lookups: dict[int, tuple[Ids, Ids]] = {}  # by part: owners, ascending, and own rows

    def of_part(self, part: int, rows: Ids) -> Ids:
        """The joined rows of rows of a part."""
        joined: Ids = rows + self.starts[part]
        return joined if self.owners is None else self.owners[joined]

    def in_part(self, part: int, rows: Ids) -> tuple[Ids, Ids]:
        """Two columns: the index of a joined row in `rows`, and a row of the part that counts as it."""
        start = self.starts[part]
        end = self.starts[part + 1]
        if self.owners is None:
            positions = np.flatnonzero((rows > start) & (rows <= end))
            return positions, rows[positions] - start
        if part not in self._lookups:
            owners = self.owners[start + 1 : end + 1]
            order = np.argsort(owners, kind="stable")
            self._lookups[part] = owners[order], order + 1
        owners, own_rows = self._lookups[part]
        firsts = np.searchsorted(owners, rows)
        counts = np.searchsorted(owners, rows, side="right") - firsts
        skipped = np.repeat(firsts - np.cumsum(counts) + counts, counts)
        members = own_rows.take(skipped + np.arange(len(skipped)))
        return np.repeat(np.arange(len(rows)), counts), members


@dataclass(frozen=True)
class JoinedState:
    """How the rows of several indexes are joined, in one state of each.

    `turned` tells of each row of a relation whether its low end is the joined relation's high one.
    `weights` are those of the joined relations, by row. `new_ids` are the ids of documents, and of their
    chunks, whose own ids an earlier part has, too: for each part, by the own id.
    """

    rows: Mapping[str, JoinedRows]
    aliases: Aliases
    turned: np.ndarray[tuple[int], np.dtype[np.bool_]]
    weights: Floats
    new_ids: Sequence[Mapping[str, str]]

    @classmethod
    def of(cls, views: Sequence[StoreView], names: Sequence[str]) -> "JoinedState":
        """The rows of the parts, joined."""
        next_ids = [view.next_ids() for view in views]
        aliases = _joined_aliases([view.aliases() for view in views])
        entities = JoinedRows([ids.entities - 1 for ids in next_ids])
        entities = JoinedRows(
            np.diff(entities.starts).tolist(), _owners_by_name(views, entities, aliases.targets)
        )
        relation_rows = JoinedRows([ids.relations - 1 for ids in next_ids])
        graphs = [view.graph_rows({"entity": (), "relation": None, "chunk": ()}) for view in views]
        owners, turned, weights = _owners_by_ends(graphs, relation_rows, entities)
        return cls(
            rows={
                "document": JoinedRows([ids.documents - 1 for ids in next_ids]),
                "chunk": JoinedRows([ids.chunks - 1 for ids in next_ids]),
                "entity": entities,
                "relation": JoinedRows(np.diff(relation_rows.starts).tolist(), owners),
                "entity_mention": JoinedRows([ids.entity_mentions - 1 for ids in next_ids]),
                "relation_mention": JoinedRows([ids.relation_mentions - 1 for ids in next_ids]),
            },
            aliases=aliases,
            turned=turned,
            weights=weights,
            new_ids=_new_ids(views, names),
        )

    def graph_rows(self, graphs: Sequence[GraphRows]) -> GraphRows:
        """The shapes of the parts' graphs, joined."""
        entities: list[Ids] = []
        chunks: list[Ids] = []
        relations: list[Ids] = []
        mentions: list[Ids] = []
        for number, graph in enumerate(graphs):
            rows = {kind: partial(joined.of_part, number) for kind, joined in self.rows.items()}
            entities.append(rows["entity"](graph.entities))
            chunks.append(rows["chunk"](graph.chunks))
            ends = np.sort(rows["entity"](graph.relations[:, 1:]), axis=1)
            relations.append(np.column_stack([rows["relation"](graph.relations[:, 0]), ends]))
            mentioned, mentioning = graph.mentions.T
            mentions.append(np.column_stack([rows["entity"](mentioned), rows["chunk"](mentioning)]))
        all_relations = np.concatenate(relations)
        ids, first_places = np.unique(all_relations[:, 0], return_index=True)
        first_places = first_places[ids != NO_ROW]
        return GraphRows(
            entities=distinct_rows(*entities),
            chunks=np.concatenate(chunks),
            relations=all_relations[first_places],
            weights=self.weights[all_relations[first_places, 0]],
            mentions=np.concatenate(mentions),
        )


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One of the indexes that are asked as one, with the number of the part; ids and rows, there and joined."""

    number: int
    view: StoreView
    name: str
    state: JoinedState

    def own_rows(self, kind: str, rows: RowIds) -> list[int] | None:
        """The rows of this part that count as some joined rows, ascending; None stands for all rows."""
        if rows is None:
            return None
        all_rows = np.fromiter(rows, np.int64, len(rows))
        own_rows: list[int] = distinct_rows(
            self.state.rows[kind].in_part(self.number, all_rows)[1]
        ).tolist()
        return own_rows

    def joined_rows(self, kind: str, rows: Iterable[int]) -> list[int]:
        """The joined rows of rows of this part; `NO_ROW` for a relation of a name with itself."""
        own_rows = np.fromiter(rows, np.int64)
        joined: list[int] = self.state.rows[kind].of_part(self.number, own_rows).tolist()
        return joined

    def own_ids(self, ids: Names) -> Names:
        """The ids in this part of some documents or chunks; None stands for all."""
        new_ids = self.state.new_ids[self.number]
        if ids is None or not new_ids:
            return ids
        own_ids = {new: own for own, new in new_ids.items()}
        return [own_ids.get(id, id) for id in ids if id not in new_ids]

    def id(self, own_id: str) -> str:
        """The id of a document or chunk of this part among all."""
        return self.state.new_ids[self.number].get(own_id, own_id)

    def chunk(self, chunk: Chunk) -> Chunk:
        """A chunk of this part, with the ids among all."""
        if not self.state.new_ids[self.number]:
            return chunk
        return replace(chunk, id=self.id(chunk.id), document_id=self.id(chunk.document_id))


def _joined_aliases(aliases: Sequence[Aliases]) -> Aliases:
    """The merges of names of all parts; where they contradict each other, the earlier part's."""
    links: dict[str, str] = {}
    displays: dict[str, str] = {}
    for part in aliases:
        for key, target in part.links.items():
            end = target
            while end in links:
                end = links[end]
            if end != key:  # no circle
                links.setdefault(key, target)
        displays = {**part.displays, **displays}
    return Aliases(links, displays, frozenset[str]().union(*[part.apart for part in aliases]))


def _owners_by_name(
    views: Sequence[StoreView], rows: JoinedRows, targets: Mapping[str, str]
) -> Ids:
    """For each entity, the first one of the same name."""
    owners = np.arange(rows.starts[-1] + 1)
    first_rows: dict[str, int] = {}
    for number, view in enumerate(views):
        for row, key in view.entity_keys().items():
            joined = row + rows.starts[number]
            owners[joined] = first_rows.setdefault(targets.get(key, key), joined)
    return owners


def _owners_by_ends(
    graphs: Sequence[GraphRows], rows: JoinedRows, entities: JoinedRows
) -> tuple[Ids, np.ndarray[tuple[int], np.dtype[np.bool_]], Floats]:
    """For each relation, the first one between the same names, whether it is turned, and the sum of weights."""
    owners = np.arange(rows.starts[-1] + 1)
    turned = np.zeros(len(owners), np.bool_)
    weights = np.zeros(len(owners))
    columns: list[Ids] = [np.zeros((0, 3), np.int64)]
    for number, graph in enumerate(graphs):
        joined = graph.relations[:, 0] + rows.starts[number]
        ends = entities.of_part(number, graph.relations[:, 1:])
        columns.append(np.column_stack([joined, ends]))
        weights[joined] = graph.weights
    relations, low, high = np.concatenate(columns).T  # ascending by relation, as parts are
    turned[relations] = low > high
    pairs = (np.minimum(low, high) << BITS_OF_AN_END) | np.maximum(low, high)
    _, first_places, groups = np.unique(pairs, return_index=True, return_inverse=True)
    owners[relations] = relations[first_places[groups]]
    owners[relations[low == high]] = NO_ROW
    return owners, turned, np.bincount(owners, weights, len(owners)).astype(np.float64)


def _new_ids(views: Sequence[StoreView], names: Sequence[str]) -> list[dict[str, str]]:
    """The ids of documents, and of their chunks, whose own ids an earlier part has, too."""
    known_ids: set[str] = set()
    new_ids_by_part: list[dict[str, str]] = []
    for view, name in zip(views, names, strict=True):
        ids = {label.id for label in view.document_labels()}
        new_ids = {id: f"{id} ({name})" for id in sorted(ids & known_ids)}
        for chunk in view.chunks(documents=list(new_ids)).values():
            document_id = new_ids[chunk.document_id]
            new_ids[chunk.id] = chunk_id(document_id, chunk.page, chunk.start, chunk.text)
        known_ids |= ids
        new_ids_by_part.append(new_ids)
    return new_ids_by_part


# ── what several rows of one entity or relation say together ─────────────────────


def joined_entity(row: int, key: str, display: str, members: Sequence[EntityRow]) -> EntityRow:
    """The entity of all members, in the order of the parts."""
    if len(members) == 1:
        return structs.replace(members[0], id=row, key=key)
    entity = EntityRow(id=row, key=key, **_joined_fields(members))
    entity.decide(display)
    return entity


def joined_relation(row: int, ends: tuple[int, int], members: Sequence[RelationRow]) -> RelationRow:
    """The relation of all members, whose low ends are the same."""
    low, high = ends
    if len(members) == 1:
        return structs.replace(members[0], id=row, low=low, high=high)
    relation = RelationRow(id=row, low=low, high=high, **_joined_fields(members))
    relation.decide()
    return relation


def _joined_fields(members: Sequence[EntityRow | RelationRow]) -> dict[str, Any]:
    """What several rows say together: votes and numbers are added up; a summary belongs to one index."""
    joined: dict[str, Any] = {}
    for name in members[0].__struct_fields__:
        values = [getattr(member, name) for member in members]
        if name in ONE_INDEX:
            continue
        if isinstance(values[0], dict | int):
            joined[name] = _added(values)
    return {
        **joined,
        "description": _joined_description(members),
        "created_at": min([member.created_at for member in members]),
        "edited": _edited_values(members),
    }


def turned_relation(relation: RelationRow) -> RelationRow:
    """The relation with its low end as the high one."""
    return structs.replace(
        relation,
        keywords=relation.backward_keywords,
        backward_keywords=relation.keywords,
        low_names=relation.high_names,
        high_names=relation.low_names,
        forward=relation.backward,
        backward=relation.forward,
        reversed=not relation.reversed,
    )


def _added(values: Sequence[Any]) -> Any:
    """The sum of numbers, or of the votes for each choice; of attributes, of the votes for each value of a name."""
    if isinstance(values[0], int):
        return sum(values)
    choices = dict.fromkeys(itertools.chain.from_iterable(values))
    return {
        choice: _added([votes[choice] for votes in values if choice in votes]) for choice in choices
    }


def _joined_description(members: Sequence[EntityRow | RelationRow]) -> str:
    """What a person wrote, or else all lines of the members' descriptions, each once."""
    for member in members:
        if "description" in member.edited:
            return member.description
    texts = [text for member in members for text in member.description.split("\n") if text]
    return "\n".join(dict.fromkeys(texts))


def _edited_values(members: Sequence[EntityRow | RelationRow]) -> dict[str, object]:
    """The values that people gave; of several, those in the first part."""
    edited: dict[str, object] = {}
    for member in members:
        edited = {**member.edited, **edited}
    return edited
