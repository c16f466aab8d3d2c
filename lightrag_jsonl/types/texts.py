"""What is indexed: documents, their pages and their chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lightrag_jsonl.kinds import check_fields


@dataclass(frozen=True, slots=True)
class Document:
    """A text to index.

    Without an `id` the document is known by a digest of its content. `pages` are the texts of its
    pages; without them, form feeds in `text` separate the pages. `metadata` is plain JSON;
    `QueryParam.where` filters by it, and by `title`, `source` and `date`. `ConfigError` names a
    field whose value has the wrong type.
    """

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    date: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document; `number` counts from 1."""

    document_id: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a page: `page.text[start:end] == text`, in characters.

    `index` numbers the chunks of a document from 0; `tokens` is the chunk's length by the index's
    tokenizer. `created_at` is when it was stored. `score` and `why` are set in search results only.
    """

    id: str
    document_id: str
    index: int
    page: int
    start: int
    end: int
    text: str
    tokens: int = 0
    created_at: datetime | None = None
    score: float = 0.0
    why: str = ""
