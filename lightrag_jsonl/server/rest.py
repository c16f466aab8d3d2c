"""The routes of REST: documents and jobs, questions, traces, and the graph."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_type_hints

import msgspec
from anyio import to_thread
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from lightrag_jsonl.core import answers, types
from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.errors import ConfigError, LightRAGError, NotFoundError
from lightrag_jsonl.core.index_reports import DocumentStatus, Status
from lightrag_jsonl.core.options import QueryParam, Role
from lightrag_jsonl.core.snapshots import IndexSnapshot, StateDifference
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.curation.homonyms import Homonym
from lightrag_jsonl.indexing.incoming import storable
from lightrag_jsonl.server.beginning import BeginningBody, get_beginning
from lightrag_jsonl.server.chat import EVENTS, stream_part
from lightrag_jsonl.server.graph_edits import GraphEdit, HomonymParams, check_edit, get_homonyms
from lightrag_jsonl.server.graph_overview import OverviewBody, graph_overview
from lightrag_jsonl.server.indexes import EntityLine
from lightrag_jsonl.server.jobs import Job, JobContent
from lightrag_jsonl.server.messages import without_folders
from lightrag_jsonl.server.posted_documents import posted_documents
from lightrag_jsonl.server.routing import (
    Call,
    Nothing,
    Route,
    Stream,
    check_media_type,
    error_body,
    error_message,
    error_status,
    read_body,
)
from lightrag_jsonl.server.settings import (
    NewSettings,
    SettingsBody,
    change_settings,
    get_settings,
)
from lightrag_jsonl.server.snapshots import DiffParams, get_difference, get_snapshots
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.status import find_documents
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.trace import Trace, look_up_sources

ListItem = TypeVar("ListItem")
Limit = Annotated[int, Meta(ge=1, le=500)]
Offset = Annotated[int, Meta(ge=0, le=1 << 40)]
ShortText = Annotated[str, Meta(max_length=255)]
NonEmptyText = Annotated[str, Meta(min_length=1)]
EntityName = Annotated[str, Meta(min_length=1, max_length=2_000)]

MOST_DOCUMENTS: Final = 1 << 31  # with the text of an id in another id, title or source
MOST_NAMED: Final = 20  # missing documents in an error
TRACE_POLICY: Final = {"Content-Security-Policy": "frame-ancestors 'self'; base-uri 'none'"}


# ── what clients send ───────────────────────────────────────────────────────────


class ListParams(Struct, forbid_unknown_fields=True):
    """A part of a list."""

    offset: Offset = 0
    limit: Limit = 50


class DocumentParams(ListParams):
    """Documents with a `state` (all for ""), and with a text in id, title or source."""

    state: str = ""
    q: ShortText = ""


class EntityParams(ListParams):
    """Entities of a `type` (all for ""), and with a text in the name."""

    q: ShortText = ""
    type: ShortText = ""


class HistoryParams(Struct, forbid_unknown_fields=True):
    """An entity."""

    name: EntityName


class ConflictParams(Struct, forbid_unknown_fields=True):
    """The most contradictions to list; with `explained` also contradictions explained by time."""

    explained: bool = False
    limit: Limit = 50


class CommunityParams(ListParams):
    """Communities down to a `level`: 0 for the whole graph's, 1 also for the parts, and so on."""

    level: Annotated[int, Meta(ge=0, le=100)] = 0


class AgreedReports(Struct, forbid_unknown_fields=True):
    """The most calls of the model agreed to, from the estimate."""

    calls: Annotated[int, Meta(ge=1)]


class NeighbourhoodParams(Struct, forbid_unknown_fields=True):
    """An entity, and the most relations to list."""

    name: EntityName
    limit: Limit = 50


class SourceParams(Struct, forbid_unknown_fields=True):
    """A chunk, or an entity, or the relation from `entity` to `target`."""

    entity: str = ""
    target: str = ""
    chunk: str = ""


class TextParams(Struct, forbid_unknown_fields=True):
    """A document, and a range of passages."""

    id: NonEmptyText
    offset: Offset = 0
    limit: Limit = 50


