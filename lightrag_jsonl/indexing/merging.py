"""Merges mentions into entities and relations, and takes them out again.

Everything a row holds is a sum or a vote, so adding and removing mentions in any order gives the
same row: the graph is a function of the set of mentions (laws *fold* and *undo*).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias, TypeVar

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Extraction, Kind, Page
from lightrag_jsonl.indexing import aliases
from lightrag_jsonl.indexing.claims import (
    Edits,
    graph_keys,
    is_about,
    stored_edits,
)
from lightrag_jsonl.storage.rows import (
    Aliases,
    EntityMentionRow,
    EntityRow,
    GraphRow,
    MentionRow,
    NextIds,
    RelationMentionRow,
    RelationRow,
    StoredChunk,
    StoredDocument,
    stored_at,
)
from lightrag_jsonl.storage.views import StoreView

MOST_CHUNKS = 1 << 40  # no limit
POSITION_BITS = 10  # room for 1,023 mentions of a kind in one chunk; more share the last position

GraphKey: TypeAlias = tuple[Kind, int]  # a kind and a row id
Row = TypeVar("Row", EntityMentionRow, RelationMentionRow)
StepCallback: TypeAlias = Callable[[int, int], None]  # items done, items known

GRAPH_KINDS: tuple[Kind, ...] = ("entity", "relation")


@dataclass(slots=True)
class GraphChange:
    """What added and removed mentions do to the graph: all touched rows, and the mentions to store.

    `without` are chunks whose stored mentions no longer count for the touched rows. `descriptions`
    are those in the added mentions, as (position, text), `last_mentions` the last row ids of these.
    """

    entities: dict[int, EntityRow] = field(default_factory=dict)
    relations: dict[int, RelationRow] = field(default_factory=dict)
    entity_mentions: list[EntityMentionRow] = field(default_factory=list)
    relation_mentions: list[RelationMentionRow] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    descriptions: dict[GraphKey, list[tuple[int, str]]] = field(default_factory=dict)
    last_mentions: dict[GraphKey, int] = field(default_factory=dict)

    def rows(self, kind: Kind, *, gone: bool = False) -> Mapping[int, GraphRow]:
        """The touched rows of a kind that have mentions left, or those that have none left."""
        rows: Mapping[int, GraphRow] = self.entities if kind == "entity" else self.relations
        return {id: row for id, row in rows.items() if (row.mentions == 0) == gone}


@dataclass(slots=True)
class IndexChange:
    """Everything that one transaction writes.

    `chunks` are new; of those `read_again` the extraction was repeated. `chunk_texts` are of chunks
    that need a vector. `old_documents` and `old_chunks` (row ids) go; documents that were `pending`
    wait no longer. `vectors` come with the digests of their texts; of those in `cached_vectors` the
    stored vectors are used now; `known_vectors` are others, by the same digests. `refusals` says why
    rows have no vector, `shortened` of which texts only the beginning is embedded. `purge` holds the
    names of entities whose queries go, too, with all else that may quote deleted documents; `purged`
    counts the answers and queries that went.
    """

    graph: GraphChange = field(default_factory=GraphChange)
    documents: list[tuple[StoredDocument, tuple[Page, ...]]] = field(default_factory=list)
    chunks: list[StoredChunk] = field(default_factory=list)
    read_again: list[StoredChunk] = field(default_factory=list)
    chunk_texts: dict[int, str] = field(default_factory=dict)
    old_documents: list[int] = field(default_factory=list)
    old_chunks: list[int] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    aliases: Aliases | None = None
    vectors: dict[Kind, dict[int, tuple[bytes, Vectors]]] = field(default_factory=dict)
    cached_vectors: list[bytes] = field(default_factory=list)
    known_vectors: Mapping[bytes, Vectors] = field(default_factory=dict)
    refusals: dict[Kind, dict[int, str]] = field(default_factory=dict)
    shortened: dict[Kind, dict[int, str]] = field(default_factory=dict)
    rebuilt: bool = False
    purge: set[str] | None = None
    purged: tuple[int, int] = 0, 0


class GraphMerger:
    """Works out the rows after mentions were added and removed; nothing is written.

    `targets` maps name keys to the keys they are merged into. `edits` are what people changed, by
    default those that are stored.
    """

    def __init__(
        self,
        view: StoreView,
        ids: NextIds,
        targets: Mapping[str, str],
        edits: Edits | None = None,
    ) -> None:
        self._edits = stored_edits(view, targets) if edits is None else edits
        self.change = GraphChange()
        self._view = view
        self._ids = ids
        self._targets = targets
        self._by_key: dict[str, EntityRow] = {}
        self._by_pair: dict[tuple[int, int], RelationRow] = {}

    def start_with(self, entities: Iterable[EntityRow], relations: Iterable[RelationRow]) -> None:
        """Change these rows, in place of the stored ones, unless they are being changed already."""
        for entity in entities:
            self._by_key[entity.key] = self.change.entities.setdefault(entity.id, entity)
        for one in relations:
            self._by_pair[one.low, one.high] = self.change.relations.setdefault(one.id, one)

    def remove(
        self,
        entities: Sequence[EntityMentionRow],
        relations: Sequence[RelationMentionRow],
        *,
        rows_go: bool = False,
    ) -> None:
        """Take stored mentions out of their rows. The mentions of a row in one chunk go together,
        and if `rows_go`, all mentions of each row.
        """
        named = {one.owner for one in entities if one.owner is not None}
        counted = {one.owner for one in relations if one.owner is not None}
        self.start_with(
            self._view.entity_rows(ids=named).values(),
            self._view.relation_rows(ids=counted).values(),
        )
        for one in entities:
            if one.owner is not None:
                self.change.entities[one.owner].count(one, -1)
        for other in relations:
            if other.owner is not None:
                self.change.relations[other.owner].count(other, -1)
        if not rows_go:
            self.change.without.update([one.chunk for one in entities])
        self._update_created()

    def touch(self, keys: Collection[str]) -> None:
        """Decide anew what is shown of entities and of pairs with these keys."""
        rows = self._view.entity_rows(keys={end for key in keys for end in key.split("\0")})
        ids = {row.key: row.id for row in rows.values()}
        pairs = [sorted(ids.get(end, 0) for end in key.split("\0")) for key in keys if "\0" in key]
        edges = self._view.relation_rows(pairs=[(low, high) for low, high in pairs])
        self.start_with([row for row in rows.values() if row.key in keys], edges.values())

    def add(
        self,
        entities: Sequence[EntityMentionRow],
        relations: Sequence[RelationMentionRow],
        created: Mapping[int, float],
    ) -> None:
        """Add mentions to the rows of their names; `created` is when each chunk was stored.

        Those of entities and relations that a person deleted get no row.
        """
        self.change.entity_mentions += entities
        self.change.relation_mentions += relations
        for one in entities:
            one.owner = None
        for other in relations:
            other.owner = None
        entities, relations = self._counted(entities), self._counted(relations)
        keys = [graph_keys(one.mention, self._targets)[0] for one in entities]
        ends = [graph_keys(one.mention, self._targets) for one in relations]
        unknown = set(chain(keys, *ends)) - self._by_key.keys()
        for row in self._view.entity_rows(keys=unknown).values():
            self._by_key[row.key] = row
        for one, key in zip(entities, keys, strict=True):
            self._add_entity(one, key, created[one.chunk])
        # In damaged data an end may have no mention; such a relation gets no row.
        ids = {key: row.id for key, row in self._by_key.items() if row.mentions}
        joined = {
            other.id: (ids[source], ids[target])
            for other, (source, target) in zip(relations, ends, strict=True)
            if source in ids and target in ids
        }
        unread = {(min(pair), max(pair)) for pair in joined.values()} - self._by_pair.keys()
        for found in self._view.relation_rows(pairs=unread).values():
            self._by_pair[found.low, found.high] = found
        for other in relations:
            if pair := joined.get(other.id):
                self._add_relation(other, *pair, created[other.chunk])

    def finish(self, displays: Mapping[str, str]) -> GraphChange:
        """The whole change; `displays` holds names that a person chose, by key."""
        ends = self._view.entity_rows(keys={end for key in self._edits for end in key.split("\0")})
        ids = {row.key: row.id for row in (*ends.values(), *self.change.entities.values())}
        pairs = {frozenset(map(ids.get, key.split("\0"))): one for key, one in self._edits.items()}
        for row in self.change.entities.values():
            row.edited = dict(self._edits.get(row.key, {}))
            row.decide(displays.get(row.key, ""))
        for edge in self.change.relations.values():
            edge.edited = dict(pairs.get(frozenset((edge.low, edge.high)), {}))
            edge.decide()
        return self.change

    def _counted(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The mentions of what no person deleted."""
        gone = {key for key, edited in self._edits.items() if "deleted" in edited}
        counted = [one for one in rows if one.mention.claim != "delete"]
        if not gone:
            return counted
        return [one for one in counted if not is_about(one.mention, gone, self._targets)]

    def _add_entity(self, one: EntityMentionRow, key: str, at: float) -> None:
        row = self._by_key.get(key)
        if row is None:
            row = self._by_key[key] = EntityRow(self._ids.entities, key)
            self._ids.entities += 1
        one.owner = row.id
        self._touch("entity", row, one, at)
        row.count(one, 1)
        self.change.entities[row.id] = row

    def _add_relation(self, one: RelationMentionRow, source: int, target: int, at: float) -> None:
        one.owner, one.forward = None, source < target
        if source == target:  # a merge of names made both ends one entity
            return
        pair = (source, target) if one.forward else (target, source)
        row = self._by_pair.get(pair)
        if row is None:
            row = self._by_pair[pair] = RelationRow(self._ids.relations, *pair)
            self._ids.relations += 1
        one.owner = row.id
        self._touch("relation", row, one, at)
        row.count(one, 1)
        self.change.relations[row.id] = row

    def _touch(
        self, kind: Kind, row: GraphRow, one: EntityMentionRow | RelationMentionRow, at: float
    ) -> None:
        """Note an added mention: when it was first stored, and its description."""
        row.created_at = min(row.created_at, at) if row.mentions else at
        self.change.last_mentions[kind, row.id] = one.id
        if one.mention.description:
            description = one.position, one.mention.description
            self.change.descriptions.setdefault((kind, row.id), []).append(description)

    def _update_created(self) -> None:
        """Find the first mention of rows anew, where it may have been removed."""
        view = self._view
        gone = {chunk.id: stored_at(chunk) for chunk in view.chunks(self.change.without).values()}
        for kind in GRAPH_KINDS:
            rows = self.change.rows(kind)
            due = [id for id, row in rows.items() if round(row.created_at, 6) in gone.values()]
            load = view.entities if kind == "entity" else view.relations
            found = load(due, chunk_limit=MOST_CHUNKS).items()
            left = {id: set(one.chunk_ids) - gone.keys() for id, one in found}
            chunks = view.chunks(ids=set().union(*left.values())).values()
            times = {chunk.id: stored_at(chunk) for chunk in chunks}
            for id, ids in left.items():
                rows[id].created_at = min(times[one] for one in ids)


