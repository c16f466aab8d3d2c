"""Ollama's protocol, as far as chat programs such as Open WebUI use it; a model is an index."""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from lightrag_jsonl.core.types import Answer
from lightrag_jsonl.server import chat
from lightrag_jsonl.server.routing import Call, Route

VERSION: Final = "0.6.4"  # of the protocol
FAMILY: Final = "lightrag"
LINES: Final = "application/x-ndjson"


class Show(Struct):
    """The model to describe."""

    model: str = ""
    name: str = ""


class Chat(Struct):
    """A conversation."""

    model: str
    messages: list[chat.ChatMessage]
    stream: bool | None = True


class Generate(Struct):
    """A single question."""

    model: str
    prompt: str = ""
    system: str = ""
    stream: bool | None = True


async def version(call: Call) -> dict[str, str]:
    """The version of the protocol."""
    return {"version": VERSION}


async def tags(call: Call) -> dict[str, Any]:
    """The indexes as models."""
    models = []
    for name in chat.model_names(call.indexes):
        index, _ = chat.find_model(call.indexes, name)
        changed = (index.folder / "index.sqlite").stat().st_mtime
        at = datetime.fromtimestamp(changed, UTC).isoformat()
        known = {"modified_at": at, "size": 0, "digest": "0" * 64, "details": _details()}
        models.append({"name": name, "model": name, **known})
    return {"models": models}


async def show(call: Call) -> dict[str, Any]:
    """One of them."""
    chat.find_model(call.indexes, call.body.model or call.body.name)
    info = {"general.architecture": FAMILY}
    texts = {"modelfile": "", "parameters": "", "template": "", "license": ""}
    return {**texts, "details": _details(), "model_info": info, "capabilities": ["completion"]}


async def chat_turn(call: Call) -> object:
    """The answer to the last turn of the user."""
    return await _respond(call, call.body.messages, lambda text: {"message": _message(text)})


async def generate(call: Call) -> object:
    """The answer to a question."""
    turns = [chat.ChatMessage("system", call.body.system)] if call.body.system else []
    turns.append(chat.ChatMessage("user", call.body.prompt))
    return await _respond(call, turns, lambda text: {"response": text})


async def _respond(call: Call, turns: list[chat.ChatMessage], part: Any) -> object:
    model = call.body.model

    def line(text: str, **more: object) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat()
        return {"model": model, "created_at": now, **part(text), "done": bool(more), **more}

    def whole(text: str, answer: Answer) -> dict[str, Any]:
        reason, spent = "length" if answer.truncated else "stop", answer.usage
        counts = {"prompt_eval_count": spent.input_tokens, "eval_count": spent.output_tokens}
        return line(text, done_reason=reason, sources=answer.citations, **counts)

    if not any(turn.text for turn in turns):  # the program only wants the model to be loaded
        chat.find_model(call.indexes, model)
        return line("", done_reason="load")

    def write(piece: str | Answer) -> str:
        return chat.encoded(LINES, line(piece) if isinstance(piece, str) else whole("", piece))

    return await chat.respond(call, turns, LINES, write, whole)


def _message(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _details() -> dict[str, Any]:
    sizes = {"parameter_size": "", "quantization_level": "", "parent_model": ""}
    return {"format": "index", "family": FAMILY, "families": [FAMILY], **sizes}


ROUTES: Final = (
    Route("GET", "/api/version", version, result=dict[str, str]),
    Route("GET", "/api/tags", tags, result=dict[str, Any]),
    Route("POST", "/api/show", show, body=Show, result=dict[str, Any]),
    Route("POST", "/api/chat", chat_turn, body=Chat, result=dict[str, Any], other_media=LINES),
    Route("POST", "/api/generate", generate, body=Generate, result=dict[str, Any], other_media=LINES),
)  # fmt: skip
