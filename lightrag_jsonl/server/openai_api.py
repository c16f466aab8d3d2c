"""OpenAI's protocol: `/v1/models` and `/v1/chat/completions`; a model is an index."""

import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.server import chat
from lightrag_jsonl.server.routing import Call, Route


class StreamOptions(Struct):
    """Options of a stream: whether the usage comes at the end."""

    include_usage: bool | None = None


class CompletionsRequest(Struct):
    """A conversation to continue; other fields, such as `temperature`, are ignored."""

    model: str
    messages: list[chat.ChatMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None


async def list_openai_models(call: Call) -> dict[str, Any]:
    """The indexes, and each with each mode, as models."""
    return {
        "object": "list",
        "data": [_openai_model(name) for name in chat.model_names(call.indexes)],
    }


async def get_openai_model(call: Call) -> dict[str, Any]:
    """A model by name."""
    name = call.request.path_params["model"]
    chat.find_model(call.indexes, name)
    return _openai_model(name)


def _openai_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "lightrag-jsonl"}


async def create_completion(call: Call) -> object:
    """The answer to the last turn of the user, with the sources in the text and as `sources`."""
    request: CompletionsRequest = call.body
    writer = CompletionWriter(request)
    return await chat.answer_conversation(
        call,
        request.messages,
        media=chat.EVENTS,
        write=writer.write,
        whole=writer.whole,
    )


class CompletionWriter:
    """Writes an answer as completions of OpenAI's protocol, all with the same id."""

    def __init__(self, request: CompletionsRequest) -> None:
        options = request.stream_options or StreamOptions()
        self._with_usage = options.include_usage
        self._fields = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": request.model,
        }

    def write(self, piece: str | Answer) -> str:
        """A piece of a text as an event, or the answer as the events at the end."""
        if isinstance(piece, str):
            delta = {"role": "assistant", "content": piece}
            return self._event([{"index": 0, "delta": delta, "finish_reason": None}])
        last_choice = {"index": 0, "delta": {}, "finish_reason": chat.finish_reason(piece)}
        events = self._event([last_choice], **chat.evidence_of(piece))
        if self._with_usage:
            events += self._event([], usage=_token_counts(piece))
        return f"{events}data: [DONE]\n\n"

    def whole(self, text: str, answer: Answer) -> dict[str, Any]:
        """The whole text as a completion."""
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": chat.finish_reason(answer)}
        return {
            **self._fields,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _token_counts(answer),
            **chat.evidence_of(answer),
        }

    def _event(self, choices: Sequence[dict[str, Any]], **fields: object) -> str:
        chunk = {**self._fields, "object": "chat.completion.chunk", "choices": choices, **fields}
        return chat.stream_part(chat.EVENTS, chunk)


def _token_counts(answer: Answer) -> dict[str, int]:
    usage = answer.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


OPENAI_ROUTES: Final = (
    Route("GET", "/v1/models", list_openai_models, result=dict[str, Any]),
    Route("GET", "/v1/models/{model}", get_openai_model, result=dict[str, Any]),
    Route(
        "POST",
        "/v1/chat/completions",
        create_completion,
        body=CompletionsRequest,
        result=dict[str, Any],
        other_media=chat.EVENTS,
    ),
)
