"""OpenAI's protocol: `/v1/models` and `/v1/chat/completions`; a model is an index."""

import time
import uuid
from typing import Any, Final

from msgspec import Struct

from lightrag_jsonl.core.types import Answer
from lightrag_jsonl.server import chat
from lightrag_jsonl.server.routing import Call, Route


class StreamOptions(Struct):
    """Whether a stream ends with the usage."""

    include_usage: bool | None = None


class Completions(Struct):
    """A request; fields that mean nothing here (`temperature`, …) are ignored."""

    model: str
    messages: list[chat.ChatMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None


async def models(call: Call) -> dict[str, Any]:
    """The indexes, and each with each mode, as models."""
    fields = {"object": "model", "created": 0, "owned_by": "lightrag-jsonl"}
    return {
        "object": "list",
        "data": [{"id": name, **fields} for name in chat.model_names(call.indexes)],
    }


async def completions(call: Call) -> object:
    """The answer to the last turn of the user, with its sources in the text and as `sources`."""
    request: Completions = call.body
    about = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": request.model,
    }
    options = request.stream_options or StreamOptions()

    def write(piece: str | Answer) -> str:
        chunk = {**about, "object": "chat.completion.chunk"}
        if isinstance(piece, str):
            delta = {"role": "assistant", "content": piece}
            return chat.encoded(
                chat.EVENTS,
                {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            )
        last = {"index": 0, "delta": {}, "finish_reason": _finish(piece)}
        found = chat.encoded(chat.EVENTS, {**chunk, "choices": [last], "sources": piece.citations})
        if options.include_usage:
            found += chat.encoded(chat.EVENTS, {**chunk, "choices": [], "usage": _usage(piece)})
        return f"{found}data: [DONE]\n\n"

    def whole(text: str, answer: Answer) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
        found = {**about, "object": "chat.completion", "choices": [choice]}
        return {**found, "usage": _usage(answer), "sources": answer.citations}

    return await chat.respond(call, request.messages, chat.EVENTS, write, whole)


def _finish(answer: Answer) -> str:
    return "length" if answer.truncated else "stop"


def _usage(answer: Answer) -> dict[str, int]:
    spent = answer.usage
    total = spent.input_tokens + spent.output_tokens
    counts = {"prompt_tokens": spent.input_tokens, "completion_tokens": spent.output_tokens}
    return {**counts, "total_tokens": total}


ROUTES: Final = (
    Route("GET", "/v1/models", models, result=dict[str, Any]),
    Route("POST", "/v1/chat/completions", completions, body=Completions, result=dict[str, Any], other_media=chat.EVENTS),
)  # fmt: skip
