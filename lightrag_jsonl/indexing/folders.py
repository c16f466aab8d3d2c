"""The contents of a folder: the files to read, and what is left out, with the reason."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from lightrag_jsonl.core.index_reports import SkippedFile
from lightrag_jsonl.text.numbers import natural_order

OFFICE_LOCK = "~$"  # begins the name of a file beside a document that Office has open
IGNORE_FILE = ".gitignore"
# Folders that programs fill: packages, caches, and what macOS adds to archives.
PROGRAM_FOLDERS = frozenset(
    ["node_modules", "bower_components", "site-packages", "venv", "virtualenv", "__pycache__", "__MACOSX"]
)  # fmt: skip


class FolderContents:
    """The regular files in a folder and its subfolders, sorted; also skipped and closed entries.

    Left out are hidden files and folders, folders that programs fill, and what a `.gitignore` in the folder
    ignores; `include` has patterns of what is read all the same, `exclude` of what is left out besides, both
    in the form of a `.gitignore`. A link is not followed: it can lead out of the folder, in a circle, or to
    a file that is read anyway. `closed` holds the errors of folders that cannot be read.
    """

    def __init__(
        self, folder: Path, *, exclude: Sequence[str] = (), include: Sequence[str] = ()
    ) -> None:
        self.files: list[Path] = []
        self.skipped: list[SkippedFile] = []
        self.closed: list[OSError] = []
        self._folder = folder
        from pathspec import GitIgnoreSpec

        self._excluded = GitIgnoreSpec.from_lines(exclude)
        self._included = GitIgnoreSpec.from_lines(include)
        self._ignored: dict[Path, GitIgnoreSpec] = {}
        for parent, folder_names, file_names in os.walk(folder, onerror=self.closed.append):
            self._read_ignore_file(Path(parent))
            for name in sorted(folder_names):
                path = Path(parent, name)
                reason = "it is a link" if _is_link(path) else self._why_left_out(path, "/")
                if reason and (_is_link(path) or not include):  # files inside may be included
                    folder_names.remove(name)
                    self.skipped.append(SkippedFile(str(path), reason))
            for name in file_names:
                self._add(Path(parent, name))
        self.files.sort(key=natural_order)
        self.skipped.sort(key=lambda file: file.path)

    def _add(self, path: Path) -> None:
        if path.name.startswith(OFFICE_LOCK) or path.name == IGNORE_FILE:
            return
        reason = self._why_left_out(path)
        try:
            if _is_link(path):
                reason = "it is a link"
            reason = reason or irregularity(path.lstat().st_mode)
        except OSError:  # the file is gone, or its folder is closed: reading it says so
            pass
        if reason:
            self.skipped.append(SkippedFile(str(path), reason))
        else:
            self.files.append(path)

    def _read_ignore_file(self, folder: Path) -> None:
        from pathspec import GitIgnoreSpec

        try:
            lines = (folder / IGNORE_FILE).read_text(encoding="utf-8").split("\n")
            self._ignored[folder] = GitIgnoreSpec.from_lines(lines)
        except (OSError, ValueError):  # none, or no text
            return

    def _why_left_out(self, path: Path, ending: str = "") -> str:
        """Why a file, or with the ending "/" a folder, is not read; "" if it is."""
        relative = path.relative_to(self._folder).as_posix() + ending
        if self._excluded.match_file(relative):
            return "it is excluded"
        if self._included.match_file(relative):
            return ""
        names = path.relative_to(self._folder).parts
        if any(name.startswith(".") for name in names):
            return "it is hidden"
        if not PROGRAM_FOLDERS.isdisjoint(names):
            return "it belongs to a program"
        return "a .gitignore ignores it" if self._is_ignored(path, ending) else ""

    def _is_ignored(self, path: Path, ending: str) -> bool:
        """What the innermost `.gitignore` with a pattern for the path says."""
        for folder in path.parents:
            if spec := self._ignored.get(folder):
                ignored = spec.check_file(path.relative_to(folder).as_posix() + ending).include
                if ignored is not None:
                    return ignored
            if folder == self._folder:
                break
        return False


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
