"""Merging ranked lists into one: reciprocal rank fusion, or taking turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lightrag_jsonl.options import Fusion
from lightrag_jsonl.querying.hits import Hit

RANK_OFFSET = 60  # k of Cormack, Clarke and Büttcher, SIGIR 2009

Lists = Sequence[Sequence[Hit]]


def fuse(
    lists: Lists,
    *,
    how: Fusion = "rrf",
    weights: Sequence[float] | None = None,
    limit: int | None = None,
) -> tuple[Hit, ...]:
    """The best of what the lists hold, best first; ties by id. `why` names every reason."""
    full = [
        (ranked, weight)
        for ranked, weight in zip(lists, weights or [1.0] * len(lists), strict=True)
        if ranked
    ]
    scores = FUSIONS[how](full)
    reasons = _reasons(lists)
    order = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:limit]
    return tuple(map(Hit, order, map(scores.__getitem__, order), map(reasons.__getitem__, order)))


def reciprocal_ranks(lists: Iterable[tuple[Sequence[Hit], float]]) -> dict[int, float]:
    """The sum of weight / (60 + rank) over the lists, ranks from 1."""
    scores: dict[int, float] = {}
    for ranked, weight in lists:
        for offset, (row, _, _) in enumerate(ranked, RANK_OFFSET + 1):
            scores[row] = scores.get(row, 0.0) + weight / offset
    return scores


def round_robin(lists: Iterable[tuple[Sequence[Hit], float]]) -> dict[int, float]:
    """Scores that fall in the order of taking turns: the first of each list, then the second."""
    taken: dict[int, float] = {}
    ranked_lists = [ranked for ranked, _ in lists]
    for turn in range(max(map(len, ranked_lists), default=0)):
        for ranked in ranked_lists:
            if turn < len(ranked):
                taken.setdefault(ranked[turn].id, 1.0 / (1 + len(taken)))
    return taken


FUSIONS: Mapping[Fusion, Callable[[Iterable[tuple[Sequence[Hit], float]]], dict[int, float]]] = {
    "rrf": reciprocal_ranks,
    "round_robin": round_robin,
}


def _reasons(lists: Lists) -> dict[int, str]:
    """Why each row is there: every list's reason, each once."""
    reasons: dict[int, str] = {}
    for ranked in lists:
        for row, _, why in ranked:
            before = reasons.setdefault(row, why)
            if why not in before:
                reasons[row] = f"{before}; {why}" if before else why
    return reasons
