"""Merges ranked lists into one: by reciprocal rank fusion, or by taking turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lightrag_jsonl.options import Fusion
from lightrag_jsonl.querying.hits import NO_HITS, Floats, Hits, Ids
from lightrag_jsonl.sorting import each_first, foremost, grouped

RANK_OFFSET = 60  # k of Cormack, Clarke and Büttcher, SIGIR 2009


def fuse(
    lists: Sequence[Hits],
    *,
    how: Fusion = "rrf",
    weights: Sequence[float] | None = None,
    limit: int | None = None,
) -> Hits:
    """The best hits of all lists, best first; ties by id. `why` lists the reasons of every list."""
    if not any(map(len, lists)):
        return NO_HITS
    ids, which, _ = grouped(np.concatenate([hits.ids for hits in lists]))
    lengths = [len(hits) for hits in lists]
    scores = FUSIONS[how](which, lengths, weights or [1.0] * len(lists))
    order = foremost(scores, ids, len(ids) if limit is None else limit)
    place = np.full(len(ids), -1)  # -1 for hits that are not among the best
    place[order] = np.arange(len(order))
    why = _reasons(place[which].tolist(), np.concatenate([hits.why for hits in lists]).tolist())
    return Hits.of(ids[order], scores[order], why[: len(order)])


def reciprocal_ranks(which: Ids, lengths: Sequence[int], weights: Sequence[float]) -> Floats:
    """Sums of weight / (60 + rank) over the lists, ranks from 1; `which` maps hits to distinct rows."""
    shares = [
        weight / np.arange(RANK_OFFSET + 1, RANK_OFFSET + 1 + length)
        for length, weight in zip(lengths, weights, strict=True)
    ]
    return np.asarray(np.bincount(which, np.concatenate(shares)), np.float64)


def round_robin(which: Ids, lengths: Sequence[int], weights: Sequence[float]) -> Floats:
    """Scores for taking turns: the first hit of each list, then the second of each, and so on."""
    turns = np.concatenate([np.arange(length) for length in lengths])
    taken = which[np.argsort(turns, kind="stable")]
    taken = taken[each_first(taken)]
    scores = np.empty(len(taken))
    scores[taken] = 1.0 / np.arange(1, len(taken) + 1)
    return scores


FUSIONS: Mapping[Fusion, Callable[[Ids, Sequence[int], Sequence[float]], Floats]] = {
    "rrf": reciprocal_ranks,
    "round_robin": round_robin,
}


def _reasons(places: Sequence[int], told: Sequence[str]) -> list[str]:
    """For each of the best hits, the reasons of all lists, without repetitions."""
    reasons = [""] * len(places)
    for place, why in zip(places, told, strict=True):
        before = reasons[place]
        if why not in before:
            reasons[place] = f"{before}; {why}" if before else why
    return reasons
