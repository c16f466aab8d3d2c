"""The routes of questions: answers, contexts and traces."""

import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Any, Final, Literal, get_type_hints

import msgspec
from msgspec import Struct
from starlette.responses import HTMLResponse

from lightrag_jsonl.core import answers, types
from lightrag_jsonl.core.errors import LightRAGError
from lightrag_jsonl.core.options import QueryParam, Role
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.server.chat import EVENTS, stream_part
from lightrag_jsonl.server.lists import ListParams, NonEmptyText
from lightrag_jsonl.server.messages import without_folders
from lightrag_jsonl.server.routing import (
    Call,
    Stream,
    error_body,
    error_message,
    error_status,
)
from lightrag_jsonl.tracing import events
from lightrag_jsonl.tracing.trace import Trace

TRACE_POLICY: Final = {"Content-Security-Policy": "frame-ancestors 'self'; base-uri 'none'"}


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


class StreamParams(Struct, forbid_unknown_fields=True):
    """The form of a stream: events with names, or messages with `explain_id` and `end_of_session`."""

    form: Literal["events", "messages"] = "events"


class EvidenceRelation(Struct):
    """A relation in a cited passage: two names, and the statement about both."""

    source: str
    target: str
    keywords: tuple[str, ...]


class AnswerBody(Struct):
    """An answer; `sources` has a line for each cited number, `notes` a line for each marked claim
    and each statement without a citation. `notice` tells of a text without a model, and `evidence`
    are the relations in the cited passages. `reading` is the report on passages read for the
    question, in an index that is read when it is asked.

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


def _question_of(call: Call) -> tuple[str, QueryParam, bool]:
    """The question of a request, the parameters, and whether to explain the answer."""
    fields = msgspec.to_builtins(call.body)
    question = fields.pop("question")
    explain = fields.pop("explain")
    return question, QueryParam(**fields), explain


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
                    message = without_folders(item.to_message(), call.index.address)
                    yield stream_part(EVENTS, message)
    except LightRAGError as error:
        if not has_ended:  # it failed before the session began
            failure = {"error": error_message(error, call.indexes), "end_of_session": True}
            yield stream_part(EVENTS, failure)


def _server_sent_event(name: str, value: object) -> str:
    return f"event: {name}\ndata: {msgspec.json.encode(value).decode()}\n\n"
