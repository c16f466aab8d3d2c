"""Chat models behind any endpoint of OpenAI's protocol."""

import base64
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from lightrag_jsonl.core.errors import ConfigError, LLMError
from lightrag_jsonl.core.loops import LoopDetector, RecordCounter
from lightrag_jsonl.core.tokens import FittedTokenizer
from lightrag_jsonl.core.types import Completion, Finish, Json, Message, Picture, ResponseType
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL, finish_of
from lightrag_jsonl.providers.completions import (
    read_completion,
    read_content,
    read_thoughts,
    read_usage,
    text_of_thoughts,
)
from lightrag_jsonl.providers.connection import LLAMA_CPP, OLLAMA, ServerConnection
from lightrag_jsonl.providers.openai_batches import OpenAIBatches
from lightrag_jsonl.providers.record_format import record_format, unwrap_records
from lightrag_jsonl.providers.record_grammar import record_grammar
from lightrag_jsonl.providers.silence import ServerSilence
from lightrag_jsonl.providers.window_check import WindowCheck
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize

JsonObject: TypeAlias = dict[str, Json]

_REFUSABLE = {  # fields that a server may refuse, each with words of the refusal
    "max_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "reasoning_effort": "reasoning_effort|reasoning effort",
    "stream_options": "stream_options",
    "response_format": "response_format|schema|grammar",
    "grammar": "grammar",
}
_ABOUT_ROLES = pattern_of(  # a refusal of a request with a system message, which is tried without
    r"\broles?\b|system[ _](?:message|prompt|instruction)|developer instruction|角色|系统消息",
    re.IGNORECASE,
)
_ABOUT_STREAMS = pattern_of(r"stream(?!_options)|流式", re.IGNORECASE)
_ABOUT_ANSWER_LENGTH = pattern_of(r"max[_ ]?(?:completion|new|output)?[_ ]?tokens", re.IGNORECASE)
_WHOLE_NUMBER = pattern_of(
    r"(?<![\w.:-])\d{1,3}(?:,\d{3})+(?![\w-])|(?<![\w.:-])\d{2,8}(?![\w-])", re.ASCII
)
_SERVERS_WORDS = pattern_of(r"\(HTTP \d{3}: (.*)", re.DOTALL)

log = logging.getLogger(__name__)


