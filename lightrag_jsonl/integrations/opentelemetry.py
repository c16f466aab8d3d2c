"""Spans of OpenTelemetry: of calls of models, of indexing, and from the events of a query."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from lightrag_jsonl.core.telemetry import Attributes, install_telemetry
from lightrag_jsonl.tracing.events import AnswerChunk, End, Event, ReadingProgress, Session

MAX_OPEN = 1_000  # a cancelled query has no end: beyond this number the oldest span is closed


def instrument(tracer: Tracer | None = None) -> None:
    """Record spans of all indexes of this process from now on.

    A call of a model is a client span `chat MODEL`, a request for vectors `embeddings MODEL`, by the
    conventions for generative AI (`gen_ai.*`): the model, the provider and the address of the server,
    tokens, the kind of end. Indexing has `lightrag_jsonl.insert` (and `.retry`), with the spans
    `.extract` of chunks and `.commit` of groups of documents inside. No text of a document, question or
    answer is recorded. `uninstrument` ends it.
    """
    install_telemetry(_OpenTelemetry(tracer or trace.get_tracer("lightrag_jsonl")))


def uninstrument() -> None:
    """Record no spans of calls and of indexing any more."""
    install_telemetry(None)


@dataclass(frozen=True)
class _OpenTelemetry:
    """Spans of the package as spans of a tracer."""

    tracer: Tracer

    @contextlib.contextmanager
    def span(self, name: str, attributes: Attributes, *, is_client: bool) -> Iterator["_OpenSpan"]:
        """A span around a block; a failure is named by the class of the exception, without its words."""
        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        with self.tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=dict(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _OpenSpan(span)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise


@dataclass(frozen=True)
class _OpenSpan:
    span: Span

    def add(self, attributes: Attributes) -> None:
        """Add what is known only now."""
        self.span.set_attributes(dict(attributes))


@dataclass
class _Query:
    """A running query: the span, and the end of the last step, in nanoseconds since 1970."""

    span: Span
    last_step_end: int


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
            self._open[event.trace_id] = _Query(self._query_span(event, now), now)
            if len(self._open) > MAX_OPEN:
                oldest = next(iter(self._open))
                query = self._open.pop(oldest)
                query.span.end()
        elif event.trace_id in self._open:
            self._step(self._open[event.trace_id], event, now)

    def _query_span(self, session: Session, now: int) -> Span:
        return self._tracer.start_span(
            "lightrag_jsonl.query",
            attributes={
                "lightrag_jsonl.mode": session.mode,
                "lightrag_jsonl.trace_id": session.trace_id,
            },
            start_time=now,
        )

    def _step(self, query: _Query, event: Event, now: int) -> None:
        """Record a step of a query; the last step ends the span of the query."""
        if isinstance(event, End):
            for name in ("calls", "input_tokens", "output_tokens", "cached_tokens"):
                query.span.set_attribute(f"lightrag_jsonl.{name}", getattr(event.usage, name))
            if event.error is not None:
                query.span.set_status(Status(StatusCode.ERROR, event.error))
            query.span.end(now)
            del self._open[event.trace_id]
        elif not isinstance(event, AnswerChunk | ReadingProgress):
            span = self._tracer.start_span(
                f"lightrag_jsonl.{event.stage}",
                trace.set_span_in_context(query.span),
                start_time=query.last_step_end,
            )
            span.end(now)
            query.last_step_end = now
