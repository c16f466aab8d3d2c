"""Dify's protocol of external knowledge: `/retrieval`, also of FastGPT and other programs."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.types import Chunk, Json
from lightrag_jsonl.server.chat import find_model
from lightrag_jsonl.server.routing import DIFY_PATH, Call, Route
from lightrag_jsonl.storage.filters import OWN_FIELDS
from lightrag_jsonl.storage.rows import StoredDocument
from lightrag_jsonl.storage.store import read

ScoreShare: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

# The operators of Dify, as those of `QueryParam.where`.
DIFY_OPERATORS: Final = {
    "is": "$eq",
    "is not": "$ne",
    "=": "$eq",
    "≠": "$ne",
    ">": "$gt",
    "<": "$lt",
    "≥": "$gte",
    "≤": "$lte",
    "before": "$lt",
    "after": "$gt",
    "in": "$in",
    "not in": "$nin",
    "contains": "$contains",
    "not contains": "$not_contains",
    "start with": "$starts_with",
    "end with": "$ends_with",
}
NUMERIC: Final = frozenset("=≠><≥≤")  # their values are numbers, which Dify sends as texts
WITHOUT_VALUE: Final[dict[str, Json]] = {"empty": None, "not empty": {"$ne": None}}
OWN_NAMES: Final = {"document_name": "title", "document_id": "id"}


class RetrievalSetting(Struct):
    """The number of passages, and the least score."""

    top_k: Annotated[int, Meta(ge=1, le=500)] = 10
    score_threshold: ScoreShare | None = None


class MetadataCondition(Struct):
    """A condition on metadata of documents."""

    name: Annotated[list[str], Meta(min_length=1)] | str
    comparison_operator: str
    value: str | int | float | list[str | int | float] | None = None


class MetadataConditions(Struct):
    """Conditions on metadata of documents: all or any must be met."""

    conditions: list[MetadataCondition] | None = None
    logical_operator: Literal["and", "or"] = "and"


class RetrievalRequest(Struct):
    """A question to the index `knowledge_id`, also as `index:mode`."""

    knowledge_id: str
    query: Annotated[str, Meta(min_length=1)]
    retrieval_setting: RetrievalSetting = msgspec.field(default_factory=RetrievalSetting)
    metadata_condition: MetadataConditions | None = None


class RetrievalRecord(Struct):
    """A passage; `score` is the share of the best passage's score."""

    content: str
    score: float
    title: str
    metadata: dict[str, Any]


class RetrievalBody(Struct):
    """The passages for a question, best first."""

    records: list[RetrievalRecord]


async def retrieve_records(call: Call) -> RetrievalBody:
    """The passages for a question, in the protocol of Dify's external knowledge."""
    body: RetrievalRequest = call.body
    index, mode = find_model(call.indexes, body.knowledge_id)
    param = QueryParam(
        mode=mode,
        chunk_top_k=body.retrieval_setting.top_k,
        where=where_of(body.metadata_condition),
    )
    with call.indexes.question(body.query):
        context = await index.rag.retrieve(body.query, param)
    best_score = max((chunk.score for chunk in context.chunks), default=1.0) or 1.0
    least_score = (body.retrieval_setting.score_threshold or 0.0) * best_score
    best_chunks = context.chunks[: body.retrieval_setting.top_k]
    chunks = [chunk for chunk in best_chunks if chunk.score >= least_score]
    ids = {chunk.document_id for chunk in chunks}
    documents = await read(index.rag.engine.store, lambda view: view.documents(ids))
    documents_by_id = {document.id: document for document in documents}
    records = [
        _record(chunk, chunk.score / best_score, documents_by_id[chunk.document_id], context)
        for chunk in chunks
        if chunk.document_id in documents_by_id  # not deleted meanwhile
    ]
    return RetrievalBody(records)


def where_of(conditions: MetadataConditions | None) -> dict[str, Json]:
    """The conditions as `QueryParam.where`; `ConfigError` for a condition beyond filters."""
    where: dict[str, Json] = {}
    listed = (conditions.conditions if conditions else None) or []
    if conditions and conditions.logical_operator == "or" and len(listed) > 1:
        raise ConfigError('"or" of several conditions is not known here: use "in" for one field')
    for condition in listed:
        names = [condition.name] if isinstance(condition.name, str) else condition.name
        for name in names:
            field = OWN_NAMES.get(name, name)
            where[field] = _joined_conditions(
                field, where.get(field, {}), _comparison(field, condition)
            )
    return where


def _comparison(field: str, condition: MetadataCondition) -> Json:
    operator = condition.comparison_operator
    if operator in WITHOUT_VALUE:
        return WITHOUT_VALUE[operator]
    if operator not in DIFY_OPERATORS:
        operators = ", ".join([*DIFY_OPERATORS, *WITHOUT_VALUE])
        raise ConfigError(f"comparison_operator {operator!r} is not one of {operators}")
    return {DIFY_OPERATORS[operator]: _value(field, condition)}


def _value(field: str, condition: MetadataCondition) -> Json:
    value = condition.value
    if condition.comparison_operator in ("in", "not in") and isinstance(value, str):
        return list(value.split(","))
    is_number = condition.comparison_operator in NUMERIC and field not in OWN_FIELDS
    if is_number and isinstance(value, str):
        try:
            return float(value)
        except ValueError as error:
            name = condition.name
            raise ConfigError(f"the value of the condition on {name} is no number") from error
    return list(value) if isinstance(value, list) else value


def _joined_conditions(field: str, earlier: Json, later: Json) -> Json:
    """Two conditions on a field, such as the ends of a range."""
    if earlier == {}:
        return later
    if isinstance(earlier, dict) and isinstance(later, dict) and not earlier.keys() & later.keys():
        return {**earlier, **later}
    raise ConfigError(f"two conditions on {field!r} that cannot be joined: use one")


def _record(
    chunk: Chunk, score: float, document: StoredDocument, context: Context
) -> RetrievalRecord:
    properties: dict[str, Any] = {
        **document.metadata,
        "document_id": document.id,
        "chunk_id": chunk.id,
        "page": chunk.page,
        "heading": chunk.heading,
        "source": document.source,
        "date": document.date,
    }
    return RetrievalRecord(
        content=chunk.text,
        score=score,
        title=context.documents.get(document.id, document.id),
        metadata={name: value for name, value in properties.items() if value not in (None, "")},
    )


DIFY_ROUTES: Final = (
    Route("POST", DIFY_PATH, retrieve_records, body=RetrievalRequest, result=RetrievalBody),
)
