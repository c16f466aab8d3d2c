"""Errors go through pools of processes: each can be pickled and copied."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from lightrag_jsonl import errors
from lightrag_jsonl.adapters.faults import EndpointError

KINDS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)
]
BUILT_IN = {
    errors.ConfigError: ValueError,
    errors.NotFoundError: KeyError,
    errors.LLMError: RuntimeError,
    errors.EmbeddingError: RuntimeError,
}


@pytest.mark.parametrize("kind", [*KINDS, EndpointError])
def test_an_error_is_the_same_on_the_other_side(kind: type[Exception]) -> None:
    """With all that it says beside its message."""
    error = kind("what to do")
    for name, value in (("text", "{"), ("path", None), ("status", 401), ("permanent", True)):
        if hasattr(error, name):
            setattr(error, name, value)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind and str(other) == str(error) and vars(other) == vars(error)


@pytest.mark.parametrize(("kind", "built_in"), BUILT_IN.items())
def test_an_error_is_also_what_python_calls_it(
    kind: type[Exception], built_in: type[Exception]
) -> None:
    """Who does not know the package's own tree catches a wrong value as one."""
    assert issubclass(kind, errors.LightRAGError) and issubclass(kind, built_in)
