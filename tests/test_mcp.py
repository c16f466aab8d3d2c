"""The tools for agents, called by the official client over stdio and over HTTP."""

import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2 as httpx
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from lightrag_jsonl import AsyncLightRAG, Document, LightRAG
from lightrag_jsonl.mcp import asgi_app, mcp_server
from tests.conftest import CHECKOUT
from tests.kit import MODES
from tests.processes import run_python

READING = ["search", "ask", "entity", "source", "documents", "communities"]
SENTENCES = " ".join(f"Marie Curie visited Town{number}ville in Ohio." for number in range(200))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an English index."""
    made = tmp_path_factory.mktemp("mcp") / "kb"
    with LightRAG(made) as rag:
        text = "Marie Curie discovered radium in Paris."
        rag.insert(Document(text, id="curie", title="Curie", pages=(text, SENTENCES)))
        rag.insert(Document("Niels Bohr worked in Copenhagen.", id="bohr", title="Bohr"))
    return made


@asynccontextmanager
async def serving(folder: Path, *options: str) -> AsyncIterator[Client]:
    """A client of `lightrag-jsonl mcp`, which runs as an agent's program would run it."""
    environment = {"PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"]}
    arguments = ["-m", "lightrag_jsonl", "mcp", "-w", str(folder), *options]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    async with Client(stdio_client(server)) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a tool's result; "error: …" if it is one."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    return f"error: {content.text}" if result.is_error else content.text


async def names(client: Client) -> Sequence[str]:
    """The names of the tools."""
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.slow
async def test_an_agent_reads_an_index(folder: Path) -> None:
    """Over stdio: it finds, asks, looks up and reads; failures come in words."""
    async with serving(folder) as client:
        assert await names(client) == READING
        found = await call(client, "search", question="What did Marie Curie discover?")
        assert "radium" in found and "- curie: Curie" in found
        answer = await call(client, "ask", question="What did Marie Curie discover?")
        assert "radium" in answer and "Curie, page 1" in answer
        assert "— Copenhagen" in await call(client, "entity", name="niels bohr")
        assert (await call(client, "source", document_id="curie")).endswith("radium in Paris.")
        assert await call(client, "documents", find="BOHR") == "- bohr, Bohr, 32 characters, done"
        assert "Marie Curie" in await call(client, "communities")
        for words, tool, arguments in (
            ("no such entity: Nobody", "entity", {"name": "Nobody"}),
            ("no such document: x", "source", {"document_id": "x"}),
            ("curie has 2 pages", "source", {"document_id": "curie", "page": 3}),
            ("the question is empty", "ask", {"question": " "}),
            ("insert", "insert", {"text": "x"}),
        ):
            result = await call(client, tool, **arguments)
            assert result.startswith("error: ") and words in result


@pytest.mark.slow
async def test_an_agent_writes_a_chinese_index(tmp_path: Path) -> None:
    """With --allow-write it inserts and deletes, too. Notes are in the language of the index."""
    LightRAG(tmp_path / "kb", language="zh").close()
    async with serving(tmp_path / "kb", "--allow-write", "-l", "zh") as client:
        assert await names(client) == [*READING, "insert", "delete"]
        text = "张骞出使西域，后来到达大月氏。"
        done = await call(client, "insert", text=text, title="汉书", id="张骞")
        assert done.startswith("documents: 张骞;")
        assert "no text" in (await call(client, "insert", text="  ")).removeprefix("error: ")
        assert "张骞出使西域" in await call(client, "ask", question="张骞去了哪里？")
        assert "要读原文" in await call(client, "search", question="张骞去了哪里？")
        assert "第 1 页，共 1 页" in await call(client, "source", document_id="张骞")
        assert "error: " in await call(client, "delete", document_id="b")
        assert (await call(client, "delete", document_id="张骞")).startswith("deleted: 张骞")
        assert await call(client, "documents") == "没有找到相关内容"


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "ask",
            {"question": "谁？", "mode": "最好 🙂"},
            f'ask: mode must be one of {", ".join(MODES)}, not "最好 🙂"',
        ),
        ("search", {}, "search: the argument question is missing; it must be a text"),
        (
            "search",
            {"question": "who?", "max_tokens": 5},
            "search: max_tokens must be a whole number from 100 to 50,000, not 5",
        ),
        (
            "source",
            {"document_id": None, "page": 0, "start": "where"},
            "source: document_id must be a text, not null; source: page must be a whole number of at least 1, "
            'not 0; source: start must be a whole number of at least 0, not "where"',
        ),
        (
            "ask",
            {"question": "who?", "where": {"id": "curie"}, "top": 3},
            "ask has no argument top, where; it has question, mode, max_tokens, as_of",
        ),
        (
            "insert",
            {"text": "x", "title": ["t"]},
            'insert: title must be a text or null, not ["t"]',
        ),
        ("ask", {"question": "x" * 99, "as_of": 2}, "ask: as_of must be a text, not 2"),
        ("nobody", {"x": 1}, "Unknown tool: nobody"),
    ],
)
async def test_a_wrong_argument_is_named(
    folder: Path, tool: str, arguments: dict[str, Any], told: str
) -> None:
    """With the tool, what it expects and what came; an argument that a tool does not have is not ignored."""
    rag = AsyncLightRAG(folder)
    async with Client(mcp_server(rag, allow_write=True)) as client:
        assert await call(client, tool, **arguments) == f"error: {told}"
    rag.engine.store.close()


