"""Chat and embedding models behind any endpoint that speaks OpenAI's protocol."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from lightrag_jsonl.core.errors import ConfigError, EmbeddingError, LLMError
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.retrying import with_retries
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.tokens import default_tokenizer
from lightrag_jsonl.core.types import Completion, Finish, Json, Message, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL, finish_of, normalize_vectors
from lightrag_jsonl.providers.connection import Connection, message_of

JsonObject: TypeAlias = dict[str, Json]

DIMS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
OPENAI_MAX_TOKENS = 8191  # the longest text that the models in DIMS read
NAME_FIELDS = frozenset({"name", "source", "target", "entity", "subject", "object"})
LIST_ITEMS = 10  # of a list in a constrained answer whose schema sets no limit
ITEM_CHARACTERS = 100  # of a text in such a list: a name or a keyword
_REFUSABLE = {  # fields that a server may refuse, each with words that occur in its refusal
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "stream_options": "stream_options",
    "response_format": "response_format|schema|grammar",
}

log = logging.getLogger(__name__)


class OpenAILLM:
    """A chat model behind an OpenAI-compatible endpoint; also a `StreamingLLM` and `ConstrainedLLM`.

    - `temperature`: None sends none. `extra_body`: merged into every request.
    - `timeout`: how many seconds the server may be silent. A request not answered by then fails.
    - `max_retries`: how often a request that failed in passing is repeated, by an index that uses
      this model; one call of a method here is one request.
    - `constrain`: "off" leaves the format to the prompt. "auto" sends the record schema, for the
      server to force the answer to follow it, unless it refuses that. "grounded" also limits entity
      names to those given.
    - `max_answer_bytes`: a longer answer is not read to its end, and fails; of a stream, one event.
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
        max_answer_bytes: int = 4_000_000,
        name: str | None = None,
    ) -> None:
        if constrain not in ("auto", "off", "grounded"):
            raise ConfigError(f"constrain must be 'auto', 'off' or 'grounded', not {constrain!r}")
        self.model = model
        self.name = name or model
        self.max_retries = max_retries
        self.constrain = constrain
        self._temperature = temperature
        self._extra_body = dict(extra_body or {})
        self._connection = Connection(base_url, api_key, timeout, max_answer_bytes)
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

    def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> "ChatStream":
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
        """Like `complete` for JSONL, with records forced to follow `schema`, and `names` if grounded."""
        body = self.request_body(messages, max_tokens=max_tokens)
        if self.constrain != "off":
            allowed = names if self.constrain == "grounded" else None
            body["response_format"] = record_format(schema, allowed)
        answer = await self._complete(body)
        return replace(answer, text=unwrap_records(answer.text))

    def request_body(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> JsonObject:
        """The body `complete` sends, also for those who send it in another way (a batch file)."""
        turns: list[Json] = [{"role": m.role, "content": sanitize(m.content)} for m in messages]
        body: JsonObject = {"model": self.model, "messages": turns}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        return body | self._extra_body

    async def _complete(self, body: JsonObject) -> Completion:
        response = await self._create(body)
        self._connection.check_length(response.content)
        with self._connection.failures():
            answer = json.loads(response.content)
        return read_completion(answer)

    async def _create(self, body: JsonObject, *, stream: bool = False) -> Any:
        """The SDK's raw response or stream, asked for again without the fields that are refused."""
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
            refused = {one for one in _REFUSABLE.keys() & sent if re.search(_REFUSABLE[one], words)}
            if not refused:
                raise
            log.warning("%s: asking without %s", error, ", ".join(sorted(refused)))
            self._refused |= refused
        return await self._create(body, stream=stream)


class ChatStream:
    """An answer as it is written; at its end, `usage` is its cost, and `finish` is how it ended."""

    def __init__(self, llm: OpenAILLM, body: JsonObject) -> None:
        self.usage = ONE_CALL
        self.finish: Finish = "stop"
        self._pieces = self._read(llm, {"stream_options": {"include_usage": True}, **body})

    def __aiter__(self) -> "ChatStream":
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
            raise LLMError(f"{llm.name}: the response ended early", cost=self.usage)
        self.finish = finish_of(reason)


def read_completion(answer: Mapping[str, Any]) -> Completion:
    """The completion in a response of `/chat/completions`; `LLMError` if there is none."""
    cost = _usage(answer.get("usage"))
    choice = next(iter(answer.get("choices") or ()), None)
    if choice is None:
        why = message_of(answer) or "there are no choices"
        raise LLMError(f"the server gave no answer: {why}", transient=True, cost=cost)
    message, finish = choice.get("message") or {}, finish_of(choice.get("finish_reason"))
    content = message.get("content")
    if content is None and finish != "length":
        why = message.get("refusal") or f"finish reason {choice.get('finish_reason')!r}"
        raise LLMError(f"the model gave no text ({why})", cost=cost)
    return Completion(sanitize(content or ""), finish, cost)


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


def record_format(schema: Mapping[str, Json], names: Sequence[str] | None = None) -> Json:
    """The `response_format` of an answer whose records follow `schema`; with `names`, fields that
    name entities hold one of these (an empty sequence restricts nothing).

    Definitions are moved to the top, where references lead to. Lists get an end where the schema
    gives them none, since a small model that is forced to follow it may not find one.
    """
    record: dict[str, Any] = _limit_lists(dict(schema))
    definitions = record.pop("$defs", {})
    if names:
        record = _limit_names(record)
        definitions = {**definitions, "entity-name": {"enum": list(dict.fromkeys(names))}}
    wrapped: Json = {
        "type": "object",
        "properties": {"records": {"type": "array", "items": record}},
        "required": ["records"],
        "additionalProperties": False,
        "$defs": definitions,
    }
    return {"type": "json_schema", "json_schema": {"name": "records", "schema": wrapped}}


def _limit_lists(schema: Any) -> Any:
    """A schema whose lists of texts are short, and hold short texts."""
    if isinstance(schema, list):
        return [_limit_lists(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limited = {key: _limit_lists(part) for key, part in schema.items()}
    if limited.get("type") == "array":
        limited.setdefault("maxItems", LIST_ITEMS)
        items = limited.get("items")
        if isinstance(items, dict) and items.get("type") == "string" and "enum" not in items:
            items.setdefault("maxLength", ITEM_CHARACTERS)
    return limited


def _limit_names(schema: Any) -> Any:
    """A schema whose fields that name entities refer to the list; a flagged `object` is free."""
    if isinstance(schema, list):
        return [_limit_names(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    limited = {key: _limit_names(part) for key, part in schema.items()}
    fields = limited.get("properties", {})
    for name in NAME_FIELDS & fields.keys():
        if name != "object" or "object-entity" not in fields:
            fields[name] = {"$ref": "#/$defs/entity-name"}
    return limited


_WRAPPER = re.compile(r'\s*(?:```\w*\s*)?\{\s*"records"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def unwrap_records(text: str) -> str:
    """The records in `{"records": […]}`, one a line, also a cut one; other text as it is."""
    head = _WRAPPER.match(text)
    if head is None:
        return text
    lines, position = [], head.end()
    with suppress(ValueError, RecursionError):
        while gap := _BETWEEN.match(text, position):
            position = gap.end()
            _, end = _DECODER.raw_decode(text, position)
            lines.append(text[position:end])
            position = end
    if rest := text[position:].strip(" \t\r\n]}`"):
        lines.append(rest)
    return "\n".join(re.sub(r"[\r\n]", " ", line) for line in lines)


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint.

    - `dim`: known for OpenAI's own models; a smaller one asks text-embedding-3-* for shorter
      vectors. For other models give it, or reading `.dim` sends one request and waits.
    - `query_prefix`, `passage_prefix`: put before every text.
    - `max_tokens`: the longest text the model reads.
    - `max_retries`: how often a request that failed in passing is repeated, by an index that uses
      this embedder; one call of `embed` is one request.
    - `max_answer_bytes`: a longer answer is not read to its end, and fails.
    - `spec`: the name that makes it again; "" if a name is not enough.

    Raises `EmbeddingError`, or `ConfigError` if there is no key.
    """

    remote = True

    def __init__(
        self,
        model: str,
        *,
        dim: int | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        max_answer_bytes: int = 100_000_000,
        extra_body: Mapping[str, Json] | None = None,
    ) -> None:
        known = DIMS.get(model)
        self.model = model
        self.max_tokens = max_tokens or (OPENAI_MAX_TOKENS if known else None)
        self.max_retries = max_retries
        self.name = f"{model} + {passage_prefix!r}" if passage_prefix else model
        self.spec = "" if query_prefix or passage_prefix or extra_body else f"openai:{model}"
        self._dim = dim or known
        self._prefixes = {"query": query_prefix, "passage": passage_prefix}
        self._extra_body = dict(extra_body or {})
        if known and self._dim != known:
            self._extra_body.setdefault("dimensions", dim)
        self._connection = Connection(base_url, api_key, timeout, max_answer_bytes)

    @property
    def dim(self) -> int:
        """The length of a vector; if it is unknown, this sends one small request and waits."""
        if self._dim is None:
            with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
                vectors = thread.submit(asyncio.run, self._sample()).result()
            self._dim = vectors.shape[1]
        return self._dim

    async def _sample(self) -> Vectors:
        """The vector of a short text, which shows how long vectors are."""
        return await with_retries(
            lambda: self.embed(["dim"], kind="query"), retries=self.max_retries
        )

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Vectors:
        """float32 of shape (len(texts), dim), rows of unit length, in the order of `texts`."""
        if not texts:
            return np.zeros((0, self._dim or 0), dtype=np.float32)
        items, host = await self._create(texts, self._prefixes[kind]), self._connection.host
        try:
            rows = {item.get("index", n): item["embedding"] for n, item in enumerate(items)}
            ordered = [rows[index] for index in range(len(items))]
        except (TypeError, AttributeError, LookupError) as error:
            raise EmbeddingError(f"{host}: the response is not a list of vectors") from error
        return normalize_vectors(ordered, count=len(texts), dim=self._dim, source=host)

    async def _create(self, texts: Sequence[str], prefix: str) -> Any:
        embeddings: Any = self._connection.client().embeddings.with_raw_response
        try:
            with self._connection.failures():
                response = await embeddings.create(
                    model=self.model,
                    input=[prefix + sanitize(text) or " " for text in texts],  # never empty
                    encoding_format="float",
                    extra_body=self._extra_body,
                )
                self._connection.check_length(response.content)
                return json.loads(response.content).get("data")
        except LLMError as error:
            raise EmbeddingError(
                str(error),
                unavailable=not error.refused,
                transient=error.transient,
                retry_after=error.retry_after,
            ) from error.__cause__

    def clip(self, text: str) -> str:
        """The beginning of a passage, at most `max_tokens` long, which the model reads."""
        if self.max_tokens is None:
            return text
        limit = self.max_tokens - len(self._prefixes["passage"].encode())
        if len(text) * 4 <= limit:  # a token is at least one byte, a character at most four
            return text
        tokenizer = default_tokenizer()
        margin = 1.0 - float(getattr(tokenizer, "error", 0.0))
        return tokenizer.truncate(text, max(1, int(limit * margin)))
