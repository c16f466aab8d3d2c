"""The Model Context Protocol at `/mcp/{index}`, for programs acting on a person's behalf."""

import importlib.util

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message

from lightrag_jsonl.server.indexes import Index
from lightrag_jsonl.server.messages import without_folders
from lightrag_jsonl.server.routing import Call


def protocol_app(index: Index, hosts: list[str]) -> Starlette | None:
    """The application of an index, for the server to run; None without the extra `mcp`."""
    if importlib.util.find_spec("mcp") is None:
        return None
    from lightrag_jsonl.mcp import asgi_app

    names = [f"[{host}]" if ":" in host else host for host in hosts]
    names_with_port = [f"{name}:*" for name in names]
    return asgi_app(index.rag, allowed_hosts=names + names_with_port)


async def answer_agent(call: Call) -> Response:
    """The answer to a message of an agent; the message counts as a question until then."""
    app = call.index.agents
    if app is None:
        raise HTTPException(404, "agents need an extra: pip install '.[mcp]'")
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": msgspec.json.encode(call.body)}

    async def send(message: Message) -> None:
        messages.append(message)

    _check_arguments(call)
    scope = {**call.request.scope, "path": "/", "root_path": ""}
    with call.indexes.question(call.index.name):
        await app(scope, receive, send)
    return _one_response(messages, call.index)


def _check_arguments(call: Call) -> None:
    """413 for a tool's argument longer than the limit of a question."""
    params = call.body.get("params")
    if not isinstance(params, dict):
        return
    arguments = params.get("arguments")
    if not isinstance(arguments, dict):
        return
    limit = call.indexes.limits.question
    for name, value in arguments.items():
        if isinstance(value, str) and len(value) > limit:
            raise HTTPException(413, f"{name} has over {limit:,} characters")


def _one_response(messages: list[Message], index: Index) -> Response:
    """The messages of an ASGI application as a single response; errors name no folder of this machine, and results
    have ids and texts as they are, so that the next call finds them.
    """
    start, *parts = messages
    body = b"".join(part.get("body", b"") for part in parts)
    headers = {name.decode(): text.decode() for name, text in start["headers"]}
    if headers.get("content-type") == "application/json":
        value = msgspec.json.decode(body)
        result = value.get("result") if isinstance(value, dict) else None
        if not isinstance(result, dict) or result.get("isError"):
            value = without_folders(value, index.address)
        body = msgspec.json.encode(value)
        del headers["content-length"]
    return Response(body, start["status"], headers)
