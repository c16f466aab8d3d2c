"""The routes of REST, and the first: the indexes and the state of an index."""

import dataclasses
from typing import Any, Final

from lightrag_jsonl.core import answers, types
from lightrag_jsonl.core.claims import Conflict, DatedClaim
from lightrag_jsonl.core.index_reports import Status
from lightrag_jsonl.core.snapshots import IndexSnapshot, StateDifference
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.server import documents, graph, questions
from lightrag_jsonl.server.beginning import BeginningBody, get_beginning
from lightrag_jsonl.server.chat import EVENTS
from lightrag_jsonl.server.graph_edits import GraphEdit, HomonymLine, HomonymParams, get_homonyms
from lightrag_jsonl.server.graph_overview import OverviewBody
from lightrag_jsonl.server.indexes import EntityLine
from lightrag_jsonl.server.jobs import Job
from lightrag_jsonl.server.lists import ListParams, ListPart
from lightrag_jsonl.server.routing import (
    Call,
    Nothing,
    Route,
)
from lightrag_jsonl.server.settings import (
    NewSettings,
    SettingsBody,
    change_settings,
    get_settings,
)
from lightrag_jsonl.server.snapshots import DiffParams, get_difference, get_snapshots
from lightrag_jsonl.tools.prices import READING_TASKS, Cost, cost_of_tasks
from lightrag_jsonl.tracing.trace import Trace


async def list_indexes(call: Call) -> list[str]:
    """The names of the indexes."""
    return list(call.indexes.by_name)


async def get_status(call: Call) -> Status:
    """The contents of an index, and statistics of extraction."""
    return dataclasses.replace(await call.index.rag.status(), working_dir=call.index.name)


async def get_cost(call: Call) -> Cost | None:
    """The cost of extraction so far; null without a model of known price."""
    rag = call.index.rag
    status = await rag.status()
    return cost_of_tasks(status.extraction.usage, rag.engine.client, READING_TASKS)


INDEX_PATH: Final = "/indexes/{index}"
REST_ROUTES: Final = (
    Route("GET", "/indexes", list_indexes, result=list[str]),
    Route("GET", INDEX_PATH, get_status, result=Status),
    Route("GET", f"{INDEX_PATH}/cost", get_cost, result=Cost | None),
    Route("GET", f"{INDEX_PATH}/documents", documents.list_documents, documents.DocumentParams, result=ListPart[dict[str, Any]]),
    Route("GET", f"{INDEX_PATH}/beginning", get_beginning, result=BeginningBody, weight=1),
    Route("GET", f"{INDEX_PATH}/settings", get_settings, result=SettingsBody),
    Route("POST", f"{INDEX_PATH}/settings", change_settings, body=NewSettings, result=SettingsBody),
    Route("GET", f"{INDEX_PATH}/text", documents.get_text, documents.TextParams, result=dict[str, Any]),
    Route("POST", f"{INDEX_PATH}/documents", documents.insert_documents, body=documents.NewDocuments, result=Job, status=202, large=True),
    Route("POST", f"{INDEX_PATH}/upload", documents.upload_file, documents.UploadParams, body=bytes, result=Job, status=202),
    Route("POST", f"{INDEX_PATH}/delete", documents.delete_documents, body=documents.DocumentIds, result=Job, status=202),
    Route("POST", f"{INDEX_PATH}/retry", documents.retry_failed, body=Nothing, result=Job, status=202),
    Route("POST", f"{INDEX_PATH}/edit", graph.change_graph, body=GraphEdit, result=Job, status=202),
    Route("GET", f"{INDEX_PATH}/jobs", documents.list_jobs, ListParams, result=ListPart[Job]),
    Route("GET", f"{INDEX_PATH}/jobs/{{id}}", documents.get_job, result=Job),
    Route("POST", f"{INDEX_PATH}/jobs/{{id}}/cancel", documents.cancel_job, body=Nothing, result=Job),
    Route("POST", f"{INDEX_PATH}/jobs/{{id}}/retry", documents.retry_job, body=Nothing, result=Job),
    Route("POST", f"{INDEX_PATH}/query", questions.answer_question, body=questions.Question, result=questions.AnswerBody),
    Route("POST", f"{INDEX_PATH}/retrieve", questions.get_context, body=questions.Question, result=answers.Context),
    Route("POST", f"{INDEX_PATH}/stream", questions.stream_answer, questions.StreamParams, body=questions.Question, media=EVENTS),
    Route("GET", f"{INDEX_PATH}/traces", questions.list_traces, ListParams, result=list[types.TraceSummary]),
    Route("GET", f"{INDEX_PATH}/traces/{{id}}", questions.get_trace, result=Trace),
    Route("GET", f"{INDEX_PATH}/traces/{{id}}/page", questions.get_trace_page, media="text/html"),
    Route("GET", f"{INDEX_PATH}/entities", graph.get_entities, graph.EntityParams, result=ListPart[EntityLine]),
    Route("GET", f"{INDEX_PATH}/types", graph.count_entity_types, result=dict[str, int]),
    Route("GET", f"{INDEX_PATH}/neighbourhood", graph.get_neighbourhood, graph.NeighbourhoodParams, result=graph.NeighbourhoodBody),
    Route("GET", f"{INDEX_PATH}/overview", graph.get_overview, result=OverviewBody, weight=1),
    Route("GET", f"{INDEX_PATH}/history", graph.get_history, graph.HistoryParams, result=ListPart[DatedClaim], weight=1),
    Route("GET", f"{INDEX_PATH}/conflicts", graph.get_conflicts, graph.ConflictParams, result=list[Conflict], weight=1),
    Route("GET", f"{INDEX_PATH}/homonyms", get_homonyms, HomonymParams, result=list[HomonymLine], weight=1),
    Route("GET", f"{INDEX_PATH}/snapshots", get_snapshots, result=list[IndexSnapshot]),
    Route("GET", f"{INDEX_PATH}/diff", get_difference, DiffParams, result=StateDifference, weight=2),
    Route("GET", f"{INDEX_PATH}/communities", graph.get_communities, graph.CommunityParams, result=ListPart[answers.Community], weight=1),
    Route("GET", f"{INDEX_PATH}/communities/estimate", graph.get_report_estimate, result=Usage, weight=1),
    Route("POST", f"{INDEX_PATH}/communities/report", graph.start_reports, body=graph.AgreedReports, result=Job, status=202),
    Route("GET", f"{INDEX_PATH}/sources", graph.get_sources, graph.SourceParams, result=graph.ChunkList),
)  # fmt: skip
