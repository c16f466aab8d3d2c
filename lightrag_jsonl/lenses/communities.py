"""Communities of the graph: entities and passages with more to do with each other than with the rest.

They are those of Leiden (Traag, Waltman and van Eck, Scientific Reports 9, 2019) on the graph of entities
and chunks, joined by relations and mentions. So each chunk belongs to one community of a level, and an
entity without relations to the community of its passages. They are a function of the set of visible
mentions: nodes go by names, in the order of the names, with a fixed seed.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.answers import Community
from lightrag_jsonl.retrieval.filtering import entity_names
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.task import SearchTask
from lightrag_jsonl.storage.graph_index import distinct_rows
from lightrag_jsonl.storage.vector_index import Floats, Ids

if TYPE_CHECKING:
    from graspologic_native import HierarchicalCluster

SEED = 1
LARGEST_COMMUNITY = 100  # entities and chunks of a community; a larger one is divided into parts
TITLE_NAMES = 3
COMPARED_DIGITS = 9  # of weights that are compared; sums of many differ in the last digits
ENTITY_NODE = "e "  # before the names of nodes, to keep the two kinds apart
CHUNK_NODE = "c "
NOWHERE = -1  # in place of a community, of a node without edges


class CommunityRows(Struct, frozen=True, kw_only=True):
    """A community as row ids: entities, the most central first, and chunks, in the order of the text."""

    level: int
    entities: Ids
    chunks: Ids
    parts: tuple["CommunityRows", ...] = ()


class CommunityMemory:
    """The communities of the whole graph, kept for the generation that they were made of."""

    def __init__(self) -> None:
        self._generation = -1
        self._communities: tuple[CommunityRows, ...] = ()
        self._in_words: tuple[Community, ...] = ()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["CommunityMemory"], tuple[()]]:
        return CommunityMemory, ()  # another process finds its own

    def communities(self, task: SearchTask) -> tuple[CommunityRows, ...]:
        """The communities of level 0, the largest first; under a filter, of what the filter lets through."""
        if task.filtered is not None:
            return find_communities(task)
        with self._lock:
            generation = task.snapshot.generation
            if generation != self._generation:
                self._communities = find_communities(task)
                self._in_words = ()
                self._generation = generation
            return self._communities

    def in_words(
        self, task: SearchTask, communities: tuple[CommunityRows, ...]
    ) -> tuple[Community, ...]:
        """These `communities` of level 0 as plain values."""
        with self._lock:
            if communities is not self._communities:  # of a filter, or of another generation
                return load_communities(task, communities, with_parts=False)
            if not self._in_words:
                self._in_words = load_communities(task, communities, with_parts=False)
            return self._in_words


def find_communities(task: SearchTask) -> tuple[CommunityRows, ...]:
    """The communities of level 0 of the visible graph, the largest first."""
    graph = NodeGraph.visible(task)
    edges = graph.edges()
    if not edges:
        return ()
    from graspologic_native import hierarchical_leiden

    clusters = hierarchical_leiden(edges, max_cluster_size=LARGEST_COMMUNITY, seed=SEED)
    return _community_tree(graph, clusters)


def _community_tree(
    graph: "NodeGraph", clusters: "Sequence[HierarchicalCluster]"
) -> tuple[CommunityRows, ...]:
    """The communities of level 0 with their parts, from the clusters that Leiden found on all levels."""
    positions = {node: at for at, node in enumerate([*sorted(graph.entities), *graph.chunks])}
    nodes: dict[int, list[str]] = defaultdict(list)
    parents: dict[int, int | None] = {}
    homes: dict[int, dict[str, int]] = defaultdict(dict)
    for cluster in sorted(clusters, key=lambda cluster: positions[cluster.node]):
        nodes[cluster.cluster].append(cluster.node)
        parents[cluster.cluster] = cluster.parent_cluster
        homes[cluster.level][cluster.node] = cluster.cluster
    centrality = {level: graph.centrality(homes[level]) for level in homes}
    parts: dict[int | None, list[int]] = defaultdict(list)
    for number, parent in sorted(parents.items()):
        parts[parent].append(number)

    def communities(parent: int | None, level: int) -> tuple[CommunityRows, ...]:
        by_first_node = sorted(parts[parent], key=lambda number: nodes[number][0])
        rows = [
            graph.community(nodes[number], level, centrality[level], communities(number, level + 1))
            for number in by_first_node
        ]
        return tuple(sorted(rows, key=_size, reverse=True))

    return communities(None, 0)


class NodeGraph(Struct, frozen=True, kw_only=True):
    """The visible entities and chunks, by the names of their nodes, and the weights between them.

    `ends` has the two entities of each relation, `mentions` an entity and a chunk in each row. `chunks` are
    in the order of the text.
    """

    entities: Mapping[str, int]
    chunks: Mapping[str, int]
    ends: Ids
    relation_weights: Floats
    mentions: Ids

    @classmethod
    def visible(cls, task: SearchTask) -> "NodeGraph":
        """The graph that the filter lets through. An edit by hand joins nothing, unless only edits mention
        the entity.
        """
        graph = task.snapshot.graph
        mentions = np.stack(graph.all_mentions, axis=1)
        mentions = mentions[task.inside("chunk", mentions[:, 1])]
        is_edit = np.isin(mentions[:, 1], column(sorted(task.snapshot.overrides())))
        is_of_text = np.isin(mentions[:, 0], mentions[~is_edit, 0])
        mentions = mentions[~(is_edit & is_of_text)]
        entities = distinct_rows(mentions[:, 0])
        relations = distinct_rows(graph.relations_of(entities)[1])
        relations = relations[task.inside("relation", relations)]
        relations = relations[np.isin(graph.ends(relations), entities).all(axis=1)]
        entity_keys = task.snapshot.entity_keys(entities.tolist())
        chunk_ids = task.snapshot.chunk_names(visible_chunks(task).tolist())
        return cls(
            entities={ENTITY_NODE + key: row for row, key in entity_keys.items()},
            chunks={CHUNK_NODE + id: row for row, id in chunk_ids.items()},
            ends=graph.ends(relations),
            relation_weights=np.log1p(graph.weights(relations)),
            mentions=mentions,
        )

    def edges(self) -> list[tuple[str, str, float]]:
        """The edges in the order of the names of their nodes.

        A relation weighs by the logarithm of its weight, a mention less for an entity of many chunks.
        """
        entity_nodes = {row: node for node, row in self.entities.items()}
        chunk_nodes = {row: node for node, row in self.chunks.items()}
        _, groups, counts = np.unique(self.mentions[:, 0], return_inverse=True, return_counts=True)
        mention_weights = 1 / np.sqrt(counts[groups])
        edges: list[tuple[str, str, float]] = []
        for (entity, chunk), weight in _weighted(self.mentions, mention_weights):
            edges.append((chunk_nodes[chunk], entity_nodes[entity], weight))
        for (low, high), weight in _weighted(self.ends, self.relation_weights):
            first, second = sorted((entity_nodes[low], entity_nodes[high]))
            edges.append((first, second, weight))
        return sorted(edges)

    def centrality(self, homes: Mapping[str, int]) -> dict[int, float]:
        """For each entity the number of its chunks and the weights of its relations inside its community;
        `homes` has the community of each node on one level.
        """
        rows = column(sorted(self.entities.values()))
        nodes = {row: node for node, row in self.entities.items()}
        communities = column([homes.get(nodes[row], NOWHERE) for row in rows.tolist()])
        positions = rows.searchsorted(self.mentions[:, 0])
        scores = np.bincount(positions, minlength=len(rows)).astype(np.float64)
        ends = rows.searchsorted(self.ends)
        inside = communities[ends[:, 0]] == communities[ends[:, 1]]
        for side in (0, 1):
            scores += np.bincount(ends[inside, side], self.relation_weights[inside], len(rows))
        rounded = np.round(scores, COMPARED_DIGITS)
        return dict(zip(rows.tolist(), rounded.tolist(), strict=True))

    def community(
        self,
        nodes: Sequence[str],
        level: int,
        centrality: Mapping[int, float],
        parts: tuple[CommunityRows, ...],
    ) -> CommunityRows:
        """The community of some nodes: entities by centrality, then by name; chunks in the
        order of the text.
        """
        entities = [self.entities[node] for node in nodes if node in self.entities]
        chunks = [self.chunks[node] for node in nodes if node in self.chunks]
        central_first = sorted(entities, key=lambda row: -centrality[row])
        return CommunityRows(
            level=level,
            entities=np.array(central_first, np.int64),
            chunks=np.array(chunks, np.int64),
            parts=parts,
        )


def visible_chunks(task: SearchTask) -> Ids:
    """The chunks that the filter lets through, ascending."""
    chunks = task.snapshot.graph.chunks
    return chunks[task.inside("chunk", chunks)]


def load_communities(
    task: SearchTask, communities: Sequence[CommunityRows], *, with_parts: bool = True
) -> tuple[Community, ...]:
    """Communities as plain values, in the order given; each is followed by its parts, if these are wanted."""
    listed = list(_with_parts(communities)) if with_parts else communities
    entities = {row for community in listed for row in community.entities.tolist()}
    names = entity_names(task, entities)
    chunk_ids = task.snapshot.chunk_names(visible_chunks(task).tolist())
    return tuple([_public(community, names, chunk_ids) for community in listed])


def _public(
    community: CommunityRows, names: Mapping[int, str], chunk_ids: Mapping[int, str]
) -> Community:
    entities = tuple([names[row] for row in community.entities.tolist()])
    chunks = tuple([chunk_ids[row] for row in community.chunks.tolist()])
    return Community(
        title=", ".join(entities[:TITLE_NAMES]),
        entities=entities,
        chunk_ids=chunks,
        level=community.level,
        key=sha256(repr((entities, chunks)).encode("utf-8", "backslashreplace")).hexdigest()[:16],
    )


def _size(community: CommunityRows) -> tuple[int, int]:
    return len(community.chunks), len(community.entities)


def _with_parts(communities: Sequence[CommunityRows]) -> Iterator[CommunityRows]:
    for community in communities:
        yield community
        yield from _with_parts(community.parts)


def _weighted(pairs: Ids, weights: Floats) -> Iterator[tuple[list[int], float]]:
    return zip(pairs.tolist(), weights.tolist(), strict=True)
