"""Which files belong to an index and must not be opened by anything else.

On POSIX, closing any descriptor of a file releases all locks that the process holds on it. Opening
and closing a database file here would release SQLite's locks, and another process could write at
the same time as this one.
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
ENDINGS = ("", "-wal", "-shm", "-journal")  # of a database and SQLite's files beside it
NAMES = frozenset(name + ending for name in (DATABASE, LOCK) for ending in ENDINGS)

_open: dict[object, tuple[Path, ...]] = {}  # by the objects of this process that have them open


def note_open(owner: object, *databases: Path) -> Callable[[], object]:
    """Note that these databases are open, until the returned function is called or `owner` is deleted."""
    key = object()
    _open[key] = tuple(Path(f"{path}{ending}") for path in databases for ending in ENDINGS)
    return weakref.finalize(owner, _open.pop, key, None)


def is_of_index(path: Path) -> bool:
    """Whether a file belongs to an index: by its name, or because it is open here under any name."""
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
    """Raise `ConfigError` if a file belongs to an index; to be called before opening it."""
    if is_of_index(path):
        raise ConfigError(
            f"{path} belongs to an index, whose database alone opens it; name another"
        )


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
