"""What texts say: the claims of chunks, and the entities and relations merged from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from lightrag_jsonl.types.model import Rejection
from lightrag_jsonl.usage import Usage

Kind: TypeAlias = Literal["entity", "relation", "chunk"]
ChunkState: TypeAlias = Literal["ok", "empty", "partial", "failed"]

UNKNOWN_TYPE = "unknown"  # the type of an entity that no mention gives one


@dataclass(frozen=True, slots=True)
class EntityMention:
    """What one chunk says about one entity.

    `grounded` says whether the name occurs in the chunk's text; `attributes` are (name, value)
    pairs.
    """

    name: str
    type: str
    description: str
    grounded: bool = True
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RelationMention:
    """What one chunk says about how two entities are related; `strength` is between 1 and 10."""

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything that was read from one chunk, and how the model got there.

    `records` counts the records read, `truncated` the answers that were cut off and `resumed` the
    times the model was asked to go on with one. `gleaned` holds, for each gleaning round, how many
    new names and pairs it brought. `error` says why the chunk, or the rest of it, could not be
    read.
    """

    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    keywords: tuple[str, ...] = ()
    state: ChunkState = "ok"
    records: int = 0
    rejections: tuple[Rejection, ...] = ()
    truncated: int = 0
    resumed: int = 0
    gleaned: tuple[int, ...] = ()
    usage: Usage = Usage()
    error: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether a retry has something to do: the whole chunk failed, or an error came before its
        end.
        """
        return self.state == "failed" or bool(self.error)


@dataclass(frozen=True, slots=True)
class Entity:
    """All mentions of one name, merged; `degree` is the number of its relations.

    `created_at` is when it was first stored. `score` and `why` are set in search results only.
    """

    name: str
    type: str
    description: str
    chunk_ids: tuple[str, ...] = ()
    degree: int = 0
    created_at: datetime | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    score: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """All mentions of one pair of entities, merged; `weight` is the sum of their strengths.

    `created_at` is when it was first stored. `score` and `why` are set in search results only.
    """

    source: str
    target: str
    keywords: tuple[str, ...]
    description: str
    weight: float = 1.0
    chunk_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    score: float = 0.0
    why: str = ""

    @property
    def predicate(self) -> str:
        """The relation's keywords joined, or "related to" (specification 2, section 4)."""
        return ", ".join(self.keywords) or "related to"
