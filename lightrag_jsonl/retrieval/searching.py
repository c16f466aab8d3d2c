"""One search of an index, from plain values to plain values, in whatever process has the index open."""

from dataclasses import dataclass, replace

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.retrieval import ranking
from lightrag_jsonl.retrieval.claims import ClaimMemory
from lightrag_jsonl.retrieval.communities import CommunityMemory
from lightrag_jsonl.retrieval.conflicts import with_conflicts
from lightrag_jsonl.retrieval.holding import Holding, find_holding
from lightrag_jsonl.retrieval.listing import find_listing
from lightrag_jsonl.retrieval.overview import find_overview
from lightrag_jsonl.retrieval.task import SearchQuery, SearchResult, SearchTask
from lightrag_jsonl.storage.filters import parse_where
from lightrag_jsonl.storage.views import Snapshot, StoreView


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search for, as plain values, so that another process can search.

    `context` has the question, its keywords and no findings yet; `chunk_limit` is as in `SearchTask`.
    With `for_overview`, the question is about everything.
    """

    query: SearchQuery
    context: Context
    param: QueryParam
    chunk_limit: int
    for_overview: bool


@dataclass(frozen=True, slots=True)
class SearchMemory:
    """What a process keeps of an index between searches, until the index changes."""

    claims: ClaimMemory
    communities: CommunityMemory


def findings(snapshot: Snapshot, request: SearchRequest, memory: SearchMemory) -> SearchResult:
    """The findings of one state of the index."""
    context = replace(request.context, has_records=snapshot.has_records())
    task = SearchTask(
        snapshot=snapshot,
        query=request.query,
        mode=MODES[request.param.mode],
        param=request.param,
        chunk_limit=request.chunk_limit,
        holding=holding_at(snapshot, request.param, memory.claims),
    )
    if request.for_overview:
        result = find_overview(task, context, memory.communities)
    else:
        result = ranking.find(task, context)
        contradicted = with_conflicts(snapshot, memory.claims, result.context)
        result = replace(result, context=contradicted)
    if not task.mode.graph:
        return result
    listing = find_listing(task, request.query.question, context.keywords)
    return replace(result, listing=listing)


def holding_at(view: StoreView, param: QueryParam, memory: ClaimMemory) -> Holding | None:
    """The out-of-date part of the index, by the documents that the filter lets through; None for a
    question without a moment.
    """
    if not param.as_of:
        return None
    claims = memory.claims(view)
    if param.where:
        claims = claims.visible_in(set(view.matching_chunks(parse_where(param.where))))
    return find_holding(view, param.as_of, claims)
