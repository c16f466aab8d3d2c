"""Ollama's protocol, as far as used by chat programs such as Open WebUI; a model is an index."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from lightrag_jsonl.core.answers import Answer
from lightrag_jsonl.server import chat
from lightrag_jsonl.server.routing import Call, Route
from lightrag_jsonl.storage.store import read

OLLAMA_VERSION: Final = "0.6.4"  # of the protocol
FAMILY: Final = "lightrag"
NEVER: Final = "9999-12-31T23:59:59Z"  # when a model is unloaded
NDJSON: Final = "application/x-ndjson"
MODEL_DETAILS: Final = {
    "format": "index",
    "family": FAMILY,
    "families": [FAMILY],
    "parameter_size": "",
    "quantization_level": "",
    "parent_model": "",
}


class ShowRequest(Struct):
    """The model to describe."""

    model: str = ""
    name: str = ""


class ChatRequest(Struct):
    """A conversation."""

    model: str
    messages: list[chat.ChatMessage]
    stream: bool | None = True


class GenerateRequest(Struct):
    """A single question."""

    model: str
    prompt: str = ""
    system: str = ""
    stream: bool | None = True


async def get_ollama_version(call: Call) -> dict[str, str]:
    """The version of the protocol."""
    return {"version": OLLAMA_VERSION}


async def list_ollama_models(call: Call) -> dict[str, Any]:
    """The indexes as models."""
    return {"models": [await _model(call, name) for name in chat.model_names(call.indexes)]}


async def list_loaded_models(call: Call) -> dict[str, Any]:
    """The indexes as models in memory: all indexes."""
    models = [
        {**await _model(call, name), "expires_at": NEVER, "size_vram": 0, "context_length": 0}
        for name in call.indexes.by_name
    ]
    return {"models": models}


async def _model(call: Call, name: str) -> dict[str, Any]:
    index, _ = chat.find_model(call.indexes, name)
    modified_at = await read(index.rag.engine.store, lambda view: view.newest_document_at())
    return {
        "name": name,
        "model": name,
        "modified_at": datetime.fromtimestamp(modified_at, UTC).isoformat(),
        "size": 0,
        "digest": "0" * 64,
        "details": MODEL_DETAILS,
    }


async def show_model(call: Call) -> dict[str, Any]:
    """The description of a model."""
    chat.find_model(call.indexes, call.body.model or call.body.name)
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "license": "",
        "details": MODEL_DETAILS,
        "model_info": {"general.architecture": FAMILY},
        "capabilities": ["completion"],
    }


async def answer_chat(call: Call) -> object:
    """The answer to the last turn of the user."""
    return await _answer_in_lines(
        call,
        call.body.messages,
        lambda text: {"message": {"role": "assistant", "content": text}},
    )


async def answer_prompt(call: Call) -> object:
    """The answer to a question."""
    turns = [chat.ChatMessage("system", call.body.system)] if call.body.system else []
    turns.append(chat.ChatMessage("user", call.body.prompt))
    return await _answer_in_lines(call, turns, lambda text: {"response": text})


async def _answer_in_lines(
    call: Call, turns: list[chat.ChatMessage], text_fields: Callable[[str], dict[str, Any]]
) -> object:
    """The answer as lines of JSON, with a text in the fields of the operation."""
    model = call.body.model

    def line(text: str, **fields: object) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        head = {"model": model, "created_at": now, **text_fields(text)}
        return {**head, "done": bool(fields), **fields}

    def whole(text: str, answer: Answer) -> dict[str, Any]:
        return line(
            text,
            done_reason=chat.finish_reason(answer),
            **chat.evidence_of(answer),
            prompt_eval_count=answer.usage.input_tokens,
            eval_count=answer.usage.output_tokens,
        )

    def write(piece: str | Answer) -> str:
        return chat.stream_part(NDJSON, line(piece) if isinstance(piece, str) else whole("", piece))

    if not any(turn.text for turn in turns):  # the program only wants the model to be loaded
        chat.find_model(call.indexes, model)
        return line("", done_reason="load")
    return await chat.answer_conversation(call, turns, media=NDJSON, write=write, whole=whole)


OLLAMA_ROUTES: Final = (
    Route("GET", "/api/version", get_ollama_version, result=dict[str, str]),
    Route("GET", "/api/tags", list_ollama_models, result=dict[str, Any]),
    Route("GET", "/api/ps", list_loaded_models, result=dict[str, Any]),
    Route("POST", "/api/show", show_model, body=ShowRequest, result=dict[str, Any]),
    Route(
        "POST",
        "/api/chat",
        answer_chat,
        body=ChatRequest,
        result=dict[str, Any],
        other_media=NDJSON,
    ),
    Route(
        "POST",
        "/api/generate",
        answer_prompt,
        body=GenerateRequest,
        result=dict[str, Any],
        other_media=NDJSON,
    ),
)
