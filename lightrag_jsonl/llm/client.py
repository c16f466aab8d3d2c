"""Every call to the model: render, look in the cache, call, store the answer, parse it."""

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, TypedDict, Unpack
from weakref import WeakValueDictionary

import msgspec

from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.errors import (
    FREE,
    ConfigError,
    LightRAGError,
    LLMError,
    ResponseError,
    StorageError,
)
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.protocols import LLM, ConstrainedLLM, StreamingLLM
from lightrag_jsonl.core.retrying import retries_of, with_retries
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import (
    Completion,
    Finish,
    Json,
    JsonlResult,
    Message,
    ResponseType,
)
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL, checked_completion, described
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.loops import LoopDetector
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.llm.reader import Normalize, parse_jsonl
from lightrag_jsonl.llm.scheduler import QUESTION, CallScheduler
from lightrag_jsonl.llm.thinking import ThinkingFilter, without_prompted_thinking, without_thinking

BROKEN_OFF: Mapping[Finish, str] = {
    "filter": "a content filter of the model's server cut the answer off",
    "error": "the model's server broke the answer off",
}

log = logging.getLogger(__name__)


class Cache(Protocol):
    """Where answers are stored; see `storage.store.CompletionCache`."""

    async def get(self, key: bytes) -> Completion | None: ...

    async def put(
        self, key: bytes, completion: Completion, document: str | None = None
    ) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...


