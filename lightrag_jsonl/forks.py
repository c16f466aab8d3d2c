"""What belongs to one process: its threads and connections do not come along into a forked one."""

from __future__ import annotations

import os
from pathlib import Path

from lightrag_jsonl.errors import StorageError


class Home:
    """The process that something was made in."""

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is still that process, and not one that was forked from it."""
        return os.getpid() == self._process

    def check(self) -> None:
        """`StorageError` in any other process: who waited for a thread of it would wait for ever."""
        if not self.is_here:
            raise StorageError(
                "this LightRAG was opened before the process was forked, and its threads and"
                " connections stayed behind: open the folder anew here"
            )


def not_copied(working_dir: Path) -> TypeError:
    """The error for who pickles or copies what has threads and connections."""
    return TypeError(
        f"a LightRAG cannot be pickled or copied: open its folder, {working_dir}, anew where it is"
        " needed, once a process"
    )
