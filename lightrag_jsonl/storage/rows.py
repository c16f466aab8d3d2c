"""The values that a store keeps: documents, chunks, mentions, and the rows merged from these.

Row ids are positive integers, unique for each kind; ids and names that users see are texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lightrag_jsonl.core.types import (
    Chunk,
    ChunkState,
    Document,
    DocumentState,
    EntityMention,
    Extraction,
    ExtractionReport,
    Record,
    RelationMention,
)


@dataclass(frozen=True, slots=True)
class PendingDocument:
    """A document that was inserted and is not visible yet.

    `records` and `chunks` are those the caller provided. `chunk_size` is the (size, overlap) in
    tokens of the chunks that the records refer to.
    """

    document: Document
    created_at: float
    records: tuple[Record, ...] | None = None
    chunks: tuple[str, ...] | None = None
    chunk_size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A visible document; `row` is its row id, `content` the digest of its content."""

    row: int
    id: str
    title: str | None
    source: str | None
    date: str | None
    metadata: Mapping[str, object]
    content: str
    state: DocumentState
    characters: int
    created_at: float


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk to be stored, with how its extraction went (its mentions are stored separately)."""

    row: int
    document: int
    chunk: Chunk
    created_at: float
    extraction: Extraction


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """How the extraction of one stored chunk went; `error` is empty if it was read to its end."""

    row: int
    chunk_id: str
    document_id: str
    tokens: int
    state: ChunkState
    error: str
    report: ExtractionReport

    @property
    def unfinished(self) -> bool:
        """Whether a retry has something to do."""
        return self.state == "failed" or bool(self.error)


@dataclass(slots=True)
class EntityMentionRow:
    """A stored entity mention; `position` orders the mentions by document, chunk and text."""

    id: int
    entity: int
    chunk: int
    position: int
    mention: EntityMention


@dataclass(slots=True)
class RelationMentionRow:
    """A stored relation mention.

    `relation` is None where both ends are one entity since a merge of names: such a mention counts
    for nothing until the merge is undone. `forward` says that it leads from `low` to `high`.
    """

    id: int
    relation: int | None
    chunk: int
    position: int
    mention: RelationMention
    forward: bool


@dataclass(slots=True)
class EntityRow:
    """One entity. `names`, `types` and `attributes` are votes, counted over its mentions.

    `summary`, if there is one, was written from the mentions up to row id `summarized_to`, which
    were `summarized_mentions`.
    """

    id: int
    key: str
    names: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    mentions: int = 0
    description: str = ""
    summary: str | None = None
    summarized_to: int = 0
    summarized_mentions: int = 0
    created_at: float = 0.0
    name: str = ""
    type: str = ""


@dataclass(slots=True)
class RelationRow:
    """One pair of entities (`low` < `high`, row ids); `weight` is in millionths.

    `low_names` and `high_names` count the spellings of its ends in its own mentions. `forward`
    counts the mentions that lead from low to high, `backward` the others. The summary is as in
    `EntityRow`.
    """

    id: int
    low: int
    high: int
    keywords: dict[str, int] = field(default_factory=dict)
    low_names: dict[str, int] = field(default_factory=dict)
    high_names: dict[str, int] = field(default_factory=dict)
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


@dataclass(slots=True)
class NextIds:
    """The next free row id of each kind; valid while this is the only writer."""

    documents: int = 1
    chunks: int = 1
    entities: int = 1
    relations: int = 1
    entity_mentions: int = 1
    relation_mentions: int = 1


@dataclass(frozen=True, slots=True)
class Aliases:
    """The merges of names.

    `links` maps a name key to the one it was merged into, which may be merged itself. `displays`
    maps keys to the names that were chosen for display.
    """

    links: Mapping[str, str] = field(default_factory=dict)
    displays: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of visible documents by state (waiting ones as "pending"), and of the rest."""

    documents: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    entities: int = 0
    relations: int = 0
