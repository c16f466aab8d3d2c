"""Whatever takes a text costs n log n at most: each function, class and pattern of the package that
takes one is fed with texts that grow, ordinary and hostile. New ones are found, not listed.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.growth.measuring import measured_growth
from tests.growth.targets import (
    EXCEPTIONS,
    Target,
    function_targets,
    modules,
    pattern_targets,
    short_name,
)
from tests.growth.texts import FEW, HOSTILE, ORDINARY, TextMaker

MODULES = {short_name(module): module for module in modules()}
MOST_NAMED = 3  # texts named of a target that fails


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a text makes a function write is not written into the checkout."""
    monkeypatch.chdir(tmp_path)


def growing(targets: Iterable[Target], texts: Mapping[str, TextMaker]) -> list[str]:
    """What grows above n log n, with the texts that show it."""
    problems: list[str] = []
    for target in targets:
        shown: list[str] = []
        for text_name, make_text in texts.items():
            growth = measured_growth(target.call, make_text)
            if growth is not None:
                shown.append(f"{target.name}: {text_name}: {growth}")
            if len(shown) == MOST_NAMED:
                break
        problems += shown
    return problems


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.skipif(os.name == "nt", reason="has no timer of CPU time")
@pytest.mark.exhaustive
@pytest.mark.parametrize("texts", [ORDINARY, HOSTILE], ids=["ordinary", "hostile"])
@pytest.mark.parametrize("module", MODULES)
def test_functions_cost_n_log_n_at_most(module: str, texts: Mapping[str, TextMaker]) -> None:
    """A public function or class that takes a text costs n log n at most, on any text; and as much
    if the text comes in pieces.
    """
    assert growing(function_targets(MODULES[module]), texts) == []


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.skipif(os.name == "nt", reason="has no timer of CPU time")
@pytest.mark.exhaustive
@pytest.mark.parametrize("texts", [ORDINARY, HOSTILE], ids=["ordinary", "hostile"])
@pytest.mark.parametrize("module", MODULES)
def test_patterns_cost_n_log_n_at_most(module: str, texts: Mapping[str, TextMaker]) -> None:
    """A compiled pattern, used as the package uses it, costs n log n at most on any text."""
    assert growing(pattern_targets(MODULES[module]), texts) == []


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.skipif(os.name == "nt", reason="has no timer of CPU time")
@pytest.mark.parametrize("room", sorted({name.partition(".")[0] for name in MODULES}))
def test_a_few_texts_cost_n_log_n_at_most(room: str) -> None:
    """The same of all modules of a room, with one text of each sort: for the time between two changes."""
    problems: list[str] = []
    for name, module in MODULES.items():
        if name.partition(".")[0] == room:
            problems += growing([*function_targets(module), *pattern_targets(module)], FEW)
    assert problems == []


@pytest.mark.slow  # reads all code
def test_exceptions_exist() -> None:
    """What is left out is there, so that the list holds nothing of the past."""
    names = {f"{name}.{member}" for name, module in MODULES.items() for member in vars(module)}
    assert EXCEPTIONS.keys() <= names


@pytest.mark.slow  # reads all code
def test_a_new_function_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is quadratic in a text, and one that never ends, are found and named."""
    import re

    from lightrag_jsonl.text import strings as module

    def counted_pairs(text: str) -> int:
        return sum(first == second for first in text for second in text)

    pattern = re.compile(r"(?:a+)+b")

    def never_ends(text: str) -> bool:
        return pattern.match(text) is not None

    for function in (counted_pairs, never_ends):
        function.__module__ = module.__name__
        monkeypatch.setattr(module, function.__name__, function, raising=False)
    own_targets = [
        target
        for target in function_targets(module)
        if target.name in ("text.strings.counted_pairs", "text.strings.never_ends")
    ]
    problems = growing(own_targets, {"looped 'a'": FEW["looped 'a'"]})
    assert [problem.partition(":")[0] for problem in problems] == [
        "text.strings.counted_pairs",
        "text.strings.never_ends",
    ]
