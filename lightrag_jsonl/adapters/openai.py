"""Chat models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from lightrag_jsonl.adapters.constrain import Means, constraint, means_of, unwrap
from lightrag_jsonl.adapters.endpoint import Endpoint, JsonObject, Lost
from lightrag_jsonl.adapters.faults import EndpointError
from lightrag_jsonl.adapters.openai_embedder import OpenAIEmbedder
from lightrag_jsonl.errors import ConfigError, LLMError
from lightrag_jsonl.text import is_unicode, sanitize
from lightrag_jsonl.types import Completion, Json, Message, ResponseType, Usage

if TYPE_CHECKING:
    import openai

__all__ = ["OpenAIEmbedder", "OpenAILLM"]

log = logging.getLogger(__name__)

CHAT = "/chat/completions"
PROBE_TIMEOUT = 10.0  # seconds a server may take to say what it is
LENGTH = frozenset({"length", "max_tokens", "model_length"})
SIGNS = (  # fields that a server may refuse, each with a word that occurs in its refusal
    ("max_tokens", "max_completion_tokens"),
    ("temperature", "temperature"),
    ("stream_options", "stream_options"),
)
MOST_TOKENS = 10**9  # of one call; sums of these still fit into a database's integers


class OpenAILLM:
    """A chat model behind an OpenAI-compatible endpoint; also a `StreamingLLM` and `ConstrainedLLM`.

    - `temperature`: None sends none. `extra_body`: merged into every request. `json_mode`: ask for
      `json_object` when one JSON value is wanted (never for JSONL).
    - `timeout`: seconds. A request not answered by then is sent again, up to `max_retries` times;
      each attempt may be billed.
    - `constrain`: "off" leaves the format to the prompt. "auto" finds out what the server can do
      and forces every line to follow the schema: by a grammar on llama.cpp and vLLM, by a JSON
      schema elsewhere, not at all where the server refuses that. "grounded" also limits entity
      names to those given, where the server takes grammars.
    - `name`: part of cache keys; give one to tell two configurations of a model apart.

    One instance may be used from several event loops. Raises `LLMError`, or `ConfigError` if there
    is no key.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        temperature: float | None = 0.0,
        timeout: float = 180.0,
        max_retries: int = 2,
        extra_body: Mapping[str, Json] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        json_mode: bool = False,
        constrain: Literal["auto", "off", "grounded"] = "off",
        name: str | None = None,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        if constrain not in ("auto", "off", "grounded"):
            raise ConfigError(f"constrain must be 'auto', 'off' or 'grounded', not {constrain!r}")
        self.model = model
        self.constrain = constrain
        self._name = name or model
        self._temperature = temperature
        self._json_mode = json_mode
        self._extra = dict(extra_body or {})
        self._endpoint = Endpoint(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            extra_headers=extra_headers,
            client=client,
        )
        self._refused: frozenset[str] = frozenset()  # fields this model has refused
        self._means: Means | None = None

    def __repr__(self) -> str:
        return f"OpenAILLM({self.model!r}, host={self._endpoint.host!r})"

    @property
    def name(self) -> str:
        """The given name, or else the model's."""
        return self._name

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The model's answer, with how it ended and what it cost."""
        return await self._complete(self._body(messages, max_tokens, response_type))

    def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Pieces:
        """The answer piece by piece; a connection that breaks off raises `LLMError`."""
        asked: JsonObject = {"stream_options": {"include_usage": True}}
        return Pieces(self._stream({**asked, **self._body(messages, max_tokens)}))

    async def _stream(self, body: JsonObject) -> AsyncGenerator[str | Completion]:
        lost = Lost()
        while True:
            sent, characters = self._accepted(body), 0
            try:
                async with aclosing(self._pieces(sent, lost)) as pieces:
                    async for piece in pieces:
                        characters += len(piece) if isinstance(piece, str) else 0
                        yield piece
                return
            except EndpointError as error:
                if characters:
                    error.args = (f"{error} (the answer broke off after {characters} characters)",)
                elif self._adapt(error, sent):
                    continue
                error.cost += lost.cost
                raise

    async def complete_records(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Json],
        names: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Like `complete` for JSONL, with every line forced to follow `schema` if the server can do that.

        `names` is used only with `constrain="grounded"`. If the schema has no grammar, or the
        server refuses the constraint, the request is sent without it.
        """
        body, lost = self._body(messages, max_tokens), Lost()
        means = await self._find_means()
        if means is None:
            return await self._complete(body)
        try:
            held = constraint(means, dict(schema), names if self.constrain == "grounded" else None)
        except ConfigError as error:
            log.warning("%s: asking %s without a constraint", error, self.name)
            return await self._complete(body)
        try:
            answer = await self._complete({**body, **held}, lost)
        except EndpointError as error:
            if error.status not in (400, 422):
                raise
            answer = await self._complete(body, lost)
            log.warning("%s takes no constraint (%s): asking without", self.name, error)
            self._refused |= {"constraint"}
        return Completion(unwrap(answer.text), answer.finish, answer.usage)

    async def _find_means(self) -> Means | None:
        """How the server can enforce a schema, asked once; `None` if it cannot."""
        if self.constrain == "off" or "constraint" in self._refused:
            return None
        if self._means is None:
            try:
                self._means = means_of(await self._endpoint.get("/models", timeout=PROBE_TIMEOUT))
            except EndpointError as error:
                log.debug("%s does not list its models: %s", self._endpoint.host, error)
                if error.status is None:
                    return None
                self._means = "json_schema"
            if self.constrain == "grounded" and self._means == "json_schema":
                log.warning("%s takes no grammar: entity names stay free", self._endpoint.host)
        return self._means

    def request_body(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> JsonObject:
        """The body `complete` would send, for those who send it in another way (a batch file)."""
        return self._accepted(self._body(messages, max_tokens, response_type))

    def _body(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        response_type: ResponseType = "text",
    ) -> JsonObject:
        turns: list[Json] = [
            {"role": message.role, "content": sanitize(message.content)} for message in messages
        ]
        body: JsonObject = {"model": self.model, "messages": turns}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        body |= self._extra
        if self._json_mode and response_type == "json":
            body["response_format"] = {"type": "json_object"}
        return body

    async def _complete(self, body: JsonObject, lost: Lost | None = None) -> Completion:
        """The answer to a request; its cost has what was `lost` on the way, before and now."""
        lost = lost or Lost()
        while True:
            sent = self._accepted(body)
            try:
                done = self._completion(await self._endpoint.post(CHAT, sent, lost))
                return replace(done, usage=done.usage + lost.cost)
            except EndpointError as error:
                if not self._adapt(error, sent):
                    error.cost += lost.cost
                    raise

    def _accepted(self, body: JsonObject) -> JsonObject:
        """The request without the fields this model has refused."""
        sent = {key: value for key, value in body.items() if key not in self._refused}
        if "max_tokens" in self._refused and "max_tokens" in body:
            sent["max_completion_tokens"] = body["max_tokens"]
        return sent

    def _adapt(self, error: EndpointError, sent: JsonObject) -> bool:
        """Learn from a refusal which field to leave out; returns whether there is one.

        Reasoning models want `max_completion_tokens` instead of `max_tokens`, and no temperature;
        some servers cannot report what a stream costs.
        """
        if error.status not in (400, 422):
            return False
        words = error.detail.lower()
        for field, sign in SIGNS:
            if sign in words and field in sent:
                log.debug("%s refuses %s", self.name, field)
                self._refused |= {field}
                return True
        return False

    def _completion(self, answer: JsonObject) -> Completion:
        try:
            return read_completion(answer)
        except LLMError as error:
            raise self._endpoint.unusable(
                str(error), transient=error.transient, cost=error.cost
            ) from error

    async def _pieces(self, body: JsonObject, lost: Lost) -> AsyncGenerator[str | Completion]:
        """What is written, also in thought, is paid, whether it comes to its end or not."""
        reason: Json = None
        usage, half, begun = Usage(calls=1), "", False
        try:
            async with aclosing(self._endpoint.stream(CHAT, body, lost)) as events:
                async for event in events:
                    choice = _first(event.get("choices")) or {}
                    begun = begun or bool(choice)
                    delta = choice.get("delta") or choice.get(
                        "message"
                    )  # the whole answer at once: this server does not stream
                    piece = _text(delta.get("content")) if isinstance(delta, dict) else None
                    piece, half = _paired(half + (piece or ""))
                    if piece:
                        yield piece
                    if isinstance(event.get("usage"), dict):
                        usage = _usage(event["usage"])
                    reason = reason or choice.get("finish_reason")
        except EndpointError as error:
            if reason is None and begun:
                raise EndpointError(str(error), transient=True, unheard=True, cost=usage) from error
            if reason is None:
                raise  # otherwise the answer is complete, and only its connection ended badly
        if half:
            yield half
        if reason is None:
            ended = "the stream ended before the answer"
            raise self._endpoint.unusable(ended, transient=True, unheard=True, cost=usage)
        yield Completion("", _finish(reason), usage + lost.cost)


class Pieces:
    """An answer as it is written. At its end, `usage` is the cost by the server's count, and
    `finish` says how the answer ended.
    """

    def __init__(self, written: AsyncGenerator[str | Completion]) -> None:
        self._written = written
        self.usage = Usage(calls=1)
        self.finish: Literal["stop", "length"] = "stop"

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> str:
        while isinstance(piece := await anext(self._written), Completion):
            self.usage, self.finish = piece.usage, piece.finish
        return piece

    async def aclose(self) -> None:
        """Stop early, and free the connection."""
        await self._written.aclose()


def read_completion(answer: JsonObject) -> Completion:
    """The completion in a response of `/chat/completions`; `LLMError` if there is none."""
    choice, cost = _first(answer.get("choices")), _usage(answer.get("usage"))
    if choice is None:
        raise LLMError("the answer has no choices", transient=True, cost=cost)
    message, reason = choice.get("message"), choice.get("finish_reason")
    content = _text(message.get("content")) if isinstance(message, dict) else None
    finish = _finish(reason)
    if content is None and finish != "length":
        refusal = message.get("refusal") if isinstance(message, dict) else None
        why = f": {refusal}" if refusal else f" (finish reason {reason!r})"
        raise LLMError(f"the model gave no text{why}", cost=cost)
    return Completion(sanitize(content or ""), finish, cost)


def _finish(reason: Json) -> Literal["stop", "length"]:
    return "length" if isinstance(reason, str) and reason in LENGTH else "stop"


def _first(items: Json) -> JsonObject | None:
    first = items[0] if isinstance(items, list) and items else None
    return first if isinstance(first, dict) else None


def _text(content: Json) -> str | None:
    """A message's text: a string, or (some servers) a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _paired(text: str) -> tuple[str, str]:
    """The text without an unpaired half of an emoji at its end, and that half: some servers send
    the halves in separate events.
    """
    if is_unicode(text):
        return text, ""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return (whole[:-1], whole[-1]) if "\ud800" <= whole[-1] <= "\udbff" else (whole, "")


def _usage(usage: Json) -> Usage:
    """Tokens as the server counted them; DeepSeek has a field of its own for cached ones."""
    counts = usage if isinstance(usage, dict) else {}
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
        cached_tokens=_count(cached or counts.get("prompt_cache_hit_tokens")),
        calls=1,
    )


def _count(number: Json) -> int:
    """A server's count; 0 if it is not one, since an answer is worth having whatever is said of its cost."""
    plausible = isinstance(number, int | float) and 0 <= number <= MOST_TOKENS
    return int(number) if plausible else 0  # type: ignore[arg-type]
