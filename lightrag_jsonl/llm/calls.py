"""Calls of a model: repeated after passing errors, limited in time and length, and counted."""

import asyncio
import logging
import time

from lightrag_jsonl.core.aio import abandonable
from lightrag_jsonl.core.errors import FREE, ConfigError, LightRAGError, LLMError, described
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.protocols import LLM, ConstrainedLLM, StreamingLLM
from lightrag_jsonl.core.retrying import PATIENCE, READER_PATIENCE, retries_of, with_retries
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.core.user_code import ONE_CALL, checked_completion
from lightrag_jsonl.llm.replies import BROKEN_OFF
from lightrag_jsonl.llm.requests import ModelRequest
from lightrag_jsonl.llm.scheduler import QUESTION
from lightrag_jsonl.llm.streaming import read_stream
from lightrag_jsonl.llm.usage_meter import UsageMeter

log = logging.getLogger(__name__)


class ModelCalls:
    """Calls a model, or raises `ConfigError` if there is none."""

    def __init__(self, llm: LLM | None, limits: Limits) -> None:
        self._llm = llm
        self._constrained = llm if isinstance(llm, ConstrainedLLM) else None  # slow to check
        self._limits = limits

    @property
    def llm(self) -> LLM:
        """The model; `ConfigError` if there is none."""
        if self._llm is None:
            raise ConfigError("this needs a model: pass llm=… (or --llm on the command line)")
        return self._llm

    async def call(self, request: ModelRequest, meter: UsageMeter) -> Completion:
        """The model's completion; a call that fails in passing is repeated, unless the reader
        already has pieces of the answer.
        """
        return await with_retries(
            lambda: self._attempt(request, meter),
            retries=retries_of(self.llm),
            may_repeat=lambda: not request.passed_pieces,
            patience=READER_PATIENCE if request.priority == QUESTION else PATIENCE,
        )

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