def remerged(
    view: StoreView,
    entities: Mapping[int, EntityRow],
    relations: Mapping[int, RelationRow],
    entity_mentions: Sequence[EntityMentionRow],
    relation_mentions: Sequence[RelationMentionRow],
) -> GraphChange:
    """These rows as all their mentions give them; the mentions note to which rows they belong."""
    known = view.aliases()
    merger = GraphMerger(view, view.next_ids(), aliases.targets(known))
    merger.start_with(
        [EntityRow(row.id, row.key) for row in entities.values()],
        [RelationRow(row.id, row.low, row.high) for row in relations.values()],
    )
    created = stored_times(view, entity_mentions, relation_mentions)
    merger.add(entity_mentions, relation_mentions, created)
    return merger.finish(known.displays)


def stored_times(
    view: StoreView, entities: Iterable[EntityMentionRow], relations: Iterable[RelationMentionRow]
) -> dict[int, float]:
    """When the chunks of these mentions were stored, by row id."""
    rows = {one.chunk for one in entities} | {one.chunk for one in relations}
    return {row: stored_at(chunk) for row, chunk in view.chunks(rows).items()}


def mention_rows(
    extraction: Extraction, chunk: int, position: int, ids: NextIds
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The mentions of a new chunk, numbered; their entities and relations are not known yet.

    `position` orders the chunk among all others, whenever they are inserted.
    """
    first, last = position << POSITION_BITS, (1 << POSITION_BITS) - 1
    entities = [
        MentionRow(ids.entity_mentions + number, 0, chunk, first + min(number, last), one)
        for number, one in enumerate(extraction.entities)
    ]
    relations = [
        MentionRow(
            ids.relation_mentions + number, None, chunk, first + min(number, last), one, True
        )
        for number, one in enumerate(extraction.relations)
    ]
    ids.entity_mentions += len(entities)
    ids.relation_mentions += len(relations)
    return entities, relations
