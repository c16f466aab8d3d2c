"""A server of the Model Context Protocol: an index as tools, resources and prompts for agents, on stdio
or mounted as ASGI.
"""

import functools
import json
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import Field, ValidationError

import lightrag_jsonl
from lightrag_jsonl.core.answers import Community
from lightrag_jsonl.core.errors import LightRAGError
from lightrag_jsonl.core.index_reports import DocumentStatus
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.modes import DEFAULT_MODE, Mode, mode_summaries
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import UNKNOWN_TYPE, Document, Entity, Relation
from lightrag_jsonl.core.validation import LONGEST_VALUE
from lightrag_jsonl.text.strings import counted, cut

if TYPE_CHECKING:
    from starlette.applications import Starlette

ToolParameters = ParamSpec("ToolParameters")
SearchMode = Annotated[Mode, Field(description=f"Where to search: {mode_summaries()}.")]
Tokens = Annotated[int, Field(ge=100, le=50_000, description="Budget of the result, in tokens.")]
Start = Annotated[
    int, Field(ge=0, description="Where to continue, as given by the previous result.")
]

INSTRUCTIONS = """\
An index of documents as a knowledge graph. `search` finds passages, entities and relations for a \
question; `ask` answers one, with numbered sources; `entity` shows an entity by one of its names; \
`source` reads a page of a document; `documents` lists the documents; `communities` lists the parts of the \
graph, each with a report if one was written. A result that was cut off to \
its token budget says how to get the rest."""
PURGED_TEXT = (
    "the text was purged from this index: `lightrag-jsonl insert --restore-purged` brings it back"
)
WORDS: Mapping[str, Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("mcp_words.toml").read_text(encoding="utf-8")
)  # by language, "notes" and "prompts"
LONGEST_PAGE_NUMBER = 9  # digits
MOST_LISTED_DOCUMENTS = 1_000  # in the list as a resource
MOST_LISTED_RELATIONS = 200  # of an entity as a resource
MOST_NAMES_SHOWN = 10  # of entities, for each community


def mcp_server(rag: lightrag_jsonl.AsyncLightRAG, *, allow_write: bool = False) -> MCPServer:
    """A server with the tools `search`, `ask`, `entity`, `source`, `documents` and `communities`.

    With `allow_write` also `insert` and `delete`. An error of this package becomes a result for
    the agent to read. The resources are the list of documents, pages and entities; the prompts ask
    for an answer with sources, and for a summary of a document.
    """
    server = AgentServer(
        "lightrag-jsonl", instructions=INSTRUCTIONS, version=lightrag_jsonl.__version__
    )
    tools = Tools(rag)
    reading_tools = (tools.search, tools.ask, tools.entity, tools.source)
    for tool in (*reading_tools, tools.documents, tools.communities):
        _add_tool(server, tool, reads_only=True)
    if allow_write:
        _add_tool(server, tools.insert)
        _add_tool(server, tools.delete, destroys=True)
    _add_resources(server, Resources(rag))
    prompts = AgentPrompts(known_language(rag.engine.language))
    server.prompt()(prompts.answer)
    server.prompt()(prompts.summarize)
    return server


def _add_resources(server: MCPServer, resources: "Resources") -> None:
    """Names and ids may look like paths, but only look up rows of the index."""
    any_text = ResourceSecurity(exempt_params={"document_id", "name"})
    server.resource("index://documents", name="documents")(resources.documents)
    server.resource("index://documents/{document_id}/pages/{page}", name="page", security=any_text)(
        resources.page
    )
    server.resource("index://entities/{name}", name="entity", security=any_text)(resources.entity)


def _add_tool(
    server: MCPServer,
    tool: Callable[..., Awaitable[str]],
    *,
    reads_only: bool = False,
    destroys: bool = False,
) -> None:
    hints = ToolAnnotations(read_only_hint=reads_only, destructive_hint=destroys)
    server.add_tool(_with_readable_errors(tool), annotations=hints, structured_output=False)