class UploadParams(Struct, forbid_unknown_fields=True):
    """The name of an uploaded file, and properties of the document in the file."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    id: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    title: ShortText | None = None
    date: ShortText | None = None


class StreamParams(Struct, forbid_unknown_fields=True):
    """The form of a stream: events with names, or messages with `explain_id` and `end_of_session`."""

    form: Literal["events", "messages"] = "events"


class NewDocument(Struct, omit_defaults=True):
    """A document to index; further fields become metadata."""

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    date: str | None = None
    metadata: dict[str, Any] = {}
    pages: list[str] | None = None


class NewDocuments(Struct, forbid_unknown_fields=True):
    """Texts to index, or objects with the fields of `Document`."""

    documents: Annotated[list[NewDocument | str], Meta(min_length=1)]


class DocumentIds(Struct, forbid_unknown_fields=True):
    """Ids of documents; `purge` asks for no remains in any file."""

    ids: Annotated[list[str], Meta(min_length=1)]
    purge: bool = False


class ConversationTurn(Struct, forbid_unknown_fields=True):
    """A turn of the conversation before a question."""

    role: Role
    content: str


def _question_fields() -> list[Any]:
    """A question, and the fields of `QueryParam`."""
    hints = get_type_hints(QueryParam, include_extras=True)
    hints["conversation_history"] = list[ConversationTurn]
    fields: list[Any] = [("question", NonEmptyText), ("explain", bool, False)]
    for field in dataclasses.fields(QueryParam):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = msgspec.field(default_factory=field.default_factory)
        fields.append((field.name, hints[field.name], default))
    return fields


Question = msgspec.defstruct("Question", _question_fields(), forbid_unknown_fields=True)


# ── what the server answers ─────────────────────────────────────────────────────


class EvidenceRelation(Struct):
    """A relation in a cited passage: two names, and the statement about both."""

    source: str
    target: str
    keywords: tuple[str, ...]


class AnswerBody(Struct):
    """An answer; `sources` has a line for each cited number, `notes` a line for each marked claim
    and each statement without a citation. `notice` tells of a text without a model, and `evidence`
    are the relations in the cited passages. `reading` is the report on passages read for the
    question, in an index read on demand.

    The `claims` are the cited numbers in the text: `verdict` and `reason` for the claim before the
    number, and the nearest sentence in `citations`. The `uncited` statements have no number; the
    server looked up the sentence `nearest` to each.
    """

    text: str
    citations: tuple[answers.Citation, ...]
    sources: list[str]
    notes: list[str]
    trace_id: str | None
    usage: Usage
    invented: tuple[int, ...]
    truncated: bool
    claims: tuple[answers.CitedClaim, ...]
    notice: str
    evidence: list[EvidenceRelation]
    uncited: tuple[answers.UncitedClaim, ...]
    reading: answers.Reading


class ListPart(Struct, Generic[ListItem]):
    """A part of a list, and the length of the whole list."""

    total: int
    items: list[ListItem]


class NeighbourhoodBody(Struct):
    """An entity, the strongest relations with the other entities, and the number of all relations."""

    entity: types.Entity
    relations: list[types.Relation]
    neighbours: list[EntityLine]
    total: int


class ChunkList(Struct):
    """The passages behind an entity or relation (20 at most), and the titles of the documents."""

    chunks: list[types.Chunk]
    documents: dict[str, str]


class TextBody(Struct):
    """A document, a range of passages in the order of the text, and the number of all passages."""

    document: DocumentStatus
    total: int
    chunks: list[types.Chunk]


def answer_body(answer: answers.Answer) -> AnswerBody:
    """An answer in the form of REST."""
    return AnswerBody(
        text=answer.text,
        citations=answer.citations,
        sources=list(answers.source_lines(answer.citations, answer.context.language)),
        notes=list(answers.note_lines(answer)),
        trace_id=answer.trace_id,
        usage=answer.usage,
        invented=answer.invented,
        truncated=answer.truncated,
        claims=answer.claims,
        notice=answer.notice,
        evidence=[
            EvidenceRelation(relation.source, relation.target, relation.keywords)
            for relation in answer.evidence
        ],
        uncited=answer.uncited,
        reading=answer.reading,
    )


# ── questions ───────────────────────────────────────────────────────────────────


def _question_of(call: Call) -> tuple[str, QueryParam, bool]:
    """The question of a request, the parameters, and whether to explain the answer."""
    fields = msgspec.to_builtins(call.body)
    question = fields.pop("question")
    explain = fields.pop("explain")
    return question, QueryParam(**fields), explain


async def answer_question(call: Call) -> AnswerBody:
    """The complete answer."""
    question, param, explain = _question_of(call)
    with call.indexes.question(question):
        async with contextlib.aclosing(call.index.ask(question, param, explain)) as items:
            collected = [item async for item in items]
    answer = collected[-1]
    assert isinstance(answer, answers.Answer)
    return answer_body(answer)


async def get_context(call: Call) -> answers.Context:
    """The context for a question, as for a model."""
    question, param, _ = _question_of(call)
    with call.indexes.question(question):
        return await call.index.rag.retrieve(question, call.index.limited(param))


async def stream_answer(call: Call) -> Stream:
    """The answer as server-sent events, during the writing."""
    question, param, explain = _question_of(call)
    with contextlib.ExitStack() as slot:
        slot.enter_context(call.indexes.question(question))
        items = call.index.ask(question, param, explain)
        params: StreamParams = call.params
        write = _server_sent_events if params.form == "events" else _event_messages
        return Stream(write(call, items), EVENTS, slot.pop_all())


async def _server_sent_events(
    call: Call, items: AsyncGenerator[events.Event | answers.Answer]
) -> AsyncGenerator[str]:
    try:
        async with contextlib.aclosing(items):
            async for item in items:
                match item:
                    case answers.Answer():
                        yield _server_sent_event("answer", answer_body(item))
                    case events.AnswerChunk():
                        if item.text:
                            yield _server_sent_event("piece", {"text": item.text})
                    case events.SelectionMade():
                        yield _server_sent_event("evidence", item)
                    case (
                        events.Session()
                        | events.KeywordsFound()
                        | events.ReadingProgress()
                        | events.ChunksRead()
                        | events.Retrieval()
                    ):
                        yield _server_sent_event(item.stage, item)
    except LightRAGError as error:
        _, code = error_status(error)
        body = error_body(code, error_message(error, call.indexes))
        yield _server_sent_event("error", body["error"])


async def _event_messages(
    call: Call, items: AsyncGenerator[events.Event | answers.Answer]
) -> AsyncGenerator[str]:
    """The events under the field names of the explainability specification, a single end of session last."""
    has_ended = False
    try:
        async with contextlib.aclosing(items):
            async for item in items:
                if not isinstance(item, answers.Answer):
                    has_ended = has_ended or isinstance(item, events.End)
                    yield stream_part(EVENTS, _event_message(call, item))
    except LightRAGError as error:
        if not has_ended:  # it failed before the session began
            failure = {"error": error_message(error, call.indexes), "end_of_session": True}
            yield stream_part(EVENTS, failure)


def _event_message(call: Call, event: events.Event) -> dict[str, types.Json]:
    return without_folders(event.to_message(), call.index.address)


def _server_sent_event(name: str, value: object) -> str:
    return f"event: {name}\ndata: {msgspec.json.encode(value).decode()}\n\n"


# ── documents and jobs ──────────────────────────────────────────────────────────


async def list_documents(call: Call) -> ListPart[DocumentStatus]:
    """The documents with states and failures."""
    params: DocumentParams = call.params
    find = partial(
        find_documents,
        text=params.q,
        state=params.state,
        limit=params.limit,
        offset=params.offset,
    )
    total, documents = await read(call.index.rag.engine.store, find)
    return ListPart(total=total, items=list(documents))


async def get_text(call: Call) -> TextBody:
    """A document with passages."""
    params: TextParams = call.params

    def find(view: StoreView) -> TextBody:
        _, documents = find_documents(view, text=params.id, state="", limit=MOST_DOCUMENTS)
        document = next((item for item in documents if item.id == params.id), None)
        if document is None:
            raise NotFoundError(f"no such document: {params.id}")
        chunks = list(view.chunks(documents=[params.id]).values())
        end = params.offset + params.limit
        return TextBody(document, len(chunks), chunks[params.offset : end])

    return await read(call.index.rag.engine.store, find)


def _list_part(items: list[ListItem], params: ListParams) -> ListPart[ListItem]:
    end = params.offset + params.limit
    return ListPart(total=len(items), items=items[params.offset : end])


async def insert_documents(call: Call) -> Job:
    """Index texts: all texts, or none if any cannot be stored."""
    check_media_type(call.request, "application/json")
    async with call.index.jobs.new_content() as content:
        await _receive(call, content)
        documents = _storable_documents(content, call.index.rag.engine.clock.seconds())
        return await call.index.jobs.add_documents(documents, content.size)


def _storable_documents(content: JobContent, now: float) -> Iterator[PendingDocument]:
    """The documents in a body; `ConfigError` names an unstorable document."""
    for number, document in enumerate(posted_documents(content.read())):
        try:
            yield storable(PendingDocument(document=document, created_at=now))
        except ConfigError as error:
            raise ConfigError(f"documents[{number}]: {error}") from error


async def upload_file(call: Call) -> Job:
    """Index a file; the file's name is a title and never a path."""
    params: UploadParams = call.params
    if not params.name.isprintable() or set(params.name) & set("/\\"):
        raise HTTPException(400, "the name of a file must not hold folders or control characters")
    check_media_type(call.request, "application/octet-stream")
    document = Document("", id=params.id, title=params.title, source=params.name, date=params.date)
    pending = PendingDocument(document=document, created_at=call.index.rag.engine.clock.seconds())
    async with call.index.jobs.new_content() as content:
        await _receive(call, content)
        details = msgspec.to_builtins(params)
        return await call.index.jobs.add_file(details, pending, content)


