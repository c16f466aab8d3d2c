"""The metrics of a server, for Prometheus."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage.rows import Counts

METRICS_MEDIA: Final = "text/plain; version=0.0.4"
LATENCY_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters since the start of the server, and gauges with the sizes at the time of reading."""

    def __init__(self) -> None:
        self._registry = registry = _TotalsRegistry()
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self._requests = counter("lightrag_requests", "Requests.", ["route", "status"])
        self._request_seconds = Histogram(
            "lightrag_request_seconds",
            "Seconds from a request to the beginning of its response.",
            ["route"],
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        refused = "Requests refused by host, origin or token."
        self._refused = counter("lightrag_refused", refused, ["reason"])
        self._questions = counter("lightrag_questions", "Questions.", ["index", "mode"])
        shared = "Questions that joined an equal one which was being answered."
        self._questions_shared = counter("lightrag_questions_shared", shared, ["index"])
        self._model_calls = counter("lightrag_model_calls", "Model calls for questions.", ["index"])
        tokens = "Tokens of model calls for questions."
        self._model_tokens = counter("lightrag_model_tokens", tokens, ["index", "kind"])
        self._in_flight = gauge("lightrag_questions_in_flight", "Questions being answered.")
        self._jobs = gauge("lightrag_jobs", "Jobs.", ["index", "state"])
        self._documents = gauge("lightrag_documents", "Documents.", ["index", "state"])
        self._chunks = gauge("lightrag_chunks", "Chunks.", ["index"])
        self._entities = gauge("lightrag_entities", "Entities.", ["index"])
        self._relations = gauge("lightrag_relations", "Relations.", ["index"])

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request with the status and the latency of its response."""
        self._requests.labels(route=route, status=status).inc()
        self._request_seconds.labels(route=route).observe(seconds)

    def count_refusal(self, reason: str) -> None:
        """Count a request refused before any route."""
        self._refused.labels(reason=reason).inc()

    def count_question(self, index: str, mode: str, *, shared: bool) -> None:
        """Count a question; `shared` if an equal question is being answered already."""
        self._questions.labels(index=index, mode=mode).inc()
        if shared:
            self._questions_shared.labels(index=index).inc()

    def count_usage(self, index: str, usage: Usage) -> None:
        """Count the model calls of a question, and the tokens."""
        self._model_calls.labels(index=index).inc(usage.calls)
        self._model_tokens.labels(index=index, kind="input").inc(usage.input_tokens)
        self._model_tokens.labels(index=index, kind="output").inc(usage.output_tokens)
        self._model_tokens.labels(index=index, kind="cached").inc(usage.cached_tokens)

    def render(
        self,
        sizes: Mapping[str, Counts],
        jobs: Mapping[str, Mapping[str, int]],
        questions_in_flight: int,
    ) -> bytes:
        """All metrics as text, with the sizes of the indexes, and their jobs by state, by name."""
        self._in_flight.set(questions_in_flight)
        self._jobs.clear()
        self._documents.clear()
        for index, counts in sizes.items():
            _set_states(self._jobs, index, jobs[index])
            _set_states(self._documents, index, counts.documents)
            self._chunks.labels(index=index).set(counts.chunks)
            self._entities.labels(index=index).set(counts.entities)
            self._relations.labels(index=index).set(counts.relations)
        return generate_latest(self._registry)


class _TotalsRegistry(CollectorRegistry):
    """A registry without the samples `…_created` of the OpenMetrics format."""

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            samples = metric.samples
            metric.samples = [sample for sample in samples if not sample.name.endswith("_created")]
            yield metric


def _set_states(gauge: Gauge, index: str, counts: Mapping[str, int]) -> None:
    for state, count in counts.items():
        gauge.labels(index=index, state=state).set(count)