class UsageMeter:
    """Adds up what an operation costs, in its parent, too; subclasses may set limits."""

    def __init__(self, parent: "UsageMeter | None" = None) -> None:
        self.spent = Usage()
        self._parent = parent

    def check(self) -> None:
        """Raise `BudgetError` if a limit is reached; called before each model call."""
        if self._parent is not None:
            self._parent.check()

    def add(self, usage: Usage) -> None:
        """Count what a call has cost."""
        self.spent += usage
        if self._parent is not None:
            self._parent.add(usage)

    @contextlib.contextmanager
    def attach_usage(self) -> Iterator[None]:
        """Set `usage` of an error that leaves this block to what was spent until then."""
        try:
            yield
        except LightRAGError as error:
            error.usage = self.spent
            raise


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer; `usage` is what it cost now, failed attempts included: nothing if cached."""

    messages: tuple[Message, ...]
    completion: Completion
    key: bytes
    cached: bool
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        """What the model wrote."""
        return self.completion.text

    @property
    def text_without_thinking(self) -> str:
        """The text without the thinking at its beginning; "" if there is nothing else."""
        return without_thinking(self.text)

    @property
    def readable_text(self) -> str:
        """What readers are shown: the text without thinking, or all of it if there is nothing else."""
        return self.text_without_thinking or self.text

    @property
    def cut_off(self) -> bool:
        """Whether the model stopped at its token limit."""
        return self.completion.finish == "length"

    @property
    def broken_off(self) -> str:
        """Why the rest of the answer was withheld or lost; "" if it was not."""
        return BROKEN_OFF.get(self.completion.finish, "")


@dataclass(frozen=True, slots=True)
class Records:
    """A JSONL answer and the records read from it."""

    reply: Reply
    result: JsonlResult


Put: TypeAlias = Callable[[str], Awaitable[None]]


class HowToAsk(TypedDict, total=False):
    """Fields of a request that its callers choose; the default `priority` is that of a question.

    `document` is the id of the only document that is quoted.
    """

    max_tokens: int | None
    priority: int
    document: str | None


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to the model; with `for_reader`, an empty answer is a failure.

    `put` is given the answer in pieces; once some was `shown`, a failed call cannot be repeated
    unnoticed.
    """

    prompt: str
    messages: tuple[Message, ...]
    response_type: ResponseType = "text"
    max_tokens: int | None = None
    schema: Mapping[str, Json] | None = None
    names: Sequence[str] | None = None
    priority: int = QUESTION
    for_reader: bool = False
    document: str | None = None
    put: Put | None = None
    shown: list[str] = field(default_factory=list)

    async def show(self, piece: str) -> None:
        """Pass on a piece of the answer."""
        if piece and self.put is not None:
            self.shown.append(piece)
            await self.put(piece)


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
        self._llm = llm
        self._constrained = llm if isinstance(llm, ConstrainedLLM) else None  # slow to check
        self._cache = cache
        self.stores_answers = store_answers
        self._limits = limits or Limits()
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
        meter: UsageMeter | None = None,
        **how: Unpack[HowToAsk],
    ) -> Reply:
        """The model's text; `messages` is a conversation that goes on from the rendered prompt."""
        messages = tuple(messages) or self.prompts.render(prompt, variables)
        return await self._reply(_Request(prompt, messages, **how), meter)

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
        request = _Request(prompt, self.prompts.render(prompt, variables), "json")
        schema = self.prompts.schema(prompt, variables)
        for _ in range(2):
            reply = await self._reply(request, meter)
            try:
                return read_json(reply.text, schema=schema, normalize=normalize)
            except ResponseError as error:
                failure = error
                await self.forget(reply)
        raise failure

    async def jsonl(
        self,
        prompt: str,
        variables: Mapping[str, object],
        *,
        messages: Sequence[Message] = (),
        normalize: Normalize | None = None,
        names: Sequence[str] | None = None,
        meter: UsageMeter | None = None,
        **how: Unpack[HowToAsk],
    ) -> Records:
        """The model's records, checked against the schema after `normalize`; see also `text`.

        `names` limits entity names if the model's server can enforce that.
        """
        messages = tuple(messages) or self.prompts.render(prompt, variables)
        schema = self.prompts.schema(prompt, variables)
        source = None if schema is None else schema.source
        request = _Request(prompt, messages, "jsonl", schema=source, names=names, **how)
        reply = await self._reply(request, meter)
        answer = without_prompted_thinking(reply.text)
        return Records(reply, parse_jsonl(answer, schema=schema, normalize=normalize))

    async def chat(
        self, messages: Sequence[Message], meter: UsageMeter | None = None, put: Put | None = None
    ) -> Reply:
        """The model's answer to a conversation; an empty one is an `LLMError`.

        `put` is given its readable text: in pieces as they are written, or whole if it is cached
        or the model cannot stream.
        """
        request = _Request("chat", tuple(messages), for_reader=True, put=put)
        reply = await self._reply(request, meter)
        if not request.shown:
            await request.show(reply.readable_text)
        return reply

    async def forget(self, reply: Reply) -> None:
        """Remove an unusable answer from the cache, so that the next call asks again."""
        with contextlib.suppress(StorageError):  # then it was not stored either
            await self._cache.delete([reply.key])

    # ── one call ────────────────────────────────────────────────────────────────

    async def _reply(self, request: _Request, meter: UsageMeter | None) -> Reply:
        """The answer from the cache or the model; of the same requests at once, one is sent."""
        messages = tuple([Message(turn.role, sanitize(turn.content)) for turn in request.messages])
        request, paid = replace(request, messages=messages), UsageMeter(meter)
        key = request_key(self.llm.name, messages, request.response_type, request.max_tokens)
        lock = self._in_flight.setdefault(key, asyncio.Lock())
        async with lock:
            cached = await self._cache.get(key)
            if cached is not None and (cached.text.strip() or not request.for_reader):
                return Reply(messages, cached, key, True)
            async with self.scheduler.slot(request.priority):
                completion = await self._call(request, paid)
                try:
                    await self._store(request, key, completion)
                except asyncio.CancelledError:  # a reader who leaves may ask the same again
                    await self._store(request, key, completion)
                    raise
            return Reply(messages, completion, key, False, paid.spent)

    async def _store(self, request: _Request, key: bytes, completion: Completion) -> None:
        """Store an answer that is not broken off; if that fails, one to a question is still given."""
        if not self.stores_answers or completion.broken_off:
            return
        try:
            await self._cache.put(key, completion, request.document)
        except StorageError as error:
            if request.priority != QUESTION:
                raise
            log.warning("%s: the model's answer is not stored: %s", request.prompt, error)

    async def _call(self, request: _Request, paid: UsageMeter) -> Completion:
        """The model's answer; transient errors are retried, unless some of it was shown."""
        return await with_retries(
            lambda: self._attempt(request, paid),
            retries=retries_of(self.llm),
            may_repeat=lambda: not request.shown,
        )

    async def _attempt(self, request: _Request, paid: UsageMeter) -> Completion:
        """One attempt; its cost is counted even if it fails, as a call if nobody knows its tokens."""
        paid.check()
        started, name = time.monotonic(), self.llm.name
        try:
            completion = checked_completion(
                await self._complete(request), name, longest=self._limits.answer_characters
            )
        except asyncio.CancelledError:
            paid.add(ONE_CALL)
            raise
        except LLMError as error:
            paid.add(ONE_CALL if request.shown and not error.cost.calls else error.cost)
            raise
        paid.add(completion.usage)
        log.debug("%s: %s, %.2f s", request.prompt, completion.usage, time.monotonic() - started)
        if request.for_reader and not completion.text.strip():
            reasons = {"length": " before its token limit", "filter": f": {BROKEN_OFF['filter']}"}
            reason = reasons.get(completion.finish, "")
            raise LLMError(f"{name} wrote nothing{reason}", transient=not reason)
        return completion

    async def _complete(self, request: _Request) -> Completion:
        """The model's answer; whatever else a user's own model does becomes an `LLMError`."""
        try:
            return await abandonable(self._ask(request), timeout=self._limits.call_seconds)
        except LightRAGError:
            raise
        except Exception as error:  # the user's own code may raise anything
            message = f"{self.llm.name} failed: {described(error)}"
            lost = "Timeout" in type(error).__name__ or isinstance(error, ConnectionResetError)
            transient = isinstance(error, OSError) and not lost
            raise LLMError(message, transient=transient, cost=ONE_CALL if lost else FREE) from error

    async def _ask(self, request: _Request) -> Completion:
        llm, messages, limit = self.llm, request.messages, request.max_tokens
        if request.schema is not None and self._constrained is not None:
            return await self._constrained.complete_records(
                messages, schema=request.schema, names=request.names, max_tokens=limit
            )
        if request.put is not None and isinstance(llm, StreamingLLM):
            most = self._limits.answer_characters
            return await _read_stream(llm.stream(messages), request, most)
        return await llm.complete(messages, response_type=request.response_type, max_tokens=limit)