async def _receive(call: Call, content: JobContent) -> None:
    """Put a body aside, piece by piece."""
    async for piece in read_body(call.request, call.indexes.limits.upload):
        await to_thread.run_sync(content.write, piece)


async def delete_documents(call: Call) -> Job:
    """Delete documents; with `purge` also every text, name and answer left over."""
    ids = list(dict.fromkeys(call.body.ids))
    stored_ids = await call.index.rag.engine.indexing.deletable_ids(ids, purge=call.body.purge)
    missing_ids = [id for id in ids if id not in stored_ids]
    if missing_ids:
        raise NotFoundError(f"no such document: {', '.join(missing_ids[:MOST_NAMED])}")
    details = {"ids": ids, "purge": True} if call.body.purge else {"ids": ids}
    return await call.index.jobs.add("delete", details)


async def retry_failed(call: Call) -> Job:
    """Go on with interrupted documents, and read failed chunks again."""
    return await call.index.jobs.add("retry", {})


async def change_graph(call: Call) -> Job:
    """Change the graph by hand, as a job; the report of the job says how to undo the change."""
    check_edit(call.body)
    return await call.index.jobs.add("edit", msgspec.to_builtins(call.body))


async def list_jobs(call: Call) -> ListPart[Job]:
    """The jobs, newest first."""
    params: ListParams = call.params
    total, items = await call.index.jobs.newest(params.offset, params.limit)
    return ListPart(total=total, items=items)