class OpenAILLM:
    """A chat model behind an OpenAI-compatible endpoint; also a `StreamingLLM`, `ConstrainedLLM` and `VisionLLM`.

    - `temperature`: None leaves the choice to the server. `reasoning_effort`: as the server calls it
      ("low", "none", …). `extra_body`: merged into every request; `extra_headers`: sent with each.
    - `max_tokens`: the longest possible answer of the model; no request asks for more.
    - `context_tokens`: the model's window: the tokens of a request and of the answer together.
      Chunks and conversations of an index then fit into the window.
    - `timeout`: seconds of silence after which a request fails.
    - `max_retries`: the repetitions of a request after a passing error, by an index with the model;
      a call of a method here is a single request.
    - `requests_per_minute`, `tokens_per_minute`: limits of the account, kept by an index with the
      model; the tokens of requests and answers count.
    - `constrain`: "off" leaves the format to the prompt. "auto" sends the record schema, so that
      the server forces the format of the answer, unless the server refuses; llama.cpp gets a
      grammar without white space instead. "grounded" also limits the names of entities to a list.
    - `max_answer_bytes`: a longer answer is not read to the end, and fails; in a stream an event.
    - `name`: part of cache keys; two configurations of a model need different names.

    Raises `LLMError`, or `ConfigError` without a key.
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
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        max_tokens: int | None = None,
        context_tokens: int | None = None,
        reasoning_effort: str | None = None,
        extra_body: Mapping[str, Json] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        constrain: Literal["auto", "off", "grounded"] = "off",
        max_answer_bytes: int = 4_000_000,
        name: str | None = None,
    ) -> None:
        if constrain not in ("auto", "off", "grounded"):
            raise ConfigError(f"constrain must be 'auto', 'off' or 'grounded', not {constrain!r}")
        self.model = model
        self.name = name or model
        self.max_retries = max_retries
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self.context_tokens = context_tokens
        self.constrain = constrain
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._reasoning_effort = reasoning_effort
        self._extra_body = dict(extra_body or {})
        self._connection = ServerConnection(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_bytes=max_answer_bytes,
            headers=dict(extra_headers or {}),
        )
        # Files of results may have any length.
        self.batch_api = OpenAIBatches(replace(self._connection, max_bytes=None))
        self._refused: frozenset[str] = frozenset()  # fields that this model has refused
        self._window_check = WindowCheck(self.name)
        self._longest_answer: int | None = None  # tokens, if a refusal has named them
        self._streams_only = False  # whether the model refuses to answer in one piece
        self._has_system_role = True  # whether the model's chat template takes a system message
        self._program: str | None = None  # that serves the model; None before it was looked for
        self._is_llama_cpp = False  # whether an answer came from llama.cpp, which takes grammars
        self._watches_loops = False  # whether the server stops writing when a stream is closed

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._connection.url

    def check_key(self) -> None:
        """Raise `ConfigError` if the server needs a key, and there is none."""
        self._connection.key()

    def share_silence(self, silences: dict[str, ServerSilence]) -> None:
        """Share the clock of silence with other models at the same server."""
        self._connection.share_silence(silences)

    @property
    def first_concurrent_calls(self) -> int:
        """The calls in flight before anything is known about the server."""
        return self._connection.first_concurrent_calls

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        response_type: ResponseType = "text",
        max_tokens: int | None = None,
    ) -> Completion:
        """The model's answer, with the end's reason and the cost."""
        body = self.request_body(messages, max_tokens=max_tokens)
        return await self._complete(body, in_records=response_type == "jsonl")

    def stream(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> "ChatStream":
        """The answer piece by piece; a broken connection raises `LLMError`."""
        return self._stream(self.request_body(messages, max_tokens=max_tokens))

    def _stream(self, body: JsonObject) -> "ChatStream":
        body = {"stream_options": {"include_usage": True}, **body}
        open_stream = partial(self._create, body, stream=True)
        return ChatStream(
            open_stream,
            connection=self._connection,
            model=self.name,
            check_usage=partial(self._window_check.check, body["messages"]),
        )

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
        await self._recognize_server()
        if self.constrain != "off":
            allowed_names = names if self.constrain == "grounded" else None
            body |= self._constraint(schema, allowed_names)
        answer = await self._complete(body, in_records=True)
        return replace(answer, text=unwrap_records(answer.text))

    async def see(
        self, messages: Sequence[Message], picture: Picture, *, max_tokens: int | None = None
    ) -> Completion:
        """Like `complete`, with a picture in the last message."""
        body = self.request_body(messages, max_tokens=max_tokens)
        data = base64.b64encode(picture.data).decode()
        image: Json = {"url": f"data:{picture.media_type};base64,{data}"}
        turns: Any = body["messages"]
        parts = [{"type": "text", "text": turns[-1]["content"]}]
        last_turn = {**turns[-1], "content": [*parts, {"type": "image_url", "image_url": image}]}
        body_with_picture = {**body, "messages": [*turns[:-1], last_turn]}
        return await self._complete(body_with_picture, in_records=False)

    def _constraint(self, schema: Mapping[str, Json], names: Sequence[str] | None) -> JsonObject:
        """The field of a request for enforced records: a grammar for llama.cpp, else the schema."""
        if self._is_llama_cpp and "grammar" not in self._refused:
            grammar = record_grammar(schema, names)
            if grammar is not None:
                return {"grammar": grammar}
        return {"response_format": record_format(schema, names)}

    def request_body(
        self, messages: Sequence[Message], *, max_tokens: int | None = None
    ) -> JsonObject:
        """The body of a request, for `complete` and for senders of another kind (a batch file)."""
        turns: list[Json] = [
            {"role": message.role, "content": sanitize(message.content)} for message in messages
        ]
        body: JsonObject = {"model": self.model, "messages": turns}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        token_limits = [limit for limit in (max_tokens, self._max_tokens) if limit is not None]
        if token_limits:
            body["max_tokens"] = min(token_limits)
        if self._reasoning_effort is not None:
            body["reasoning_effort"] = self._reasoning_effort
        return body | self._extra_body

    async def _recognize_server(self) -> None:
        """Learn before the first answer whether endless answers can be ended."""
        if self._program is None:
            self._program = await self._connection.program()
            self._is_llama_cpp = self._program == LLAMA_CPP
            self._watches_loops = self._program in (LLAMA_CPP, OLLAMA)

    async def _complete(self, body: JsonObject, *, in_records: bool) -> Completion:
        """The whole answer; from a stream if the model supports only streams, or if the model is
        local: a repetitive answer can then be ended early.
        """
        await self._recognize_server()
        if self._streams_only or self._watches_loops:
            return await self._streamed_completion(body, in_records=in_records)
        try:
            response = await self._create(body)
        except LLMError as error:
            if not error.refused or not _ABOUT_STREAMS.search(_servers_words(error)):
                raise
            completion = await self._streamed_completion(body, in_records=in_records)
            log.warning("%s: asking for a stream from now on", error)
            self._streams_only = True
            return completion
        self._is_llama_cpp = LLAMA_CPP in response.headers.get("server", "")
        self._connection.check_length(response.content)
        with self._connection.failures():
            answer = json.loads(response.content)
        is_ollama = answer.get("system_fingerprint") == "fp_ollama"
        self._watches_loops = self._is_llama_cpp or is_ollama
        completion = read_completion(answer)
        self._window_check.check(body["messages"], completion.usage)
        return completion

    async def _streamed_completion(self, body: JsonObject, *, in_records: bool) -> Completion:
        """The whole answer from a stream, closed as soon as the model repeats itself."""
        stream = self._stream(body)
        pieces: list[str] = []
        loops = LoopDetector()
        records = RecordCounter()
        async for piece in stream:
            pieces.append(piece)
            if loops.feed(piece) or (in_records and records.feed(piece)):
                await stream.aclose()
                log.warning("%s: an answer was ended, since it repeats itself", self.name)
                text = "".join(pieces)
                return Completion(text, finish="length", usage=_estimated_usage(body, text))
        return Completion("".join(pieces), finish=stream.finish, usage=stream.usage)

    async def _create(self, body: JsonObject, *, stream: bool = False) -> Any:
        """The SDK's raw response or stream, asked for again without refused fields."""
        limit = body.get("max_tokens")
        if self._longest_answer is not None and isinstance(limit, int):
            body = {**body, "max_tokens": min(self._longest_answer, limit)}
        sent = {key: value for key, value in body.items() if key not in self._refused}
        if "max_tokens" in self._refused and "max_tokens" in body:
            sent["max_completion_tokens"] = body["max_tokens"]
        if not self._has_system_role:
            sent["messages"] = _without_system_role(sent["messages"])
        extra = {key: sent[key] for key in sent if key not in ("model", "messages")}
        completions: Any = self._connection.client().chat.completions
        try:
            with self._connection.failures():
                return await (completions if stream else completions.with_raw_response).create(
                    model=self.model, messages=sent["messages"], stream=stream, extra_body=extra
                )
        except LLMError as error:
            if not self._is_met_halfway(sent, error):
                raise
        has_system_role = self._has_system_role
        try:
            return await self._create(body, stream=stream)
        except LLMError as error:
            if error.refused and not has_system_role and _has_system_message(body["messages"]):
                self._has_system_role = True  # the refusal was about something else
            raise

    def _is_met_halfway(self, sent: JsonObject, error: LLMError) -> bool:
        """Whether the next request will be changed to suit the refusal."""
        if error.permanent:
            return False
        words = _servers_words(error)  # some servers refuse a role with 500
        is_about_role = error.refused and bool(_ABOUT_ROLES.search(words))
        if is_about_role and _has_system_message(sent["messages"]):
            log.warning("%s: asking with the system message in the first user message", error)
            self._has_system_role = False
            return True
        longest_answer = _longest_answer(sent, words) if error.refused else None
        if longest_answer is not None:
            log.warning("%s: asking for %d tokens at most", error, longest_answer)
            self._longest_answer = longest_answer
            return True
        refused = set() if error.transient else _refused_fields(sent, str(error))
        if refused:
            log.warning("%s: asking without %s", error, ", ".join(sorted(refused)))
            self._refused |= refused
        return bool(refused)


