"""The table of modes, and which lane takes over for which."""

from __future__ import annotations

from lightrag_jsonl.options import MODES
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.querying.recipes import RECIPES, lookups
from lightrag_jsonl.types import Keywords

BOTH = Keywords(("theme",), ("name",))


def test_every_mode_has_a_recipe_with_a_prompt_that_exists() -> None:
    """No mode can be asked for that nothing answers."""
    ids = PromptManager.load("en").ids
    assert set(RECIPES) == set(MODES)
    assert all(recipe.prompt in ids for recipe in RECIPES.values() if recipe.searches)


def test_each_lane_uses_its_own_keywords() -> None:
    """Low-level keywords find entities, high-level ones relations."""
    assert lookups(RECIPES["local"], BOTH, "q") == (("name",), ())
    assert lookups(RECIPES["global"], BOTH, "q") == ((), ("theme",))
    assert lookups(RECIPES["mix"], BOTH, "q") == (("name",), ("theme",))
    assert lookups(RECIPES["naive"], BOTH, "q") == ((), ())


def test_an_empty_list_hands_over_to_the_other_lane() -> None:
    """Local without low-level keywords looks for relations, global without high-level for entities."""
    assert lookups(RECIPES["local"], Keywords(("theme",), ()), "q") == ((), ("theme",))
    assert lookups(RECIPES["global"], Keywords((), ("name",)), "q") == (("name",), ())


def test_without_any_keyword_the_question_itself_is_looked_up() -> None:
    """No keywords is no reason to find nothing."""
    assert lookups(RECIPES["local"], Keywords(), "q") == (("q",), ())
    assert lookups(RECIPES["hybrid"], Keywords(), "q") == (("q",), ("q",))
