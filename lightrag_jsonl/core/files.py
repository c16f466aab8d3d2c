"""Writes files as a whole."""

import contextlib
import errno
import secrets
import shutil
from pathlib import Path

from lightrag_jsonl.core.errors import StorageError

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once: after a kill, an error or on a full disk there is the former file or the new one.

    `StorageError` if it cannot be written. What is no file, such as a pipe, is written as it is.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            _replace_file(path.resolve(), content)
    except OSError as error:
        raise unwritten(path, error) from error


def unwritten(path: Path, error: OSError) -> StorageError:
    """The error of a file that cannot be written, with what to do."""
    advice = "make room" if error.errno in FULL_DISK else "check the folder and its permissions"
    return StorageError(
        f"{path} cannot be written ({error.strerror or error}): {advice}, or choose another place",
        path=path,
    )


def _replace_file(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with draft.open("xb") as file:
            file.write(content)
        if path.exists():
            shutil.copymode(path, draft)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
