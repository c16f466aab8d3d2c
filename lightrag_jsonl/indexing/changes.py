"""The values that the steps of indexing pass on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Chunk, Extraction, Kind, Page
from lightrag_jsonl.storage import rows as r

GraphRow: TypeAlias = r.EntityRow | r.RelationRow
GraphKey: TypeAlias = tuple[Kind, int]  # a kind and a row id
StepCallback: TypeAlias = Callable[[int, int], None]  # items done, items known

GRAPH_KINDS: tuple[Kind, ...] = ("entity", "relation")


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """A document with its extractions, waiting to become visible.

    On a retry, `rows` holds the row ids of the chunks that were asked about again. Otherwise it is
    empty, and the document has no row id yet.
    """

    document: r.StoredDocument
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

    entities: dict[int, r.EntityRow] = field(default_factory=dict)
    relations: dict[int, r.RelationRow] = field(default_factory=dict)
    entity_mentions: list[r.EntityMentionRow] = field(default_factory=list)
    relation_mentions: list[r.RelationMentionRow] = field(default_factory=list)
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

    - `chunks` are new; of those `read_again` the extraction was repeated. `chunk_texts` are the
      texts of chunks that need a vector, by row id.
    - `old_documents` (row ids) are replaced or deleted, with `old_chunks`.
    - `states`: documents whose state follows from their chunks. `pending`: documents that wait no
      longer.
    - `vectors` are new, by row id, with the digests of their texts; `cached_vectors` are digests of
      kept vectors that are used now.
    """

    graph: GraphChange = field(default_factory=GraphChange)
    documents: list[tuple[r.StoredDocument, tuple[Page, ...]]] = field(default_factory=list)
    chunks: list[r.StoredChunk] = field(default_factory=list)
    read_again: list[r.StoredChunk] = field(default_factory=list)
    chunk_texts: dict[int, str] = field(default_factory=dict)
    old_documents: list[int] = field(default_factory=list)
    old_chunks: list[int] = field(default_factory=list)
    states: set[int] = field(default_factory=set)
    pending: list[str] = field(default_factory=list)
    aliases: r.Aliases | None = None
    vectors: dict[Kind, dict[int, tuple[bytes, Vectors]]] = field(default_factory=dict)
    cached_vectors: list[bytes] = field(default_factory=list)
    rebuilt: bool = False


def winner(votes: Mapping[str, int]) -> str:
    """The choice with the most votes; ties go to the one that sorts first; "" if there is none."""
    if len(votes) == 1:  # nearly always
        return next(iter(votes))
    return min(votes, key=lambda choice: (-votes[choice], choice), default="")
