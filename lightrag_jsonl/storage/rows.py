"""The values of a store: documents, chunks, mentions, and the merged rows.

Row ids are positive integers, unique for each kind; ids and names for users are texts.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.languages import STATING_NOTHING
from lightrag_jsonl.core.pictures import SeenPicture
from lightrag_jsonl.text.dates import first_day, iso_date
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import digest

RowIds: TypeAlias = Collection[int] | None  # None: of all rows
Names: TypeAlias = Collection[str] | None  # ids or keys; None: all
Mention = TypeVar("Mention", t.EntityMention, t.RelationMention)

MILLION = 1_000_000  # weights are summed as integers, so that subtracting is exact

# A mention's position, from the highest bits to the lowest: the day of the document, one more than the
# last day if there is none; the document, by a digest of the id; the chunk; the mention in the chunk.
DAY_SHIFT = 13  # room for the documents of one day
CHUNK_BITS = 18  # room for the index of a chunk in its document
POSITION_BITS = 10  # room for 1,023 mentions of a kind in one chunk; more share the last position
NO_DAY = date.max.toordinal() + 1


@dataclass(frozen=True, slots=True)
class PendingDocument:
    """A document that was inserted and is not visible yet, with the records and chunks that the
    caller provided; `chunk_size` is the (size, overlap) in tokens of the chunks in the records,
    `seen_pictures` the places of texts that a model has read on pictures.

    `row` is that of the waiting document, or of the waiting file that the document was read from;
    None if it does not wait yet. `job` names the job of a server that brought it. A waiting file
    (`is_file`) is not read yet: its `document` has no text, but what was given with the file.
    """

    document: t.Document
    created_at: float
    records: tuple[t.Record, ...] | None = None
    chunks: tuple[str, ...] | None = None
    chunk_size: tuple[int, int] | None = None
    seen_pictures: tuple[SeenPicture, ...] = ()
    row: int | None = field(default=None, compare=False)
    job: str | None = None
    is_file: bool = False

    @property
    def name(self) -> str:
        """The id of the document; of a file, which may hold several documents, that of its job."""
        return f"upload-{self.job}" if self.is_file else self.document.id or ""


class StoredJob(Struct, frozen=True, kw_only=True):
    """A job of a server: its state, the bytes that were sent for it, and all of it in JSON."""

    id: str
    state: str
    size: int
    record: str


class DocumentLabel(NamedTuple):
    """What people search a document by."""

    id: str
    title: str | None
    source: str | None
    state: str


class StoredDocument(Struct, frozen=True):
    """A visible document; `row` is the row id, `content` the digest of the content, `index` the place of the
    index if several are asked as one.
    """

    row: int
    id: str
    title: str | None
    source: str | None
    date: str | None
    metadata: Mapping[str, object]
    content: str
    state: t.DocumentState
    characters: int
    created_at: float
    seen_pictures: tuple[SeenPicture, ...] = ()
    index: str = ""


class StoredChunk(NamedTuple):
    """A chunk to be stored, with the result of the extraction; mentions are stored separately."""

    row: int
    document: int
    chunk: t.Chunk
    created_at: float
    extraction: t.Extraction


class ChunkReport(Struct, frozen=True):
    """The result of the extraction of a stored chunk; `error` is empty if the text was read to the end."""

    row: int
    chunk_id: str
    document_id: str
    tokens: int
    state: t.ChunkState
    error: str
    report: t.ExtractionReport
    extractor: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether a retry has something to do."""
        return self.state == "failed" or bool(self.error)


class MentionRow(Struct, Generic[Mention]):
    """A stored mention; `position` orders the mentions by document, chunk and text.

    `owner` is the row id of the entity or relation. It is None after a person deleted the row or an
    end, or merged the names of both ends: the mention then counts for nothing until the change is
    undone. `forward` says that a relation leads from the low to the high end. `written` holds the name, or
    the two ends, as the text has them, if the mention has the names of the bearers instead.
    """

    id: int
    owner: int | None
    chunk: int
    position: int
    mention: Mention
    forward: bool = True
    written: tuple[str, ...] = ()


