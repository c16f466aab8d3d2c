"""The values that the steps of a search pass on; ids are row ids of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.protocols import Vectors

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Texts = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows found, each once, best first: ids, scores (higher is better) and reasons in words.

    They are three columns, since hundreds of rows are found for the few that are shown.
    """

    ids: Ids
    scores: Floats
    why: Texts

    @classmethod
    def of(
        cls,
        ids: Iterable[int] | Ids = (),
        scores: Iterable[float] | npt.ArrayLike = (),
        why: str | Sequence[str] = "",
    ) -> Hits:
        """Hits from plain values; a single `why` is used for all."""
        rows = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        told = np.empty(len(rows), np.object_)
        told[:] = why
        return cls(rows, np.asarray(scores, np.float64), told)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, which: slice | Ids) -> Hits:
        """The hits at these places, in this order, or those selected by a mask."""
        return Hits(self.ids[which], self.scores[which], self.why[which])

    def rows(self) -> Iterator[tuple[int, float, str]]:
        """Each hit as (row id, score, why)."""
        return zip(self.ids.tolist(), self.scores.tolist(), self.why.tolist(), strict=True)


NO_HITS: Final = Hits.of()


def joined(lists: Sequence[Hits]) -> Hits:
    """The hits of all lists, one list after the other; a row may occur several times."""
    return Hits(
        np.concatenate([hits.ids for hits in lists]),
        np.concatenate([hits.scores for hits in lists]),
        np.concatenate([hits.why for hits in lists]),
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """What is searched for: the question, texts for entities (`low`) and for relations (`high`).

    `vectors` has a row for each of them, in this order; None without an embedder. `lexical` says
    that the vectors only count words.
    """

    question: str
    low: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    vectors: Vectors | None = None
    lexical: bool = False

    @property
    def by_words(self) -> bool:
        """Whether texts are compared by words only."""
        return self.lexical or self.vectors is None

    @property
    def low_vectors(self) -> Vectors | None:
        """The vectors of the texts for entities."""
        return None if self.vectors is None else self.vectors[1 : 1 + len(self.low)]


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a filter lets through, ascending. Without a filter there is no `Scope`."""

    chunks: Ids
    entities: Ids
    relations: Ids


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
        """The entities that the question names, ascending."""
        return np.array(sorted(self.named), np.int64)

    @property
    def chunk_rows(self) -> Ids:
        """The chunks that the question's text found, `dense` before `lexical`."""
        return np.concatenate([self.dense.ids, self.lexical.ids])


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The entities and relations that the seeds lead to, best first."""

    entities: Hits = NO_HITS
    relations: Hits = NO_HITS
