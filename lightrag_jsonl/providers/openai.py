"""Chat models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Completion, Json, Message, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.providers.connection import (
    ONE_CALL,
    Connection,
    Failure,
    RequestError,
    json_object,
    message_of,
)
from lightrag_jsonl.providers.constraint import record_format, unwrap_records

if TYPE_CHECKING:
    import openai

JsonObject: TypeAlias = dict[str, Json]
Finish: TypeAlias = Literal["stop", "length"]
Create: TypeAlias = Callable[[JsonObject, bool], Awaitable[Any]]

log = logging.getLogger(__name__)

_REFUSABLE = (  # fields that a server may refuse, each with a word that occurs in its refusal
    ("max_tokens", "max_completion_tokens"),
    ("temperature", "temperature"),
    ("stream_options", "stream_options"),
)
_MOST_TOKENS = 10**9  # of one call; sums of these still fit into a database's integers


class OpenAILLM:
    """A chat model behind an OpenAI-compatible endpoint; also a `StreamingLLM` and `ConstrainedLLM`.

    - `temperature`: None sends none. `extra_body`: merged into every request.
    - `timeout`: how many seconds the server may be silent. A request not answered by then is sent
      again, up to `max_retries` times; each attempt may be billed.
    - `constrain`: "off" leaves the format to the prompt. "auto" sends the record schema, for the
      server to force the answer to follow it, unless it refuses that. "grounded" also limits entity
      names to those given.
    - `name`: part of cache keys; two configurations of a model need different ones.
    - `client`: one of your own of the SDK, with headers, proxies or retries of its own.

    Raises `LLMError`, or `ConfigError` if there is no key.
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
        constrain: Literal["auto", "off", "grounded"] = "off",
        name: str | None = None,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        if constrain not in ("auto", "off", "grounded"):
            raise ConfigError(f"constrain must be 'auto', 'off' or 'grounded', not {constrain!r}")
        self.model = model
        self.constrain = constrain
        self.name = name or model
        self._temperature = temperature
        self._extra_body = dict(extra_body or {})
        self._connection = Connection(base_url, api_key, timeout, max_retries, client)
        self._refused: frozenset[str] = frozenset()  # fields that this model has refused
        self._takes_constraint = constrain != "off"

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The model's answer, with how it ended and what it cost."""
        return await self._complete(self.request_body(messages, max_tokens=max_tokens))

    def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatStream:
        """The answer piece by piece; a connection that breaks off raises `LLMError`."""
        body = self.request_body(messages, max_tokens=max_tokens)
        return ChatStream(self._create, self._connection, body)

    async def complete_records(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Json],
        names: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Like `complete` for JSONL, with every record forced to follow `schema` if the server can
        do that. `names` is used only with `constrain="grounded"`.
        """
        body = self.request_body(messages, max_tokens=max_tokens)
        if not self._takes_constraint:
            return await self._complete(body)
        allowed = names if self.constrain == "grounded" else None
        try:
            answer = await self._complete(
                body | {"response_format": record_format(schema, allowed)}
            )
        except RequestError as error:
            if error.status not in (400, 422):
                raise
            answer = await self._complete(body)
            log.warning("%s takes no constraint (%s): asking without", self.name, error)
            self._takes_constraint = False
        return replace(answer, text=unwrap_records(answer.text))

    def request_body(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> JsonObject:
        """The body `complete` sends, also for those who send it in another way (a batch file)."""
        turns: list[Json] = [
            {"role": message.role, "content": sanitize(message.content)} for message in messages
        ]
        body: JsonObject = {"model": self.model, "messages": turns}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        return self._accepted(body | self._extra_body)

    async def _complete(self, body: JsonObject) -> Completion:
        with self._connection.failures():
            answer = json_object((await self._create(body)).content)
        try:
            return read_completion(answer)
        except LLMError as error:
            failure = Failure(str(error), transient=error.transient, cost=error.cost)
            raise self._connection.error(failure) from error

    async def _create(self, body: JsonObject, stream: bool = False) -> Any:
        """The SDK's raw response or stream of a request, sent again without a field that is refused.

        Reasoning models want `max_completion_tokens` instead of `max_tokens`, and no temperature;
        some servers cannot report what a stream costs.
        """
        sent = self._accepted(body)
        try:
            with self._connection.failures():
                chat = self._connection.client().chat
                completions: Any = (
                    chat.completions if stream else chat.completions.with_raw_response
                )
                extra = {key: sent[key] for key in sent if key not in ("model", "messages")}
                return await completions.create(
                    model=self.model, messages=sent["messages"], stream=stream, extra_body=extra
                )
        except RequestError as error:
            words = error.detail.lower() if error.status in (400, 422) else ""
            refused = {field for field, sign in _REFUSABLE if sign in words and field in sent}
            if not refused:
                raise
            log.debug("%s refuses %s", self.name, refused)
            self._refused |= refused
        return await self._create(body, stream)

    def _accepted(self, body: JsonObject) -> JsonObject:
        """The request without the fields this model has refused."""
        sent = {key: value for key, value in body.items() if key not in self._refused}
        if "max_tokens" in self._refused and "max_tokens" in body:
            sent["max_completion_tokens"] = body["max_tokens"]
        return sent


class ChatStream:
    """An answer as it is written. At its end, `usage` is the cost by the server's count, and
    `finish` says how the answer ended.
    """

    def __init__(self, create: Create, connection: Connection, body: JsonObject) -> None:
        self.usage = ONE_CALL
        self.finish: Finish = "stop"
        self._connection = connection
        self._pieces = self._read(create, body)

    def __aiter__(self) -> ChatStream:
        return self

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Stop early, and free the connection."""
        await self._pieces.aclose()

    async def _read(self, create: Create, body: JsonObject) -> AsyncGenerator[str, None]:
        characters, reason = 0, None
        async with await create(
            {"stream_options": {"include_usage": True}, **body}, True
        ) as chunks:
            try:
                with self._connection.failures():
                    async for chunk in chunks:
                        choice = chunk.choices[0] if chunk.choices else None
                        piece = _text(getattr(getattr(choice, "delta", None), "content", None))
                        characters += len(piece or "")
                        if piece:
                            yield sanitize(piece)
                        reason = reason or getattr(choice, "finish_reason", None)
                        if chunk.usage:
                            self.usage = _usage(chunk.usage.to_dict(warnings=False))
            except RequestError as error:
                if reason is None:  # otherwise only the connection ended badly
                    broken = f"{error} (the answer broke off after {characters} characters)"
                    raise RequestError(broken, cost=self.usage) from error
        if reason is None:
            ended = Failure("the stream ended before the answer", cost=self.usage)
            raise self._connection.error(ended, f"after {characters} characters")
        self.finish = _finish(reason)


