"""Spans of OpenTelemetry from the events of a query."""

import time
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from lightrag_jsonl.tracing.events import AnswerChunk, End, Event, Session

MOST_OPEN = 1_000  # a cancelled query has no end: the oldest span is closed when there are more


@dataclass
class _Query:
    """A query that goes on: its span, and when its last step ended, in nanoseconds since 1970."""

    span: Span
    since: int


class SpanListener:
    """A listener for `query(…, listener=…)`: a span for the query, and one for each of its steps.

    The names are `lightrag_jsonl.query` and `lightrag_jsonl.keywords`, `.retrieval`, `.selection`
    and `.answer`. Attributes are the mode, the id of the trace and the tokens; texts are not sent.
    One listener can serve any number of queries at once, from one event loop.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("lightrag_jsonl")
        self._open: dict[str, _Query] = {}

    def __call__(self, event: Event) -> None:
        """Take in the next event of a query."""
        now = time.time_ns()
        if isinstance(event, Session):
            about = {"lightrag_jsonl.mode": event.mode, "lightrag_jsonl.trace_id": event.trace_id}
            span = self._tracer.start_span("lightrag_jsonl.query", attributes=about, start_time=now)
            self._open[event.trace_id] = _Query(span, now)
            if len(self._open) > MOST_OPEN:
                self._open.pop(next(iter(self._open))).span.end()
        elif query := self._open.get(event.trace_id):
            self._step(query, event, now)

    def _step(self, query: _Query, event: Event, now: int) -> None:
        if isinstance(event, End):
            for name in ("calls", "input_tokens", "output_tokens", "cached_tokens"):
                query.span.set_attribute(f"lightrag_jsonl.{name}", getattr(event.usage, name))
            if event.error is not None:
                query.span.set_status(Status(StatusCode.ERROR, event.error))
            query.span.end(now)
            del self._open[event.trace_id]
        elif not isinstance(event, AnswerChunk):
            name, context = f"lightrag_jsonl.{event.stage}", trace.set_span_in_context(query.span)
            self._tracer.start_span(name, context, start_time=query.since).end(now)
            query.since = now
