"""Tokenizers that users bring: whatever they do wrong becomes an error, or is put right."""

from collections.abc import Callable

import pytest

from lightrag_jsonl import ConfigError
from lightrag_jsonl.core.user_code import (
    CheckedTokenizer,
)


def raising(error: BaseException) -> Callable[..., object]:
    def fail(*given: object) -> object:
        raise error

    return fail


class Words:
    """Counts words; or what the given functions say."""

    name = "mine"

    def __init__(
        self,
        count: Callable[..., object] = lambda text: len(text.split()),
        truncate: Callable[..., object] = lambda text, limit: " ".join(text.split()[:limit]),
    ) -> None:
        self.count, self.truncate = count, truncate


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (raising(KeyError("x")), "KeyError: 'x'"),
        (lambda text: len(text) / 4, "TypeError: 'float' object"),
        (lambda text: None, "TypeError: 'NoneType' object"),
    ],
)
def test_a_count_must_be_a_whole_number(count: Callable[..., object], words: str) -> None:
    """Anything else is a `ConfigError` that names the tokenizer."""
    with pytest.raises(ConfigError, match=f"^tokenizer 'mine' failed: {words}"):
        CheckedTokenizer(Words(count)).count("a b")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "truncate",
    [
        lambda text, limit: " ".join(text.split()[:limit]),
        lambda text, limit: text + "…",
        lambda text, limit: text.encode()[: 6 * limit].decode(errors="replace"),
    ],
)
def test_a_cut_is_always_a_prefix_of_the_text(truncate: Callable[..., str]) -> None:
    """Words joined anew, an ellipsis, half a character: then the prefix is found by counting."""
    text = "Marie  Curie\ndécouvrit le radium à Paris.\n\n" * 30
    tokenizer = CheckedTokenizer(Words(truncate=truncate))  # type: ignore[arg-type]
    for limit in (0, 1, 7, 1000):
        cut = tokenizer.truncate(text, limit)
        assert text.startswith(cut) and tokenizer.count(cut) <= limit
