"""Chat models behind any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Completion, Json, Message, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.providers.connection import ONE_CALL, Connection, message_of
from lightrag_jsonl.providers.constraint import record_format, unwrap_records

JsonObject: TypeAlias = dict[str, Json]
Finish: TypeAlias = Literal["stop", "length"]

log = logging.getLogger(__name__)

_REFUSABLE = {  # fields that a server may refuse, each with words that occur in its refusal
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "stream_options": "stream_options",
    "response_format": "response_format|schema|grammar",
}


class OpenAILLM:
    """A chat model behind an OpenAI-compatible endpoint; also a `StreamingLLM` and `ConstrainedLLM`.

    - `temperature`: None sends none. `extra_body`: merged into every request.
    - `timeout`: how many seconds the server may be silent. A request not answered by then is sent
      again, up to `max_retries` times; each attempt may be billed.
    - `constrain`: "off" leaves the format to the prompt. "auto" sends the record schema, for the
      server to force the answer to follow it, unless it refuses that. "grounded" also limits entity
      names to those given.
    - `name`: part of cache keys; two configurations of a model need different ones.

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
    ) -> None:
        if constrain not in ("auto", "off", "grounded"):
            raise ConfigError(f"constrain must be 'auto', 'off' or 'grounded', not {constrain!r}")
        self.model = model
        self.name = name or model
        self._constrain = constrain
        self._temperature = temperature
        self._extra_body = dict(extra_body or {})
        self._connection = Connection(base_url, api_key, timeout, max_retries)
        self._refused: frozenset[str] = frozenset()  # fields that this model has refused

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
        return ChatStream(self, self.request_body(messages, max_tokens=max_tokens))

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
        if self._constrain != "off":
            allowed = names if self._constrain == "grounded" else None
            body["response_format"] = record_format(schema, allowed)
        answer = await self._complete(body)
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
        return body | self._extra_body

    async def _complete(self, body: JsonObject) -> Completion:
        response = await self._create(body)
        with self._connection.failures():
            answer = json.loads(response.content)
        return read_completion(answer)

    async def _create(self, body: JsonObject, *, stream: bool = False) -> Any:
        """The SDK's raw response or stream of a request, sent again without a field that is refused.

        Reasoning models want `max_completion_tokens` instead of `max_tokens`, and no temperature;
        some servers cannot report what a stream costs.
        """
        sent = {key: value for key, value in body.items() if key not in self._refused}
        if "max_tokens" in self._refused and "max_tokens" in body:
            sent["max_completion_tokens"] = body["max_tokens"]
        extra = {key: sent[key] for key in sent if key not in ("model", "messages")}
        chat: Any = self._connection.client().chat.completions
        try:
            with self._connection.failures():
                return await (chat if stream else chat.with_raw_response).create(
                    model=self.model, messages=sent["messages"], stream=stream, extra_body=extra
                )
        except LLMError as error:
            words = "" if error.transient else str(error).lower()
            refused = {
                one for one in _REFUSABLE if one in sent and re.search(_REFUSABLE[one], words)
            }
            if not refused:
                raise
            log.warning("%s: asking without %s", error, ", ".join(refused))
            self._refused |= refused
        return await self._create(body, stream=stream)


class ChatStream:
    """An answer as it is written. At its end, `usage` is the cost by the server's count, and
    `finish` says how the answer ended.
    """

    def __init__(self, llm: OpenAILLM, body: JsonObject) -> None:
        self.usage = ONE_CALL
        self.finish: Finish = "stop"
        self._pieces = self._read(llm, {"stream_options": {"include_usage": True}, **body})

    def __aiter__(self) -> ChatStream:
        return self

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Stop early, and free the connection."""
        await self._pieces.aclose()

    async def _read(self, llm: OpenAILLM, body: JsonObject) -> AsyncGenerator[str, None]:
        reason = None
        async with await llm._create(body, stream=True) as chunks:
            try:
                with llm._connection.failures():
                    async for chunk in chunks:
                        for choice in chunk.choices[:1]:
                            if choice.delta and choice.delta.content:
                                yield sanitize(choice.delta.content)
                            reason = reason or choice.finish_reason
                        if chunk.usage:
                            self.usage = _usage(chunk.usage.to_dict(warnings=False))
            except LLMError as error:
                if reason is None:  # otherwise only the connection ended badly
                    error.cost = self.usage
                    raise
        if reason is None:
            raise LLMError(f"{llm.name}: the answer broke off", cost=self.usage)
        self.finish = _finish(reason)


def read_completion(answer: Mapping[str, Any]) -> Completion:
    """The completion in a response of `/chat/completions`; `LLMError` if there is none."""
    cost = _usage(answer.get("usage"))
    choice = next(iter(answer.get("choices") or ()), None)
    if choice is None:
        why = message_of(answer) or "there are no choices"
        raise LLMError(f"the server gave no answer: {why}", transient=True, cost=cost)
    message, reason = choice.get("message") or {}, choice.get("finish_reason")
    content = message.get("content")
    if content is None and _finish(reason) != "length":
        why = message.get("refusal") or f"finish reason {reason!r}"
        raise LLMError(f"the model gave no text ({why})", cost=cost)
    return Completion(sanitize(content or ""), _finish(reason), cost)


def _finish(reason: object) -> Finish:
    return "length" if reason in ("length", "max_tokens", "model_length") else "stop"


def _usage(counts: Any) -> Usage:
    """Tokens as the server counted them; DeepSeek has a field of its own for cached ones."""
    counts = counts or {}
    details = counts.get("prompt_tokens_details") or {}
    return Usage(
        input_tokens=counts.get("prompt_tokens") or 0,
        output_tokens=counts.get("completion_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or counts.get("prompt_cache_hit_tokens") or 0,
        calls=1,
    )
