"""The query modes, and the parts of an index that each of them searches."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Mode: TypeAlias = Literal["naive", "local", "global", "hybrid", "mix", "overview", "bypass"]

DEFAULT_MODE: Final[Mode] = "mix"


class ModePlan(Struct, frozen=True, kw_only=True):
    """The searches of a mode; without a search, the model is asked alone.

    - `names`: the mode in English and in Chinese, for the page; `summary`: the mode in a few words, for help texts.
    - `entities`: low-level keywords → entities → relations of the entities.
    - `relations`: high-level keywords and the whole question → relations → entities at the ends.
    - `chunks`: the question → chunks.
    - `communities`: the whole text, by communities of the graph, whatever the question.
    """

    names: tuple[str, str]
    summary: str
    entities: bool = False
    relations: bool = False
    chunks: bool = False
    communities: bool = False
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
        names=("Passages", "段落"),
        summary="passages only",
        chunks=True,
        prompt="answer-naive",
    ),
    "local": ModePlan(
        names=("Entities", "实体"),
        summary="entities and their relations",
        entities=True,
    ),
    "global": ModePlan(
        names=("Relations", "关系"),
        summary="relations and their entities",
        relations=True,
    ),
    "hybrid": ModePlan(
        names=("Entities and relations", "实体与关系"),
        summary="local and global",
        entities=True,
        relations=True,
    ),
    "mix": ModePlan(
        names=("Everything", "全部"),
        summary="local, global and naive",
        entities=True,
        relations=True,
        chunks=True,
        prompt="answer-mix",
    ),
    "overview": ModePlan(
        names=("The whole", "全貌"),
        summary="the whole, by communities of the graph",
        entities=True,
        relations=True,
        chunks=True,
        communities=True,
        prompt="answer-overview",
    ),
    "bypass": ModePlan(
        names=("Model only", "仅模型"),
        summary="no search: the model alone",
    ),
}
GRAPH_MODES: Final[tuple[Mode, ...]] = tuple(
    mode for mode, plan in MODES.items() if plan.graph and not plan.communities
)


def mode_summaries() -> str:
    """Every mode with its summary, for a help text: `naive (passages only), …`."""
    return ", ".join(f"{mode} ({plan.summary})" for mode, plan in MODES.items())
