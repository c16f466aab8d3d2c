"""Spans of OpenTelemetry, exported by the real SDK."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lightrag_jsonl import Context, LightRAG, LLMError, OpenAIEmbedder, OpenAILLM

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Tracer

from lightrag_jsonl.integrations.opentelemetry import SpanListener, instrument, uninstrument
from tests.kit import entity, jsonl
from tests.servers import Reply, Request, ScriptedServer, chat_reply, embedding_reply, error_reply


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


@pytest.fixture
def instrumented(
    exported: tuple[Tracer, InMemorySpanExporter],
) -> Iterator[InMemorySpanExporter]:
    """Where the spans of calls and of indexing go."""
    tracer, exporter = exported
    instrument(tracer)
    yield exporter
    uninstrument()


def reply(request: Request) -> Reply:
    """Records, or vectors, as the request asks."""
    if "input" in request.json:
        return embedding_reply([[1.0, 0.0]] * len(request.json["input"]))
    return chat_reply(jsonl(entity("Ann")), prompt_tokens=70, completion_tokens=20, cached_tokens=8)


def indexed(folder: Path, server: ScriptedServer) -> LightRAG:
    llm = OpenAILLM("m-1", base_url=server.base_url, max_retries=1)
    embedder = OpenAIEmbedder("e-1", base_url=server.base_url, dim=2)
    return LightRAG(folder / "kb", llm=llm, embedder=embedder)


def test_calls_are_client_spans_by_the_conventions(
    tmp_path: Path, instrumented: InMemorySpanExporter
) -> None:
    """Of a model with tokens and the end, of an embedder with the length of vectors; repetitions belong
    to the same span; neither text nor key is an attribute.
    """
    with ScriptedServer([error_reply(503, "busy")], respond=reply) as server:
        with indexed(tmp_path, server) as rag:
            rag.insert("Ann keeps the mill.")
        port = int(server.url.rpartition(":")[2])
    ended = instrumented.get_finished_spans()
    (chat,) = [span for span in ended if span.name == "chat m-1"]
    embeddings = [span for span in ended if span.name == "embeddings e-1"]
    address = {"server.address": "127.0.0.1", "server.port": port, "gen_ai.provider.name": "openai"}

    assert chat.kind == SpanKind.CLIENT and chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m-1",
        "gen_ai.request.max_tokens": 1_024,
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "gen_ai.response.finish_reasons": ("stop",),
        "lightrag_jsonl.prompt": "extract-graph",
        **address,
    }
    assert embeddings and embeddings[0].attributes == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "e-1",
        "gen_ai.embeddings.dimension.count": 2,
        **address,
    }
    assert not any("mill" in span.to_json() for span in ended)


def test_calls_are_inside_the_spans_of_indexing(
    tmp_path: Path, instrumented: InMemorySpanExporter
) -> None:
    """A call of a model in its chunk, in the insert; vectors in the commit; all in the caller's span."""
    with ScriptedServer(respond=reply) as server, indexed(tmp_path, server) as rag:
        rag.insert("Ann keeps the mill.")
    by_name = {span.name: span for span in instrumented.get_finished_spans()}
    parents = {}
    for name, span in by_name.items():
        ids = {other.context.span_id: other.name for other in by_name.values() if other.context}
        parents[name] = ids[span.parent.span_id] if span.parent else None

    assert parents["chat m-1"] == "lightrag_jsonl.extract"
    assert parents["embeddings e-1"] == "lightrag_jsonl.commit"
    assert parents["lightrag_jsonl.extract"] == "lightrag_jsonl.insert"
    assert parents["lightrag_jsonl.commit"] == "lightrag_jsonl.insert"
    assert parents["lightrag_jsonl.insert"] is None
    extract = by_name["lightrag_jsonl.extract"].attributes
    assert extract and extract["lightrag_jsonl.entities"] == 1


def test_a_failed_call_has_the_type_of_its_error(
    tmp_path: Path, instrumented: InMemorySpanExporter
) -> None:
    """Without its words, which may quote a text."""
    refusal = error_reply(401, "wrong key for mill")
    with (
        ScriptedServer(respond=lambda _: refusal) as server,
        indexed(tmp_path, server) as rag,
        pytest.raises(LLMError),
    ):
        rag.insert("Ann keeps the mill.")
    (chat,) = [span for span in instrumented.get_finished_spans() if span.name == "chat m-1"]
    assert not chat.status.is_ok and chat.attributes
    assert chat.attributes["error.type"] == "LLMError" and "mill" not in chat.to_json()


def test_nothing_is_recorded_after_the_end(
    tmp_path: Path, instrumented: InMemorySpanExporter
) -> None:
    """Or before the beginning: an index asks for the receiver at each step."""
    with LightRAG(tmp_path / "kb") as rag:
        uninstrument()
        rag.insert("Ann keeps the mill.")
    assert instrumented.get_finished_spans() == ()
