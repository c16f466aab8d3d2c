"""Waits for changes of files in folders, for `insert --watch`."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lightrag_jsonl.indexing.folders import FolderContents
from lightrag_jsonl.indexing.loading import readable_suffixes
from lightrag_jsonl.readers.formats import file_suffix
from lightrag_jsonl.readers.limits import FileLimits

SECONDS_BETWEEN_LOOKS = 2.0  # asking for times works on all file systems, also over a network

Stamps: TypeAlias = dict[Path, tuple[int, int]]  # time of the last change in nanoseconds, and size


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The new or changed files, and the removed files."""

    changed: tuple[Path, ...]
    removed: tuple[Path, ...]


def file_stamps(sources: Sequence[Path], limits: FileLimits, *, sees: bool) -> Stamps:
    """When the readable files of folders, and files named themselves, were last changed."""
    suffixes = readable_suffixes(sees=sees)
    stamps: Stamps = {}
    for source in sources:
        files = [source]
        if source.is_dir():
            contents = FolderContents(source, exclude=limits.exclude, include=limits.include)
            files = [path for path in contents.files if file_suffix(path) in suffixes]
        for path in files:
            try:
                status = path.stat()
            except OSError:  # gone since, or closed: neither can be read
                continue
            stamps[path] = (status.st_mtime_ns, status.st_size)
    return stamps


def watched_changes(
    look: Callable[[], Stamps],
    first: Stamps,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[FileChanges]:
    """The changes since the `first` look, when two looks after another see the same: a file is read when it
    is written. Only an interrupt (Ctrl-C) ends it.
    """
    reported_stamps = first
    latest_stamps = first
    while True:
        pause(SECONDS_BETWEEN_LOOKS)
        stamps = look()
        if stamps == latest_stamps != reported_stamps:
            changed = tuple(path for path in stamps if stamps[path] != reported_stamps.get(path))
            removed = tuple(path for path in reported_stamps if path not in stamps)
            reported_stamps = stamps
            yield FileChanges(changed, removed)
        latest_stamps = stamps
