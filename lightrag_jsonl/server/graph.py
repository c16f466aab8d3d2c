"""The routes of the graph: entities, communities, claims over time, and sources."""

from collections import Counter
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from lightrag_jsonl.core import answers, types
from lightrag_jsonl.core.claims import Conflict, DatedClaim, claims_by_sentence
from lightrag_jsonl.core.errors import NotFoundError
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.server.graph_edits import check_edit
from lightrag_jsonl.server.graph_overview import OverviewBody, graph_overview
from lightrag_jsonl.server.indexes import EntityLine
from lightrag_jsonl.server.jobs import Job
from lightrag_jsonl.server.lists import (
    EntityName,
    Limit,
    ListParams,
    ListPart,
    ShortText,
    list_part,
)
from lightrag_jsonl.server.routing import (
    Call,
)
from lightrag_jsonl.storage.store import read
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.tracing.trace import look_up_sources


class EntityParams(ListParams):
    """Entities of a `type` (all for ""), and with a text in the name."""

    q: ShortText = ""
    type: ShortText = ""


class HistoryParams(ListParams, kw_only=True):
    """A part of the claims about an entity; with `sentences` each sentence once, with `stated` only claims
    whose text says from when or until when.
    """

    name: EntityName
    sentences: bool = False
    stated: bool = False


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


async def get_entities(call: Call) -> ListPart[EntityLine]:
    """Entities by a part of the name, the most connected first."""
    params: EntityParams = call.params
    return list_part(await call.index.find_entities(params.q, params.type), params)


async def count_entity_types(call: Call) -> dict[str, int]:
    """The types of entities, with the number of entities of each."""
    directory = await call.index.directory()
    counts = Counter(line.type for line in directory.values())
    return dict(counts.most_common())


async def get_neighbourhood(call: Call) -> NeighbourhoodBody:
    """An entity with relations, strongest first."""
    params: NeighbourhoodParams = call.params
    entities = call.index.rag.entities
    entity, relations = await entities.neighbours(params.name, limit=params.limit)
    directory = await call.index.directory()
    names = dict.fromkeys(
        name for relation in relations for name in (relation.source, relation.target)
    )
    keys = [name_key(name) for name in names if name != entity.name]
    return NeighbourhoodBody(
        entity=entity,
        relations=list(relations),
        neighbours=[directory[key] for key in keys if key in directory],
        total=entity.degree,
    )


async def get_overview(call: Call) -> OverviewBody:
    """The graph at a glance: communities, central entities, and the relations among the entities."""
    return await graph_overview(call.index)


async def change_graph(call: Call) -> Job:
    """Change the graph by hand, as a job; the report of the job says how to undo the change."""
    check_edit(call.body)
    return await call.index.jobs.add("edit", msgspec.to_builtins(call.body))


async def get_history(call: Call) -> ListPart[DatedClaim]:
    """Claims about an entity over time; claims without a date last."""
    params: HistoryParams = call.params
    claims = list(await call.index.rag.entities.history(params.name))
    if params.stated:
        claims = [claim for claim in claims if claim.valid_from or claim.valid_to]
    if params.sentences:
        claims = claims_by_sentence(claims)
    return list_part(claims, params)


async def get_conflicts(call: Call) -> list[Conflict]:
    """Pairs of contradictory claims."""
    params: ConflictParams = call.params
    conflicts = await call.index.rag.conflicts(explained=params.explained, limit=params.limit)
    return list(conflicts)


async def get_communities(call: Call) -> ListPart[answers.Community]:
    """The communities of the graph with reports, the largest first, each followed by the parts."""
    params: CommunityParams = call.params
    communities = await call.index.rag.communities.list()
    return list_part([item for item in communities if item.level <= params.level], params)


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
    if not params.target:
        return (await entities.get(params.entity)).chunk_ids
    target = (await entities.get(params.target)).name
    _, relations = await entities.neighbours(params.entity)
    for relation in relations:
        if target in (relation.source, relation.target):
            return relation.chunk_ids
    return ()
