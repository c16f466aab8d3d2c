"""One search of an index, from plain values to plain values, in whatever process has the index open."""

from dataclasses import replace

from msgspec import Struct, field, structs

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.retrieval import ranking
from lightrag_jsonl.retrieval.communities import CommunityMemory
from lightrag_jsonl.retrieval.lens import Lens
from lightrag_jsonl.retrieval.overview import find_overview
from lightrag_jsonl.retrieval.task import SearchQuery, SearchResult, SearchTask
from lightrag_jsonl.storage.views import Snapshot


class SearchRequest(Struct, frozen=True, kw_only=True):
    """What to search for, as plain values, so that another process can search.

    `context` has the question, its keywords and no findings yet; `chunk_limit` is as in `SearchTask`.
    With `for_overview`, the question is about everything.
    """

    query: SearchQuery
    context: Context
    param: QueryParam
    chunk_limit: int
    for_overview: bool


class Searcher(Struct, frozen=True):
    """Searches one state of an index after another, through lenses; another process gets a copy.

    `communities` keeps the communities of the graph between searches.
    """

    lenses: tuple[Lens, ...] = ()
    communities: CommunityMemory = field(default_factory=CommunityMemory)

    def find(self, snapshot: Snapshot, request: SearchRequest) -> SearchResult:
        """The findings of one state of the index."""
        context = replace(request.context, has_records=snapshot.has_records())
        task = SearchTask(
            snapshot=snapshot,
            query=request.query,
            mode=MODES[request.param.mode],
            param=request.param,
            chunk_limit=request.chunk_limit,
        )
        for lens in self.lenses:
            task = lens.narrow(task)
        if request.for_overview:
            result = find_overview(task, context, self.communities)
        else:
            result = ranking.find(task, context)
        telling: list[int] = []
        for number, lens in enumerate(self.lenses):
            result_of_lens = lens.find(task, result)
            if result_of_lens is not None:
                telling.append(number)
                result = result_of_lens
        return structs.replace(result, lenses=tuple(telling))
