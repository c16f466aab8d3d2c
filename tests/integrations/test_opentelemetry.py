"""Spans of OpenTelemetry, exported by the real SDK."""

from pathlib import Path

import pytest

from lightrag_jsonl import LightRAG, LLMError
from lightrag_jsonl.core.answers import Context

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from lightrag_jsonl.integrations.opentelemetry import SpanListener


@pytest.fixture
def exported() -> tuple[Tracer, InMemorySpanExporter]:
    """A tracer, and where its finished spans go."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("tests"), exporter


def spans(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    """The finished spans by name."""
    return {
        span.name.removeprefix("lightrag_jsonl."): span for span in exporter.get_finished_spans()
    }


def test_a_query_has_a_span_for_each_step(
    tmp_path: Path, exported: tuple[Tracer, InMemorySpanExporter]
) -> None:
    """The steps are children of the query's span, in order, and no text is sent."""
    tracer, exporter = exported
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert("Marie Curie discovered radium in Paris.")
        question = "What did Marie Curie discover?"
        answer = rag.query(question, mode="local", listener=SpanListener(tracer))
    found = spans(exporter)
    query = found.pop("query")
    assert list(found) == ["keywords", "retrieval", "selection", "answer"]
    assert query.context and query.attributes
    assert {span.parent and span.parent.span_id for span in found.values()} == {
        query.context.span_id
    }
    times = [(span.start_time or 0, span.end_time or 0) for span in found.values()]
    assert times == sorted(times) and times[-1][1] <= (query.end_time or 0)
    assert query.attributes["lightrag_jsonl.trace_id"] == answer.trace_id
    assert query.attributes["lightrag_jsonl.mode"] == "local"
    assert not any("Curie" in span.to_json() for span in exporter.get_finished_spans())


def test_a_failed_query_is_an_error(
    tmp_path: Path, exported: tuple[Tracer, InMemorySpanExporter]
) -> None:
    """Its span ends, with the reason."""

    class Broken:
        async def answer(self, question: str, context: Context) -> str:
            raise LLMError("the model is away")

    tracer, exporter = exported
    with LightRAG(tmp_path / "kb", answerer=Broken()) as rag:
        rag.insert("Marie Curie discovered radium in Paris.")
        with pytest.raises(LLMError):
            rag.query("What did Marie Curie discover?", listener=SpanListener(tracer))
    status = spans(exporter)["query"].status
    assert not status.is_ok and "away" in (status.description or "")
