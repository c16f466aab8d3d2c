"""Whether a folder holds an index, and whether it is sound."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


def has_index(working_dir: Path) -> bool:
    """Whether the folder holds an index; nothing is created."""
    from lightrag_jsonl.storage.database import FILE_NAME

    return (working_dir / FILE_NAME).is_file()


@contextlib.contextmanager
def explained(working_dir: Path) -> Iterator[None]:
    """Replace an unexpected error by `CorruptError` if the index turns out to be damaged."""
    from lightrag_jsonl.storage.database import Database

    if not has_index(working_dir):
        yield
        return
    with contextlib.closing(Database(working_dir)) as database, database.explained():
        yield
