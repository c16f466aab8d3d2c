"""An index as of a moment: without later documents, and without the records that did not hold then.

A record did not hold by its own dates, or if a later one of a functional kind had taken its place. It hides
the sentence that it stands on, unless a record with dates that held stands on the sentence, too.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from msgspec import Struct, field, structs

from lightrag_jsonl.core.claims import StatementPlaces
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Chunk, EntityMention, Kind, RelationMention
from lightrag_jsonl.lenses.claims import Claim, ClaimIndex, ClaimMemory, is_same_value
from lightrag_jsonl.retrieval.lens import Lens
from lightrag_jsonl.retrieval.task import SearchTask, VisiblePart
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.graph_index import PartialGraph
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    Names,
    RelationMentionRow,
    RowIds,
)
from lightrag_jsonl.storage.vector_index import Ids
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.dates import first_day, last_day, may_hold
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import UNSEEN, fingerprint

_BETWEEN_CLAUSES = pattern_of("[ ,，;；、]*")
AnyView = TypeVar("AnyView", bound=StoreView)
StoredMention = TypeVar("StoredMention", EntityMentionRow, RelationMentionRow)


class AsOf(Lens, Struct, frozen=True):
    """Questions with a moment read the index as of that moment."""

    claims: ClaimMemory

    def view(self, view: StoreView, param: QueryParam) -> StoreView:
        """The view as of the moment of the question, if any."""
        return as_held(view, self._holding(view, param)) if param.as_of else view

    def narrow(self, task: SearchTask) -> SearchTask:
        """The task with the part of the index that held."""
        return self._as_of(task) if task.param.as_of else task

    def _as_of(self, task: SearchTask) -> SearchTask:
        holding = self._holding(task.snapshot, task.param)
        snapshot = as_held(task.snapshot, holding)
        snapshot.graph = PartialGraph(snapshot.graph, holding.hidden_pairs)
        return structs.replace(task, part=VisiblePart(snapshot, holding.later_chunks))

    def _holding(self, view: StoreView, param: QueryParam) -> "Holding":
        """The out-of-date part of the index at the moment of a question, by the documents that the filter
        lets through.
        """
        claims = self.claims.claims(view)
        if param.where:
            claims = claims.visible_in(set(view.matching_chunks(parse_where(param.where))))
        return find_holding(view, param.as_of or "", claims)


class RecordedStatement(Struct, frozen=True, kw_only=True):
    """The statement of a record, for the search in passages: `holds` if its dates say so, and not if it
    is out of date.
    """

    names: tuple[str, ...]
    description: str
    holds: bool


class Holding(Struct, frozen=True, kw_only=True):
    """The out-of-date part of an index at a moment, by row ids.

    `later_chunks` are of later documents. `mentions` are out of date, though the names of
    `nameless` mentions are still ends of valid relations. `doubtful_relations` have a hidden
    mention. `statements` are of the records with dates or out of date, by chunk. `hidden_pairs` are
    entities and chunks without a valid mention, shape (n, 2).
    """

    later_chunks: frozenset[int]
    mentions: Mapping[Kind, frozenset[int]]
    doubtful_relations: frozenset[int]
    statements: Mapping[int, Sequence[RecordedStatement]]
    nameless: frozenset[int] = frozenset()
    hidden_pairs: Ids = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def visible_text(self, chunk: int, text: str) -> str:
        """A passage with `UNSEEN` in place of statements out of date."""
        visible = text
        for start, end in self._hidden_spans(chunk, text):
            visible = visible[:start] + UNSEEN * (end - start) + visible[end:]
        return visible

    def visible_description(self, chunk: int, description: str) -> str:
        """A description without the words of statements out of date, perhaps ""."""
        visible = self.visible_text(chunk, description)
        return description if visible == description else " ".join(visible.split())

    def _hidden_spans(self, chunk: int, text: str) -> set[tuple[int, int]]:
        """The sentences of a text on which only records that are out of date stand."""
        hidden: set[tuple[int, int]] = set()
        holding: set[tuple[int, int]] = set()
        places = StatementPlaces(text)
        for statement in self.statements.get(chunk, ()):
            span = places.span(statement.names, statement.description)
            if span is None:
                continue
            if statement.holds:
                holding.add(span)
            else:  # with the comma before what is left of its sentence
                start, end = span
                hidden.add((start, _BETWEEN_CLAUSES.match(text, end).end()))  # type: ignore[union-attr]
        return {
            (start, end)
            for start, end in hidden
            if not any(
                start < other_end and other_start < end for other_start, other_end in holding
            )
        }


class HeldView:
    """A view of an index, of whatever store, as of a moment: chunks and mentions that held; all else is read
    from the view.
    """

    def __init__(self, view: StoreView, holding: Holding) -> None:
        self._view = view
        self.holding = holding

    def __getattr__(self, name: str) -> Any:
        """What time does not change."""
        return getattr(self._view, name)

    def chunks(
        self, rows: RowIds = None, *, ids: Names = None, documents: Names = None
    ) -> dict[int, Chunk]:
        """Chunks as in `DocumentReads.chunks`, with `UNSEEN` in place of statements out of date."""
        chunks = self._view.chunks(rows, ids=ids, documents=documents)
        return {row: self._as_of(row, chunk) for row, chunk in chunks.items()}

    def fingerprints(self, rows: RowIds = None) -> dict[int, str]:
        """The fingerprints as in `DocumentReads.fingerprints`, of the texts that hold."""
        stored = self._view.fingerprints(rows)
        texts = self._view.chunks(stored)
        valid_chunks = self.chunks(stored)
        changed = {row: chunk for row, chunk in valid_chunks.items() if chunk is not texts[row]}
        return stored | {row: fingerprint(chunk.text) for row, chunk in changed.items()}

    def entity_mentions(
        self, *, chunks: RowIds = None, entities: RowIds = None, deleted: bool = False
    ) -> list[EntityMentionRow]:
        """The valid mentions, as in `MentionReads.entity_mentions`."""
        rows = self._view.entity_mentions(chunks=chunks, entities=entities, deleted=deleted)
        for row in rows:
            if row.id in self.holding.nameless:
                row.mention = replace(row.mention, description="", attributes=(), aliases=())
        return self._held("entity", rows)

    def relation_mentions(
        self, *, chunks: RowIds = None, relations: RowIds = None
    ) -> list[RelationMentionRow]:
        """The valid mentions, as in `MentionReads.relation_mentions`."""
        rows = self._view.relation_mentions(chunks=chunks, relations=relations)
        return self._held("relation", rows)

    def mentioned_relations(self, chunks: Sequence[int]) -> list[int]:
        """The relations with a valid mention, as in `MentionReads.mentioned_relations`."""
        owners = self._view.mentioned_relations(chunks)
        doubtful = self.holding.doubtful_relations.intersection(owners)
        if not doubtful:
            return owners
        visible_chunks = set(chunks)
        mentions = self.relation_mentions(relations=doubtful)
        gone = doubtful - {row.owner for row in mentions if row.chunk in visible_chunks}
        return [owner for owner in owners if owner not in gone]

    def _held(self, kind: Kind, rows: Iterable[StoredMention]) -> list[StoredMention]:
        """The valid mentions, with the valid part of each description."""
        holding = self.holding
        hidden = holding.mentions[kind]
        visible_rows = [
            row for row in rows if row.id not in hidden and row.chunk not in holding.later_chunks
        ]
        for row in visible_rows:
            description = holding.visible_description(row.chunk, row.mention.description)
            if description != row.mention.description:
                row.mention = replace(row.mention, description=description)
        return visible_rows

    def _as_of(self, row: int, chunk: Chunk) -> Chunk:
        text = self.holding.visible_text(row, chunk.text)
        return chunk if text == chunk.text else replace(chunk, text=text, tokens=0)


def as_held(view: AnyView, holding: Holding) -> AnyView:
    """A view of the same index as of a moment; later documents are left to the filter of chunks."""
    return cast("AnyView", HeldView(view, holding))


# ── what did not hold ───────────────────────────────────────────────────────────


def find_holding(view: StoreView, moment: str, index: ClaimIndex) -> Holding:
    """The out-of-date part of a view at a moment."""
    documents = view.chunk_documents()
    by_hand = set(view.edited_chunks())
    last = last_day(moment)
    later = frozenset(
        [
            row
            for row, (_, date) in documents.items()
            if date and row not in by_hand and first_day(date) > last
        ]
    )
    hidden: dict[Kind, dict[int, int]] = {"entity": {}, "relation": {}}  # chunks by mention
    for kind, chunks_by_mention in hidden.items():
        for row in view.dated_mentions(kind):
            if not may_hold(row.valid_from, row.valid_to, moment):
                chunks_by_mention[row.id] = row.chunk
    superseded = {
        (claim.mention_kind, claim.mention): claim.chunk
        for claim in superseded_claims(index, later, hidden)
    }
    for (kind, mention), chunk in superseded.items():
        hidden[kind][mention] = chunk
    chunks = {
        chunk for chunks_by_mention in hidden.values() for chunk in chunks_by_mention.values()
    }
    entities = view.entity_mentions(chunks=chunks - later)
    relations = view.relation_mentions(chunks=chunks - later)
    hidden["entity"] |= _lone_ends(entities, relations, hidden["relation"])
    holding = Holding(
        later_chunks=later,
        mentions={},
        doubtful_relations=frozenset(),
        statements=_recorded_statements(entities, relations, hidden, moment),
    )
    hidden["entity"] |= _emptied(entities, holding)
    hidden["relation"] |= _emptied(relations, holding)
    return _with_hidden_mentions(holding, entities, relations, hidden)


def _with_hidden_mentions(
    holding: Holding,
    entities: Sequence[EntityMentionRow],
    relations: Sequence[RelationMentionRow],
    hidden: Mapping[Kind, Mapping[int, int]],
) -> Holding:
    """The out-of-date part with the hidden mentions and their consequences for the graph."""
    nameless = _nameless(entities, relations, hidden)
    hidden_entities = frozenset(hidden["entity"].keys() - nameless)
    hidden_relations = frozenset(hidden["relation"])
    owners = [row.owner for row in relations if row.id in hidden_relations]
    return structs.replace(
        holding,
        mentions={"entity": hidden_entities, "relation": hidden_relations},
        doubtful_relations=frozenset([owner for owner in owners if owner is not None]),
        nameless=nameless,
        hidden_pairs=_hidden_pairs(entities, hidden_entities),
    )


def _emptied(rows: Sequence[StoredMention], holding: Holding) -> dict[int, int]:
    """The mentions, with chunks, without words of a valid statement about all their names."""
    return {
        row.id: row.chunk
        for row in rows
        if row.mention.description
        and _is_emptied(
            row.mention, holding.visible_description(row.chunk, row.mention.description)
        )
    }


def _is_emptied(mention: EntityMention | RelationMention, visible_description: str) -> bool:
    """Whether all words, or a name, of a description are out of date."""
    if isinstance(mention, RelationMention):
        names: Sequence[str] = (mention.source, mention.target)
    elif mention.attributes:
        return False
    else:
        names = (mention.name,)
    return not visible_description or any(
        name in mention.description and name not in visible_description for name in names
    )


def superseded_claims(
    index: ClaimIndex, later: Collection[int], hidden: Mapping[Kind, Mapping[int, int]]
) -> Iterator[Claim]:
    """The claims replaced by a later claim of a functional kind; without `later` chunks and `hidden`
    mentions.
    """
    for group in index.functional_groups():
        claims = [
            claim
            for claim in group
            if claim.begin
            and claim.chunk not in later
            and claim.mention not in hidden[claim.mention_kind]
        ]
        latest = max(claims, key=lambda claim: first_day(claim.begin), default=None)
        for claim in claims:
            if latest is not None and _takes_place_of(latest, claim):
                yield claim


def _takes_place_of(latest: Claim, claim: Claim) -> bool:
    """Whether the latest claim has a different value from a later date on, without an explicit end
    of the earlier claim to the contrary.
    """
    if is_same_value(latest.value, claim.value):
        return False
    if last_day(claim.begin) >= first_day(latest.begin):
        return False
    return not claim.valid_to or first_day(claim.valid_to) <= last_day(latest.begin)


def _recorded_statements(
    entities: Sequence[EntityMentionRow],
    relations: Sequence[RelationMentionRow],
    hidden: Mapping[Kind, Mapping[int, int]],
    moment: str,
) -> dict[int, list[RecordedStatement]]:
    """The statements of hidden mentions, and of mentions that held by their dates, by chunk."""
    statements: defaultdict[int, list[RecordedStatement]] = defaultdict(list)
    rows: list[EntityMentionRow | RelationMentionRow] = [*entities, *relations]
    for row in rows:
        mention = row.mention
        if isinstance(mention, RelationMention):
            holds = row.id not in hidden["relation"]
            names: tuple[str, ...] = (mention.source, mention.target)
        else:
            holds = row.id not in hidden["entity"]
            names = (mention.name, *[value for _, value in mention.attributes])
        is_dated = mention.valid_from or mention.valid_to
        states_something = mention.description or len(names) > 1
        if states_something and (is_dated or not holds):
            statement = RecordedStatement(names=names, description=mention.description, holds=holds)
            statements[row.chunk].append(statement)
    return dict(statements)


def _lone_ends(
    entities: Sequence[EntityMentionRow],
    relations: Sequence[RelationMentionRow],
    hidden_relations: Collection[int],
) -> dict[int, int]:
    """The mentions of entities, with chunks, that are only ends of relations out of date."""
    ends: dict[bool, set[tuple[int, str]]] = {
        True: set(),
        False: set(),
    }  # of hidden relations or others
    for relation_row in relations:
        is_hidden = relation_row.id in hidden_relations
        for name in (relation_row.mention.source, relation_row.mention.target):
            ends[is_hidden].add((relation_row.chunk, name_key(name)))
    lone_ends = ends[True] - ends[False]
    return {
        entity_row.id: entity_row.chunk
        for entity_row in entities
        if not (entity_row.mention.description or entity_row.mention.attributes)
        and (entity_row.chunk, name_key(entity_row.mention.name)) in lone_ends
    }


def _nameless(
    entities: Sequence[EntityMentionRow],
    relations: Sequence[RelationMentionRow],
    hidden: Mapping[Kind, Mapping[int, int]],
) -> frozenset[int]:
    """The hidden mentions of entities at the ends of valid relations in the same chunk."""
    ends: set[tuple[int, str]] = set()
    for relation_row in relations:
        if relation_row.id not in hidden["relation"]:
            for name in (relation_row.mention.source, relation_row.mention.target):
                ends.add((relation_row.chunk, name_key(name)))
    named: set[tuple[int, str]] = set()
    for entity_row in entities:
        if entity_row.id not in hidden["entity"]:
            named.add((entity_row.chunk, name_key(entity_row.mention.name)))
    return frozenset(
        [
            entity_row.id
            for entity_row in entities
            if entity_row.id in hidden["entity"]
            and (entity_row.chunk, name_key(entity_row.mention.name)) in ends - named
        ]
    )


def _hidden_pairs(entities: Sequence[EntityMentionRow], hidden: Collection[int]) -> Ids:
    """The entities and chunks without a valid mention, as pairs of row ids, shape (n, 2)."""
    visible: set[tuple[int, int]] = set()
    pairs: set[tuple[int, int]] = set()
    for row in entities:
        if row.owner is not None:
            (pairs if row.id in hidden else visible).add((row.owner, row.chunk))
    return np.array(sorted(pairs - visible), np.int64).reshape(-1, 2)
