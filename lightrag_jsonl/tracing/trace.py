"""A trace: how one answer came about, assembled from the events of its query; and its sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import Any

from msgspec.structs import asdict

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.errors import CorruptError, NotFoundError
from lightrag_jsonl.core.options import Selection as Method
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.retrieval.edge_selection import Edge, SelectedEdge
from lightrag_jsonl.storage.store import Reader
from lightrag_jsonl.tracing import events as e


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything recorded about one query, under the names that its events have for it.

    - `stages`: the steps that were reached, also by a query that was killed.
    - `candidates`, `retrieved_chunks`: what was found. `selected`, `selected_chunks`: what was
      chosen; `selection_error` says why the model could not choose. `shown`: the items of the
      answer's prompt.
    - `answer`: None until it is whole. `reused`: it was written for an earlier question.
      `truncated`: the model stopped at its token limit.
    """

    id: str
    question: str
    mode: t.Mode
    started_at: datetime
    generation: int = 0
    stages: tuple[e.Stage, ...] = ("session",)
    status: e.Status = "incomplete"
    error: str | None = None
    keywords: t.Keywords = t.Keywords()
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()
    method: Method | None = None
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[e.Shown, ...] = ()
    rejections: tuple[t.Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None
    answer: str | None = None
    citations: tuple[t.Citation, ...] = ()
    invented: tuple[int, ...] = ()
    usage: Usage = Usage()
    reused: bool = False
    truncated: bool = False
    sources: tuple[str, ...] = ()
    ended_at: datetime | None = None

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Every chunk behind what was shown, and so behind all that was selected or cited."""
        return tuple(dict.fromkeys(id for item in self.shown for id in item.chunk_ids))


def assemble_trace(events: Iterable[e.Event]) -> Trace:
    """The trace made from the events of one query, in order; `ValueError` unless the first is its
    session.
    """
    recorded = [event for event in events if not isinstance(event, e.AnswerChunk)]
    if not recorded or not isinstance(recorded[0], e.Session):
        raise ValueError("the first event of a trace is its session")
    fields: dict[str, Any] = {"stages": tuple(dict.fromkeys(event.stage for event in recorded))}
    for event in recorded:
        fields |= asdict(event)
        if isinstance(event, e.End):
            fields["status"] = event.status
    return Trace(id=fields.pop("trace_id"), **fields)


def load_trace(reader: Reader, trace_id: str) -> Trace:
    """The stored trace whose id is this, or the only one whose id begins like this.

    Raises `NotFoundError`, or `CorruptError` if the stored events cannot be read.
    """
    prefix = sanitize(trace_id)
    ids = [one.id for one in reader.traces(prefix=prefix)]
    if len(ids) != 1 and prefix not in ids:
        problem = "more than one trace" if ids else "no trace"
        raise NotFoundError(f"{problem} begins with {prefix!r}")
    id = prefix if prefix in ids else ids[0]
    try:
        return assemble_trace(map(e.event_from_json, reader.trace_events(id)))
    except ValueError as error:
        raise CorruptError(f"trace {id} cannot be read: {error}") from error


# ── the stored texts behind it ──────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document's description, without its text."""

    id: str
    title: str | None = None
    source: str | None = None
    date: str | None = None

    @property
    def name(self) -> str:
        """What readers know it by; if the title came from a file's name, the file's full name."""
        file = PurePath(self.source or "")
        return (file.name if self.title == file.stem else self.title) or self.source or self.id


@dataclass(frozen=True, slots=True)
class Sources:
    """The chunks behind a trace with their pages and documents; what was deleted is missing."""

    chunks: Mapping[str, t.Chunk] = field(default_factory=dict)
    pages: Mapping[tuple[str, int], t.Page] = field(default_factory=dict)
    documents: Mapping[str, SourceDocument] = field(default_factory=dict)

    def page_of(self, chunk: t.Chunk) -> t.Page | None:
        """The page that a chunk is on."""
        return self.pages.get((chunk.document_id, chunk.page))

    def where(self, chunk_id: str, words: str = "Chunk {} → Page {} → {}") -> str:
        """A chunk's position in words: `Chunk 1 → Page 1 → d1.txt`, or `source deleted`."""
        chunk = self.chunks.get(chunk_id)
        if chunk is None:
            return "source deleted"
        document = self.documents.get(chunk.document_id) or SourceDocument(chunk.document_id)
        return words.format(chunk.index + 1, chunk.page, document.name)


def look_up_sources(reader: Reader, chunk_ids: Iterable[str]) -> Sources:
    """Look up chunks with their pages and documents."""
    chunks = reader.chunks_by_id(list(dict.fromkeys(chunk_ids)))
    wanted = dict.fromkeys((chunk.document_id, chunk.page) for chunk in chunks.values())
    pages = {key: page for key in wanted if (page := reader.page(*key))}
    return Sources(chunks, pages, describe_documents(reader, {id for id, _ in wanted}))


def describe_documents(reader: Reader, ids: Collection[str]) -> dict[str, SourceDocument]:
    """The documents that are stored, by id."""
    stored = reader.documents(ids)
    return {one.id: SourceDocument(one.id, one.title, one.source, one.date) for one in stored}
