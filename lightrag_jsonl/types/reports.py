"""What operations did, and what an index holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from lightrag_jsonl.types.answers import Mode
from lightrag_jsonl.types.model import Json
from lightrag_jsonl.usage import Usage

DocumentState: TypeAlias = Literal["pending", "done", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk that could not be read to its end, and why; with `chunk_id` None, a whole document."""

    document_id: str
    chunk_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """How extraction went, added up over many chunks, to judge a model by.

    `ok`, `empty`, `partial` and `failed` count chunks by their state. `rejections` counts refused
    lines by reason, `repaired` the records that were mended, `ungrounded` the entity mentions whose
    name does not occur in their chunk. The other fields are those of `Extraction`, added up.
    """

    ok: int = 0
    empty: int = 0
    partial: int = 0
    failed: int = 0
    records: int = 0
    rejections: Mapping[str, int] = field(default_factory=dict)
    repaired: int = 0
    ungrounded: int = 0
    truncated: int = 0
    resumed: int = 0
    gleaned: tuple[int, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class InsertReport:
    """What an insert did; `entities` and `relations` count those that were created or changed.

    `documents` lists the ids of documents that became visible, `unchanged` those that were in the
    index already. `stopped` is empty, or says why the insert ended early: a limit was reached, or
    the model's server refused every call.
    """

    documents: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    failures: tuple[Failure, ...] = ()
    usage: Usage = Usage()
    extraction: ExtractionReport = ExtractionReport()
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What a deletion removed: the ids of its documents, and the number of chunks, entities and
    relations.
    """

    documents: tuple[str, ...] = ()
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """One document of the index and how its extraction went; `created_at` is when it was inserted."""

    id: str
    title: str | None
    source: str | None
    date: str | None
    state: DocumentState
    chunks: int
    characters: int
    created_at: datetime
    extraction: ExtractionReport = ExtractionReport()
    failures: tuple[Failure, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """The index as a whole; `documents` maps states to counts, `dim` is the length of its vectors."""

    working_dir: str
    documents: Mapping[str, int]
    chunks: int
    entities: int
    relations: int
    language: str
    llm: str
    embedder: str
    dim: int
    tokenizer: str
    format: int
    bytes_on_disk: int
    extraction: ExtractionReport = ExtractionReport()


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One query on record; `started_at` in seconds since 1970."""

    id: str
    status: Literal["complete", "failed", "incomplete"]
    mode: Mode
    question: str
    started_at: float
