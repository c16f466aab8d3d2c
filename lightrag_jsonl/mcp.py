"""A server of the Model Context Protocol: an index as tools for agents, on stdio or mounted as ASGI."""

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import Field

import lightrag_jsonl
from lightrag_jsonl.core.errors import LightRAGError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Document, DocumentStatus, Mode, Relation, known_language

if TYPE_CHECKING:
    from starlette.applications import Starlette

P = ParamSpec("P")
Tokens = Annotated[int, Field(ge=100, le=50_000, description="Budget of the result, in tokens.")]
Place = Annotated[
    int, Field(ge=0, description="Where to continue, as given by the previous result.")
]

INSTRUCTIONS = """\
An index of documents as a knowledge graph. `search` finds passages, entities and relations for a \
question; `ask` answers one, with numbered sources; `entity` shows what is known of one name; \
`source` reads a document's page; `documents` lists what there is. A result that was cut off to \
its token budget says how to get the rest."""
NOTES = {
    "en": {
        "more": "({left} more: call again with start={start})",
        "left_out": "(left out to keep the budget: {entities} entities, {relations} relations, "
        "{chunks} passages; a larger max_tokens shows more)",
        "cut": "(cut off: call again with a larger max_tokens)",
        "page": "{title}, page {page} of {pages}",
        "ids": "To read on, call source with one of these document ids:",
        "nothing": "no results",
    },
    "zh": {
        "more": "（还有 {left} 项：再次调用并设 start={start}）",
        "left_out": "（超出预算而略去：{entities} 个实体、{relations} 条关系、{chunks} 段原文；"
        "增大 max_tokens 可见更多）",
        "cut": "（已截断：增大 max_tokens 后再次调用）",
        "page": "{title}，第 {page} 页，共 {pages} 页",
        "ids": "要读原文，请以下列文档 id 调用 source：",
        "nothing": "没有找到相关内容",
    },
}


def mcp_server(rag: lightrag_jsonl.AsyncLightRAG, *, allow_write: bool = False) -> MCPServer:
    """A server with the tools `search`, `ask`, `entity`, `source` and `documents` of an index.

    With `allow_write` also `insert` and `delete`. An error of this package becomes a result that
    the agent can read.
    """
    server = MCPServer(
        "lightrag-jsonl", instructions=INSTRUCTIONS, version=lightrag_jsonl.__version__
    )
    tools = Tools(rag)
    reading: list[Callable[..., Awaitable[str]]]
    reading = [tools.search, tools.ask, tools.entity, tools.source, tools.documents]
    writing: list[Callable[..., Awaitable[str]]] = [tools.insert, tools.delete]
    for tool in reading + writing if allow_write else reading:
        reads, destroys = tool in reading, tool == tools.delete
        hints = ToolAnnotations(read_only_hint=reads, destructive_hint=destroys)
        server.add_tool(_in_words(tool), annotations=hints, structured_output=False)
    return server


def asgi_app(
    rag: lightrag_jsonl.AsyncLightRAG,
    *,
    allow_write: bool = False,
    allowed_hosts: Sequence[str] | None = None,
) -> "Starlette":
    """An ASGI application with the endpoint at its root, to be mounted in another one.

    The other one must run its lifespan (`app.router.lifespan_context(app)`). Requests for other
    hosts than `allowed_hosts` are refused: by default this machine's, with any port. It checks no
    token: that is up to the application it is mounted in.
    """
    hosts = allowed_hosts or ("127.0.0.1:*", "localhost:*", "[::1]:*")
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    security = TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=origins)
    return mcp_server(rag, allow_write=allow_write).streamable_http_app(
        streamable_http_path="/",
        json_response=True,
        stateless_http=True,
        transport_security=security,
    )


def _in_words(tool: Callable[P, Awaitable[str]]) -> Callable[P, Awaitable[str]]:
    """The tool, whose expected errors become results with their words."""

    @functools.wraps(tool)
    async def call(*args: P.args, **given: P.kwargs) -> str:
        try:
            return await tool(*args, **given)
        except LightRAGError as error:
            raise ToolError(str(error)) from error

    return call


