"""What a measured library has to offer, whatever it is called there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Paper:
    """A document: its id and its pieces, each of which is to be one chunk."""

    id: str
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What the model finds in one piece: rows of name, type, description, and of two names, keywords, …"""

    entities: tuple[Row, ...]
    relations: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about two names that met."""

    text: str
    names: tuple[str, str]
    theme: str


@dataclass(slots=True)
class Clock:
    """CPU seconds that the fakes took themselves, and how often they were called."""

    seconds: float = 0.0
    calls: int = 0
    texts: int = 0

    def reset(self) -> None:
        """Begin anew."""
        self.seconds, self.calls, self.texts = 0.0, 0, 0


@dataclass(frozen=True, slots=True)
class Material:
    """The corpus, small documents more, what the model finds in each piece, and the questions."""

    papers: tuple[Paper, ...]
    extra: tuple[Paper, ...]
    found: Mapping[str, Found]
    questions: tuple[Asked, ...]
    clock: Clock = field(default_factory=Clock)

    @property
    def chunks(self) -> int:
        """How many pieces the corpus has."""
        return sum(len(paper.pages) for paper in self.papers)


class System(Protocol):
    """A library with an open index. `modes`: its ways to retrieve, the fullest one first."""

    modes: Sequence[str]
    can_delete: bool

    def insert(self, papers: Iterable[Paper]) -> None:
        """Index documents, and return when they are stored."""
        ...

    def delete(self, paper_id: str) -> None:
        """Remove one document."""
        ...

    def context(self, asked: Asked, mode: str) -> int:
        """How many characters would be shown to a model."""
        ...

    def counts(self) -> tuple[int, int]:
        """Entities and relations stored."""
        ...

    def close(self) -> None:
        """Let go of the index."""
        ...
