"""What the arguments of `insert` mean: files, folders, patterns, or - for stdin."""

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
    """The arguments in order, with patterns expanded; a single one is not a list, so that its error
    is raised.
    """
    found: list[Path | Document] = []
    for argument in dict.fromkeys(arguments):
        if (
            not argument.strip()
        ):  # from a shell variable that is not set; Path would take it for this folder
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
    if isinstance(alone, Path) and not alone.exists():  # checked before an index is created in vain
        raise ConfigError(f"no such file: {alone}")
    return alone


def with_id(sources: Path | Document | list[Path | Document], id: str) -> Document:
    """The only document in the sources, with the given id."""
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