def asgi_app(
    rag: lightrag_jsonl.AsyncLightRAG,
    *,
    allow_write: bool = False,
    allowed_hosts: Sequence[str] | None = None,
) -> "Starlette":
    """An ASGI application with the endpoint at the root, to be mounted in an outer application.

    The outer application must run the lifespan (`app.router.lifespan_context(app)`). Requests are
    answered for `allowed_hosts` only: by default for this machine, with any port. Tokens are not
    checked here, but by the outer application.
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


class AgentServer(MCPServer[Any]):
    """A server that says of a wrong argument which it is, what is expected, and what came."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The result of a tool; `ToolError` for a wrong argument, and for one that the tool does not have: what is
        ignored would seem to hold.
        """
        schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        properties = schemas.get(name, {}).get("properties", {})
        if name in schemas and not arguments.keys() <= properties.keys():
            raise ToolError(_unknown_arguments(name, arguments, properties))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if not isinstance(cause, ValidationError):
                raise
            raise ToolError("; ".join(_wrong_arguments(name, properties, cause))) from cause

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """A prompt with these arguments; `MCPError` for a missing one, and for one that it does not have."""
        prompts = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in prompts:
            raise MCPError(INVALID_PARAMS, f"no prompt {name}; there is: {', '.join(prompts)}")
        inputs = [argument.name for argument in prompts[name].arguments or ()]
        values = arguments or {}
        if not values.keys() <= {*inputs}:
            raise MCPError(INVALID_PARAMS, _unknown_arguments(name, values, inputs))
        for argument in inputs:
            if argument not in values:
                raise MCPError(INVALID_PARAMS, _missing_argument(name, argument, "a text"))
        return await super().get_prompt(name, arguments, context)


def _unknown_arguments(name: str, arguments: Iterable[str], inputs: Iterable[str]) -> str:
    """What is said of arguments that a tool or a prompt does not have."""
    unknown_names = sorted({*arguments} - {*inputs})
    return f"{name} has no argument {', '.join(unknown_names)}; it has {', '.join(inputs)}"


def _missing_argument(name: str, argument: str, expected: str) -> str:
    return f"{name}: the argument {argument} is missing; it must be {expected}"


def _wrong_arguments(
    tool: str, properties: Mapping[str, Any], error: ValidationError
) -> Iterator[str]:
    """A sentence for each argument that is missing or wrong."""
    for problem in error.errors():
        argument = str(problem["loc"][0])
        expected = _expected(properties[argument])
        if problem["type"] == "missing":
            yield _missing_argument(tool, argument, expected)
        else:
            value = cut(json.dumps(problem["input"], ensure_ascii=False), LONGEST_VALUE)
            yield f"{tool}: {argument} must be {expected}, not {value}"


def _expected(schema: Mapping[str, Any]) -> str:
    """The values that the schema of an argument allows, in words."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    kinds = [choice.get("type") for choice in schema.get("anyOf", [schema])]
    if "integer" not in kinds:
        return "a text or null" if "null" in kinds else "a text"
    if "maximum" in schema:
        return f"a whole number from {schema['minimum']:,} to {schema['maximum']:,}"
    return f"a whole number of at least {schema['minimum']:,}"


def _with_readable_errors(
    tool: Callable[ToolParameters, Awaitable[str]],
) -> Callable[ToolParameters, Awaitable[str]]:
    """The tool; an error of this package becomes a result with the words of the error."""

    @functools.wraps(tool)
    async def call(*args: ToolParameters.args, **kwargs: ToolParameters.kwargs) -> str:
        try:
            return await tool(*args, **kwargs)
        except LightRAGError as error:
            raise ToolError(str(error)) from error

    return call


