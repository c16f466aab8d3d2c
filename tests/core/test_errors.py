"""Errors: one tree, that can be pickled, and is also what Python calls it."""

import copy
import inspect
import pickle

import pytest

from lightrag_jsonl.core import errors

ERRORS = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, Exception)
]
BUILT_IN = {
    errors.ConfigError: ValueError,
    errors.NotFoundError: KeyError,
    errors.LLMError: RuntimeError,
    errors.EmbeddingError: RuntimeError,
}


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_is_pickled_whole_and_is_what_python_calls_it(kind: type[Exception]) -> None:
    """With all that it holds beside its message; who does not know the tree can catch it, too."""
    error = kind("做什么")
    for name, value in (("text", "{"), ("path", None), ("retry_after", 2.5), ("permanent", True)):
        if hasattr(error, name):
            setattr(error, name, value)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind and str(other) == str(error) == "做什么"
        assert vars(other) == vars(error)
    assert isinstance(error, errors.LightRAGError)
    assert isinstance(error, BUILT_IN.get(kind, Exception))


class Speechless(Exception):
    """An error of a user's code that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("坏 \udcff １２ 🙂"), "ValueError: 坏 \ufffd １２ 🙂"),
        (ValueError(), "ValueError"),
        (Speechless(), "Speechless"),
        (ValueError("x" * 1_000_000), f"ValueError: {'x' * errors.LONGEST_WORDS}…"),
    ],
)
def test_words_of_any_error_can_be_stored(error: Exception, words: str) -> None:
    """Half a character, an error without words and a very long one: the words stay short, and are text."""
    assert errors.described(error) == words


@pytest.mark.parametrize("kind", ERRORS)
def test_messages_of_the_package_can_be_stored(kind: type[Exception]) -> None:
    """Also if a user's model raises the error, or it quotes what a user gave."""
    assert str(kind("no \ud800")) == "no \ufffd"
