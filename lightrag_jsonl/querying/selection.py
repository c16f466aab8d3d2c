"""Which chunks to show: those that the kept facts were read from, and what a reranker makes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.options import Fusion
from lightrag_jsonl.protocols import Reranker
from lightrag_jsonl.querying.fusion import fuse
from lightrag_jsonl.querying.hits import Hit, Ids, Probe, Scope, Subgraph
from lightrag_jsonl.storage import reading
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.types import Chunk, Kind

Floats = npt.NDArray[np.float64]

SUPPORT_SHARE = 0.25  # of the facts that point at a chunk, beside its likeness to the question
RANK_FADE = 20.0  # the fact at this rank counts half of the first one


def fact_chunks(
    snapshot: Snapshot,
    subgraph: Subgraph,
    probe: Probe,
    *,
    scope: Scope | None,
    labels: Mapping[tuple[Kind, int], str],
    limit: int,
) -> tuple[Hit, ...]:
    """The chunks that the facts were read from, by number and rank of those facts and by likeness.

    `labels` name the facts, for saying why.
    """
    facts, rows, weights = _votes(snapshot, subgraph, scope)
    if not len(rows):
        return ()
    chunks, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    support = np.bincount(inverse, weights, len(chunks))
    scores = _likeness(snapshot, probe, chunks) + SUPPORT_SHARE * support / support.max()
    order = np.lexsort((chunks, -scores))[:limit]
    return tuple(
        Hit(int(chunks[place]), float(scores[place]), f"tells of {labels[facts[first[place]]]}")
        for place in order
    )


async def reranked(
    question: str,
    chunks: Sequence[Chunk],
    *,
    direct: frozenset[str],
    reached: Sequence[str],
    reranker: Reranker,
    fusion: Fusion,
) -> tuple[Chunk, ...]:
    """The chunks by the reranker's order and the graph's order, fused.

    The reranker judges the `direct` hits (all, where there are none). What was `reached` through
    the graph keeps its own rank beside it: a reranker sees only the question, so it would throw
    out passages that lead to the answer without resembling the question.
    """
    judged = [place for place, chunk in enumerate(chunks) if not direct or chunk.id in direct]
    scores = await reranker.score(question, [chunks[place].text for place in judged])
    if len(scores) != len(judged):
        raise ConfigError(f"the reranker gave {len(scores)} scores for {len(judged)} texts")
    hits = [
        Hit(place, -math.inf if math.isnan(score) else float(score))
        for place, score in zip(judged, scores, strict=True)
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    places = {chunk.id: place for place, chunk in enumerate(chunks)}
    graph = [Hit(places[name], 0.0) for name in reached if name in places]
    return tuple(
        replace(chunks[hit.id], score=hit.score) for hit in fuse([hits, graph], how=fusion)
    )


# ── votes ───────────────────────────────────────────────────────────────────────


def _votes(
    snapshot: Snapshot, subgraph: Subgraph, scope: Scope | None
) -> tuple[list[tuple[Kind, int]], Ids, Floats]:
    """One vote for each (fact, chunk it was read from): the facts, the chunks, the weights.

    A fact weighs less the lower it ranks and the more chunks tell it; relations come first.
    """
    facts: list[tuple[Kind, int]] = []
    rows: list[int] = []
    weights: list[Floats] = []
    kinds: list[tuple[Kind, Sequence[Hit]]] = [
        ("relation", subgraph.relations),
        ("entity", subgraph.entities),
    ]
    for kind, hits in kinds:
        pairs = reading.mention_chunks(snapshot.connection, kind, [hit.id for hit in hits])
        ranks = {hit.id: rank for rank, hit in enumerate(hits)}
        owners = np.array([ranks[owner] for owner, _ in pairs], np.int64)
        spread = np.bincount(owners, minlength=len(hits))
        weights.append(1.0 / (1.0 + owners / RANK_FADE) / np.log1p(spread[owners]))
        facts += [(kind, owner) for owner, _ in pairs]
        rows += [chunk for _, chunk in pairs]
    ids, votes = np.array(rows, np.int64), np.concatenate(weights)
    if scope is None:
        return facts, ids, votes
    inside = np.flatnonzero(np.isin(ids, scope.chunks))
    return [facts[place] for place in inside], ids[inside], votes[inside]


def _likeness(snapshot: Snapshot, probe: Probe, chunks: Ids) -> Floats:
    """The cosines of chunks with the question; without vectors, 0."""
    index = snapshot.vectors["chunk"]
    scores = np.zeros(len(chunks))
    if probe.vectors is None or not len(index):
        return scores
    known = np.array([row in index for row in chunks.tolist()], np.bool_)
    scores[known] = index.scores(probe.vectors[0], chunks[known])
    return scores
