"""The one door to the model: render, look in the cache, call, store the answer, parse it."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from weakref import WeakValueDictionary

from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.errors import (
    FREE,
    ConfigError,
    LightRAGError,
    LLMError,
    ResponseError,
    StorageError,
    described,
)
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.protocols import LLM, ConstrainedLLM, StreamingLLM
from lightrag_jsonl.core.retrying import PATIENCE, READER_PATIENCE, retries_of, with_retries
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Completion, Json, Message
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL, checked_completion
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.llm.reader import Normalize, parse_jsonl
from lightrag_jsonl.llm.requests import (
    BROKEN_OFF,
    ModelReply,
    ModelRequest,
    PieceReceiver,
    Records,
    request_key,
)
from lightrag_jsonl.llm.scheduler import QUESTION, CallScheduler
from lightrag_jsonl.llm.streaming import read_stream
from lightrag_jsonl.llm.thinking import without_prompted_thinking

log = logging.getLogger(__name__)


class Cache(Protocol):
    """The store of answers; see `storage.store.CompletionCache`."""

    async def get(self, key: bytes) -> Completion | None: ...

    async def put(
        self, key: bytes, completion: Completion, document: str | None = None
    ) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...


class UsageMeter:
    """Adds up the cost of an operation, also in the meter of its parent; subclasses may set limits."""

    def __init__(self, parent: "UsageMeter | None" = None) -> None:
        self.spent = Usage()
        self._parent = parent

    def check(self) -> None:
        """Raise `BudgetError` if a limit is reached; called before each model call."""
        if self._parent is not None:
            self._parent.check()

    def add(self, usage: Usage) -> None:
        """Count the cost of a call."""
        self.spent += usage
        if self._parent is not None:
            self._parent.add(usage)

    @contextlib.contextmanager
    def attach_usage(self) -> Iterator[None]:
        """Set `usage` of an error from this block to the amount spent until then."""
        try:
            yield
        except LightRAGError as error:
            error.usage = self.spent
            raise


class ModelClient:
    """Asks one model with one set of prompts, with a limit on calls in flight.

    With `store_answers` false the cache is read but never written, for rehearsals.
    """

    def __init__(
        self,
        llm: LLM | None,
        prompts: PromptManager,
        cache: Cache,
        *,
        max_concurrent_calls: int,
        store_answers: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.prompts = prompts
        self.scheduler = CallScheduler(max_concurrent_calls)
        self.has_model = llm is not None
        self.stores_answers = store_answers
        self._llm = llm
        self._constrained = llm if isinstance(llm, ConstrainedLLM) else None  # slow to check
        self._limits = limits or Limits()
        self._cache = cache
        self._in_flight: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    @property
    def llm(self) -> LLM:
        """The model; `ConfigError` if there is none."""
        if self._llm is None:
            raise ConfigError("this needs a model: pass llm=… (or --llm on the command line)")
        return self._llm

    async def text(
        self,
        prompt: str,
        variables: Mapping[str, object],
        *,
        messages: Sequence[Message] = (),
        max_tokens: int | None = None,
        priority: int = QUESTION,
        document: str | None = None,
        meter: UsageMeter | None = None,
    ) -> ModelReply:
        """The model's text; `messages` is a conversation that goes on from the rendered prompt.

        `document` is the id of the only document quoted, with which the cached answer is deleted.
        """
        request = ModelRequest(
            prompt=prompt,
            messages=tuple(messages) or self.prompts.render(prompt, variables),
            max_tokens=max_tokens,
            priority=priority,
            document=document,
        )
        return await self._reply(request, meter)

    async def json(
        self,
        prompt: str,
        variables: Mapping[str, object],
        meter: UsageMeter | None = None,
        *,
        normalize: Callable[[Json], Json] | None = None,
    ) -> Json:
        """The model's JSON value, checked against the schema after `normalize`.

        An unreadable answer is asked for once more; then it is a `ResponseError`.
        """
        messages = self.prompts.render(prompt, variables)
        request = ModelRequest(prompt=prompt, messages=messages, response_type="json")
        schema = self.prompts.schema(prompt, variables)

        async def ask() -> Json:
            reply = await self._reply(request, meter)
            try:
                return read_json(reply.text, schema=schema, normalize=normalize)
            except ResponseError:
                await self.forget(reply)
                raise

        try:
            return await ask()
        except ResponseError:
            return await ask()

    async def jsonl(
        self,
        prompt: str,
        variables: Mapping[str, object],
        *,
        messages: Sequence[Message] = (),
        max_tokens: int | None = None,
        priority: int = QUESTION,
        document: str | None = None,
        meter: UsageMeter | None = None,
        normalize: Normalize | None = None,
        names: Sequence[str] | None = None,
    ) -> Records:
        """The model's records, checked against the schema after `normalize`; see also `text`.

        `names` limits entity names if the model's server can enforce the limit.
        """
        schema = self.prompts.schema(prompt, variables)
        request = ModelRequest(
            prompt=prompt,
            messages=tuple(messages) or self.prompts.render(prompt, variables),
            response_type="jsonl",
            max_tokens=max_tokens,
            schema=None if schema is None else schema.source,
            names=names,
            priority=priority,
            document=document,
        )
        reply = await self._reply(request, meter)
        answer = without_prompted_thinking(reply.text)
        result = parse_jsonl(answer, schema=schema, normalize=normalize)
        return Records(reply=reply, result=result)

    async def chat(
        self,
        messages: Sequence[Message],
        meter: UsageMeter | None = None,
        on_piece: PieceReceiver | None = None,
    ) -> ModelReply:
        """The model's answer to a conversation; an empty one is an `LLMError`.

        `on_piece` receives the readable text: in pieces as the model writes, or whole if the answer is
        cached or the model cannot stream.
        """
        request = ModelRequest(
            prompt="chat", messages=tuple(messages), for_reader=True, on_piece=on_piece
        )
        reply = await self._reply(request, meter)
        if not request.passed_pieces:
            await request.pass_on(reply.readable_text)
        return reply

    async def forget(self, reply: ModelReply) -> None:
        """Remove an unusable answer from the cache, so that the next call asks again."""
        with contextlib.suppress(StorageError):  # then it was not stored either
            await self._cache.delete([reply.key])

    async def _reply(self, request: ModelRequest, meter: UsageMeter | None) -> ModelReply:
        """The answer from the cache or the model; of equal requests at once, a single one is sent."""
        messages = [Message(turn.role, sanitize(turn.content)) for turn in request.messages]
        request = replace(request, messages=tuple(messages))
        key = request_key(
            self.llm.name, request.messages, request.response_type, request.max_tokens
        )
        lock = self._in_flight.setdefault(key, asyncio.Lock())
        async with lock:
            completion = await self._cache.get(key)
            cached = completion is not None and bool(
                completion.text.strip() or not request.for_reader
            )
            paid = UsageMeter(meter)
            if completion is None or not cached:
                completion = await self._call(request, key, paid)
        return ModelReply(
            messages=request.messages,
            completion=completion,
            key=key,
            cached=cached,
            usage=paid.spent,
        )

    async def _call(self, request: ModelRequest, key: bytes, meter: UsageMeter) -> Completion:
        """The model's answer, called in its turn, and stored.

        A call that fails in passing is repeated, unless the reader already has pieces of the answer.
        """
        async with self.scheduler.slot(request.priority):
            completion = await with_retries(
                lambda: self._attempt(request, meter),
                retries=retries_of(self.llm),
                may_repeat=lambda: not request.passed_pieces,
                patience=READER_PATIENCE if request.priority == QUESTION else PATIENCE,
            )
            try:
                await self._store(request, key, completion)
            except asyncio.CancelledError:  # a reader who leaves may ask the same again
                await self._store(request, key, completion)
                raise
        return completion

    async def _store(self, request: ModelRequest, key: bytes, completion: Completion) -> None:
        """Store an answer that is not broken off; an answer to a question survives a failure."""
        if not self.stores_answers or completion.broken_off:
            return
        try:
            await self._cache.put(key, completion, request.document)
        except StorageError as error:
            if request.priority != QUESTION:
                raise
            log.warning("%s: the model's answer is not stored: %s", request.prompt, error)

    # ── one call ────────────────────────────────────────────────────────────────

    async def _attempt(self, request: ModelRequest, meter: UsageMeter) -> Completion:
        """One attempt. A failed attempt costs, too: one call, if nobody knows the tokens."""
        meter.check()
        started = time.monotonic()
        try:
            completion = checked_completion(
                await self._complete(request),
                self.llm.name,
                longest=self._limits.answer_characters,
            )
        except asyncio.CancelledError:
            meter.add(ONE_CALL)
            raise
        except LLMError as error:
            is_uncounted = request.passed_pieces and not error.cost.calls
            meter.add(ONE_CALL if is_uncounted else error.cost)
            raise
        meter.add(completion.usage)
        log.debug("%s: %s, %.2f s", request.prompt, completion.usage, time.monotonic() - started)
        if request.for_reader and not completion.text.strip():
            raise _no_text_error(self.llm.name, completion)
        return completion

    async def _complete(self, request: ModelRequest) -> Completion:
        """The model's completion; any error of a user's own model becomes an `LLMError`."""
        try:
            return await abandonable(self._ask(request), timeout=self._limits.call_seconds)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own code may raise anything
            is_lost = "Timeout" in type(error).__name__ or isinstance(error, ConnectionResetError)
            raise LLMError(
                f"{self.llm.name} failed: {described(error)}",
                transient=isinstance(error, OSError) and not is_lost,
                cost=ONE_CALL if is_lost else FREE,
            ) from error

    async def _ask(self, request: ModelRequest) -> Completion:
        """Ask in the way that fits the request and the model."""
        llm = self.llm
        if request.schema is not None and self._constrained is not None:
            return await self._constrained.complete_records(
                request.messages,
                schema=request.schema,
                names=request.names,
                max_tokens=request.max_tokens,
            )
        if request.on_piece is not None and isinstance(llm, StreamingLLM):
            stream = llm.stream(request.messages)
            limit = self._limits.answer_characters
            return await read_stream(stream, request, max_characters=limit)
        return await llm.complete(
            request.messages,
            response_type=request.response_type,
            max_tokens=request.max_tokens,
        )


def _no_text_error(model: str, completion: Completion) -> LLMError:
    """The error of an empty answer; it may pass, unless the reason is known."""
    reasons = {"length": " before its token limit", "filter": f": {BROKEN_OFF['filter']}"}
    reason = reasons.get(completion.finish, "")
    return LLMError(f"{model} wrote nothing{reason}", transient=not reason)