class DatedMention(Struct, frozen=True, kw_only=True):
    """The dates of a stored mention's time, by the words of the text."""

    id: int
    owner: int | None
    chunk: int
    description: str
    valid_from: str
    valid_to: str


def document_position(document_id: str, written: str | None) -> int:
    """The position of the first chunk of a document; the next chunks follow one by one.

    Documents are ordered, whenever they are inserted, by the first day of their date, then by their id;
    those without a date come last.
    """
    number = int(digest(document_id)[:8], 16)
    iso = iso_date(written or "")
    if iso:
        place = (first_day(iso) << DAY_SHIFT) + (number >> (32 - DAY_SHIFT))
    else:
        place = (NO_DAY << DAY_SHIFT) + number
    return place << CHUNK_BITS


def reading_order(position: int, chunk: int) -> tuple[int, int, int]:
    """A key to show mentions in the order of dates and, within a day or without a date, in the order
    in which the documents came: row ids of chunks grow.

    Only for reading: the graph must not depend on the order in which documents come.
    """
    day = min(position >> (DAY_SHIFT + CHUNK_BITS + POSITION_BITS), NO_DAY)
    return day, chunk, position


EntityMentionRow: TypeAlias = MentionRow[t.EntityMention]
RelationMentionRow: TypeAlias = MentionRow[t.RelationMention]


class EntityRow(Struct):
    """One entity. `names`, `types`, `attributes` (values by name) and `aliases` are votes, counted over
    the `mentions` of the entity, of which `quoted` only quote their chunks.

    `summary`, if any, was written from the mentions up to row id `summarized_to`, which were
    `summarized_mentions`. `edited` holds the `type` and `description` that a person gave.
    """

    id: int
    key: str
    names: dict[str, int] = msgspec.field(default_factory=dict)
    types: dict[str, int] = msgspec.field(default_factory=dict)
    attributes: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    aliases: dict[str, int] = msgspec.field(default_factory=dict)
    mentions: int = 0
    quoted: int = 0
    description: str = ""
    summary: str | None = None
    summarized_to: int = 0
    summarized_mentions: int = 0
    created_at: float = 0.0
    name: str = ""
    type: str = ""
    edited: dict[str, Any] = msgspec.field(default_factory=dict)

    def count(self, row: EntityMentionRow, times: int) -> None:
        """Add a mention (`times` 1) or remove it (-1)."""
        mention = row.mention
        _count(self, row.id, times)
        _vote(self.names, mention.name, times)
        _vote(self.types, mention.type, times)
        self.quoted += times * mention.quoted
        for name, value in mention.attributes:
            values = self.attributes.setdefault(name, {})
            _vote(values, value, times)
            if not values:
                del self.attributes[name]
        for alias in mention.aliases:
            _vote(self.aliases, alias, times)

    def decide(self, display: str = "") -> None:
        """Choose name and type by the votes, unless a person gave them."""
        types = {type: votes for type, votes in self.types.items() if type != t.UNKNOWN_TYPE}
        self.name = display or winner(self.names)
        self.type = self.edited.get("type") or winner(types) or t.UNKNOWN_TYPE

    @property
    def states_something(self) -> bool:
        """Whether the description is more than sentences of the chunks, which have vectors of their own."""
        return self.mentions > self.quoted or self.summary is not None or bool(self.edited)

    def entity(self, chunk_ids: tuple[str, ...]) -> t.Entity:
        """The entity for readers; degree not set. Also called is what is stated, and what was merged by hand."""
        own_keys = (self.key, name_key(self.name))
        names = {*self.aliases, *self.names}
        attributes = [(name, value) for name, values in self.attributes.items() for value in values]
        return t.Entity(
            name=self.name,
            type=self.type,
            description=self.description,
            chunk_ids=chunk_ids,
            created_at=datetime.fromtimestamp(self.created_at, UTC),
            attributes=tuple(sorted(attributes)),
            aliases=tuple(sorted(name for name in names if name_key(name) not in own_keys)),
        )


