"""Ranked lists of rows, and how several lists become one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lightrag_jsonl.core.options import Fusion
from lightrag_jsonl.storage.vector_index import Floats, Ids

Mask: TypeAlias = npt.NDArray[np.bool_]

EQUAL = 1e-6  # of a score: sums differ by less if their parts come in another order
RANK_OFFSET = 60  # k of Cormack, Clarke and Büttcher, SIGIR 2009


class Hits(Struct, frozen=True):
    """Rows, each once, best first: row ids, scores (higher is better) and reasons in words.

    Three columns instead of a list of objects, since a search ranks hundreds of rows for the few
    that a prompt has room for.
    """

    ids: Ids
    scores: Floats
    why: npt.NDArray[np.object_]

    @classmethod
    def of(
        cls, ids: Sequence[int] | Ids, scores: npt.ArrayLike, why: str | Sequence[str] = ""
    ) -> "Hits":
        """Hits from plain values; a single `why` stands for all rows."""
        row_ids = np.asarray(ids, np.int64)
        reasons = np.empty(len(ids), np.object_)
        reasons[:] = why
        return cls(row_ids, np.asarray(scores, np.float64), reasons)

    @classmethod
    def ranked(cls, ids: Ids, scores: Floats, why: str = "") -> "Hits":
        """The rows (ascending ids) by their scores, best first, ties by row id."""
        best = np.argsort(-scores, kind="stable")
        return cls.of(ids[best], scores[best], why)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, positions: slice | Ids | Mask) -> "Hits":
        """The hits at some positions, in the order of the positions, or selected by a mask."""
        return Hits(
            ids=self.ids[positions],
            scores=self.scores[positions],
            why=self.why[positions],
        )

    def rows(self) -> Iterator[tuple[int, float, str]]:
        """Each hit as (row id, score, why)."""
        return zip(self.ids.tolist(), self.scores.tolist(), self.why.tolist(), strict=True)


NO_HITS: Final = Hits.of((), ())


# ── several lists become one ────────────────────────────────────────────────────


def fuse(
    lists: Sequence[Hits],
    fusion: Fusion = "rrf",
    *,
    weights: Sequence[float] | None = None,
    limit: int | None = None,
) -> Hits:
    """The best hits of all lists, best first; of equal ones the first in the lists. `why` joins the
    reasons of the lists.

    "rrf" adds up weight / (60 + rank) over the lists, ranks from 1, equal scores in the middle of theirs; "round_robin" takes the first
    hit of each list, then the second of each, and so on.
    """
    hits, ranks = concatenated(lists)
    ids, first_places, groups = np.unique(hits.ids, return_index=True, return_inverse=True)
    if fusion == "rrf":
        lengths = [len(hits) for hits in lists]
        list_weights = np.repeat(weights or [1.0] * len(lists), lengths)
        shared_by_list = [shared_ranks(hits.scores) for hits in lists]
        shared = np.concatenate([ranks[:0], *shared_by_list])
        votes = list_weights / (RANK_OFFSET + 1.0 + shared)
        scores = np.bincount(groups, votes, len(ids)).astype(np.float64)
    else:
        scores = _scores_by_turn(groups, ranks)
    fused = Hits.of(ids, scores, _joined_reasons(hits, groups, len(ids)))
    return fused[np.lexsort((first_places, -scores))[:limit]]


def take_turns(lists: Sequence[Hits], limit: int) -> Hits:
    """The best hit of every list by score, then the second of every list, and so on; each row once,
    with the score and the reason of its first place.
    """
    hits, ranks = concatenated(lists)
    hits = hits[np.lexsort((-hits.scores, ranks))]
    _, first_places = np.unique(hits.ids, return_index=True)
    first_places.sort()
    return hits[first_places[:limit]]


def concatenated(lists: Sequence[Hits]) -> tuple[Hits, Ids]:
    """The hits of all lists, list by list, and the rank of each hit within its list, from 0."""
    parts = (NO_HITS, *lists)  # numpy cannot concatenate no arrays at all
    hits = Hits(
        ids=np.concatenate([hits.ids for hits in parts]),
        scores=np.concatenate([hits.scores for hits in parts]),
        why=np.concatenate([hits.why for hits in parts]),
    )
    ranks = np.concatenate([np.arange(len(hits)) for hits in parts])
    return hits, ranks


def shared_ranks(scores: Floats) -> Floats:
    """The rank of each score in a list, from 0; equal neighbours have their middle: nothing tells which comes first."""
    is_start = np.append(True, ~ties(scores))[: len(scores)]
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], len(scores))
    middles: Floats = (starts + ends - 1) / 2
    return np.repeat(middles, ends - starts)


def ties(scores: Floats) -> Mask:
    """Whether each score but the last equals the next one."""
    differences = np.abs(np.diff(scores))
    allowed = EQUAL * np.abs(scores[:-1])
    return np.asarray(differences <= allowed)


def _scores_by_turn(groups: Ids, ranks: Ids) -> Floats:
    """A score for each group, falling in the order of the groups' first turns."""
    groups_by_turn = groups[np.argsort(ranks, kind="stable")]
    _, first_turns = np.unique(groups_by_turn, return_index=True)
    places = np.argsort(np.argsort(first_turns)).astype(np.float64)
    scores: Floats = 1.0 / (1.0 + places)
    return scores


def _joined_reasons(hits: Hits, groups: Ids, group_count: int) -> list[str]:
    """The reasons of the hits of each group, without repetitions."""
    reasons = [""] * group_count
    for group, why in zip(groups.tolist(), hits.why.tolist(), strict=True):
        if why not in reasons[group]:
            reasons[group] += f"; {why}" if reasons[group] else why
    return reasons


# ── columns of row ids ──────────────────────────────────────────────────────────


def column(rows: Iterable[int]) -> Ids:
    """Row ids as an array."""
    return np.fromiter(rows, np.int64)
