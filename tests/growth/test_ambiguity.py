"""No pattern of the package can match one text in many ways: the lint beside the measured growth."""

import re

import pytest

from tests.growth.ambiguity import ambiguities
from tests.growth.targets import patterns

pytestmark = pytest.mark.slow  # imports all modules

# Adjacent repetitions that may stay, with the reason; a nested one never may.
ADJACENT = {
    "readers.org._ORG_BLOCK": "what follows them matches any line, so that they never try again",
}


def problems() -> dict[str, list[str]]:
    """What is ambiguous, by the pattern's name; patterns of regex have a syntax of their own."""
    return {
        pattern.name: ambiguities(pattern.pattern.pattern, pattern.pattern.flags & ~re.UNICODE)
        for pattern in patterns()
        if isinstance(pattern.pattern, re.Pattern) and isinstance(pattern.pattern.pattern, str)
    }


def test_no_repetition_is_nested_or_beside_one_like_it() -> None:
    """No repetition holds another with nothing needed beside it, and none follows another of the same
    characters: a text that does not match would be tried in all ways.
    """
    shown = {
        name: found
        for name, found in problems().items()
        if any(item.startswith("nested") for item in found) or (found and name not in ADJACENT)
    }
    assert shown == {}


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [
        (r"(?:a+)+b", ["nested"]),
        (r"(?:(?!x)[^\n]*\n?)*\Z", ["nested"]),
        (r"(?:(?:\s|a*))*b", ["nested"]),
        (r"(\w*\s*)*$", ["nested", "nested"]),
        (r"\s*\s*x", ["adjacent"]),
        (r"\W*(?:the)?\W*x", ["adjacent"]),
        (r"[a-z]+ [a-z]+", []),
        (r"(?:[^\n]*\n)*", []),
        (r"(?:a++)+b", []),
        (r"(?:[\w.]{1,9}){1,4}", []),
        (r"\d+\D+\d+", []),
    ],
)
def test_the_lint_sees(pattern: str, kinds: list[str]) -> None:
    """Nested and adjacent repetitions are seen, and what is definite is none."""
    assert [found.partition(":")[0] for found in ambiguities(pattern)] == kinds
