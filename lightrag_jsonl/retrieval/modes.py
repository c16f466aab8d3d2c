"""The query modes as rows of a table: what each one searches, and which prompt answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lightrag_jsonl.core.types import Keywords
from lightrag_jsonl.core.types import Mode as ModeName


@dataclass(frozen=True, slots=True)
class Mode:
    """What one mode searches.

    `entities`: low-level keywords → entities → their relations. `relations`: high-level keywords
    and the whole question → relations → the entities at their ends. `chunks`: the question →
    chunks. With `ranked_by_walk`, the walk that ranks the chunks ranks the entities, too. A mode
    that searches nothing asks the model alone.
    """

    entities: bool = False
    relations: bool = False
    chunks: bool = False
    ranked_by_walk: bool = False
    prompt: str = "answer"

    @property
    def graph(self) -> bool:
        """Whether the graph is searched."""
        return self.entities or self.relations

    @property
    def searches(self) -> bool:
        """Whether anything is searched."""
        return self.graph or self.chunks


MODES: Mapping[ModeName, Mode] = {
    "naive": Mode(chunks=True, prompt="answer-naive"),
    "local": Mode(entities=True),
    "global": Mode(relations=True),
    "hybrid": Mode(entities=True, relations=True),
    "mix": Mode(entities=True, relations=True, chunks=True, prompt="answer-mix"),
    "walk": Mode(True, True, True, ranked_by_walk=True, prompt="answer-mix"),
    "bypass": Mode(),
}


def search_texts(
    mode: Mode, keywords: Keywords, question: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts to search for among entities and among relations.

    A mode that lacks its own kind of keywords uses the other kind; without any keywords the
    question is used.
    """
    low = keywords.low_level if mode.entities else ()
    high = keywords.high_level if mode.relations else ()
    if low or high or not mode.graph:
        return low, high
    if keywords.low_level or keywords.high_level:
        return keywords.low_level, keywords.high_level
    return ((question,) if mode.entities else ()), ((question,) if mode.relations else ())
