"""The query modes, and the parts of an index that each of them searches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lightrag_jsonl.core.types import Mode

DEFAULT_MODE: Final[Mode] = "mix"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModePlan:
    """The parts of an index that a mode searches.

    `entities`: low-level keywords → entities → their relations. `relations`: high-level keywords
    and the whole question → relations → the entities at their ends. `chunks`: the question →
    chunks. With `ranked_by_walk`, the walk that ranks the chunks also ranks the entities. A mode
    without any of the three asks the model alone. `summary` describes the mode in help texts.
    """

    summary: str
    entities: bool = False
    relations: bool = False
    chunks: bool = False
    ranked_by_walk: bool = False
    prompt: str = "answer"

    @property
    def graph(self) -> bool:
        """Whether the mode searches the graph."""
        return self.entities or self.relations

    @property
    def searches(self) -> bool:
        """Whether the mode searches the index at all."""
        return self.graph or self.chunks


MODES: Final[Mapping[Mode, ModePlan]] = {
    "naive": ModePlan(
        summary="passages only",
        chunks=True,
        prompt="answer-naive",
    ),
    "local": ModePlan(
        summary="entities and their relations",
        entities=True,
    ),
    "global": ModePlan(
        summary="relations and their entities",
        relations=True,
    ),
    "hybrid": ModePlan(
        summary="local and global",
        entities=True,
        relations=True,
    ),
    "mix": ModePlan(
        summary="local, global and naive",
        entities=True,
        relations=True,
        chunks=True,
        prompt="answer-mix",
    ),
    "walk": ModePlan(
        summary="like mix, with entities ranked by a walk along the graph",
        entities=True,
        relations=True,
        chunks=True,
        ranked_by_walk=True,
        prompt="answer-mix",
    ),
    "bypass": ModePlan(
        summary="no search: the model alone",
    ),
}
GRAPH_MODES: Final[tuple[Mode, ...]] = tuple(mode for mode, plan in MODES.items() if plan.graph)


def mode_summaries() -> str:
    """Every mode with its summary, for a help text: `naive (passages only), …`."""
    return ", ".join(f"{mode} ({plan.summary})" for mode, plan in MODES.items())
