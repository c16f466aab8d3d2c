"""Turns what callers give into documents: texts, files, folders, and iterables of these."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

from lightrag_jsonl.decoding import decoded
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexfiles import DATABASE, check_not_of_index, is_of_index
from lightrag_jsonl.types import Document, Failure, Json

Given: TypeAlias = str | Path | Document
SUFFIXES = (".txt", ".md", ".markdown", ".text", ".jsonl")
KINDS = 5  # at most so many kinds of skipped files are named
LONGEST_NAME = 256  # characters; longer texts are not checked for being a file's name
FIELDS = frozenset(field.name for field in fields(Document))
WORDS = ("id", "title", "source", "date")

log = logging.getLogger(__name__)


def read_all(given: Given | Iterable[Given]) -> Iterator[Document | Failure]:
    """All documents, each read only when it is needed.

    A single text or file that cannot be read raises `ConfigError`; one of several gives a
    `Failure`, and the others are still read. The files of an index are not texts: given alone, one
    raises `ConfigError`; among others, it is skipped.
    """
    if isinstance(given, str | Path | Document):
        yield from read_one(given)
        return
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            f"expected str, Path, Document or an iterable of these, got {type(given).__name__}"
        )
    for one in given:
        if not isinstance(one, str | Path | Document):
            raise TypeError(f"expected str, Path or Document, got {type(one).__name__}")
        if isinstance(one, Path) and is_of_index(one):
            continue
        try:
            yield from read_one(one)
        except ConfigError as error:
            if not (
                isinstance(one, Path) and (one / DATABASE).is_file()
            ):  # an index's folder, matched by a pattern
                yield Failure(str(one), None, str(error))


def read_one(given: Given) -> Iterator[Document | Failure]:
    """The documents of a text, a file, or a folder's files (sorted, subfolders included)."""
    if isinstance(given, Document):
        yield given
    elif isinstance(given, str):
        if len(given) < LONGEST_NAME and given.endswith(SUFFIXES) and Path(given).is_file():
            log.warning("%r is read as a text; to read the file, give Path(%r)", given, given)
        yield Document(given)
    elif given.is_dir():
        yield from _read_folder(given)
    else:
        yield from _read_file(given)


def _read_folder(folder: Path) -> Iterator[Document | Failure]:
    closed: list[OSError] = []
    found = os.walk(folder, onerror=closed.append)
    files = sorted(Path(place, name) for place, _, names in found for name in names)
    files = [path for path in files if path.is_file() or _is_broken_link(path)]
    files = [path for path in files if not is_of_index(path)]
    paths = [path for path in files if path.suffix.lower() in SUFFIXES]
    if not paths and not closed:
        raise ConfigError(f"{folder} holds no readable file ({', '.join(SUFFIXES)})")
    others = Counter(path.suffix.lower() for path in files if _is_missed(path, folder))
    if others:
        kinds = [f"{count} {kind or 'without suffix'}" for kind, count in others.most_common(KINDS)]
        more = ["…"] if len(others) > KINDS else []
        told = ", ".join([*kinds, *more])
        log.warning("%s: passed over %s; only %s are read", folder, told, ", ".join(SUFFIXES))
    for error in closed:
        yield Failure(error.filename, None, f"cannot read {error.filename}: {error.strerror}")
    for path in paths:
        try:
            yield from _read_file(path)
        except ConfigError as error:
            yield Failure(str(path), None, str(error))


def _is_broken_link(path: Path) -> bool:
    return path.is_symlink() and not path.exists()


def _is_missed(path: Path, folder: Path) -> bool:
    """Whether a user may miss a file that is not read; hidden files are not missed."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.suffix.lower() not in SUFFIXES


def _read_file(path: Path) -> Iterator[Document]:
    text = read_text(path)
    if not text.strip():
        raise ConfigError(f"{path} is empty")
    if path.suffix.lower() == ".jsonl":
        yield from list(_read_lines(path, text))  # a bad line refuses the whole file
    else:
        yield Document(text, title=path.stem, source=str(path))


def check_target(name: str) -> None:
    """Raise `ConfigError` early if a file cannot be written."""
    path = Path(name)
    if not path.name or path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"cannot write to {name!r}: it names no file in a folder that is there")
    check_not_of_index(path)


def read_text(path: Path) -> str:
    """A text file's content, decoded by `decoded`."""
    check_not_of_index(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    return decoded(data, str(path))


def _read_lines(path: Path, text: str) -> Iterator[Document]:
    """One document for each line: a string, or an object with `text` and any field of `Document`."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number}: no JSON ({error})") from error
        yield document_from(value, where=f"{path}, line {number}", source=str(path))


def document_from(value: Json, *, where: str, source: str | None = None) -> Document:
    """A document from plain JSON; fields that `Document` does not have go to its metadata.

    `ConfigError` begins with `where` if a field has the wrong type; numbers are accepted for texts.
    """
    if isinstance(value, str):
        return Document(value, source=source)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ConfigError(f'{where}: expected a text, or an object with a "text"')
    known: dict[str, Any] = {  # of any type: `Document` checks them
        key: _in_words(item) if key in WORDS else item
        for key, item in value.items()
        if key in FIELDS and item is not None
    }
    metadata = known.get("metadata", {})
    if isinstance(metadata, dict):
        other = {key: item for key, item in value.items() if key not in FIELDS}
        known["metadata"] = {**other, **metadata}
    if isinstance(known.get("pages"), list):
        known["pages"] = tuple(known["pages"])
    try:
        return Document(**{"source": source, **known})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _in_words(value: Json) -> Json:
    """A number as text, for fields that name something (an id, a year)."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value