@pytest.fixture
def index(folder: Path) -> Iterator[AsyncLightRAG]:
    """The English index, opened."""
    rag = AsyncLightRAG(folder)
    yield rag
    rag.engine.store.close()


@pytest.mark.slow
async def test_results_keep_their_budget_and_lead_on(index: AsyncLightRAG) -> None:
    """What is cut off can be read by calling again, as the note says."""
    count = index.engine.tokenizer.count
    async with Client(mcp_server(index)) as client:
        read = ""
        while True:
            result = await call(
                client, "source", document_id="curie", page=2, start=len(read), max_tokens=500
            )
            assert count(result) < 600
            _, text, *note = result.split("\n\n")
            read += text
            if not note:
                break
            assert f"start={len(read)}" in note[0]
        assert read == SENTENCES

        lines: list[str] = []
        while True:
            result = await call(
                client, "entity", name="Marie Curie", start=len(lines), max_tokens=1_000
            )
            assert count(result) < 1_100
            new = [line for line in result.split("\n") if line.startswith("- ")]
            lines += new
            if "call again" not in result:
                break
            assert new and f"start={len(lines)}" in result
        assert len(lines) == len(set(lines)) == 202  # the towns, Ohio and Paris

        result = await call(client, "search", question="Marie Curie Ohio", max_tokens=300)
        assert count(result) < 450 and "left out to keep the budget" in result
        assert "- bohr, Bohr" in await call(client, "documents", max_tokens=100)


async def test_it_can_be_mounted_in_a_server(index: AsyncLightRAG) -> None:
    """Over HTTP the same tools answer; a foreign host or origin is refused."""
    from mcp.client.streamable_http import streamable_http_client
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = asgi_app(index)
    host = Starlette(routes=[Mount("/mcp", app)])
    transport = httpx.ASGITransport(host)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport) as web:
        url = "http://localhost:8000/mcp/"
        async with Client(streamable_http_client(url, http_client=web)) as client:
            assert await names(client) == READING
            assert "radium" in await call(client, "ask", question="What did Marie Curie discover?")
        for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "http://evil"}, 403)):
            assert (await web.post(url, json={}, headers=headers)).status_code == status


@pytest.mark.slow
def test_without_the_extra_it_says_which_one(folder: Path, tmp_path: Path) -> None:
    """In one line."""
    code = f"""if True:
        import sys
        sys.modules["mcp.server.mcpserver"] = sys.modules["mcp"] = None
        from lightrag_jsonl.cli import main
        main(["mcp", "-w", {str(folder)!r}])
    """
    done = run_python(code, cwd=tmp_path)
    assert done.stderr.strip().endswith("pip install '.[mcp]'"), done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.slow
async def test_resources_are_listed_and_read(folder: Path) -> None:
    """The documents, a page and an entity, also with an id that looks like a path; unknown ones are
    errors in words.
    """
    async with AsyncLightRAG(folder) as rag:
        await rag.insert(Document("Ada met Bob. 水 😀", id="/data/../a b.txt", title="Notes"))
        async with Client(mcp_server(rag)) as client:
            listed = (await client.list_resources()).resources
            assert [str(resource.uri) for resource in listed] == ["index://documents"]
            templates = (await client.list_resource_templates()).resource_templates
            assert {template.name for template in templates} == {"page", "entity"}

            async def text(uri: str) -> str:
                (content,) = (await client.read_resource(uri)).contents
                return str(content.text)  # type: ignore[union-attr]

            assert "Niels Bohr" not in await text("index://documents")
            assert "bohr, Bohr" in await text("index://documents")
            assert "Town7ville" in await text("index://documents/curie/pages/2")
            id = "%2Fdata%2F..%2Fa%20b.txt"
            assert await text(f"index://documents/{id}/pages/1") == "Ada met Bob. 水 😀"
            assert "radium" in await text("index://entities/Marie%20Curie")
            for uri, words in (
                ("documents/none/pages/1", "no such document: none"),
                ("documents/curie/pages/3", "curie has 2 pages"),
                ("documents/curie/pages/last", "page must be a number, not last"),
                ("entities/Nobody", "no such entity: Nobody"),
            ):
                with pytest.raises(MCPError, match=words):
                    await text(f"index://{uri}")
        await rag.delete("/data/../a b.txt")


@pytest.mark.parametrize(("language", "words"), [("en", "Question: "), ("zh", "问题：")])
async def test_prompts_are_in_the_language_of_the_index(
    tmp_path: Path, language: str, words: str
) -> None:
    """With the question, or the document, that the agent's user names."""
    async with (
        AsyncLightRAG(tmp_path / language, language=language) as rag,
        Client(mcp_server(rag)) as client,
    ):
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["answer", "summarize"]
        given = await client.get_prompt("answer", {"question": "谁是 Ada {x}？"})
        content = given.messages[0].content
        assert content.type == "text" and content.text.endswith(f"{words}谁是 Ada {{x}}？")
        for name, arguments, told in (
            ("answer", {}, "answer: the argument question is missing; it must be a text"),
            ("answer", {"question": "?", "q": "?"}, "answer has no argument q; it has question"),
            ("翻译", {}, "no prompt 翻译; there is: answer, summarize"),
        ):
            with pytest.raises(MCPError, match=re.escape(told)):
                await client.get_prompt(name, arguments)
        given = await client.get_prompt("summarize", {"document_id": "d1"})
        assert given.messages[0].content.type == "text" and "d1" in given.messages[0].content.text
