"""Limits of the system, reached for a while."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

TOO_LARGE = 1 << 46  # bytes of a stack: no system has them


@contextlib.contextmanager
def no_threads() -> Iterator[None]:
    """The system starts no thread meanwhile, as where there are too many already."""
    before = threading.stack_size(TOO_LARGE)
    try:
        yield
    finally:
        threading.stack_size(before)
