"""Detects use in a forked process, which inherits neither threads nor usable connections."""

from __future__ import annotations

import os
from pathlib import Path

from lightrag_jsonl.errors import StorageError


class Home:
    """The process in which an object was made."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the code runs in that process, and not in one forked from it."""
        return os.getpid() == self._process

    def check(self) -> None:
        """Raise `StorageError` in any other process, where waiting for a thread would never end."""
        if not self.is_here:
            raise StorageError(
                "this LightRAG was opened before the process was forked, and its threads and"
                " connections stayed behind: open the folder anew here"
            )


def not_copied(working_dir: Path) -> TypeError:
    """The error for pickling or copying an object that has threads and connections."""
    return TypeError(
        f"a LightRAG cannot be pickled or copied: open its folder, {working_dir}, anew where it is"
        " needed, once a process"
    )
