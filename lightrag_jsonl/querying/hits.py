"""The values that pass from step to step of a search; ids are row ids of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.protocols import Vectors

Ids = npt.NDArray[np.int64]


class Hit(NamedTuple):
    """A row that was found, with its score (higher is better) and why in words."""

    id: int
    score: float
    why: str = ""


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

    entities: tuple[Hit, ...] = ()
    named: Mapping[int, float] = field(default_factory=dict)
    relations: tuple[Hit, ...] = ()
    dense: tuple[Hit, ...] = ()
    lexical: tuple[Hit, ...] = ()
    asked: Hit | None = None

    @property
    def named_rows(self) -> Ids:
        """The entities that the question names, ascending."""
        return np.array(sorted(self.named), np.int64)

    @property
    def chunks(self) -> tuple[tuple[Hit, ...], ...]:
        """The lanes of chunks that hold anything."""
        return tuple(lane for lane in (self.dense, self.lexical) if lane)


@dataclass(frozen=True, slots=True)
class Subgraph:
    """What the seeds lead to: entities and relations, best first."""

    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