async def get_job(call: Call) -> Job:
    """A job, with the progress."""
    return await call.index.jobs.get(call.request.path_params["id"])


async def cancel_job(call: Call) -> Job:
    """End a waiting or running job, or give up a failed job; finished documents stay, waiting
    documents are removed.
    """
    return await call.index.jobs.cancel(call.request.path_params["id"])


async def retry_job(call: Call) -> Job:
    """Let a failed job wait again, with the documents still waiting."""
    return await call.index.jobs.retry(call.request.path_params["id"])


# ── the index, its traces and its graph ─────────────────────────────────────────


async def list_indexes(call: Call) -> list[str]:
    """The names of the indexes."""
    return list(call.indexes.by_name)


async def get_status(call: Call) -> Status:
    """The contents of an index, and statistics of extraction."""
    return dataclasses.replace(await call.index.rag.status(), working_dir=call.index.name)


async def list_traces(call: Call) -> list[types.TraceSummary]:
    """The newest questions."""
    params: ListParams = call.params
    traces = await call.index.rag.traces.list(limit=params.offset + params.limit)
    return list(traces[params.offset :])


async def get_trace(call: Call) -> Trace:
    """How an answer came about."""
    return await call.index.rag.traces.get(call.request.path_params["id"])


async def get_trace_page(call: Call) -> HTMLResponse:
    """How an answer came about, as a web page."""
    page = await call.index.rag.traces.page(call.request.path_params["id"])
    return HTMLResponse(page, headers=TRACE_POLICY)


