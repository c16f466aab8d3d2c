"""The routes of REST: documents and jobs, questions, traces, and the graph."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final, Generic, TypeVar, get_type_hints

import msgspec
from anyio import to_thread
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.errors import LightRAGError, NotFoundError
from lightrag_jsonl.core.options import QueryParam, Role
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.indexing.loading import document_from
from lightrag_jsonl.server.chat import EVENTS
from lightrag_jsonl.server.indexes import Busy, EntityLine, Index
from lightrag_jsonl.server.jobs import Job
from lightrag_jsonl.server.routing import (
    Call,
    Nothing,
    Route,
    Stream,
    check_media_type,
    described,
    error_body,
    read_body,
)
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.trace import Trace, look_up_sources

Item = TypeVar("Item")
Limit = Annotated[int, Meta(ge=1, le=500)]
Offset = Annotated[int, Meta(ge=0, le=1 << 40)]
Short = Annotated[str, Meta(max_length=255)]
Name = Annotated[str, Meta(min_length=1, max_length=2_000)]

TRACE_POLICY: Final = {"Content-Security-Policy": "frame-ancestors 'self'; base-uri 'none'"}


# ── what is sent ────────────────────────────────────────────────────────────────


class Page(Struct, forbid_unknown_fields=True):
    """Which part of a list."""

    offset: Offset = 0
    limit: Limit = 50


class DocumentPage(Page):
    """Which documents: with a `state` (all for ""), and with a text in id, title or source."""

    state: str = ""
    q: Short = ""


class EntityPage(Page):
    """Which entities: of a `type` (all for ""), with a text at the beginning of or in the name."""

    q: Short = ""
    type: Short = ""


class Around(Struct, forbid_unknown_fields=True):
    """An entity, and the most relations to list."""

    name: Name
    limit: Limit = 50


class Sources(Struct, forbid_unknown_fields=True):
    """A chunk, or an entity, or the relation from `entity` to `target`."""

    entity: str = ""
    target: str = ""
    chunk: str = ""


class Upload(Struct, forbid_unknown_fields=True):
    """The name of an uploaded file, and what is known of the document in it."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    id: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    title: Short | None = None
    date: Short | None = None


class NewDocuments(Struct, forbid_unknown_fields=True):
    """Texts to index: objects with the fields of `Document`; further ones go to its metadata."""

    documents: Annotated[list[dict[str, Any]], Meta(min_length=1)]


class Ids(Struct, forbid_unknown_fields=True):
    """Ids of documents."""

    ids: Annotated[list[str], Meta(min_length=1)]


class Turn(Struct, forbid_unknown_fields=True):
    """A turn of the conversation before a question."""

    role: Role
    content: str


def _question_fields() -> list[Any]:
    """The fields of `QueryParam`, with which a question may be asked."""
    hints = get_type_hints(QueryParam, include_extras=True)
    hints["conversation_history"] = list[Turn]
    found: list[Any] = [("question", Annotated[str, Meta(min_length=1)]), ("explain", bool, False)]
    for one in dataclasses.fields(QueryParam):
        default = one.default
        if one.default_factory is not dataclasses.MISSING:
            default = msgspec.field(default_factory=one.default_factory)
        found.append((one.name, hints[one.name], default))
    return found


Question = msgspec.defstruct("Question", _question_fields(), forbid_unknown_fields=True)


# ── what is answered ────────────────────────────────────────────────────────────


class Answered(Struct):
    """An answer; `sources` names them in words, one for each number that is cited.

    Each of the `claims` is one cited number: whether it supports the claim before it, and by which of
    the `citations`.
    """

    text: str
    citations: tuple[t.Citation, ...]
    sources: list[str]
    trace_id: str | None
    usage: Usage
    invented: tuple[int, ...]
    truncated: bool
    claims: tuple[t.CitedClaim, ...]


class Part(Struct, Generic[Item]):
    """A part of a list, and how many there are in all."""

    total: int
    items: list[Item]


class Neighbourhood(Struct):
    """An entity, its strongest relations, the entities at their ends, and how many relations it has."""

    entity: t.Entity
    relations: list[t.Relation]
    neighbours: list[EntityLine]
    total: int


class ChunkList(Struct):
    """The passages behind an entity or relation (20 at most), and the titles of their documents."""

    chunks: list[t.Chunk]
    documents: dict[str, str]


def answered(answer: t.Answer) -> Answered:
    """An answer as REST writes it."""
    return Answered(
        text=answer.text,
        citations=answer.citations,
        sources=[*t.source_lines(answer.citations, answer.context.language)],
        trace_id=answer.trace_id,
        usage=answer.usage,
        invented=answer.invented,
        truncated=answer.truncated,
        claims=answer.claims,
    )


