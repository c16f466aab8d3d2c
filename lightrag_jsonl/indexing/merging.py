"""Merges mentions into entities and relations, and takes them out again.

A row holds sums and votes only, so adding and removing mentions in any order gives the same row:
the graph is a function of the set of mentions (laws *fold* and *undo*). Last, a row takes the values
that people set by hand.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias, TypeVar

from msgspec import Struct, field

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind, Page
from lightrag_jsonl.indexing.overrides import (
    HandValues,
    SubjectKey,
    deleted_subjects,
    end_keys,
    is_about,
    resolved_key,
    stored_hand_values,
)
from lightrag_jsonl.storage.rows import (
    POSITION_BITS,
    Aliases,
    EntityMentionRow,
    EntityRow,
    GraphRow,
    Mention,
    MentionRow,
    NextIds,
    Override,
    RelationMentionRow,
    RelationRow,
    StoredChunk,
    StoredDocument,
    stored_at,
)
from lightrag_jsonl.storage.tables.kept_rows import RowsByTable, SavedState
from lightrag_jsonl.storage.views import StoreView

MOST_CHUNKS = 1 << 40  # no limit

GraphKey: TypeAlias = tuple[Kind, int]  # a kind and a row id
AnyMentionRow = TypeVar("AnyMentionRow", EntityMentionRow, RelationMentionRow)
StepCallback: TypeAlias = Callable[[int, int], None]  # items done, items known

GRAPH_KINDS: tuple[Kind, ...] = ("entity", "relation")


class GraphChange(Struct):
    """The effect of added and removed mentions on the graph: touched rows, and mentions to store.

    - `without`: the chunks whose stored mentions no longer count for the touched rows.
    - `descriptions`: the descriptions in the added mentions of each row, as (position, text).
    - `last_mentions`: the highest row id among the added mentions of each row.
    """

    entities: dict[int, EntityRow] = field(default_factory=dict)
    relations: dict[int, RelationRow] = field(default_factory=dict)
    entity_mentions: list[EntityMentionRow] = field(default_factory=list)
    relation_mentions: list[RelationMentionRow] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    descriptions: dict[GraphKey, list[tuple[int, str]]] = field(default_factory=dict)
    last_mentions: dict[GraphKey, int] = field(default_factory=dict)

    def rows(self, kind: Kind, *, gone: bool = False) -> Mapping[int, GraphRow]:
        """The touched rows of a kind with mentions, or, if `gone`, without any mention left."""
        rows: Mapping[int, GraphRow] = self.entities if kind == "entity" else self.relations
        return {id: row for id, row in rows.items() if (row.mentions == 0) == gone}


class RewrittenState(Struct, frozen=True):
    """A saved state, and the rows that are to be others there."""

    state: SavedState
    rows_by_table: RowsByTable


class IndexChange(Struct):
    """Everything for one transaction to write.

    - `documents`, `chunks`: new; `read_again`: stored chunks with a repeated extraction.
    - `overrides`: what people set, by row id of the chunk of a new edit.
    - `chunk_texts`: the texts of the chunks in need of a vector.
    - `old_documents`, `old_chunks`: row ids to delete, of the documents with the ids `replaced`.
    - `pending`: the rows of documents that wait no longer.
    - `vectors`: with the digests of the texts; `cached_vectors`: the digests of vectors that were
      cached for a commit; `known_vectors`: vectors from elsewhere, by digest.
    - `refusals`: why a row has no vector; `shortened`: texts embedded only in part.
    - `settings`: further settings to record.
    - `purge`: the names of entities whose queries are deleted, with all other records that may
      quote deleted documents; `rewritten_states`: saved states, the newest first, with the rows that
      are others there without the purged documents; `purged`: the numbers of deleted answers and queries.
    """

    graph: GraphChange = field(default_factory=GraphChange)
    documents: list[tuple[StoredDocument, tuple[Page, ...]]] = field(default_factory=list)
    chunks: list[StoredChunk] = field(default_factory=list)
    read_again: list[StoredChunk] = field(default_factory=list)
    overrides: dict[int, Override] = field(default_factory=dict)
    chunk_texts: dict[int, str] = field(default_factory=dict)
    old_documents: list[int] = field(default_factory=list)
    old_chunks: list[int] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    aliases: Aliases | None = None
    vectors: dict[Kind, dict[int, tuple[bytes, Vectors]]] = field(default_factory=dict)
    cached_vectors: list[bytes] = field(default_factory=list)
    known_vectors: Mapping[bytes, Vectors] = field(default_factory=dict)
    refusals: dict[Kind, dict[int, str]] = field(default_factory=dict)
    shortened: dict[Kind, dict[int, str]] = field(default_factory=dict)
    rebuilt: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    purge: set[str] | None = None
    rewritten_states: list[RewrittenState] = field(default_factory=list)
    purged: tuple[int, int] = 0, 0
    purge_marks: set[str] = field(default_factory=set)


class GraphMerger:
    """Computes the rows after mentions are added and removed; nothing is written.

    `targets` maps name keys to the keys of the entities that the names are merged into.
    `hand_values` are the values that people set.
    """

    def __init__(
        self,
        view: StoreView,
        ids: NextIds,
        targets: Mapping[str, str],
        hand_values: HandValues,
    ) -> None:
        self.change = GraphChange()
        self._view = view
        self._ids = ids
        self._targets = targets
        self._hand_values = hand_values
        self._entities_by_key: dict[str, EntityRow] = {}
        self._relations_by_ends: dict[tuple[int, int], RelationRow] = {}

    def start_with(self, entities: Iterable[EntityRow], relations: Iterable[RelationRow]) -> None:
        """Change these rows instead of the stored ones, except rows with changes already."""
        for entity in entities:
            changed_entity = self.change.entities.setdefault(entity.id, entity)
            self._entities_by_key[entity.key] = changed_entity
        for relation in relations:
            changed_relation = self.change.relations.setdefault(relation.id, relation)
            self._relations_by_ends[relation.low, relation.high] = changed_relation

    def remove(
        self,
        entity_mentions: Sequence[EntityMentionRow],
        relation_mentions: Sequence[RelationMentionRow],
        *,
        rows_go: bool = False,
    ) -> None:
        """Take stored mentions out of their rows: all mentions of a row in the same chunk together,
        or, if `rows_go`, all mentions of the row.
        """
        entity_ids = {mention.owner for mention in entity_mentions if mention.owner is not None}
        relation_ids = {mention.owner for mention in relation_mentions if mention.owner is not None}
        entities = self._view.entity_rows(ids=entity_ids)
        relations = self._view.relation_rows(ids=relation_ids)
        self.start_with(entities.values(), relations.values())
        for entity_mention in entity_mentions:
            if entity_mention.owner is not None:
                self.change.entities[entity_mention.owner].count(entity_mention, -1)
        for relation_mention in relation_mentions:
            if relation_mention.owner is not None:
                self.change.relations[relation_mention.owner].count(relation_mention, -1)
        if not rows_go:
            self.change.without.update([mention.chunk for mention in entity_mentions])
        self._update_created()

    def touch(self, subjects: Collection[SubjectKey]) -> None:
        """Decide the display of these entities and relations again."""
        entities = self._view.entity_rows(keys=end_keys(subjects)).values()
        ids_by_key = {entity.key: entity.id for entity in entities}
        pairs = [
            _ordered_pair(ids_by_key.get(subject[0], 0), ids_by_key.get(subject[1], 0))
            for subject in subjects
            if len(subject) > 1
        ]
        relations = self._view.relation_rows(pairs=pairs)
        touched_entities = [entity for entity in entities if (entity.key,) in subjects]
        self.start_with(touched_entities, relations.values())

    def add(
        self,
        entity_mentions: Sequence[EntityMentionRow],
        relation_mentions: Sequence[RelationMentionRow],
        created: Mapping[int, float],
    ) -> None:
        """Add mentions to the rows of the mentioned names; `created` is the time of each chunk.

        Mentions of entities and relations that a person deleted get no row.
        """
        self.change.entity_mentions += entity_mentions
        self.change.relation_mentions += relation_mentions
        for entity_mention in entity_mentions:
            entity_mention.owner = None
        for relation_mention in relation_mentions:
            relation_mention.owner = None
        counted_entities = self._counted(entity_mentions)
        counted_relations = self._counted(relation_mentions)
        targets = self._targets
        entity_keys = [resolved_key(row.mention.name, targets) for row in counted_entities]
        relation_keys = [
            (resolved_key(row.mention.source, targets), resolved_key(row.mention.target, targets))
            for row in counted_relations
        ]
        keys = {*entity_keys, *chain.from_iterable(relation_keys)} - self._entities_by_key.keys()
        for entity in self._view.entity_rows(keys=keys).values():
            self._entities_by_key[entity.key] = entity
        for entity_mention, key in zip(counted_entities, entity_keys, strict=True):
            self._add_entity(entity_mention, key, created[entity_mention.chunk])
        self._add_relations(counted_relations, relation_keys, created)

    def finish(self, displays: Mapping[str, str]) -> GraphChange:
        """The whole change; `displays` holds the display names that a person chose, by key."""
        keys_by_id = {entity.id: entity.key for entity in self.change.entities.values()}
        if self._hand_values:
            edited_entities = self._view.entity_rows(keys=end_keys(self._hand_values))
            keys_by_id |= {entity.id: entity.key for entity in edited_entities.values()}
        for entity in self.change.entities.values():
            entity.edited = dict(self._hand_values.get((entity.key,), {}))
            entity.decide(displays.get(entity.key, ""))
        for relation in self.change.relations.values():
            ends = [keys_by_id.get(relation.low, ""), keys_by_id.get(relation.high, "")]
            relation.edited = dict(self._hand_values.get(tuple(sorted(ends)), {}))
            relation.decide()
        return self.change

    # ── steps ───────────────────────────────────────────────────────────────────

    def _counted(self, mentions: Sequence[AnyMentionRow]) -> Sequence[AnyMentionRow]:
        """The mentions of entities and relations that no person deleted."""
        deleted = deleted_subjects(self._hand_values)
        if not deleted:
            return mentions
        return [row for row in mentions if not is_about(row.mention, deleted, self._targets)]

    def _add_entity(self, mention: EntityMentionRow, key: str, created_at: float) -> None:
        row = self._entities_by_key.get(key)
        if row is None:
            row = EntityRow(self._ids.entities, key)
            self._entities_by_key[key] = row
            self._ids.entities += 1
        mention.owner = row.id
        self._note_mention("entity", row, mention, created_at)
        row.count(mention, 1)
        self.change.entities[row.id] = row

    def _add_relations(
        self,
        mentions: Sequence[RelationMentionRow],
        relation_keys: Sequence[tuple[str, ...]],
        created: Mapping[int, float],
    ) -> None:
        """Add mentions of relations with the keys of the ends, once all entities are there.

        In damaged data an end may have no mention; the relation gets no row then.
        """
        ends_by_mention: dict[int, tuple[int, int]] = {}
        for mention, (source, target) in zip(mentions, relation_keys, strict=True):
            source_id = self._entity_id(source)
            target_id = self._entity_id(target)
            if source_id is not None and target_id is not None:
                ends_by_mention[mention.id] = (source_id, target_id)
        pairs = {_ordered_pair(source, target) for source, target in ends_by_mention.values()}
        pairs -= self._relations_by_ends.keys()
        for relation in self._view.relation_rows(pairs=pairs).values():
            self._relations_by_ends[relation.low, relation.high] = relation
        for mention in mentions:
            ends = ends_by_mention.get(mention.id)
            if ends is not None:
                self._add_relation(mention, ends, created[mention.chunk])

    def _entity_id(self, key: str) -> int | None:
        entity = self._entities_by_key.get(key)
        return entity.id if entity is not None and entity.mentions else None

    def _add_relation(
        self, mention: RelationMentionRow, ends: tuple[int, int], created_at: float
    ) -> None:
        source, target = ends
        mention.owner = None
        mention.forward = source < target
        if source == target:  # a merge of names made both ends one entity
            return
        pair = _ordered_pair(source, target)
        row = self._relations_by_ends.get(pair)
        if row is None:
            row = RelationRow(self._ids.relations, low=pair[0], high=pair[1])
            self._relations_by_ends[pair] = row
            self._ids.relations += 1
        mention.owner = row.id
        self._note_mention("relation", row, mention, created_at)
        row.count(mention, 1)
        self.change.relations[row.id] = row

    def _note_mention(
        self,
        kind: Kind,
        row: GraphRow,
        mention: EntityMentionRow | RelationMentionRow,
        created_at: float,
    ) -> None:
        """Note the time, the row id and the description of an added mention."""
        row.created_at = min(row.created_at, created_at) if row.mentions else created_at
        self.change.last_mentions[kind, row.id] = mention.id
        if mention.mention.description:
            descriptions = self.change.descriptions.setdefault((kind, row.id), [])
            descriptions.append((mention.position, mention.mention.description))

    def _update_created(self) -> None:
        """Find the first mention of rows again, where the first mention may have been removed."""
        removed_chunks = self._view.chunks(self.change.without).values()
        removed_times = {chunk.id: stored_at(chunk) for chunk in removed_chunks}
        for kind in GRAPH_KINDS:
            rows = self.change.rows(kind)
            times = set(removed_times.values())
            due = [id for id, row in rows.items() if round(row.created_at, 6) in times]
            for id, created_at in self._first_mentions(kind, due, removed_times.keys()).items():
                rows[id].created_at = created_at

    def _first_mentions(
        self, kind: Kind, ids: Sequence[int], removed: Collection[str]
    ) -> dict[int, float]:
        """When the first chunk of each row was stored, without the removed chunks."""
        chunk_ids_by_row = {
            id: set(chunk_ids).difference(removed)
            for id, chunk_ids in self._view.first_chunks(kind, ids, MOST_CHUNKS).items()
        }
        chunks = self._view.chunks(ids=set().union(*chunk_ids_by_row.values()))
        times = {chunk.id: stored_at(chunk) for chunk in chunks.values()}
        return {
            id: min(times[chunk_id] for chunk_id in chunk_ids)
            for id, chunk_ids in chunk_ids_by_row.items()
            if chunk_ids  # none of a row that this change makes
        }


def _ordered_pair(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def remerged(
    view: StoreView,
    entities: Mapping[int, EntityRow],
    relations: Mapping[int, RelationRow],
    entity_mentions: Sequence[EntityMentionRow],
    relation_mentions: Sequence[RelationMentionRow],
) -> GraphChange:
    """These rows as computed from all mentions; the mentions get the row ids of their owners."""
    aliases = view.aliases()
    hand_values = stored_hand_values(view, aliases.targets)
    merger = GraphMerger(view, view.next_ids(), aliases.targets, hand_values)
    merger.start_with(
        [EntityRow(row.id, row.key) for row in entities.values()],
        [RelationRow(row.id, row.low, row.high) for row in relations.values()],
    )
    created = stored_times(view, entity_mentions, relation_mentions)
    merger.add(entity_mentions, relation_mentions, created)
    return merger.finish(aliases.displays)


def stored_times(
    view: StoreView,
    entity_mentions: Iterable[EntityMentionRow],
    relation_mentions: Iterable[RelationMentionRow],
) -> dict[int, float]:
    """When the chunks of these mentions were stored, by row id."""
    rows = {mention.chunk for mention in entity_mentions}
    rows |= {mention.chunk for mention in relation_mentions}
    return {row: stored_at(chunk) for row, chunk in view.chunks(rows).items()}


def mention_positions(chunk_position: int, count: int) -> list[int]:
    """The positions of so many mentions of one kind in a chunk, in the order of the mentions."""
    last_offset = (1 << POSITION_BITS) - 1
    return [(chunk_position << POSITION_BITS) + min(n, last_offset) for n in range(count)]


def mention_rows(
    mentions: Sequence[Mention], *, first_id: int, chunk: int, chunk_position: int
) -> list[MentionRow[Mention]]:
    """The mentions of one kind in a new chunk, with row ids from `first_id` on; owners are not known yet.

    `chunk_position` orders the chunk among all others, whenever they are inserted.
    """
    positions = mention_positions(chunk_position, len(mentions))
    return [
        MentionRow(id=id, owner=None, chunk=chunk, position=place, mention=mention)
        for id, (place, mention) in enumerate(zip(positions, mentions, strict=True), first_id)
    ]
