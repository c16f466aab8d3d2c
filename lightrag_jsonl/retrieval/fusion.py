"""Ranked lists of rows and how they are merged, and what else the steps of a search pass on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.modes import ModePlan
from lightrag_jsonl.core.options import Fusion, QueryParam
from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage import graph_index
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.storage.views import Snapshot

Mask: TypeAlias = npt.NDArray[np.bool_]

RANK_OFFSET = 60  # k of Cormack, Clarke and Büttcher, SIGIR 2009


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows found, each once, best first: row ids, scores (higher is better) and reasons in words.

    They are three columns, since hundreds of rows are found for the few that are shown.
    """

    ids: Ids
    scores: Floats
    why: npt.NDArray[np.object_]

    @classmethod
    def of(
        cls, ids: Sequence[int] | Ids, scores: npt.ArrayLike, why: str | Sequence[str] = ""
    ) -> "Hits":
        """Hits from plain values; a single `why` is used for all."""
        reasons = np.empty(len(ids), np.object_)
        reasons[:] = why
        return cls(np.asarray(ids, np.int64), np.asarray(scores, np.float64), reasons)

    @classmethod
    def ranked(cls, ids: Ids, scores: Floats, limit: int | None = None, why: str = "") -> "Hits":
        """The rows (ascending ids) with the highest scores, best first, ties by row id."""
        best = np.argsort(-scores, kind="stable")[:limit]
        return cls.of(ids[best], scores[best], why)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, which: slice | Ids | Mask) -> "Hits":
        """The hits at these positions, in this order, or those selected by a mask."""
        return Hits(self.ids[which], self.scores[which], self.why[which])

    def rows(self) -> Iterator[tuple[int, float, str]]:
        """Each hit as (row id, score, why)."""
        return zip(self.ids.tolist(), self.scores.tolist(), self.why.tolist(), strict=True)


NO_HITS: Final = Hits.of((), ())


def fuse(
    lists: Sequence[Hits],
    how: Fusion = "rrf",
    *,
    weights: Sequence[float] | None = None,
    limit: int | None = None,
) -> "Hits":
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
    reasons = [""] * len(ids)
    for at, why in zip(which.tolist(), every.why.tolist(), strict=True):
        if why not in reasons[at]:
            reasons[at] += f"; {why}" if reasons[at] else why
    return Hits.of(ids, scores, reasons)[np.argsort(-scores, kind="stable")[:limit]]


def joined(lists: Sequence[Hits]) -> tuple[Hits, Ids]:
    """The hits of all lists, one list after the other, and the rank of each in its list, from 0."""
    parts = [(hits.ids, hits.scores, hits.why, np.arange(len(hits))) for hits in (NO_HITS, *lists)]
    ids, scores, why, ranks = map(np.concatenate, zip(*parts, strict=True))
    return Hits(ids, scores, why), ranks


# ── what a search is about, and what it finds ───────────────────────────────────


class SearchQuery(NamedTuple):
    """What is searched for: the question, texts for entities (`low`) and for relations (`high`).

    `vectors` has a row for each of them, in this order. `lexical` says that they only count words.
    `likeness_floor` is the cosine from which on a passage is more like the question than unrelated
    texts are; with None, whatever is asked is searched for.
    If the question could not be `embedded`, they are zeros, and nothing is searched by vectors.
    """

    question: str
    low: tuple[str, ...]
    high: tuple[str, ...]
    vectors: Vectors
    lexical: bool = False
    likeness_floor: float | None = None
    embedded: bool = True


class SearchTask(NamedTuple):
    """One search: where, for what, and how; `filtered` has the rows that a filter lets through,
    ascending.
    """

    snapshot: Snapshot
    query: SearchQuery
    mode: ModePlan
    param: QueryParam
    chunk_limit: int
    filtered: Mapping[Kind, Ids] | None = None

    def inside(self, kind: Kind, rows: Ids) -> Mask:
        """Whether the filter lets each row through."""
        if self.filtered is None:
            return np.ones(len(rows), np.bool_)
        return np.isin(rows, self.filtered[kind])


@dataclass(frozen=True, slots=True)
class Seeds:
    """First hits, best first; `dense` and `lexical` are the chunks that the question's text found.

    `named` maps entities that the question clearly names to the likeness of the names. `asked` is
    the relation that matches the whole question best, if relations were searched.
    """

    entities: Hits = NO_HITS
    named: Mapping[int, float] = field(default_factory=dict)
    relations: Hits = NO_HITS
    dense: Hits = NO_HITS
    lexical: Hits = NO_HITS
    asked: Hits = NO_HITS

    @property
    def named_rows(self) -> Ids:
        """The entities that the question names."""
        return column(self.named)

    @property
    def chunks(self) -> Ids:
        """The chunks found by the question's text, ascending."""
        return distinct(self.dense.ids, self.lexical.ids)


class Subgraph(NamedTuple):
    """The entities and relations that the seeds lead to, best first."""

    entities: Hits = NO_HITS
    relations: Hits = NO_HITS


# ── columns of row ids ──────────────────────────────────────────────────────────


def column(rows: Iterable[int]) -> Ids:
    """Row ids as an array."""
    return np.fromiter(rows, np.int64)


def distinct(*columns: Ids) -> Ids:
    """The distinct row ids in some columns, ascending."""
    return graph_index.distinct(np.concatenate(columns))
