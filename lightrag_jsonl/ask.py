"""The one door to the model: render, look in the cache, call, store the answer, parse it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import orjson

from lightrag_jsonl.calls import answered, is_cancelled, is_lost
from lightrag_jsonl.completions import Teller, sound, written
from lightrag_jsonl.concurrency import uncut
from lightrag_jsonl.errors import (
    ConfigError,
    LightRAGError,
    LLMError,
    ResponseError,
    StorageError,
)
from lightrag_jsonl.jsonl import parse_jsonl
from lightrag_jsonl.loops import PerLoop
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import LLM, ConstrainedLLM, StreamingLLM
from lightrag_jsonl.reading.thoughts import without_opening_thought, without_thought
from lightrag_jsonl.slots import QUESTION, Slots
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.storage import cache
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.telling import Told
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import (
    Completion,
    Json,
    JsonlResult,
    Message,
    Record,
    ResponseType,
    Usage,
)

TRIES = 3  # attempts at a call with transient errors, besides an adapter's own retries
FIRST_PAUSE = 0.5  # seconds; doubled at each further try, unless the server says otherwise
LONGEST_PAUSE = 60.0
CUT_OFF = Usage(calls=1)  # the known cost of a call whose answer did not arrive whole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer; `usage` is what it cost now, with empty answers before it; nothing if it
    was cached.
    """

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
    def said(self) -> str:
        """The text without the model's thoughts at its beginning; "" if there is nothing else."""
        return without_thought(self.text)

    @property
    def shown(self) -> str:
        """What readers are shown: the text without thoughts, or the thoughts if there is nothing else."""
        return self.said or self.text

    @property
    def cut(self) -> bool:
        """Whether the model stopped at its token limit."""
        return self.completion.finish == "length"


