"""Limits of the system, reached for a while."""

from __future__ import annotations

import contextlib
import os
import resource
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


@contextlib.contextmanager
def no_files() -> Iterator[None]:
    """The system opens no file meanwhile, as where too many are open already."""
    with contextlib.ExitStack() as opened:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        last = os.open(os.devnull, os.O_RDONLY)
        opened.callback(os.close, last)
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, before[1]))
        yield
