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


@pytest.mark.parametrize("kind", [*KINDS, EndpointError])
def test_an_error_is_the_same_on_the_other_side(kind: type[Exception]) -> None:
    """With all that it says beside its message."""
    error = kind("what to do")
    for name, value in (("text", "{"), ("path", None), ("status", 401), ("permanent", True)):
        if hasattr(error, name):
            setattr(error, name, value)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind and str(other) == str(error) and vars(other) == vars(error)
