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
