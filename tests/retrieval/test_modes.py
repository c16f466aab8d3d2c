"""The table of modes, and which kind of keywords stands in for which."""

from __future__ import annotations

import pytest

from lightrag_jsonl.core import options
from lightrag_jsonl.core.types import Keywords
from lightrag_jsonl.core.types import Mode as ModeName
from lightrag_jsonl.retrieval.modes import MODES, search_texts
from tests.kit import prompts

BOTH = Keywords(("theme",), ("name",))
THEMES, NAMES = Keywords(("theme",), ()), Keywords((), ("name",))


def test_every_mode_has_a_row_with_a_prompt_that_exists() -> None:
    """No mode can be asked for that nothing answers."""
    assert set(MODES) == set(options.MODES)
    assert all(mode.prompt in prompts().ids for mode in MODES.values() if mode.searches)


@pytest.mark.parametrize(
    ("mode", "keywords", "low", "high"),
    [
        ("local", BOTH, ["name"], []),
        ("global", BOTH, [], ["theme"]),
        ("mix", BOTH, ["name"], ["theme"]),
        ("naive", BOTH, [], []),
        ("local", THEMES, [], ["theme"]),
        ("global", NAMES, ["name"], []),
        ("local", Keywords(), ["q"], []),
        ("hybrid", Keywords(), ["q"], ["q"]),
    ],
)
def test_a_mode_searches_with_its_own_keywords_or_those_there_are(
    mode: ModeName, keywords: Keywords, low: list[str], high: list[str]
) -> None:
    """Low-level keywords find entities, high-level ones relations; one kind stands in for the
    other, and the question for both.
    """
    assert search_texts(MODES[mode], keywords, "q") == (tuple(low), tuple(high))
