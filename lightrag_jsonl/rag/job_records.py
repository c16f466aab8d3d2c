"""The names of the files in which a server keeps the jobs of an index, and what a purge removes of them."""

import re
from pathlib import Path
from typing import Final

import msgspec
from filelock import FileLock, Timeout

JOBS_FOLDER: Final = "jobs"  # in the folder of an index
JOB_ID: Final = re.compile("[0-9a-f]{32}")
RECORD: Final = ".json"  # the job itself
CONTENT: Final = ".data"  # what a client has sent
ENDED_STATES: Final = frozenset({"done", "failed", "cancelled"})
LEFTOVERS: Final = (".new", ".refused")


class _Record(msgspec.Struct):
    """What a purge reads of a job."""

    state: str


def purge_ended_jobs(index_folder: Path) -> None:
    """Delete the ended jobs of an index, which hold names, titles and ids of documents.

    Jobs that wait or run stay: their documents are not indexed yet. A server that runs notices.
    """
    folder = index_folder / JOBS_FOLDER
    if folder.is_symlink() or not folder.is_dir():
        return
    open_ids: set[str] = set()
    for path in folder.glob(f"*{RECORD}"):
        if JOB_ID.fullmatch(path.stem) and not _has_ended(path):
            open_ids.add(path.stem)
    endings = [RECORD, *LEFTOVERS]
    if not _server_runs(folder):  # then a content without a job is no upload under way
        endings.append(CONTENT)
    for ending in endings:
        for path in folder.glob(f"*{ending}"):
            if JOB_ID.fullmatch(path.stem) and path.stem not in open_ids:
                path.unlink(missing_ok=True)
                path.with_suffix(CONTENT).unlink(missing_ok=True)


def _has_ended(path: Path) -> bool:
    """Whether the job in a file has ended; a file that is no job counts as ended."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Record).state in ENDED_STATES
    except (OSError, ValueError):
        return True


def _server_runs(folder: Path) -> bool:
    lock_file = folder / "lock"
    if lock_file.is_symlink():
        return True
    try:
        with FileLock(lock_file, timeout=0):
            return False
    except Timeout:
        return True
