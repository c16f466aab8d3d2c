"""The values that pass from step to step of a search; ids are row ids of the database."""

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
    """Rows that were found, each once, best first, their scores (higher is better) and why in words.

    Three columns, since hundreds are found on the way to the few that are shown.
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
        """Hits from plain values; one `why` may do for all."""
        rows = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        told = np.empty(len(rows), np.object_)
        told[:] = why
        return cls(rows, np.asarray(scores, np.float64), told)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, which: slice | Ids) -> Hits:
        """The hits at these places, in their order, or those that a mask lets through."""
        return Hits(self.ids[which], self.scores[which], self.why[which])

    def rows(self) -> Iterator[tuple[int, float, str]]:
        """Each as (row id, score, why)."""
        return zip(self.ids.tolist(), self.scores.tolist(), self.why.tolist(), strict=True)


NO_HITS: Final = Hits.of()


def joined(lists: Sequence[Hits]) -> Hits:
    """All hits of the lists, one list after the other; a row may come twice then."""
    return Hits(
        np.concatenate([hits.ids for hits in lists]),
        np.concatenate([hits.scores for hits in lists]),
        np.concatenate([hits.why for hits in lists]),
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """What is looked for: the question, texts for entities (`low`) and for relations (`high`).

    `vectors` are theirs, in this order, one row each; None without an embedder. `lexical`: they
    only count words.
    """

    question: str
    low: tuple[str, ...] = ()
    high: tuple[str, ...] = ()
    vectors: Vectors | None = None
    lexical: bool = False

    @property
    def by_words(self) -> bool:
        """Whether nothing but words tells how near a text is."""
        return self.lexical or self.vectors is None

    @property
    def low_vectors(self) -> Vectors | None:
        """Rows of the texts for entities."""
        return None if self.vectors is None else self.vectors[1 : 1 + len(self.low)]


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a filter leaves, ascending; None where there is no filter."""

    chunks: Ids
    entities: Ids
    relations: Ids


@dataclass(frozen=True, slots=True)
class Seeds:
    """First hits, best first: `dense` and `lexical` are the chunks that the question's text found.

    `named` are the entities that the question names beyond doubt, with how alike the names are.
    `asked` is the relation that the whole question matches best, where one was looked for.
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
        """The chunks that the question's text found, lane by lane."""
        return np.concatenate([self.dense.ids, self.lexical.ids])


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What the seeds lead to: entities and relations, best first."""

    entities: Hits = NO_HITS
    relations: Hits = NO_HITS
