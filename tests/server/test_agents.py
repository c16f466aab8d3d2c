"""The Model Context Protocol in the server, with the official client."""

import tempfile
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")
pytest.importorskip("mcp", reason="needs the extra: pip install '.[mcp]'")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from lightrag_jsonl import Document, LightRAG
from tests.server.running import serving

TOKEN = "a-token-for-this-test"


@pytest.mark.slow
async def test_agents_use_the_tools_of_an_index(kb: Path) -> None:
    """With the token; the tools only read."""
    with serving(kb, token=TOKEN) as server:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as web,
            Client(streamable_http_client(f"{server.url}/mcp/kb", http_client=web)) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"search", "ask", "entity", "source", "documents", "communities"}
            question = {"question": "What did Marie Curie discover?"}
            (content,) = (await client.call_tool("ask", question)).content
            assert content.type == "text" and "radium" in content.text


@pytest.mark.slow
async def test_agents_read_what_is_listed(kb: Path) -> None:
    """The id of a file is its path, and a text may name paths: results have both as they are."""
    id = f"{tempfile.gettempdir()}/水手 🐟/log.md"
    with LightRAG(kb) as rag:
        rag.insert(Document(f"The log lies in {id}.", id=id))
    with serving(kb) as server:
        async with Client(f"{server.url}/mcp/kb") as client:
            for tool, arguments in (
                ("documents", {"find": "log.md"}),
                ("source", {"document_id": id}),
            ):
                (content,) = (await client.call_tool(tool, arguments)).content
                assert content.type == "text" and id in content.text


def test_agents_are_guarded_as_all_other_requests_are(kb: Path) -> None:
    """Without the token, from elsewhere, too large, as a form or of no index: refused."""
    with serving(kb, token=TOKEN, limits={"body": 1_000}) as server:
        post = server.client.post
        assert post("/mcp/kb", json={}, headers={"X-API-Key": "x"}).status_code == 401
        assert post("/mcp/kb", json={}, headers={"Host": "evil.example"}).status_code == 421
        assert post("/mcp/kb", json={}, headers={"Origin": "http://evil"}).status_code == 403
        assert post("/mcp/kb", json={"x": "y" * 1_000}).status_code == 413
        assert post("/mcp/kb", content="a=b").status_code == 415
        assert post("/mcp/other", json={}).status_code == 404
        assert server.client.get("/mcp/kb").headers["allow"] == "POST"


@pytest.mark.slow
async def test_agents_have_the_limits_of_other_clients(kb: Path) -> None:
    """A question of a tool may be as long as any other, and no error names a folder."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    accepted = {"Accept": "application/json, text/event-stream"}
    with serving(kb, limits={"question": 30}) as server:

        def ask(**arguments: object) -> httpx2.Response:
            params = {"name": "ask", "arguments": arguments}
            return server.client.post("/mcp/kb", json={**call, "params": params}, headers=accepted)

        assert ask(question="问" * 31).status_code == 413
        assert "radium" in ask(question="What did Curie discover?").text
        for ending in ("", "-wal", "-shm"):
            (kb / f"index.sqlite{ending}").unlink(missing_ok=True)
        (kb / "index.sqlite").write_bytes(b"no database" * 1_000)
        failed = ask(question="What did Ann discover?")
        assert str(kb.parent) not in failed.text and failed.status_code == 200