class RelationRow(Struct):
    """One pair of entities (`low` < `high`, row ids); `weight` is in millionths.

    `forward` counts the mentions from low to high, `backward` from high to low; `keywords` and
    `backward_keywords` are their votes. `low_names` and `high_names` count the spellings of
    the ends. The summary is as in `EntityRow`. `edited` holds the `keywords`, `description` and
    `weight` that a person gave.
    """

    id: int
    low: int
    high: int
    keywords: dict[str, int] = msgspec.field(default_factory=dict)
    backward_keywords: dict[str, int] = msgspec.field(default_factory=dict)
    low_names: dict[str, int] = msgspec.field(default_factory=dict)
    high_names: dict[str, int] = msgspec.field(default_factory=dict)
    forward: int = 0
    backward: int = 0
    weight: int = 0
    mentions: int = 0
    description: str = ""
    summary: str | None = None
    summarized_to: int = 0
    summarized_mentions: int = 0
    created_at: float = 0.0
    reversed: bool = False
    edited: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def ranked_keywords(self) -> list[str]:
        """The keywords that a person gave, or else of both directions, the most frequent first."""
        if "keywords" in self.edited:
            return list(self.edited["keywords"])
        votes = dict(self.keywords)
        for keyword, count in self.backward_keywords.items():
            votes[keyword] = votes.get(keyword, 0) + count
        votes = _stating_votes(votes) or votes
        return sorted(votes, key=lambda keyword: (-votes[keyword], keyword))

    @property
    def states_something(self) -> bool:
        """Whether the names are more than mentioned together: texts or a person state a relation."""
        votes = {**self.keywords, **self.backward_keywords}
        return not votes or bool(_stating_votes(votes) or self.edited)

    def count(self, row: RelationMentionRow, times: int) -> None:
        """Add a mention (`times` 1) or remove it (-1)."""
        mention = row.mention
        _count(self, row.id, times)
        self.weight += times * round(mention.strength * MILLION)
        if row.forward:
            self.forward += times
            keywords = self.keywords
            low_name = mention.source
            high_name = mention.target
        else:
            self.backward += times
            keywords = self.backward_keywords
            low_name = mention.target
            high_name = mention.source
        for keyword in mention.keywords:
            _vote(keywords, keyword, times)
        _vote(self.low_names, low_name, times)
        _vote(self.high_names, high_name, times)

    def decide(self) -> None:
        """Choose the direction by the votes; ties go to the end whose name sorts first.

        A direction in which names are only mentioned together yields to one with a statement.
        """
        are_together = not STATING_NOTHING.isdisjoint([*self.keywords, *self.backward_keywords])
        is_stated_back = bool(_stating_votes(self.backward_keywords))
        if are_together and bool(_stating_votes(self.keywords)) != is_stated_back:
            self.reversed = is_stated_back
        elif self.forward == self.backward:
            self.reversed = winner(self.high_names) < winner(self.low_names)
        else:
            self.reversed = self.forward < self.backward

    def relation(self, names: Mapping[int, str], chunk_ids: tuple[str, ...]) -> t.Relation:
        """The relation for readers, given the names of its ends."""
        source, target = (self.high, self.low) if self.reversed else (self.low, self.high)
        keywords, reverse_keywords = self.directed_keywords
        return t.Relation(
            source=names[source],
            target=names[target],
            keywords=keywords,
            description=self.description,
            weight=self.edited.get("weight", self.weight) / MILLION,
            chunk_ids=chunk_ids,
            created_at=datetime.fromtimestamp(self.created_at, UTC),
            reverse_keywords=reverse_keywords,
        )

    @property
    def directed_keywords(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The keywords from source to target, and the keywords that only lead back; keywords that a
        person gave lead to the target.
        """
        if "keywords" in self.edited:
            return tuple(sorted(self.edited["keywords"])), ()
        leading = self.backward_keywords if self.reversed else self.keywords
        reverse = self.keywords if self.reversed else self.backward_keywords
        leading = _stating_votes(leading) or leading
        reverse = _stating_votes(reverse)
        return tuple(sorted(leading)), tuple(sorted(reverse.keys() - leading.keys()))


GraphRow: TypeAlias = EntityRow | RelationRow


def _stating_votes(votes: Mapping[str, int]) -> dict[str, int]:
    """The keywords with a statement, and their votes."""
    return {word: count for word, count in votes.items() if word not in STATING_NOTHING}


def winner(votes: Mapping[str, int]) -> str:
    """The choice with the most votes; ties go to the first in order; "" without votes."""
    if len(votes) == 1:  # most often
        return next(iter(votes))
    return min(votes, key=lambda choice: (-votes[choice], choice), default="")


def _vote(votes: dict[str, int], choice: str, times: int) -> None:
    if count := votes.get(choice, 0) + times:
        votes[choice] = count
    else:
        del votes[choice]


def _count(row: GraphRow, mention: int, times: int) -> None:
    """Count a mention; a summary that was written from a removed mention goes, too."""
    row.mentions += times
    if times < 0 and mention <= row.summarized_to:
        row.summary = None
        row.summarized_to = 0
        row.summarized_mentions = 0


def stored_at(chunk: t.Chunk) -> float:
    """When a chunk was stored, in seconds, exact to the microsecond."""
    return round(chunk.created_at.timestamp(), 6) if chunk.created_at else 0.0


class NextIds(Struct):
    """The next free row id of each kind; valid while this is the only writer."""

    documents: int = 1
    chunks: int = 1
    entities: int = 1
    relations: int = 1
    entity_mentions: int = 1
    relation_mentions: int = 1


class Aliases(Struct, frozen=True):
    """The merges of names: `links` maps a name key to the key of the target, which may be merged,
    too; `displays` maps keys to the names chosen for display. Names with keys in `apart` are entities of
    their own, no short forms of longer names in documents.
    """

    links: Mapping[str, str] = msgspec.field(default_factory=dict)
    displays: Mapping[str, str] = msgspec.field(default_factory=dict)
    apart: Set[str] = frozenset()

    @property
    def targets(self) -> dict[str, str]:
        """For each merged key, the key at the end of its links."""
        targets: dict[str, str] = {}
        for key in self.links:
            target = key
            while target in self.links:
                target = self.links[target]
            targets[key] = target
        return targets


class Override(Struct, frozen=True):
    """The values that a person set for an entity or a relation, in the edit with one chunk.

    `names` is the name of the entity, or the names of the relation's source and target. An edit
    `changes` the `type`, `description`, `keywords` or `weight` (in millionths). `at` is the time in
    seconds.
    """

    chunk_id: str
    action: t.EditAction
    names: tuple[str, ...]
    changes: Mapping[str, Any]
    by: str
    at: float
    reason: str = ""


class Counts(Struct, frozen=True):
    """The numbers of visible documents by state (waiting ones as "pending"), and of the rest."""

    documents: Mapping[str, int] = msgspec.field(default_factory=dict)
    chunks: int = 0
    entities: int = 0
    relations: int = 0


def purge_marks(id: str, pages: Iterable[t.Page]) -> set[str]:
    """What a purged document leaves: digests of its id and of its text, no text."""
    return {digest(f"id {id}"), text_mark(pages)}


def text_mark(pages: Iterable[t.Page]) -> str:
    """What the text of a purged document leaves, whatever else is stored with it."""
    return digest("text", *[page.text for page in pages])