def read_completion(answer: Mapping[str, Json]) -> Completion:
    """The completion in a response of `/chat/completions`; `LLMError` if there is none."""
    if answer.get("error"):
        raise LLMError(f"the server reported an error: {message_of(answer)}", transient=True)
    choices, cost = answer.get("choices"), _usage(answer.get("usage"))
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise LLMError("the answer has no choices", transient=True, cost=cost)
    message, reason = choice.get("message"), choice.get("finish_reason")
    message = message if isinstance(message, dict) else {}
    content, finish = _text(message.get("content")), _finish(reason)
    if content is None and finish != "length":
        why = message.get("refusal") or f"finish reason {reason!r}"
        raise LLMError(f"the model gave no text ({why})", cost=cost)
    return Completion(sanitize(content or ""), finish, cost)


def _finish(reason: object) -> Finish:
    return "length" if reason in ("length", "max_tokens", "model_length") else "stop"


def _text(content: object) -> str | None:
    """A message's text: a string, or (some servers) a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _usage(counts: Json) -> Usage:
    """Tokens as the server counted them; DeepSeek has a field of its own for cached ones."""
    counts = counts if isinstance(counts, dict) else {}
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
        cached_tokens=_count(cached or counts.get("prompt_cache_hit_tokens")),
        calls=1,
    )


def _count(number: Json) -> int:
    """A server's count; 0 if it is not one, since the answer is worth having all the same."""
    return number if isinstance(number, int) and 0 <= number <= _MOST_TOKENS else 0