# ── questions ───────────────────────────────────────────────────────────────────


def _asked(call: Call) -> tuple[str, QueryParam, bool]:
    given = msgspec.to_builtins(call.body)
    question, explain = given.pop("question"), given.pop("explain")
    return question, QueryParam(**given), explain


async def query(call: Call) -> Answered:
    """The complete answer."""
    question, param, explain = _asked(call)
    with call.indexes.question(question):
        async with contextlib.aclosing(call.index.ask(question, param, explain)) as items:
            found = [item async for item in items]
    assert isinstance(found[-1], t.Answer)
    return answered(found[-1])


async def retrieve(call: Call) -> t.Context:
    """What a model would be shown."""
    question, param, _ = _asked(call)
    with call.indexes.question(question):
        return await call.index.rag.retrieve(question, param)


async def stream(call: Call) -> Stream:
    """The answer as server-sent events, as it is written."""
    question, param, explain = _asked(call)
    with contextlib.ExitStack() as slot:
        slot.enter_context(call.indexes.question(question))
        items = call.index.ask(question, param, explain)
        return Stream(_events(call, items), EVENTS, slot.pop_all())


async def _events(
    call: Call, items: AsyncGenerator[events.Event | t.Answer]
) -> AsyncGenerator[str]:
    try:
        async with contextlib.aclosing(items):
            async for item in items:
                match item:
                    case t.Answer():
                        yield _event("answer", answered(item))
                    case events.AnswerChunk():
                        if item.text:
                            yield _event("piece", {"text": item.text})
                    case events.SelectionMade():
                        yield _event("evidence", item)
                    case events.Session() | events.KeywordsFound() | events.Retrieval():
                        yield _event(item.stage, item)
    except LightRAGError as error:
        _, code, words = described(error, call.indexes)
        yield _event("error", error_body(code, words)["error"])


def _event(name: str, value: object) -> str:
    return f"event: {name}\ndata: {msgspec.json.encode(value).decode()}\n\n"


# ── documents and jobs ──────────────────────────────────────────────────────────


async def documents(call: Call) -> Part[Any]:
    """The documents with their states and failures."""
    wanted: DocumentPage = call.params
    text = wanted.q.casefold()
    found = [
        one
        for one in await call.index.rag.documents()
        if wanted.state in ("", one.state)
        and any(text in (field or "").casefold() for field in (one.id, one.title, one.source))
    ]
    return _part(found, wanted)


def _part(found: list[Item], page: Page) -> Part[Item]:
    return Part(len(found), found[page.offset : page.offset + page.limit])


def _check_room(call: Call) -> Index:
    index, limits = call.index, call.indexes.limits
    waiting = index.jobs.waiting
    if len(waiting) >= limits.jobs or sum(job.size for job in waiting) >= limits.jobs_bytes:
        raise Busy(f"{len(waiting)} jobs are queued: try again later", 30)
    return index


async def insert(call: Call) -> Job:
    """Index texts."""
    jobs = _check_room(call).jobs
    for number, value in enumerate(call.body.documents):
        document_from(value, where=f"documents[{number}]")
    with jobs.content_file() as path:
        path.write_bytes(msgspec.json.encode(call.body.documents))
        return jobs.add("insert", {"documents": len(call.body.documents)}, path)


async def upload(call: Call) -> Job:
    """Index a file, whose name is a title and never a path."""
    jobs, about = _check_room(call).jobs, msgspec.to_builtins(call.params)
    if not call.params.name.isprintable() or set(call.params.name) & set("/\\"):
        raise HTTPException(400, "the name of a file must not hold folders or control characters")
    check_media_type(call.request, "application/octet-stream")
    with jobs.content_file() as path:
        with path.open("wb") as file:
            async for piece in read_body(call.request, call.indexes.limits.upload):
                await to_thread.run_sync(file.write, piece)
        return jobs.add("upload", about, path)


async def delete(call: Call) -> Job:
    """Delete documents."""
    index, ids = _check_room(call), call.body.ids
    known = {document.id for document in await index.rag.documents()}
    if unknown := [id for id in ids if id not in known]:
        raise NotFoundError(f"no such document: {', '.join(unknown)}")
    return index.jobs.add("delete", {"ids": ids})


async def retry(call: Call) -> Job:
    """Go on with interrupted documents, and read failed chunks again."""
    return _check_room(call).jobs.add("retry", {})


async def jobs(call: Call) -> Part[Job]:
    """The jobs, newest first."""
    return _part(call.index.jobs.newest(), call.params)


async def job(call: Call) -> Job:
    """One job, with its progress."""
    return call.index.jobs.get(call.request.path_params["id"])


async def cancel(call: Call) -> Job:
    """End a job that waits or runs; what it has indexed stays. A job that has ended stays as it is."""
    return call.index.jobs.cancel(call.request.path_params["id"])