def request_key(
    model: str, messages: Sequence[Message], response_type: ResponseType, max_tokens: int | None
) -> bytes:
    """The cache key of a completion: a hash of the model's name and the whole request."""
    request = msgspec.json.encode([model, response_type, max_tokens, messages])
    return hashlib.sha256(request).digest()


async def _read_stream(source: AsyncIterator[str], request: _Request, most: int) -> Completion:
    """Read a model's stream to its end, passing on each piece, except for leading thinking.

    Of more than `most` characters the rest is not read, nor is it once the model repeats itself.
    """
    text, length = list[str](), 0
    thinking = ThinkingFilter()
    loops = LoopDetector()
    try:
        async for piece in source:
            if piece and not isinstance(piece, str):
                raise TypeError(f"a piece of its answer is {type(piece).__name__}, not text")
            text.append(sanitize(piece or ""))  # some clients end with None
            await request.show(thinking.feed(text[-1][: most - length]))
            length += len(text[-1])
            if length > most:
                break
            if loops.feed(text[-1]):
                log.warning("%s: the answer is cut off, since it repeats itself", request.prompt)
                return Completion(
                    "".join(text), "length", getattr(source, "usage", None) or ONE_CALL
                )
    finally:
        if close := getattr(source, "aclose", None):
            await close()
    usage, finish = getattr(source, "usage", None), getattr(source, "finish", None)
    return Completion("".join(text), finish or "stop", usage or Usage())
