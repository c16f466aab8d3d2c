"""Which files are an index's own, and for nobody else to open.

On POSIX a process that closes any descriptor of a file loses all locks it holds on that file: those
of SQLite would be gone, and another process let in while this one writes.
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Callable
from pathlib import Path

from lightrag_jsonl.errors import ConfigError

DATABASE = "index.sqlite"
LOCK = "writer.lock"
ENDINGS = ("", "-wal", "-shm", "-journal")  # what SQLite has beside a database
NAMES = frozenset(name + ending for name in (DATABASE, LOCK) for ending in ENDINGS)

_open: dict[object, tuple[Path, ...]] = {}  # of this process: its locks are all of one owner


def note_open(owner: object, *databases: Path) -> Callable[[], object]:
    """Count these databases among the open ones, until the function is called or the owner is gone."""
    key = object()
    _open[key] = tuple(Path(f"{path}{ending}") for path in databases for ending in ENDINGS)
    return weakref.finalize(owner, _open.pop, key, None)


def is_of_index(path: Path) -> bool:
    """Whether a file is an index's by its name, or is one that is open here, however it is called."""
    found = _found(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        return False
    if path.name in NAMES or Path(os.path.realpath(path)).name in NAMES:
        return True
    return found is not None and any(
        os.path.samestat(found, other)
        for paths in list(_open.values())
        for other in map(_found, paths)
        if other is not None
    )


def check_not_of_index(path: Path) -> None:
    """`ConfigError` where a file is an index's own, before anybody opens it."""
    if is_of_index(path):
        raise ConfigError(
            f"{path} belongs to an index, whose database alone opens it; name another"
        )


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
