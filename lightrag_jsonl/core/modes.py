"""What each query mode searches."""

from collections.abc import Mapping
from dataclasses import dataclass

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
