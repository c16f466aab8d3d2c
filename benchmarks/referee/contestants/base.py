"""What an adapter offers: an index that is filled, changed and searched by the referee."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.referee.material import Document, Question

DIMENSIONS = 384  # of the vectors of both embedders
FILTER_BY_NAMES = "filter-by-names"  # a model that keeps the facts with a name of the question

Settings = Mapping[str, Any]


class NotOfferedError(Exception):
    """The contestant has no such function; the message says which."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a question finds: passages, the best first, and the text that a model would be shown."""

    passages: tuple[str, ...]
    context: str


@dataclass(frozen=True, slots=True)
class Graph:
    """What an index holds: names of entities, relations as pairs of names, and the number of chunks."""

    entities: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]
    chunks: int


class Contestant(Protocol):
    """An open index of a contestant.

    `ways` are the settings in which questions are asked, by name: the first is the default,
    and the others are what its documentation advises.
    """

    ways: Mapping[str, Settings]

    def insert(self, documents: Sequence[Document]) -> None:
        """Index documents in one call, and return when they are stored."""

    def delete(self, document: Document) -> None:
        """Remove a document as thoroughly as the contestant can; `NotOfferedError` if it cannot."""

    def search(self, question: Question, way: str, *, tokens: int | None = None) -> Found:
        """What a question finds; with `tokens`, in a context limited to so many, if there is a
        setting for that.
        """

    def graph(self) -> Graph:
        """What the index holds."""

    def close(self) -> None:
        """Close the index."""


SETTINGS: Mapping[str, str] = {
    "ours": "defaults; ways: mix, hybrid, local, global, naive, overview; deletion with purge",
    "lightrag": "defaults (1,200 tokens a chunk, one gleaning), no reranker; ways: mix, hybrid, "
    "local, global, naive; deletion with its cache",
    "nano": "defaults (one gleaning), naive ways enabled; ways: local, naive, global",
    "fast": "defaults (no gleaning), five entity types; one way",
    "hipporag": "defaults, online extraction; ways: a filter that keeps all five facts, one that keeps "
    "those with a name of the question, passages by vectors alone; installed without vllm",
    "graphrag": "standard indexing in defaults but for the length of vectors; ways: local, basic",
}
