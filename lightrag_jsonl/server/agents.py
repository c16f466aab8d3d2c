"""The Model Context Protocol at `/mcp/{index}`, for programs that act on a person's behalf."""

import importlib.util
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message

from lightrag_jsonl.server.indexes import Index
from lightrag_jsonl.server.routing import Call


def protocol_app(index: Index, hosts: list[str]) -> Starlette | None:
    """The application of an index, whose lifespan the server enters; None without the extra `mcp`."""
    if importlib.util.find_spec("mcp") is None:
        return None
    from lightrag_jsonl.mcp import asgi_app

    names = [f"[{host}]" if ":" in host else host for host in hosts]
    return asgi_app(index.rag, allowed_hosts=[*names, *(f"{name}:*" for name in names)])


async def respond(call: Call) -> Response:
    """The answer to one message; it counts as a question while it is being answered."""
    app = call.index.agents
    if app is None:
        raise HTTPException(404, "agents need an extra: pip install 'lightrag-jsonl[mcp]'")
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": msgspec.json.encode(call.body)}

    async def send(message: Message) -> None:
        sent.append(message)

    with call.indexes.question(call.index.name):
        await app({**call.request.scope, "path": "/", "root_path": ""}, receive, send)
    start, *parts = sent
    body = b"".join(part.get("body", b"") for part in parts)
    headers: dict[str, Any] = {name.decode(): text.decode() for name, text in start["headers"]}
    return Response(body, start["status"], headers)
