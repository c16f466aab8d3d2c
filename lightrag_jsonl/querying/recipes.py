"""The query modes as rows of a table: what each one searches, and which prompt answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lightrag_jsonl.types import Keywords, Mode


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one mode searches.

    `entities`: low-level keywords → entities → their relations. `relations`: high-level keywords
    and the whole question → relations → the entities at their ends. `chunks`: the question →
    chunks. `walk`: PageRank, starting from what the other lanes found, ranks chunks and entities. A
    mode without any of these asks the model alone.
    """

    entities: bool = False
    relations: bool = False
    chunks: bool = False
    walk: bool = False
    prompt: str = "answer"

    @property
    def facts(self) -> bool:
        """Whether the graph is searched."""
        return self.entities or self.relations

    @property
    def searches(self) -> bool:
        """Whether anything is searched."""
        return self.facts or self.chunks


RECIPES: Mapping[Mode, Recipe] = {
    "naive": Recipe(chunks=True, prompt="answer-naive"),
    "local": Recipe(entities=True),
    "global": Recipe(relations=True),
    "hybrid": Recipe(entities=True, relations=True),
    "mix": Recipe(entities=True, relations=True, chunks=True, prompt="answer-mix"),
    "walk": Recipe(entities=True, relations=True, walk=True, prompt="answer-mix"),
    "bypass": Recipe(),
}


def lookups(
    recipe: Recipe, keywords: Keywords, question: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts to search for among entities and among relations.

    A mode that lacks its own kind of keywords uses the other kind; without any keywords the
    question is used.
    """
    low = keywords.low_level if recipe.entities else ()
    high = keywords.high_level if recipe.relations else ()
    if low or high or not recipe.facts:
        return low, high
    if keywords.low_level or keywords.high_level:
        return keywords.low_level, keywords.high_level
    return ((question,) if recipe.entities else ()), ((question,) if recipe.relations else ())