async def get_entities(call: Call) -> ListPart[EntityLine]:
    """Entities by a part of the name, the most connected first."""
    params: EntityParams = call.params
    return _list_part(await call.index.find_entities(params.q, params.type), params)


async def count_entity_types(call: Call) -> dict[str, int]:
    """The types of entities, with the number of entities of each."""
    directory = await call.index.directory()
    counts = Counter(line.type for line in directory.values())
    return dict(counts.most_common())


async def get_neighbourhood(call: Call) -> NeighbourhoodBody:
    """An entity with relations, strongest first."""
    params: NeighbourhoodParams = call.params
    entity, relations = await call.index.rag.entities.neighbours(params.name)
    strongest = list(relations[: params.limit])
    directory = await call.index.directory()
    lines = {line.name: line for line in directory.values()}
    names = dict.fromkeys(
        name for relation in strongest for name in (relation.source, relation.target)
    )
    neighbours = [lines[name] for name in names if name != entity.name and name in lines]
    return NeighbourhoodBody(
        entity=entity,
        relations=strongest,
        neighbours=neighbours,
        total=len(relations),
    )


async def get_overview(call: Call) -> OverviewBody:
    """The graph at a glance: communities, central entities, and the relations among the entities."""
    return await graph_overview(call.index)


async def get_history(call: Call) -> list[DatedClaim]:
    """Claims about an entity over time; claims without a date last."""
    params: HistoryParams = call.params
    return list(await call.index.rag.entities.history(params.name))


async def get_conflicts(call: Call) -> list[Conflict]:
    """Pairs of contradictory claims."""
    params: ConflictParams = call.params
    conflicts = await call.index.rag.conflicts(explained=params.explained, limit=params.limit)
    return list(conflicts)


async def get_communities(call: Call) -> ListPart[answers.Community]:
    """The communities of the graph with reports, the largest first, each followed by the parts."""
    params: CommunityParams = call.params
    communities = await call.index.rag.communities.list()
    return _list_part([item for item in communities if item.level <= params.level], params)


async def get_report_estimate(call: Call) -> Usage:
    """The calls and tokens for the missing reports; an error without a model."""
    return await call.index.rag.communities.estimate_report()


async def start_reports(call: Call) -> Job:
    """Let the model write the missing reports on communities, as a job.

    The job fails without a call if more calls than agreed to are needed by then.
    """
    return await call.index.jobs.add("report", {"calls": call.body.calls})


async def get_sources(call: Call) -> ChunkList:
    """The passages behind an entity or a relation."""
    chunk_ids = await _chunk_ids(call)
    sources = await read(call.index.rag.engine.store, lambda view: look_up_sources(view, chunk_ids))
    if not sources.chunks:
        raise NotFoundError("no passage: name a chunk, an entity, or an entity and a target")
    titles = {id: document.title or document.name for id, document in sources.documents.items()}
    return ChunkList(chunks=list(sources.chunks.values()), documents=titles)


async def _chunk_ids(call: Call) -> tuple[str, ...]:
    """The ids of the chunks behind the entity or relation in the parameters, or the chunk's id."""
    params: SourceParams = call.params
    if not params.entity:
        return (params.chunk,)
    entities = call.index.rag.entities
    entity, relations = await entities.neighbours(params.entity)
    if not params.target:
        return entity.chunk_ids
    target = (await entities.get(params.target)).name
    for relation in relations:
        if target in (relation.source, relation.target):
            return relation.chunk_ids
    return ()


