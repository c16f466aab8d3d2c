"""The common interface of the measured libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Paper:
    """A document: its id and its pieces, each of which becomes one chunk."""

    id: str
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What the model finds in one piece, as records in the form of `extract-graph`."""

    entities: tuple[Row, ...]
    relations: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about two related names; `theme` is its high-level keyword."""

    text: str
    names: tuple[str, str]
    theme: str


@dataclass(slots=True)
class Clock:
    """The CPU seconds that the fakes took, the model's calls, and the texts embedded."""

    seconds: float = 0.0
    calls: int = 0
    texts: int = 0

    def reset(self) -> None:
        """Set all to 0."""
        self.seconds, self.calls, self.texts = 0.0, 0, 0


@dataclass(frozen=True, slots=True)
class Material:
    """The corpus, further small documents, what the model finds in each piece, and questions."""

    papers: tuple[Paper, ...]
    extra: tuple[Paper, ...]
    found: Mapping[str, Found]
    questions: tuple[Asked, ...]
    clock: Clock = field(default_factory=Clock)

    @property
    def chunks(self) -> int:
        """The number of pieces in the corpus."""
        return sum(len(paper.pages) for paper in self.papers)


class System(Protocol):
    """A library with an open index; `modes` are its retrieval modes, the fullest one first."""

    modes: Sequence[str]
    can_delete: bool

    def insert(self, papers: Iterable[Paper]) -> None:
        """Index documents, and return when they are stored."""
        ...

    def delete(self, paper_id: str) -> None:
        """Remove one document."""
        ...

    def context(self, asked: Asked, mode: str) -> int:
        """The number of characters in the context for a model."""
        ...

    def counts(self) -> tuple[int, int]:
        """The numbers of stored entities and relations."""
        ...

    def close(self) -> None:
        """Close the index."""
        ...
