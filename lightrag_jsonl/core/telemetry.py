"""Spans around calls of models and steps of indexing, for a `Telemetry` if one is installed.

Names and attributes of model calls follow OpenTelemetry's conventions for generative AI
(`gen_ai.*`, https://github.com/open-telemetry/semantic-conventions-genai). No text is ever an attribute.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from lightrag_jsonl.core.protocols import LLM, Embedder
from lightrag_jsonl.core.types import Completion

Attributes: TypeAlias = Mapping[str, str | int | tuple[str, ...]]

_PROVIDERS = {  # the names of the conventions, by the end of a server's name
    "openai.com": "openai",
    "openai.azure.com": "azure.ai.openai",
    "cognitiveservices.azure.com": "azure.ai.openai",
    "azure.com": "azure.ai.inference",
    "mistral.ai": "mistral_ai",
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "x.ai": "x_ai",
    "perplexity.ai": "perplexity",
    "googleapis.com": "gcp.gemini",
    "anthropic.com": "anthropic",
    "cohere.com": "cohere",
    "cohere.ai": "cohere",
}


class OpenSpan(Protocol):
    """A span still open."""

    def add(self, attributes: Attributes) -> None:
        """Add what is known only now."""


class Telemetry(Protocol):
    """A receiver of spans."""

    def span(
        self, name: str, attributes: Attributes, *, is_client: bool
    ) -> contextlib.AbstractContextManager[OpenSpan]:
        """Begin a span inside the open span of the task; an exception is the error of the span.

        `is_client` marks a request to a server.
        """


class _NoSpan:
    """What nobody watches."""

    def add(self, attributes: Attributes) -> None:
        """Nothing."""


class _Installed:
    """The telemetry of the process."""

    telemetry: Telemetry | None = None


def install_telemetry(telemetry: Telemetry | None) -> None:
    """Send the spans of all indexes of this process there; None ends that."""
    _Installed.telemetry = telemetry


@contextlib.contextmanager
def span(
    name: str, attributes: Attributes | None = None, *, is_client: bool = False
) -> Iterator[OpenSpan]:
    """A span around a block."""
    telemetry = _Installed.telemetry
    if telemetry is None:
        yield _NoSpan()
        return
    with telemetry.span(name, attributes or {}, is_client=is_client) as open_span:
        yield open_span


@contextlib.contextmanager
def client_span(
    operation: str, part: LLM | Embedder, *, max_tokens: int | None = None
) -> Iterator[OpenSpan]:
    """A span around a request to the server of a model ("chat") or an embedder ("embeddings"), with its
    repetitions.
    """
    if _Installed.telemetry is None:  # nobody reads the attributes
        yield _NoSpan()
        return
    model = getattr(part, "model", part.name)
    attributes = _request_attributes(operation, model, part)
    if max_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = max_tokens
    with span(f"{operation} {model}", attributes, is_client=True) as open_span:
        yield open_span


def completion_attributes(completion: Completion) -> Attributes:
    """The cost and the end of an answer."""
    usage = completion.usage
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.response.finish_reasons": (completion.finish,),
    }


def _request_attributes(operation: str, model: str, part: object) -> dict[str, str | int]:
    """The attributes of a request before the answer."""
    url = urlsplit(str(getattr(part, "url", "")))
    host = url.hostname or ""
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": model,
        "gen_ai.provider.name": _provider(host) or type(part).__name__.casefold(),
    }
    if host:
        attributes["server.address"] = host
        attributes["server.port"] = url.port or (443 if url.scheme == "https" else 80)
    return attributes


def _provider(host: str) -> str:
    """The provider of a server; "openai" for other servers with OpenAI's protocol, "" for no server."""
    for domain in sorted(_PROVIDERS, key=len, reverse=True):
        if host == domain or host.endswith(f".{domain}"):
            return _PROVIDERS[domain]
    return "openai" if host else ""
