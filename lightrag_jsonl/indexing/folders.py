"""The contents of a folder: regular files to read, and links, pipes and devices to skip."""

import os
import stat
from pathlib import Path

from lightrag_jsonl.core.index_reports import SkippedFile

OFFICE_LOCK = "~$"  # begins the name of a file beside a document that Office has open


class FolderContents:
    """The regular files in a folder and its subfolders, sorted; also skipped and closed entries.

    A link is not followed: it can lead out of the folder, in a circle, or to a file that is read
    anyway. `closed` holds the errors of folders that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.files: list[Path] = []
        self.skipped: list[SkippedFile] = []
        self.closed: list[OSError] = []
        for parent, folder_names, file_names in os.walk(folder, onerror=self.closed.append):
            for name in [*folder_names]:
                if _is_link(Path(parent, name)):
                    folder_names.remove(name)
                    self._add(Path(parent, name))
            for name in file_names:
                self._add(Path(parent, name))
        self.files.sort()
        self.skipped.sort(key=lambda file: file.path)

    def _add(self, path: Path) -> None:
        if path.name.startswith(OFFICE_LOCK):
            return
        try:
            reason = "it is a link" if _is_link(path) else irregularity(path.lstat().st_mode)
        except OSError:  # the file is gone, or its folder is closed: reading it says so
            reason = ""
        if reason:
            self.skipped.append(SkippedFile(str(path), reason))
        else:
            self.files.append(path)


def _is_link(path: Path) -> bool:
    """Whether a path is a symbolic link, or a junction of Windows."""
    return path.is_symlink() or getattr(os.path, "isjunction", lambda path: False)(path)


def irregularity(mode: int) -> str:
    """The reason why a file with this mode is no regular file; "" for regular files."""
    if stat.S_ISREG(mode):
        return ""
    kinds = ((stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISDIR, "folder"))
    kind = next((name for matches, name in kinds if matches(mode)), "device")
    return f"it is a {kind}, not a regular file"
