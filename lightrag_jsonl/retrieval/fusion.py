"""Merges ranked lists into one: by reciprocal rank fusion, or by taking turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lightrag_jsonl.core.options import Fusion
from lightrag_jsonl.retrieval.hits import NO_HITS, Hits
from lightrag_jsonl.storage.vector_index import Floats, Ids

RANK_OFFSET = 60  # k of Cormack, Clarke and Büttcher, SIGIR 2009


def fuse(
    lists: Sequence[Hits],
    how: Fusion = "rrf",
    *,
    weights: Sequence[float] | None = None,
    limit: int | None = None,
) -> Hits:
    """The best hits of all lists, best first; ties by id. `why` lists the reasons of every list.

    "rrf" adds up weight / (60 + rank) over the lists, ranks from 1; "round_robin" takes the first
    hit of each list, then the second of each, and so on.
    """
    every, ranks = joined(lists)
    ids, which = np.unique(every.ids, return_inverse=True)
    scores: Floats
    if how == "rrf":
        shares = np.repeat(weights or [1.0] * len(lists), [len(hits) for hits in lists])
        shares = shares / (RANK_OFFSET + 1.0 + ranks)
        scores = np.bincount(which, shares, len(ids)).astype(np.float64)
    else:
        first = np.unique(which[np.argsort(ranks, kind="stable")], return_index=True)[1]
        scores = 1.0 / (1.0 + np.argsort(np.argsort(first)).astype(np.float64))
    best = np.lexsort((ids, -scores))[:limit]
    position = np.full(len(ids), -1)  # -1 for rows that are not among the best
    position[best] = np.arange(len(best))
    reasons = [""] * len(best)
    for at, why in zip(position[which].tolist(), every.why.tolist(), strict=True):
        if at >= 0 and why not in reasons[at]:
            reasons[at] += f"; {why}" if reasons[at] else why
    return Hits.of(ids[best], scores[best], reasons)


def joined(lists: Sequence[Hits]) -> tuple[Hits, Ids]:
    """The hits of all lists, one list after the other, and the rank of each in its list, from 0."""
    lists = [NO_HITS, *lists]
    every = Hits(
        np.concatenate([hits.ids for hits in lists]),
        np.concatenate([hits.scores for hits in lists]),
        np.concatenate([hits.why for hits in lists]),
    )
    return every, np.concatenate([np.arange(len(hits)) for hits in lists])