class Tools:
    """The tools; agents read the docstrings."""

    def __init__(self, rag: lightrag_jsonl.AsyncLightRAG) -> None:
        self._rag = rag
        self._tokenizer = rag.engine.tokenizer
        self._notes = WORDS[known_language(rag.engine.language)]["notes"]

    async def search(
        self,
        question: str,
        mode: SearchMode = DEFAULT_MODE,
        max_tokens: Tokens = 4_000,
        as_of: str = "",
    ) -> str:
        """Find passages, entities and relations for a question, best first, without an answer.

        as_of is a date such as 2021-06: later documents, and what did not hold then, are left out.
        """
        param = QueryParam(mode=mode, max_total_tokens=max_tokens, as_of=as_of or None)
        context = await self._rag.retrieve(question, param)
        if context.empty:
            return await self._rag.engine.retrieval.writer.no_answer(context, param)
        lines = [context.prompt.rstrip()]
        document_ids = dict.fromkeys(chunk.document_id for chunk in context.chunks)
        if document_ids:
            lines += ["", self._notes["ids"]]
            for id in document_ids:
                title = context.documents.get(id, id)
                lines.append(f"- {id}: {title}")
        dropped = context.dropped
        if dropped.entities or dropped.relations or dropped.chunks:
            lines += ["", self._notes["left_out"].format(**asdict(dropped))]
        return "\n".join(lines)

    async def ask(
        self,
        question: str,
        mode: SearchMode = DEFAULT_MODE,
        max_tokens: Tokens = 4_000,
        as_of: str = "",
    ) -> str:
        """Answer a question from the documents, with numbered sources.

        as_of is a date such as 2021-06: later documents, and what did not hold then, are left out.
        """
        answer = await self._rag.query(question, mode=mode, as_of=as_of or None)
        text = str(answer)
        beginning = self._tokenizer.truncate(text, max_tokens)
        if beginning == text:
            return text
        return f"{beginning}…\n\n{self._notes['cut']}"

    async def entity(self, name: str, start: Start = 0, max_tokens: Tokens = 4_000) -> str:
        """Show one entity: its type, other names, description and relations."""
        entity, relations = await self._rag.entities.neighbours(name)
        aliases = f" = {', '.join(entity.aliases)}" if entity.aliases else ""
        summary = f"{_name_with_type(entity)}{aliases}\n{entity.description}"
        summary = self._tokenizer.truncate(summary, max_tokens // 2)
        relation_lines = self._listed(
            [_relation_line(relation) for relation in relations],
            start,
            max_tokens - self._tokenizer.count(summary),
        )
        return f"{summary}\n\n{relation_lines}"

    async def source(
        self,
        document_id: str,
        page: Annotated[int, Field(ge=1)] = 1,
        start: Start = 0,
        max_tokens: Tokens = 4_000,
    ) -> str:
        """Read a page of a document, from character `start`. Most texts have a single page."""
        pages = await self._rag.pages(document_id)
        if page > len(pages):
            raise ToolError(f"{document_id} has {counted(len(pages), 'pages')}")
        text = pages[page - 1].text[start:]
        excerpt = self._tokenizer.truncate(text, max_tokens)
        heading = self._notes["page"].format(title=document_id, page=page, pages=len(pages))
        lines = [heading, "", excerpt]
        unshown_count = len(text) - len(excerpt)
        if unshown_count:
            lines += [
                "",
                self._notes["more"].format(left=unshown_count, start=start + len(excerpt)),
            ]
        return "\n".join(lines)

    async def documents(self, find: str = "", start: Start = 0, max_tokens: Tokens = 4_000) -> str:
        """List the documents: all, or only with `find` in their id, title or source."""
        documents = await self._rag.documents()
        lines = [_document_line(document) for document in documents]
        lines = [line for line in lines if find.casefold() in line.casefold()]
        return self._listed(lines, start, max_tokens)

    async def communities(self, start: Start = 0, max_tokens: Tokens = 4_000) -> str:
        """List the parts of the whole graph, the largest first: central entities, and the report."""
        communities = await self._rag.communities.list()
        lines = [_line_of_community(community) for community in communities if not community.level]
        return self._listed(lines, start, max_tokens)

    async def insert(self, text: str, title: str | None = None, id: str | None = None) -> str:
        """Add a text to the index. A text with the id of an older text replaces it."""
        document = Document(text, id=id, title=title)
        report = await self._rag.insert(document)
        problems = [failure.reason for failure in report.failures]
        document_ids = report.documents or report.unchanged
        if not document_ids:
            reasons = [*problems, report.stopped]
            if report.purged:
                reasons.append(PURGED_TEXT)
            raise ToolError("; ".join(reasons).strip("; "))
        summary = f"documents: {', '.join(document_ids)}; entities: {report.entities}"
        return "\n".join([summary, *problems])

    async def delete(self, document_id: str) -> str:
        """Remove a document from the index, with all that only it states."""
        report = await self._rag.delete(document_id)
        return f"deleted: {', '.join(report.documents)}; chunks: {report.chunks}"

    def _listed(self, lines: Sequence[str], start: int, max_tokens: int) -> str:
        """The lines from `start` within the budget, and a note with the number of further lines.

        A first line above the budget is cut.
        """
        if start >= len(lines):
            return self._notes["nothing"]
        listed = [self._tokenizer.truncate(lines[start], max_tokens)]
        for line in lines[start + 1 :]:
            max_tokens -= self._tokenizer.count(listed[-1]) + 1
            if self._tokenizer.count(line) > max_tokens:
                break
            listed.append(line)
        end = start + len(listed)
        if end < len(lines):
            listed.append(self._notes["more"].format(left=len(lines) - end, start=end))
        return "\n".join(listed) or self._notes["nothing"]


class Resources:
    """The resources, in full; agents read the docstrings."""

    def __init__(self, rag: lightrag_jsonl.AsyncLightRAG) -> None:
        self._rag = rag

    async def documents(self) -> str:
        """The documents of the index, a line each (the first 1,000)."""
        documents = await self._rag.documents(limit=MOST_LISTED_DOCUMENTS)
        return "\n".join(map(_document_line, documents))

    async def page(self, document_id: str, page: str) -> str:
        """The text of a page of a document; most texts have a single page, 1."""
        if not page.isdecimal() or len(page) > LONGEST_PAGE_NUMBER:
            raise ResourceNotFoundError(f"page must be a number, not {cut(page, LONGEST_VALUE)}")
        try:
            pages = await self._rag.pages(document_id)
        except LightRAGError as error:
            raise ResourceNotFoundError(str(error)) from error
        number = int(page)
        if not 1 <= number <= len(pages):
            raise ResourceNotFoundError(f"{document_id} has {counted(len(pages), 'pages')}")
        return pages[number - 1].text

    async def entity(self, name: str) -> str:
        """An entity: its type, other names, description and relations, the first of very many."""
        try:
            entity, relations = await self._rag.entities.neighbours(
                name, limit=MOST_LISTED_RELATIONS
            )
        except LightRAGError as error:
            raise ResourceNotFoundError(str(error)) from error
        lines = [_name_with_type(entity), *entity.aliases, entity.description, ""]
        lines += map(_relation_line, relations)
        if len(relations) < entity.degree:
            lines.append(f"(the first {len(relations):,} of {entity.degree:,} relations)")
        return "\n".join(lines)


class AgentPrompts:
    """The prompts, in the language of the index; agents read the docstrings."""

    def __init__(self, language: str) -> None:
        self._texts = WORDS[language]["prompts"]

    def answer(self, question: str) -> str:
        """Answer a question from the documents, with sources."""
        return self._texts["answer"].format(question=question)

    def summarize(self, document_id: str) -> str:
        """Summarize a document."""
        return self._texts["summarize"].format(document_id=document_id)


def _name_with_type(entity: Entity) -> str:
    return entity.name if entity.type in ("", UNKNOWN_TYPE) else f"{entity.name} ({entity.type})"


def _relation_line(relation: Relation) -> str:
    arrow = "→" if relation.states_something else "—"
    fact = f"{relation.source} — {relation.predicate} {arrow} {relation.target}"
    description = " ".join(relation.description.split())
    return f"- {fact}: {description}"


def _line_of_community(community: Community) -> str:
    names = ", ".join(community.entities[:MOST_NAMES_SHOWN])
    if community.report is None:
        return f"- {names}"
    findings = [finding.text for finding in community.report.findings]
    text = " ".join([community.report.summary, *findings])
    return f"- {community.report.title} ({names}): {' '.join(text.split())}"


def _document_line(document: DocumentStatus) -> str:
    source = document.source if document.source != document.title else None
    size = f"{document.characters:,} characters"
    properties = [document.id, document.title, source, document.date, size, document.state]
    return "- " + ", ".join(filter(None, [*properties, *document.content_keywords[:5]]))