def _estimated_usage(body: Mapping[str, Any], text: str) -> Usage:
    """The estimated cost of an answer ended before the server counted."""
    count = FittedTokenizer().count
    input_tokens = sum(count(message["content"]) for message in body["messages"])
    return Usage(input_tokens=input_tokens, output_tokens=count(text), calls=1)


def _has_system_message(messages: Any) -> bool:
    return any(message["role"] == "system" for message in messages)


def _without_system_role(messages: Any) -> Json:
    """The messages with the text of system messages at the beginning of the first user message."""
    instructions = [message["content"] for message in messages if message["role"] == "system"]
    turns = [message for message in messages if message["role"] != "system"]
    if not instructions:
        return turns
    if not turns or turns[0]["role"] != "user":
        return [{"role": "user", "content": "\n\n".join(instructions)}, *turns]
    content = turns[0]["content"]
    if isinstance(content, list):  # with a picture
        first_parts = [{"type": "text", "text": text} for text in instructions]
        return [{**turns[0], "content": [*first_parts, *content]}, *turns[1:]]
    first = {**turns[0], "content": "\n\n".join([*instructions, content])}
    return [first, *turns[1:]]


def _servers_words(error: LLMError) -> str:
    """The server's own words in the message of an error, without address and advice."""
    words = _SERVERS_WORDS.search(str(error))
    return words[1] if words else ""