class Tools:
    """The tools; the docstring of each is what an agent reads of it."""

    def __init__(self, rag: lightrag_jsonl.AsyncLightRAG) -> None:
        self._rag = rag
        self._tokenizer = rag.engine.tokenizer
        self._notes = NOTES[known_language(rag.language)]

    async def search(self, question: str, mode: Mode = "mix", max_tokens: Tokens = 4_000) -> str:
        """Find passages, entities and relations for a question, best first, without an answer.

        mode: naive (passages only), local (entities), global (relations), hybrid (both), mix (all),
        walk (along the graph).
        """
        param = QueryParam(mode=mode, max_total_tokens=max_tokens)
        found = await self._rag.retrieve(question, param)
        if found.empty:
            return self._notes["nothing"]
        lines = [found.prompt.rstrip()]
        if ids := dict.fromkeys(chunk.document_id for chunk in found.chunks):
            lines += ["", self._notes["ids"]]
            lines += [f"- {id}: {found.documents.get(id, id)}" for id in ids]
        dropped = found.dropped
        if dropped.entities or dropped.relations or dropped.chunks:
            counts = {"entities": dropped.entities, "relations": dropped.relations}
            lines += ["", self._notes["left_out"].format(**counts, chunks=dropped.chunks)]
        return "\n".join(lines)

    async def ask(self, question: str, mode: Mode = "mix", max_tokens: Tokens = 4_000) -> str:
        """Answer a question from the documents, with numbered sources. Modes are those of search."""
        answer = str(await self._rag.query(question, mode=mode))
        shown = self._tokenizer.truncate(answer, max_tokens)
        return shown if shown == answer else f"{shown}…\n\n{self._notes['cut']}"

    async def entity(self, name: str, start: Place = 0, max_tokens: Tokens = 4_000) -> str:
        """Show what is known of one entity: its type, other names, descriptions and relations."""
        entity, relations = await self._rag.entities.neighbours(name)
        others = f" = {', '.join(entity.aliases)}" if entity.aliases else ""
        about = f"{entity.name} ({entity.type}){others}\n{entity.description}"
        about = self._tokenizer.truncate(about, max_tokens // 2)
        rest = max_tokens - self._tokenizer.count(about)
        return f"{about}\n\n{self._listed([*map(_relation, relations)], start, rest)}"

    async def source(
        self,
        document_id: str,
        page: Annotated[int, Field(ge=1)] = 1,
        start: Place = 0,
        max_tokens: Tokens = 4_000,
    ) -> str:
        """Read a page of a document, from character `start`. Most texts have one page only."""
        pages = await self._rag.pages(document_id)
        if page > len(pages):
            raise ToolError(f"{document_id} has {len(pages)} pages")
        text = pages[page - 1].text[start:]
        shown = self._tokenizer.truncate(text, max_tokens)
        where = {"title": document_id, "page": page, "pages": len(pages)}
        lines = [self._notes["page"].format(**where), "", shown]
        if left := len(text) - len(shown):
            lines += ["", self._notes["more"].format(left=left, start=start + len(shown))]
        return "\n".join(lines)

    async def documents(self, find: str = "", start: Place = 0, max_tokens: Tokens = 4_000) -> str:
        """List the documents, or those with `find` in their id, title or source."""
        known = await self._rag.documents()
        lines = [line for line in map(_document, known) if find.casefold() in line.casefold()]
        return self._listed(lines, start, max_tokens)

    async def insert(self, text: str, title: str | None = None, id: str | None = None) -> str:
        """Add a text to the index. One with a known id replaces the older text."""
        report = await self._rag.insert(Document(text, id=id, title=title))
        problems = [failure.reason for failure in report.failures]
        known = report.documents or report.unchanged
        if not known:
            raise ToolError("; ".join([*problems, report.stopped]).strip("; "))
        return "\n".join([f"documents: {', '.join(known)}; entities: {report.entities}", *problems])

    async def delete(self, document_id: str) -> str:
        """Remove a document from the index, with all that only it states."""
        report = await self._rag.delete(document_id)
        return f"deleted: {', '.join(report.documents)}; chunks: {report.chunks}"

    def _listed(self, lines: Sequence[str], start: int, max_tokens: int) -> str:
        """The lines from `start` that fit into the budget, and how many are left.

        A first line that exceeds it is cut.
        """
        shown = [self._tokenizer.truncate(line, max_tokens) for line in lines[start : start + 1]]
        for line in lines[start + 1 :]:
            max_tokens -= self._tokenizer.count(shown[-1]) + 1
            if self._tokenizer.count(line) > max_tokens:
                break
            shown.append(line)
        end = start + len(shown)
        if end < len(lines):
            shown.append(self._notes["more"].format(left=len(lines) - end, start=end))
        return "\n".join(shown) or self._notes["nothing"]


def _relation(one: Relation) -> str:
    description = " ".join(one.description.split())
    return f"- {one.source} — {one.predicate} → {one.target}: {description}"


def _document(one: DocumentStatus) -> str:
    about = [one.id, one.title, one.source if one.source != one.title else None, one.date]
    return "- " + ", ".join([*filter(None, about), f"{one.characters:,} characters", one.state])