INDEX_PATH: Final = "/indexes/{index}"
REST_ROUTES: Final = (
    Route("GET", "/indexes", list_indexes, result=list[str]),
    Route("GET", INDEX_PATH, get_status, result=Status),
    Route("GET", f"{INDEX_PATH}/documents", list_documents, DocumentParams, result=ListPart[dict[str, Any]]),
    Route("GET", f"{INDEX_PATH}/beginning", get_beginning, result=BeginningBody, weight=1),
    Route("GET", f"{INDEX_PATH}/settings", get_settings, result=SettingsBody),
    Route("POST", f"{INDEX_PATH}/settings", change_settings, body=NewSettings, result=SettingsBody),
    Route("GET", f"{INDEX_PATH}/text", get_text, TextParams, result=dict[str, Any]),
    Route("POST", f"{INDEX_PATH}/documents", insert_documents, body=NewDocuments, result=Job, status=202, large=True),
    Route("POST", f"{INDEX_PATH}/upload", upload_file, UploadParams, body=bytes, result=Job, status=202),
    Route("POST", f"{INDEX_PATH}/delete", delete_documents, body=DocumentIds, result=Job, status=202),
    Route("POST", f"{INDEX_PATH}/retry", retry_failed, body=Nothing, result=Job, status=202),
    Route("POST", f"{INDEX_PATH}/edit", change_graph, body=GraphEdit, result=Job, status=202),
    Route("GET", f"{INDEX_PATH}/jobs", list_jobs, ListParams, result=ListPart[Job]),
    Route("GET", f"{INDEX_PATH}/jobs/{{id}}", get_job, result=Job),
    Route("POST", f"{INDEX_PATH}/jobs/{{id}}/cancel", cancel_job, body=Nothing, result=Job),
    Route("POST", f"{INDEX_PATH}/jobs/{{id}}/retry", retry_job, body=Nothing, result=Job),
    Route("POST", f"{INDEX_PATH}/query", answer_question, body=Question, result=AnswerBody),
    Route("POST", f"{INDEX_PATH}/retrieve", get_context, body=Question, result=answers.Context),
    Route("POST", f"{INDEX_PATH}/stream", stream_answer, StreamParams, body=Question, media=EVENTS),
    Route("GET", f"{INDEX_PATH}/traces", list_traces, ListParams, result=list[types.TraceSummary]),
    Route("GET", f"{INDEX_PATH}/traces/{{id}}", get_trace, result=Trace),
    Route("GET", f"{INDEX_PATH}/traces/{{id}}/page", get_trace_page, media="text/html"),
    Route("GET", f"{INDEX_PATH}/entities", get_entities, EntityParams, result=ListPart[EntityLine]),
    Route("GET", f"{INDEX_PATH}/types", count_entity_types, result=dict[str, int]),
    Route("GET", f"{INDEX_PATH}/neighbourhood", get_neighbourhood, NeighbourhoodParams, result=NeighbourhoodBody),
    Route("GET", f"{INDEX_PATH}/overview", get_overview, result=OverviewBody, weight=1),
    Route("GET", f"{INDEX_PATH}/history", get_history, HistoryParams, result=list[DatedClaim], weight=1),
    Route("GET", f"{INDEX_PATH}/conflicts", get_conflicts, ConflictParams, result=list[Conflict], weight=1),
    Route("GET", f"{INDEX_PATH}/homonyms", get_homonyms, HomonymParams, result=list[Homonym], weight=1),
    Route("GET", f"{INDEX_PATH}/snapshots", get_snapshots, result=list[IndexSnapshot]),
    Route("GET", f"{INDEX_PATH}/diff", get_difference, DiffParams, result=StateDifference, weight=2),
    Route("GET", f"{INDEX_PATH}/communities", get_communities, CommunityParams, result=ListPart[answers.Community], weight=1),
    Route("GET", f"{INDEX_PATH}/communities/estimate", get_report_estimate, result=Usage, weight=1),
    Route("POST", f"{INDEX_PATH}/communities/report", start_reports, body=AgreedReports, result=Job, status=202),
    Route("GET", f"{INDEX_PATH}/sources", get_sources, SourceParams, result=ChunkList),
)  # fmt: skip
