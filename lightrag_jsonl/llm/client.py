"""The only door to the model: renders, looks in the cache, calls, stores and parses the answer."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Protocol
from weakref import WeakValueDictionary

from msgspec import structs

from lightrag_jsonl.core.errors import ConfigError, ResponseError, StorageError
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.protocols import LLM
from lightrag_jsonl.core.types import MODEL_TASKS, Completion, Json, Message, ModelTask, Picture
from lightrag_jsonl.llm.calls import ModelCalls
from lightrag_jsonl.llm.calls import UsageMeter as UsageMeter
from lightrag_jsonl.llm.json_values import read_json
from lightrag_jsonl.llm.prompt_manager import PromptManager
from lightrag_jsonl.llm.reader import Normalize, read_answer
from lightrag_jsonl.llm.requests import (
    ModelReply,
    ModelRequest,
    PieceReceiver,
    Records,
)
from lightrag_jsonl.llm.scheduler import FIRST_CHUNK, QUESTION
from lightrag_jsonl.llm.thinking import without_prompted_thinking
from lightrag_jsonl.text.strings import sanitize

SEE_PROMPT = "see-picture"
TASKS: Mapping[str, ModelTask] = {  # of the prompts that do not extract
    "summarize-descriptions": "summarize",
    "community-report": "summarize",
    "keywords": "keywords",
    "kg-edge-selection": "select",
    "chat": "answer",
    "similarity-check": "judge",
    "review-claims": "judge",
    "check-claims": "judge",
    "answer-again": "answer",
    "review-names": "judge",
    SEE_PROMPT: "see",
}

log = logging.getLogger(__name__)


class Cache(Protocol):
    """The store of answers; see `storage.store.CompletionCache`."""

    async def get(self, key: bytes) -> Completion | None: ...

    async def put(
        self, key: bytes, completion: Completion, document: str | None = None
    ) -> None: ...

    async def delete(self, keys: Sequence[bytes]) -> None: ...


class ModelClient:
    """Asks models with one set of prompts, with a limit on calls in flight.

    `llm` does every task absent from `models`, except "see". With `store_answers` false the cache
    is read but never written, for rehearsals.
    """

    def __init__(
        self,
        llm: LLM | None,
        prompts: PromptManager,
        cache: Cache,
        *,
        max_concurrent_calls: int,
        models: Mapping[ModelTask, LLM | None] = MappingProxyType({}),
        store_answers: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.prompts = prompts
        self.stores_answers = store_answers
        self._calls = _calls_by_task(
            llm, models, limits or Limits(), max_concurrent_calls=max_concurrent_calls
        )
        self._chunk_priorities = itertools.count(FIRST_CHUNK)
        self._cache = cache
        self._in_flight: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    def has_model(self, task: ModelTask) -> bool:
        """Whether there is a model for a task."""
        return task in self._calls

    def model(self, task: ModelTask) -> LLM:
        """The model for a task; `ConfigError` without a model."""
        return self._calls_for(task).llm

    def next_priority(self) -> int:
        """The priority of all calls about one more chunk: earlier chunks are finished first."""
        return next(self._chunk_priorities)

    def _calls_for(self, task: ModelTask) -> ModelCalls:
        if task not in self._calls:
            raise ConfigError("this needs a model: pass llm=… (or --llm on the command line)")
        return self._calls[task]

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
        """The model's text; `messages` continue the conversation after the rendered prompt.

        `document` is the id of the only quoted document: deleting the document deletes the cached
        answer.
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
        document: str | None = None,
    ) -> Json:
        """The model's JSON value, checked against the schema after `normalize`; see also `text`.

        After an unreadable answer the model is asked once more, then `ResponseError` is raised.
        """
        messages = self.prompts.render(prompt, variables)
        request = ModelRequest(
            prompt=prompt, messages=messages, response_type="json", document=document
        )
        schema = self.prompts.schema(prompt, variables)
        is_repeated = False
        while True:
            reply = await self._reply(request, meter)
            try:
                return read_json(reply.text, schema=schema, normalize=normalize)
            except ResponseError:
                await self.forget(reply)
                if is_repeated:
                    raise
            is_repeated = True

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
        result = read_answer(answer, schema=schema, normalize=normalize)
        return Records(reply=reply, result=result)

    async def chat(
        self,
        messages: Sequence[Message],
        meter: UsageMeter | None = None,
        on_piece: PieceReceiver | None = None,
    ) -> ModelReply:
        """The model's answer to a conversation; `LLMError` for an empty answer.

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

    async def see(
        self,
        picture: Picture,
        *,
        priority: int = QUESTION,
        document: str | None = None,
        meter: UsageMeter | None = None,
    ) -> ModelReply:
        """The text read by the model on a picture; see also `text`."""
        request = ModelRequest(
            prompt=SEE_PROMPT,
            messages=self.prompts.render(SEE_PROMPT, {}),
            picture=picture,
            priority=priority,
            document=document,
        )
        return await self._reply(request, meter)

    async def forget(self, reply: ModelReply) -> None:
        """Remove an unusable answer from the cache, so that the next call asks again."""
        with contextlib.suppress(StorageError):  # then it was not stored either
            await self._cache.delete([reply.key])

    async def _reply(self, request: ModelRequest, meter: UsageMeter | None) -> ModelReply:
        """The answer from the cache or the model; equal requests at once are sent once."""
        messages = [Message(turn.role, sanitize(turn.content)) for turn in request.messages]
        request = structs.replace(request, messages=tuple(messages))
        calls = self._calls_for(TASKS.get(request.prompt, "extract"))
        key = request.key(calls.llm.name)
        lock = self._in_flight.setdefault(key, asyncio.Lock())
        async with lock:
            completion = await self._cache.get(key)
            cached = completion is not None and bool(
                completion.text.strip() or not request.for_reader
            )
            paid = UsageMeter(meter)
            if completion is None or not cached:
                completion = await calls.call(request, paid, partial(self._keep, request, key))
        return ModelReply(
            messages=request.messages,
            completion=completion,
            key=key,
            cached=cached,
            usage=paid.spent,
        )

    async def _keep(self, request: ModelRequest, key: bytes, completion: Completion) -> None:
        """Store a complete answer, also if it is waited for no more: a reader who leaves may ask the same
        again. A failure to store loses no answer to a question.
        """
        if not self.stores_answers or completion.broken_off:
            return
        try:
            await self._cache.put(key, completion, request.document)
        except asyncio.CancelledError:
            with contextlib.suppress(StorageError):
                await self._cache.put(key, completion, request.document)
            raise
        except StorageError as error:
            if request.priority != QUESTION:
                raise
            log.warning("%s: the model's answer is not stored: %s", request.prompt, error)


def _calls_by_task(
    llm: LLM | None,
    models: Mapping[ModelTask, LLM | None],
    limits: Limits,
    *,
    max_concurrent_calls: int,
) -> dict[ModelTask, ModelCalls]:
    """The calls of the model for each task with a model; a model has one scheduler."""
    calls_by_task: dict[ModelTask, ModelCalls] = {}
    calls_by_model: dict[int, ModelCalls] = {}
    for task in MODEL_TASKS:
        model = models.get(task, None if task == "see" else llm)
        if model is None:
            continue
        if id(model) not in calls_by_model:
            calls_by_model[id(model)] = ModelCalls(
                model, limits, max_concurrent_calls=max_concurrent_calls
            )
        calls_by_task[task] = calls_by_model[id(model)]
    return calls_by_task