@dataclass(frozen=True, slots=True)
class Records:
    """A JSONL answer and the records read from it."""

    reply: Reply
    result: JsonlResult


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to the model; `prompt` names the prompt, `teller` is given the answer as it is written.

    `spoken` means that a person will read the answer: an empty one counts as a failure.
    """

    prompt: str
    messages: tuple[Message, ...]
    response_type: ResponseType = "text"
    max_tokens: int | None = None
    schema: Mapping[str, Json] | None = None
    names: Sequence[str] | None = None
    turn: int = QUESTION
    new: bool = False
    spoken: bool = False
    teller: Teller | None = None

    def __post_init__(self) -> None:
        """Replace what UTF-8 cannot hold: a question may bring it in, and no model could read it."""
        clean = tuple(
            message
            if (text := sanitize(message.content)) is message.content
            else Message(message.role, text)
            for message in self.messages
        )
        object.__setattr__(self, "messages", clean)

    @property
    def begun(self) -> bool:
        """Whether part of the answer was passed on already."""
        return self.teller is not None and self.teller.begun


class Ask:
    """Asks one model with one set of prompts; limits the calls in flight from each event loop.

    Without `keep` the cache is read but never written, for rehearsals with a simulated model.
    """

    def __init__(
        self,
        llm: LLM | None,
        prompts: PromptManager,
        database: Database,
        *,
        max_concurrent_calls: int,
        clock: Callable[[], float] = time.time,
        keep: bool = True,
    ) -> None:
        self._llm = llm
        self._constrained = (
            llm if isinstance(llm, ConstrainedLLM) else None
        )  # checking a protocol is slow
        self._streaming = llm if isinstance(llm, StreamingLLM) else None
        self._keeps = keep
        self.prompts = prompts
        self._database = database
        self._slots = PerLoop(lambda: Slots(max_concurrent_calls))
        self._clock = clock
        self._keeping = 0
        self._in_flight: PerLoop[dict[bytes, asyncio.Future[Completion]]] = PerLoop(dict)

    @property
    def slots(self) -> Slots:
        """The slots of the running event loop."""
        return self._slots.here

    @property
    def has_model(self) -> bool:
        """Whether there is a model to ask."""
        return self._llm is not None

    @property
    def llm(self) -> LLM:
        """The model; `ConfigError` if there is none."""
        if self._llm is None:
            raise ConfigError("this needs a model: pass llm=… (or --llm on the command line)")
        return self._llm

    # ── asking ──────────────────────────────────────────────────────────────────

    async def text(
        self,
        prompt: str,
        variables: Mapping[str, object],
        *,
        then: Sequence[Message] = (),
        max_tokens: int | None = None,
        spending: Spending | None = None,
        turn: int = QUESTION,
        new: bool = False,
        spoken: bool = False,
    ) -> Reply:
        """The model's text; `then` holds further messages after the rendered prompt.

        `turn` is the priority when all `slots` are taken. `new` skips the look in the cache: `then`
        holds an answer that was only just paid for, so there can be no follow-up to it yet. With
        `spoken`, an empty text is an `LLMError`.
        """
        messages = (*self.prompts.render(prompt, variables), *then)
        request = _Request(prompt, messages, "text", max_tokens, turn=turn, new=new, spoken=spoken)
        return await self._reply(request, spending)

    async def json(
        self,
        prompt: str,
        variables: Mapping[str, object],
        spending: Spending | None = None,
        *,
        normalize: Callable[[Json], Json] | None = None,
    ) -> Json:
        """The model's JSON value, checked against the schema; an unreadable answer is asked for once more.

        If that one is unreadable, too, `ResponseError` is raised. `normalize` is applied before the
        schema.
        """
        request = _Request(prompt, self.prompts.render(prompt, variables), "json")
        for last in (False, True):
            reply = await self._reply(request, spending)
            try:
                return self.prompts.parse_json(reply.text, prompt=prompt, normalize=normalize)
            except ResponseError:
                with contextlib.suppress(StorageError):  # then it was not stored either
                    await self.forget(reply)
                if last:
                    raise
        raise AssertionError("unreachable")

    async def jsonl(
        self,
        prompt: str,
        variables: Mapping[str, object],
        *,
        then: Sequence[Message] = (),
        normalize: Callable[[Record], Iterable[Record]] | None = None,
        names: Sequence[str] | None = None,
        max_tokens: int | None = None,
        spending: Spending | None = None,
        turn: int = QUESTION,
        new: bool = False,
    ) -> Records:
        """The model's records, checked against the prompt's schema, or one given in `variables`.

        `turn` and `new` are as in `text`. `normalize` is applied to each record before the schema;
        `names` limits entity names if the model's server can enforce that.
        """
        messages = (*self.prompts.render(prompt, variables), *then)
        schema = self.prompts.schema(prompt, variables)
        source = None if schema is None else schema.source
        request = _Request(prompt, messages, "jsonl", max_tokens, source, names, turn, new)
        reply = await self._reply(request, spending)
        answer = without_opening_thought(reply.text)
        return Records(reply, parse_jsonl(answer, schema=schema, normalize=normalize))

    def stream(
        self,
        prompt: str,
        variables: Mapping[str, object],
        replies: list[Reply] | None = None,
        spending: Spending | None = None,
    ) -> Told[str]:
        """The model's text in pieces; a single piece if it is cached or the model cannot stream.

        The model does not wait for the reader; leaving the iterator early stops it. At the end the
        whole reply is appended to `replies`.
        """
        request = _Request(prompt, self.prompts.render(prompt, variables), spoken=True)
        return Told(partial(self._tell, request, replies, spending))

    async def chat(self, messages: Sequence[Message], spending: Spending | None = None) -> Reply:
        """The model's answer to a conversation, without a prompt of ours."""
        return await self._reply(_Request("chat", tuple(messages), spoken=True), spending)

    def stream_chat(
        self,
        messages: Sequence[Message],
        replies: list[Reply] | None = None,
        spending: Spending | None = None,
    ) -> Told[str]:
        """Like `chat`, in pieces."""
        request = _Request("chat", tuple(messages), spoken=True)
        return Told(partial(self._tell, request, replies, spending))

    async def _tell(
        self,
        request: _Request,
        replies: list[Reply] | None,
        spending: Spending | None,
        pieces: asyncio.Queue[str | None],
    ) -> None:
        """Pass an answer on: as it is written, or in one piece if it was cached."""
        teller = Teller(pieces)
        reply = await self._reply(replace(request, teller=teller), spending)
        if not teller.begun:
            teller.tell(reply.shown)
        if replies is not None:
            replies.append(reply)

    async def forget(self, reply: Reply) -> None:
        """Remove an unusable answer from the cache, so that the next call asks again."""
        await self._write(lambda connection: cache.drop_completions(connection, [reply.key]))

    # ── one call ────────────────────────────────────────────────────────────────

    async def _reply(self, request: _Request, spending: Spending | None = None) -> Reply:
        spending = spending or Spending()
        key = self._key(request)
        in_flight = self._in_flight.here
        while True:
            found = None if request.new else await self._cached(key)
            if found is not None and not _wanting(request, found):
                log.debug("%s: from the cache", request.prompt)
                return Reply(request.messages, found, key, True)
            shared = in_flight.get(key)
            if shared is None:
                break
            try:  # the same request is in flight: share its answer
                return Reply(request.messages, await asyncio.shield(shared), key, True)
            except asyncio.CancelledError:
                if is_cancelled() or not shared.cancelled():
                    raise
            except LightRAGError as error:  # a copy for each caller, since `usage` will differ
                raise _again(error) from error
        future = asyncio.get_running_loop().create_future()
        in_flight[key] = future
        try:
            done, spent = await self._pay(request, key, spending)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(error)
                future.exception()  # mark it as retrieved: perhaps nobody else waits
            raise
        else:
            future.set_result(done)
            return Reply(request.messages, done, key, False, spent)
        finally:
            del in_flight[key]

    async def _pay(
        self, request: _Request, key: bytes, spending: Spending
    ) -> tuple[Completion, Usage]:
        """Call the model and commit its answer before anyone sees it; returns it with what was paid.

        If an answer about a chunk cannot be stored, that is an error; an answer to a question is
        still given.
        """
        async with self.slots.taken(request.turn):
            spending.check()
            started = time.monotonic()
            done, spent = await self._call(request, spending)
            done = replace(done, text=sanitize(done.text))  # half an emoji could not be stored
            log.debug(
                "%s: %d in, %d out, %.2f s",
                request.prompt,
                done.usage.input_tokens,
                done.usage.output_tokens,
                time.monotonic() - started,
            )
            needed = request.turn != QUESTION
            keeping = self._keep(
                request.prompt, key, done, needed=needed
            )  # at once, so that few can be lost
            if request.teller is None:
                await keeping
            else:  # a reader who leaves at the last piece may ask the same again
                await uncut(keeping)
        return done, spent

    async def _call(self, request: _Request, spending: Spending) -> tuple[Completion, Usage]:
        """The model's answer, and the cost of all attempts; transient errors are retried.

        A call that may have been billed although no answer arrived is not repeated here: the
        adapter has done so already, and a model slower than its timeout would be paid for every
        attempt.
        """
        pause, spent = FIRST_PAUSE, Usage()
        for attempt in range(1, TRIES + 1):
            try:
                done, cost = await self._counted(request, spending)
                spent += cost
                self._check(request, done)
                return done, spent
            except LLMError as error:
                spent += error.cost
                hopeless = not error.transient or error.unheard or request.begun
                if hopeless or attempt == TRIES:
                    raise
                wait = min(error.retry_after or pause, LONGEST_PAUSE)
                log.debug("try %d failed (%s); again in %.1f s", attempt, error, wait)
                await asyncio.sleep(wait)
                pause *= 2
                if spent.calls:
                    spending.check()
        raise AssertionError("unreachable")

    async def _counted(self, request: _Request, spending: Spending) -> tuple[Completion, Usage]:
        """One attempt and its cost, which is counted even if it fails; an answer is at least one call.

        An attempt that was cut off counts as a call without tokens, since nobody reported them.
        """
        try:
            done = await self._once(request)
        except asyncio.CancelledError:
            spending.add(CUT_OFF)
            raise
        except LLMError as error:
            spending.add(CUT_OFF if request.begun and not error.cost.calls else error.cost)
            raise
        cost = replace(done.usage, calls=max(1, done.usage.calls))
        spending.add(cost)
        return done, cost

    async def _once(self, request: _Request) -> Completion:
        """The model's answer; whatever else a user's own model does becomes an `LLMError`."""
        name = self.llm.name
        cancelled = LLMError(f"{name} cancelled its own call", transient=True, unheard=True)
        try:
            done = await answered(self._completed(request), cancelled)
        except LightRAGError:
            raise
        except Exception as error:
            lost = is_lost(error)
            told = f"{name} failed: {type(error).__name__}: {error}"
            passing = lost or isinstance(error, OSError)
            raise LLMError(told, transient=passing, unheard=lost) from error
        return sound(done, name)

    def _check(self, request: _Request, done: Completion) -> None:
        """Raise `LLMError` if a person would get an empty answer; log a warning about a cut one."""
        name, cut = self.llm.name, done.finish == "length"
        if _wanting(request, done):
            limit = " before its token limit" if cut else ""
            raise LLMError(f"{name} wrote nothing{limit}", transient=not cut)
        if request.spoken and cut:
            log.warning("%s: the answer was cut at the token limit of %s", request.prompt, name)

    async def _completed(self, request: _Request) -> Completion:
        messages, limit = request.messages, request.max_tokens
        if request.schema is not None and self._constrained is not None:
            return await self._constrained.complete_records(
                messages, schema=request.schema, names=request.names, max_tokens=limit
            )
        if request.teller is not None and self._streaming is not None:
            return await written(self._streaming.stream(messages), request.teller)
        return await self.llm.complete(
            messages, response_type=request.response_type, max_tokens=limit
        )

    # ── the cache ───────────────────────────────────────────────────────────────

    def _key(self, request: _Request) -> bytes:
        return request_key(
            self.llm.name, request.messages, request.response_type, request.max_tokens
        )

    async def _cached(self, key: bytes) -> Completion | None:
        with self._database.reading(single=True) as connection:  # by key: under 0.1 ms
            return cache.completion(connection, key)

    async def _keep(
        self, prompt: str, key: bytes, done: Completion, *, needed: bool = False
    ) -> None:
        self._keeping += 1
        try:
            await self._write(
                lambda connection: cache.put_completion(
                    connection, key, done, model=self.llm.name, prompt=prompt, at=self._clock()
                ),
                urgent=self._keeping
                >= self.slots.in_use,  # all calls in flight are waiting for this write
            )
        except StorageError as error:
            if needed:
                raise
            log.warning("%s: the model's answer is not kept: %s", prompt, error)
        finally:
            self._keeping -= 1

    async def _write(self, job: Callable[..., object], *, urgent: bool = False) -> None:
        if self._keeps and self._database.takes_notes():
            await self._database.committed(job, flush=False, urgent=urgent, single=True)


def _again(error: LightRAGError) -> LightRAGError:
    """A copy of an error, whatever arguments its class takes."""
    kind = type(error)
    again = kind.__new__(kind, *error.args)
    again.__dict__.update(error.__dict__)
    return again


def _wanting(request: _Request, done: Completion) -> bool:
    """Whether a person would get an empty answer."""
    return request.spoken and not done.text.strip()


def request_key(
    model: str, messages: Sequence[Message], response_type: ResponseType, max_tokens: int | None
) -> bytes:
    """The cache key of a completion: a hash of the model's name and the whole request.

    It is the SHA-256 of `json.dumps([model, response type, max_tokens, [[role, content], …]])`,
    with non-ASCII text as it is. orjson writes long texts several times as fast as `json`.
    """
    begin = json.dumps([model, response_type, max_tokens], ensure_ascii=False)[:-1].encode()
    turns = [
        b"[%b, %b]" % (orjson.dumps(message.role), orjson.dumps(message.content))
        for message in messages
    ]
    return hashlib.sha256(b"%b, [%b]]" % (begin, b", ".join(turns))).digest()
