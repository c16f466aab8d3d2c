"""The values that the steps of indexing pass on: what they work with, and a change of the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from lightrag_jsonl.core.options import IndexOptions
from lightrag_jsonl.core.protocols import Extractor, Tokenizer, Vectors
from lightrag_jsonl.core.types import Chunk, Extraction, Kind, Page
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.storage.rows import (
    Aliases,
    EntityMentionRow,
    EntityRow,
    RelationMentionRow,
    RelationRow,
    StoredChunk,
    StoredDocument,
)
from lightrag_jsonl.storage.store import Store

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.embedding import PassageEmbedder

GraphRow: TypeAlias = EntityRow | RelationRow
GraphKey: TypeAlias = tuple[Kind, int]  # a kind and a row id
Stage: TypeAlias = Literal["merging", "summarizing", "embedding", "writing"]
StepCallback: TypeAlias = Callable[[Stage, int, int], None]  # stage, items done, items known

LANGUAGE_NAMES = {"en": "English", "zh": "中文"}
GRAPH_KINDS: tuple[Kind, ...] = ("entity", "relation")


@dataclass(frozen=True, slots=True)
class IndexParts:
    """What the steps work with. `settings` returns what the index is built with, to be recorded."""

    store: Store
    client: ModelClient
    extractor: Extractor
    embedder: PassageEmbedder
    tokenizer: Tokenizer
    options: IndexOptions
    language: str
    settings: Callable[[], Mapping[str, str]]
    record_schema: Schema | None


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """A document with its extractions, waiting to become visible.

    On a retry, `rows` holds the row ids of the chunks that were asked about again. Otherwise it is
    empty, and the document has no row id yet.
    """

    document: StoredDocument
    pages: tuple[Page, ...]
    chunks: tuple[Chunk, ...]
    extractions: tuple[Extraction, ...]
    rows: tuple[int, ...] = ()


@dataclass(slots=True)
class GraphChange:
    """What added and removed mentions do to the graph.

    - `entities`, `relations`: all touched rows by row id.
    - `entity_mentions`, `relation_mentions`: the mentions to store.
    - `without`: chunks whose stored mentions no longer count for the touched rows.
    - `descriptions`: those in the added mentions, as (position, text). `last_mentions`: the last
      row id of these.
    """

    entities: dict[int, EntityRow] = field(default_factory=dict)
    relations: dict[int, RelationRow] = field(default_factory=dict)
    entity_mentions: list[EntityMentionRow] = field(default_factory=list)
    relation_mentions: list[RelationMentionRow] = field(default_factory=list)
    without: set[int] = field(default_factory=set)
    descriptions: dict[GraphKey, list[tuple[int, str]]] = field(default_factory=dict)
    last_mentions: dict[GraphKey, int] = field(default_factory=dict)

    def rows(self, kind: Kind) -> Mapping[int, GraphRow]:
        """The touched rows of a kind that have mentions left."""
        rows: Mapping[int, GraphRow] = self.entities if kind == "entity" else self.relations
        return {id: row for id, row in rows.items() if row.mentions}

    def gone(self, kind: Kind) -> list[int]:
        """The touched rows of a kind that lost their last mention."""
        rows: Mapping[int, GraphRow] = self.entities if kind == "entity" else self.relations
        return [id for id, row in rows.items() if not row.mentions]


@dataclass(slots=True)
class IndexChange:
    """Everything that one transaction writes.

    - `chunks` are new; of those `read_again` the extraction was repeated. `chunk_texts` are the
      texts of chunks that need a vector, by row id.
    - `old_documents` (row ids) are replaced or deleted, with `old_chunks`.
    - `states`: documents whose state follows from their chunks. `pending`: documents that wait no
      longer.
    - `vectors` are new, by row id, with the digests of their texts; `cached_vectors` are digests of
      kept vectors that are used now.
    """

    graph: GraphChange = field(default_factory=GraphChange)
    documents: list[tuple[StoredDocument, tuple[Page, ...]]] = field(default_factory=list)
    chunks: list[StoredChunk] = field(default_factory=list)
    read_again: list[StoredChunk] = field(default_factory=list)
    chunk_texts: dict[int, str] = field(default_factory=dict)
    old_documents: list[int] = field(default_factory=list)
    old_chunks: list[int] = field(default_factory=list)
    states: set[int] = field(default_factory=set)
    pending: list[str] = field(default_factory=list)
    aliases: Aliases | None = None
    vectors: dict[Kind, dict[int, tuple[bytes, Vectors]]] = field(default_factory=dict)
    cached_vectors: list[bytes] = field(default_factory=list)
    rebuilt: bool = False


def winner(votes: Mapping[str, int]) -> str:
    """The choice with the most votes; ties go to the one that sorts first; "" if there is none."""
    if len(votes) == 1:  # nearly always
        return next(iter(votes))
    return min(votes, key=lambda choice: (-votes[choice], choice), default="")
