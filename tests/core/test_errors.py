"""Errors: one tree, that can be pickled, and is also what Python calls it."""

from __future__ import annotations

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
def test_an_error_survives_pickling_and_copying(kind: type[Exception]) -> None:
    """With all that it holds beside its message; pools of processes do that."""
    error = kind("做什么")
    for name, value in (("text", "{"), ("path", None), ("retry_after", 2.5), ("permanent", True)):
        if hasattr(error, name):
            setattr(error, name, value)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind and str(other) == str(error) == "做什么"
        assert vars(other) == vars(error)


@pytest.mark.parametrize(("kind", "built_in"), BUILT_IN.items())
def test_an_error_is_also_what_python_calls_it(
    kind: type[Exception], built_in: type[Exception]
) -> None:
    """Who does not know the package's own tree catches a wrong value as one."""
    assert issubclass(kind, errors.LightRAGError) and issubclass(kind, built_in)