def _longest_answer(body: JsonObject, refusal: str) -> int | None:
    """The most tokens of an answer by a refusal such as "Range of max_tokens should be [1, 8192]":
    the largest number smaller than the number sent.
    """
    sent = body.get("max_tokens", body.get("max_completion_tokens"))
    if not isinstance(sent, int) or not _ABOUT_ANSWER_LENGTH.search(refusal):
        return None
    numbers = [int(number.replace(",", "")) for number in _WHOLE_NUMBER.findall(refusal)]
    return max((number for number in numbers if number < sent), default=None)


def _refused_fields(body: JsonObject, message: str) -> set[str]:
    """The fields of a request named by the server's refusal."""
    fields = _REFUSABLE.keys() & body
    return {name for name in fields if re.search(_REFUSABLE[name], message.lower())}


class ChatStream:
    """An answer in pieces; after the last, `usage` is the cost, and `finish` the kind of end.

    If the model only thought, the last piece is `text_of_thoughts`.
    """

    def __init__(
        self,
        open_stream: Callable[[], Awaitable[Any]],
        *,
        connection: ServerConnection,
        model: str,
        check_usage: Callable[[Usage], None],
    ) -> None:
        self.usage = ONE_CALL
        self.finish: Finish = "stop"
        self._open_stream = open_stream
        self._connection = connection
        self._model = model
        self._check_usage = check_usage
        self._pieces = self._read()

    def __aiter__(self) -> "ChatStream":
        return self

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Stop early, and free the connection."""
        await self._pieces.aclose()

    async def _read(self) -> AsyncGenerator[str, None]:
        reason = None
        has_text = False
        thoughts: list[str] = []
        async with await self._open_stream() as chunks:
            try:
                with self._connection.failures():
                    async for chunk in chunks:
                        for choice in chunk.choices[:1]:
                            content = read_content(choice.delta and choice.delta.content)
                            if content:
                                has_text = has_text or not content.isspace()
                                yield sanitize(content)
                            elif choice.delta and not has_text:
                                thoughts.append(read_thoughts(choice.delta.to_dict(warnings=False)))
                            reason = reason or choice.finish_reason
                        if chunk.usage:
                            self.usage = read_usage(chunk.usage.to_dict(warnings=False))
                            self._check_usage(self.usage)
            except LLMError as error:
                if reason is None:  # otherwise only the connection ended badly
                    error.cost = self.usage
                    raise
        if reason is None:
            raise LLMError(f"{self._model}: the response ended early", cost=self.usage)
        if not has_text and (text := text_of_thoughts("".join(thoughts))):
            yield sanitize(text)
        self.finish = finish_of(reason)
