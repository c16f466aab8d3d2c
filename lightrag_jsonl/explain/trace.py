"""A trace: how one answer came about, assembled from the events of its query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from lightrag_jsonl.candidates import Edge, SelectedEdge
from lightrag_jsonl.explain.codec import from_json, to_json
from lightrag_jsonl.explain.events import (
    AnswerChunk,
    Answered,
    End,
    Event,
    KeywordsFound,
    Retrieval,
    Selection,
    Session,
    Shown,
    Stage,
    Status,
)
from lightrag_jsonl.explain.prov import Bases
from lightrag_jsonl.options import Selection as Method
from lightrag_jsonl.types import Citation, Keywords, Mode, Rejection, Usage


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything recorded about one query.

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
    keywords: Keywords = field(default_factory=Keywords)
    candidates: tuple[Edge, ...] = ()
    retrieved_chunks: tuple[str, ...] = ()
    method: Method | None = None
    selected: tuple[SelectedEdge, ...] = ()
    selected_chunks: tuple[str, ...] = ()
    shown: tuple[Shown, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    fallback: bool = False
    selection_error: str | None = None
    bases: Bases = field(default_factory=Bases)
    answer: str | None = None
    citations: tuple[Citation, ...] = ()
    invented: tuple[int, ...] = ()
    usage: Usage = field(default_factory=Usage)
    reused: bool = False
    truncated: bool = False
    sources: tuple[str, ...] = ()
    ended_at: datetime | None = None

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """Every chunk behind what was selected, shown or cited, without repetitions."""
        found = [name for chosen in self.selected for name in chosen.edge.chunk_ids]
        found += self.selected_chunks
        found += [name for item in self.shown for name in item.chunk_ids]
        found += [citation.chunk_id for citation in self.citations]
        return tuple(dict.fromkeys(found))


def begin(session: Session) -> Trace:
    """The trace of a query that has just begun."""
    return Trace(
        session.trace_id, session.question, session.mode, session.started_at, session.generation
    )


def apply(trace: Trace, event: Event) -> Trace:
    """The trace after one more event."""
    if event.trace_id != trace.id:
        raise ValueError(f"event of query {event.trace_id!r} in the trace of {trace.id!r}")
    if event.stage not in (*trace.stages, "chunk"):
        trace = replace(trace, stages=(*trace.stages, event.stage))
    match event:
        case KeywordsFound():
            return replace(trace, keywords=event.keywords)
        case Retrieval():
            return replace(trace, candidates=event.edges, retrieved_chunks=event.chunk_ids)
        case Selection():
            return _selected(trace, event)
        case Answered():
            return replace(
                trace,
                answer=event.text,
                citations=event.citations,
                invented=event.invented,
                usage=event.usage,
                reused=event.reused,
                truncated=event.truncated,
            )
        case End():
            return replace(
                trace,
                status=event.status,
                error=event.error,
                usage=trace.usage + event.usage,
                sources=event.sources,
                ended_at=event.ended_at,
            )
        case Session() | AnswerChunk():
            return trace


def fold(events: Iterable[Event]) -> Trace:
    """The trace made from the events of one query; the first must be its session."""
    remaining = iter(events)
    first = next(remaining, None)
    if not isinstance(first, Session):
        raise ValueError("the first event of a trace is its session")
    trace = begin(first)
    for event in remaining:
        trace = apply(trace, event)
    return trace


def selection_of(trace: Trace) -> Selection:
    """The event with the trace's selection."""
    return Selection(
        trace.id,
        trace.method or "score",
        trace.selected,
        trace.selected_chunks,
        trace.shown,
        trace.rejections,
        trace.fallback,
        trace.bases,
        trace.selection_error,
    )


def trace_to_json(trace: Trace) -> str:
    """The trace as one line of JSON."""
    return to_json(trace)


def trace_from_json(text: str) -> Trace:
    """The trace in text written by `trace_to_json`; `ValueError` or `TypeError` for any other text."""
    return from_json(Trace, text)


def event_to_json(event: Event) -> str:
    """The event as one line of JSON; the first key, its stage, tells its type."""
    return f'{{"stage":"{event.stage}","event":{to_json(event)}}}'


def event_from_json(text: str) -> Event:
    """The event in text written by `event_to_json`; `ValueError` or `TypeError` for any other text."""
    stage, _, body = text[len('{"stage":"') : -1].partition('","event":')
    if stage not in _EVENTS:
        raise ValueError(f"there is no stage {stage[:40]!r}")
    return from_json(_EVENTS[stage], body)


_EVENTS: dict[str, type[Event]] = {
    "session": Session,
    "keywords": KeywordsFound,
    "retrieval": Retrieval,
    "selection": Selection,
    "chunk": AnswerChunk,
    "answer": Answered,
    "end": End,
}


def _selected(trace: Trace, event: Selection) -> Trace:
    return replace(
        trace,
        method=event.method,
        selected=event.edges,
        selected_chunks=event.chunk_ids,
        shown=event.shown,
        rejections=event.rejections,
        fallback=event.fallback,
        selection_error=event.error,
        bases=event.bases,
    )
