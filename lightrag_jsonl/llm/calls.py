"""Calls of a model: repeated after passing errors, limited in time and length, counted; and the stream of an answer."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias

from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.errors import FREE, LightRAGError, LLMError, described
from lightrag_jsonl.core.loops import LoopDetector
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.protocols import LLM, ConstrainedLLM, StreamingLLM, VisionLLM
from lightrag_jsonl.core.retrying import (
    PATIENCE,
    READER_PATIENCE,
    retries_of,
    with_retries,
)
from lightrag_jsonl.core.telemetry import client_span, completion_attributes
from lightrag_jsonl.core.types import Completion, Finish
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.core.user_code import ONE_CALL, checked_completion
from lightrag_jsonl.llm.requests import BROKEN_OFF, ModelRequest
from lightrag_jsonl.llm.scheduler import FIRST_LIMIT, QUESTION, CallScheduler
from lightrag_jsonl.llm.thinking import ONLY_THINKING, ThinkingFilter, is_only_thinking
from lightrag_jsonl.text.strings import sanitize

log = logging.getLogger(__name__)


async def read_stream(
    stream: AsyncIterator[str], request: ModelRequest, *, max_characters: int
) -> Completion:
    """Read a stream to its end; all pieces but the thinking at the beginning reach the reader.

    Reading stops after `max_characters`, and as soon as the model repeats itself.
    """
    pieces: list[str] = []
    in_loop = False
    try:
        in_loop = await _read_pieces(stream, request, pieces, max_characters)
    finally:
        if close := getattr(stream, "aclose", None):
            await close()
    usage: Usage | None = getattr(stream, "usage", None)
    if in_loop:
        log.warning("%s: the answer is cut off, since it repeats itself", request.prompt)
        return Completion("".join(pieces), finish="length", usage=usage or ONE_CALL)
    finish: Finish = getattr(stream, "finish", None) or "stop"
    return Completion("".join(pieces), finish=finish, usage=usage or Usage())


async def _read_pieces(
    stream: AsyncIterator[str], request: ModelRequest, pieces: list[str], max_characters: int
) -> bool:
    """Read into `pieces`; whether reading stopped because the model repeats itself."""
    thinking = ThinkingFilter()
    loops = LoopDetector()
    room = max_characters
    async for piece in stream:
        if piece and not isinstance(piece, str):
            raise TypeError(f"a piece of its answer is {type(piece).__name__}, not text")
        text = sanitize(piece or "")  # some clients end with None
        pieces.append(text)
        await request.pass_on(thinking.feed(text[:room]))
        room -= len(text)
        if room < 0:
            return False
        if loops.feed(text):
            return True
    return False


# ── calls ─────────────────────────────────────────────────────────────────────

BYTES_PER_TOKEN = 4  # of a request, for a first estimate

KeepAnswer: TypeAlias = Callable[[Completion], Awaitable[None]]


class UsageMeter:
    """Adds up the cost of an operation, also in the parent's meter; subclasses may set limits.

    `ends_at` is a time of the event loop: what is not answered then is not waited for.
    """

    def __init__(self, parent: "UsageMeter | None" = None) -> None:
        self.spent = Usage()
        self.ends_at: float | None = None if parent is None else parent.ends_at
        self._parent = parent

    def check(self) -> None:
        """Raise `BudgetError` if a limit is reached; called before each model call."""
        if self._parent is not None:
            self._parent.check()

    def uncount(self) -> None:
        """Take back the count of a checked call: the server's rate limit refused the call."""
        if self._parent is not None:
            self._parent.uncount()

    def add(self, usage: Usage) -> None:
        """Count the cost of a call."""
        self.spent += usage
        if self._parent is not None:
            self._parent.add(usage)

    @contextlib.contextmanager
    def attach_usage(self) -> Iterator[None]:
        """Set `usage` of an error from the block to the amount spent so far."""
        try:
            yield
        except LightRAGError as error:
            error.usage = self.spent
            raise


class ModelCalls:
    """Calls a model, in the order and at the pace of the scheduler.

    Optional attributes of a model limit the pace: `requests_per_minute`, `tokens_per_minute`, and
    `first_concurrent_calls`, the calls in flight before anything is known about the server.
    """

    def __init__(self, llm: LLM, limits: Limits, *, max_concurrent_calls: int) -> None:
        self.llm = llm
        self.scheduler = CallScheduler(
            max_concurrent_calls,
            first=getattr(llm, "first_concurrent_calls", FIRST_LIMIT),
            requests_per_minute=getattr(llm, "requests_per_minute", None),
            tokens_per_minute=getattr(llm, "tokens_per_minute", None),
        )
        self._constrained = llm if isinstance(llm, ConstrainedLLM) else None  # slow to check
        self._limits = limits

    async def call(
        self,
        request: ModelRequest,
        meter: UsageMeter,
        keep: KeepAnswer,
    ) -> Completion:
        """The model's completion; after a passing error the call is repeated, unless the reader
        already has pieces of the answer.

        No other call takes the slot before `keep` has stored the completion: however slowly it is stored, a
        process that is killed loses no more answers than calls may be in flight.
        """
        with client_span("chat", self.llm, max_tokens=request.max_tokens) as span:
            span.add({"lightrag_jsonl.prompt": request.prompt})
            completion = await with_retries(
                lambda: self._call_in_turn(request, meter, keep),
                retries=retries_of(self.llm),
                may_repeat=lambda: not request.passed_pieces,
                patience=READER_PATIENCE if request.priority == QUESTION else PATIENCE,
            )
            span.add(completion_attributes(completion))
        return completion

    async def _call_in_turn(
        self,
        request: ModelRequest,
        meter: UsageMeter,
        keep: KeepAnswer,
    ) -> Completion:
        """One attempt, after waiting for a free slot."""
        tokens = sum(len(message.content.encode()) for message in request.messages)
        estimate = tokens // BYTES_PER_TOKEN
        async with self.scheduler.slot(request.priority, tokens=estimate) as slot:
            try:
                completion = await self._attempt(request, meter)
            except LLMError as error:
                if error.rate_limited:
                    meter.uncount()
                slot.report(error)
                raise
            usage = completion.usage or ONE_CALL
            slot.finish(
                output_tokens=usage.output_tokens,
                all_tokens=usage.input_tokens + usage.output_tokens,
            )
            await keep(completion)
        return completion

    async def _attempt(self, request: ModelRequest, meter: UsageMeter) -> Completion:
        """One attempt. A failed attempt costs, too: one call, with unknown tokens."""
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
        is_cut_off = request.for_reader and completion.finish == "length"
        if is_cut_off and is_only_thinking(completion.text):
            raise LLMError(f"{self.llm.name}: {ONLY_THINKING}")
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
                timed_out="Timeout" in type(error).__name__,
                cost=ONE_CALL if is_lost else FREE,
            ) from error

    async def _ask(self, request: ModelRequest) -> Completion:
        """Ask with the model's method for the form of the request."""
        llm = self.llm
        if request.picture is not None and isinstance(llm, VisionLLM):
            return await llm.see(request.messages, request.picture, max_tokens=request.max_tokens)
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
    """The error of an empty answer, passing unless the reason is known."""
    reasons = {"length": " before its token limit", "filter": f": {BROKEN_OFF['filter']}"}
    reason = reasons.get(completion.finish, "")
    return LLMError(f"{model} wrote nothing{reason}", transient=not reason)
