"""A trace: how one answer came about, assembled from the events of its query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import asdict

from lightrag_jsonl.core.options import Selection as Method
from lightrag_jsonl.core.types import Citation, Keywords, Mode, Rejection
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.retrieval.edge_selection import Edge, SelectedEdge
from lightrag_jsonl.tracing.events import AnswerChunk, End, Event, Session, Shown, Stage, Status


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
    mode: Mode
    started_at: datetime
    generation: int = 0
    stages: tuple[Stage, ...] = ("session",)
    status: Status = "incomplete"
    error: str | None = None
    keywords: Keywords = Keywords()
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()
    method: Method | None = None
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None
    answer: str | None = None
    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()
    usage: Usage = Usage()
    reused: bool = False
    truncated: bool = False
    sources: tuple[str, ...] = ()
    ended_at: datetime | None = None

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Every chunk behind what was selected, shown or cited, without repetitions."""
        found = [id for chosen in self.selected for id in chosen.edge.chunk_ids]
        found += self.selected_chunks
        found += [id for item in self.shown for id in item.chunk_ids]
        found += [citation.chunk_id for citation in self.citations]
        return tuple(dict.fromkeys(found))


def assemble_trace(events: Iterable[Event]) -> Trace:
    """The trace made from the events of one query, in order; `ValueError` unless the first is its
    session and all belong to it.
    """
    recorded = [event for event in events if not isinstance(event, AnswerChunk)]
    if not recorded or not isinstance(recorded[0], Session):
        raise ValueError("the first event of a trace is its session")
    id = recorded[0].trace_id
    fields: dict[str, Any] = {}
    for event in recorded:
        if event.trace_id != id:
            raise ValueError(f"event of query {event.trace_id!r} in the trace of {id!r}")
        fields |= asdict(event)
        if isinstance(event, End):
            fields["status"] = event.status
    del fields["trace_id"]
    stages = tuple(dict.fromkeys(event.stage for event in recorded))
    return Trace(id=id, stages=stages, **fields)