# ── the index, its traces and its graph ─────────────────────────────────────────


async def indexes(call: Call) -> list[str]:
    """The names of the indexes."""
    return list(call.indexes.by_name)


async def status(call: Call) -> t.Status:
    """What an index holds, and how extraction went."""
    return dataclasses.replace(await call.index.rag.status(), working_dir=call.index.name)


async def traces(call: Call) -> list[t.TraceSummary]:
    """The newest questions."""
    page: Page = call.params
    found = await call.index.rag.traces.list(limit=page.offset + page.limit)
    return [*found[page.offset :]]


async def trace(call: Call) -> Trace:
    """How an answer came about."""
    return await call.index.rag.traces.get(call.request.path_params["id"])


async def trace_page(call: Call) -> HTMLResponse:
    """The same as a page for people."""
    rag, id = call.index.rag, call.request.path_params["id"]
    return HTMLResponse(await rag.traces.page(id), headers=TRACE_POLICY)


async def entities(call: Call) -> Part[EntityLine]:
    """Entities by a part of their name, those with most relations first."""
    return _part(await call.index.find_entities(call.params.q, call.params.type), call.params)


async def entity_types(call: Call) -> dict[str, int]:
    """The types of entities, and how many have each."""
    counts = Counter(line.type for line in (await call.index.directory()).values())
    return dict(counts.most_common())


async def neighbourhood(call: Call) -> Neighbourhood:
    """An entity with its relations, strongest first."""
    entity, relations = await call.index.rag.entities.neighbours(call.params.name)
    shown = [*relations[: call.params.limit]]
    ends = dict.fromkeys(end for one in shown for end in (one.source, one.target))
    lines = {line.name: line for line in (await call.index.directory()).values()}
    others = [lines[end] for end in ends if end != entity.name and end in lines]
    return Neighbourhood(entity, shown, others, len(relations))


async def sources(call: Call) -> ChunkList:
    """The passages behind an entity or a relation."""
    wanted, rag = call.params, call.index.rag
    ids: tuple[str, ...] = (wanted.chunk,)
    if wanted.entity:
        entity, relations = await rag.entities.neighbours(wanted.entity)
        ids = entity.chunk_ids
        if wanted.target:
            target = (await rag.entities.get(wanted.target)).name
            between = [one.chunk_ids for one in relations if target in (one.source, one.target)]
            ids = next(iter(between), ())
    found = await read(rag.engine.store, lambda view: look_up_sources(view, ids))
    if not found.chunks:
        raise NotFoundError("no passage: name a chunk, an entity, or an entity and a target")
    titles = {id: one.title or one.name for id, one in found.documents.items()}
    return ChunkList([*found.chunks.values()], titles)


INDEX: Final = "/indexes/{index}"
ROUTES: Final = (
    Route("GET", "/indexes", indexes, result=list[str]),
    Route("GET", INDEX, status, result=t.Status),
    Route("GET", f"{INDEX}/documents", documents, DocumentPage, result=Part[dict[str, Any]]),
    Route("POST", f"{INDEX}/documents", insert, body=NewDocuments, result=Job, status=202, large=True),
    Route("POST", f"{INDEX}/upload", upload, Upload, body=bytes, result=Job, status=202),
    Route("POST", f"{INDEX}/delete", delete, body=Ids, result=Job, status=202),
    Route("POST", f"{INDEX}/retry", retry, body=Nothing, result=Job, status=202),
    Route("GET", f"{INDEX}/jobs", jobs, Page, result=Part[Job]),
    Route("GET", f"{INDEX}/jobs/{{id}}", job, result=Job),
    Route("POST", f"{INDEX}/jobs/{{id}}/cancel", cancel, body=Nothing, result=Job),
    Route("POST", f"{INDEX}/query", query, body=Question, result=Answered),
    Route("POST", f"{INDEX}/retrieve", retrieve, body=Question, result=t.Context),
    Route("POST", f"{INDEX}/stream", stream, body=Question, media=EVENTS),
    Route("GET", f"{INDEX}/traces", traces, Page, result=list[t.TraceSummary]),
    Route("GET", f"{INDEX}/traces/{{id}}", trace, result=Trace),
    Route("GET", f"{INDEX}/traces/{{id}}/page", trace_page, media="text/html"),
    Route("GET", f"{INDEX}/entities", entities, EntityPage, result=Part[EntityLine]),
    Route("GET", f"{INDEX}/types", entity_types, result=dict[str, int]),
    Route("GET", f"{INDEX}/neighbourhood", neighbourhood, Around, result=Neighbourhood),
    Route("GET", f"{INDEX}/sources", sources, Sources, result=ChunkList),
)  # fmt: skip
