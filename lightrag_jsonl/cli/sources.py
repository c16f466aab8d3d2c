"""Resolves the arguments of `insert`: files, folders, patterns, and - for stdin."""

from __future__ import annotations

import glob
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.errors import ConfigError

if TYPE_CHECKING:
    from lightrag_jsonl.types import Document

STDIN = "-"


def find_sources(arguments: Sequence[str]) -> Path | Document | list[Path | Document]:
    """The arguments in order, with patterns expanded.

    A single source is returned as such, not in a list: then an error in it ends the command.
    """
    found: list[Path | Document] = []
    for argument in dict.fromkeys(arguments):
        if not argument.strip():  # for example from an unset variable; Path("") is this folder
            raise click.UsageError("the name of a file is empty")
        if argument == STDIN:
            found.append(_from_stdin())
        elif glob.has_magic(argument) and not Path(argument).exists():
            found += _matching(argument)
        else:
            found.append(Path(argument))
    if len(found) > 1:
        return found
    alone = found[0]
    if isinstance(alone, Path) and not alone.exists():  # fail before an index is created
        raise ConfigError(f"no such file: {alone}")
    return alone


def with_id(sources: Path | Document | list[Path | Document], id: str) -> Document:
    """The only document of the sources, with this id; `UsageError` if they are not one document."""
    from lightrag_jsonl.files import read_all
    from lightrag_jsonl.types import Document

    read = list(read_all(sources))
    if len(read) != 1 or not isinstance(read[0], Document):
        raise click.UsageError(f"--id names one document, but {len(read)} were given")
    return replace(read[0], id=id)


def read_stdin() -> str:
    """All of stdin, decoded like a text file."""
    from lightrag_jsonl.decoding import decoded

    return decoded(sys.stdin.buffer.read(), "stdin")


def _from_stdin() -> Document:
    from lightrag_jsonl.types import Document

    return Document(read_stdin(), title="stdin")


def _matching(pattern: str) -> list[Path | Document]:
    names = glob.iglob(pattern, recursive=True)  # noqa: PTH207 (a pattern may be absolute)
    paths = sorted(map(Path, names))
    files: list[Path | Document] = [path for path in paths if not path.is_dir()]
    if not files:
        raise ConfigError(f"no file matches {pattern}")
    return files
