"""The graph at a glance: communities, or else the best connected entities, and relations."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.answers import Community
from lightrag_jsonl.core.types import Relation
from lightrag_jsonl.lenses.reports import lacks_report
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.server.indexes import EntityLine, Index
from lightrag_jsonl.storage.graph_index import distinct_rows
from lightrag_jsonl.storage.store import search
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.text.names import name_key

MOST_COMMUNITIES: Final = 12
NAMES_OF_COMMUNITY: Final = 6  # the most central ones
MOST_ENTITIES: Final = 60  # that are drawn
MOST_RELATIONS: Final = 200
LARGEST_GRAPH: Final = 50_000  # entities; the communities of a larger one take too long to wait for


class CommunityLine(Struct):
    """A community in a list: title, most central entities, number of entities and number of
    passages.

    With a report, `title` and `summary` are the report's.
    """

    title: str
    names: list[str]
    entities: int
    passages: int
    summary: str = ""


class OverviewBody(Struct):
    """The communities, the largest first, with the entities to draw and the relations in between.

    `reports_missing` is the number of reports left to write for the model; 0 without a model.
    """

    communities: list[CommunityLine]
    entities: list[EntityLine]
    relations: list[Relation]
    reports_missing: int


async def graph_overview(index: Index) -> OverviewBody:
    """The overview of an index; without communities, of the best connected entities."""
    directory = await index.directory()
    communities: Sequence[Community] = ()
    if len(directory) <= LARGEST_GRAPH:
        communities = await index.rag.communities.list()
    whole = [item for item in communities if item.level == 0 and item.entities]
    largest = whole[:MOST_COMMUNITIES]
    keys = [
        name_key(name) for community in largest for name in community.entities[:NAMES_OF_COMMUNITY]
    ]
    best_connected = [key for key, line in directory.items() if line.degree]
    drawn = [key for key in dict.fromkeys([*keys, *best_connected]) if key in directory]
    drawn = drawn[:MOST_ENTITIES] if largest else best_connected[:MOST_ENTITIES]
    relations = await search(
        index.rag.engine.store, lambda snapshot: relations_among(snapshot, drawn)
    )
    ends = {name_key(name) for edge in relations for name in (edge.source, edge.target)}
    connected = [key for key in drawn if key in ends]
    return OverviewBody(
        communities=[_community_line(community) for community in largest],
        entities=[directory[key] for key in connected],
        relations=relations,
        reports_missing=_missing_reports(index, communities),
    )


def _missing_reports(index: Index, communities: Sequence[Community]) -> int:
    engine = index.rag.engine
    if engine.store.read_only or not engine.client.has_model("summarize"):
        return 0
    return sum(map(lacks_report, communities))


def relations_among(snapshot: Snapshot, keys: Iterable[str]) -> list[Relation]:
    """The relations with the keys of both ends among `keys`, the heaviest first."""
    entities = distinct_rows(column(snapshot.entity_ids(list(keys)).values()))
    relations = distinct_rows(snapshot.graph.relations_of(entities)[1])
    ends = snapshot.graph.ends(relations)
    relations = relations[np.isin(ends, entities).all(axis=1)]
    weights = snapshot.graph.weights(relations)
    heaviest = relations[np.argsort(-weights, kind="stable")[:MOST_RELATIONS]].tolist()
    stored = snapshot.relations(heaviest)
    return [stored[row] for row in heaviest]


def _community_line(community: Community) -> CommunityLine:
    report = community.report
    return CommunityLine(
        title=report.title if report else community.title,
        names=list(community.entities[:NAMES_OF_COMMUNITY]),
        entities=len(community.entities),
        passages=len(community.chunk_ids),
        summary=report.summary if report else "",
    )
