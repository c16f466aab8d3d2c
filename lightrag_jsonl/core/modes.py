"""The query modes."""

from collections.abc import Mapping
from dataclasses import dataclass

from lightrag_jsonl.core.types import Mode


@dataclass(frozen=True, slots=True)
class ModePlan:
    """The searches of a mode; without a search, the model is asked alone.

    - `entities`: low-level keywords → entities → relations of the entities.
    - `relations`: high-level keywords and the whole question → relations → entities at the ends.
    - `chunks`: the question → chunks.
    - `ranked_by_walk`: the walk ranks entities as well as chunks.
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


MODES: Mapping[Mode, ModePlan] = {
    "naive": ModePlan(chunks=True, prompt="answer-naive"),
    "local": ModePlan(entities=True),
    "global": ModePlan(relations=True),
    "hybrid": ModePlan(entities=True, relations=True),
    "mix": ModePlan(entities=True, relations=True, chunks=True, prompt="answer-mix"),
    "walk": ModePlan(
        entities=True, relations=True, chunks=True, ranked_by_walk=True, prompt="answer-mix"
    ),
    "bypass": ModePlan(),
}
