"""Loads what callers give as documents: texts, files, folders, and iterables of these."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import decoded
from lightrag_jsonl.core.types import Document, Failure, Json

Given: TypeAlias = str | Path | Document
SUFFIXES = (".txt", ".md", ".markdown", ".text", ".jsonl")
DATABASE = "index.sqlite"  # the file of an index
LONGEST_NAME = 256  # characters; longer texts are not checked for being a file's name
FIELDS = frozenset(field.name for field in fields(Document))
TEXT_FIELDS = ("id", "title", "source", "date")

log = logging.getLogger(__name__)


def load_documents(given: Given | Iterable[Given]) -> Iterator[Document | Failure]:
    """All documents, each read only when it is needed.

    A folder stands for its text files, sorted, those of its subfolders included. A `.jsonl` file
    has one document a line. A single text or file that cannot be read raises `ConfigError`; one of
    several gives a `Failure`, and the others are still read.
    """
    if isinstance(given, str | Path | Document):
        yield from _load(given)
        return
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise _type_error(given)
    for one in given:
        yield from _load_or_fail(one)


def _load_or_fail(one: Given) -> Iterator[Document | Failure]:
    try:
        yield from _load(one)
    except ConfigError as error:
        if not Path(str(one), DATABASE).is_file():  # an index's folder, matched by a pattern
            yield Failure(str(one), None, str(error))


def _load(one: Given) -> Iterator[Document | Failure]:
    if isinstance(one, Document):
        yield one
    elif isinstance(one, str):
        if len(one) < LONGEST_NAME and one.endswith(SUFFIXES) and Path(one).is_file():
            log.warning("%r is read as a text; to read the file, give Path(%r)", one, one)
        yield Document(one)
    elif not isinstance(one, Path):
        raise _type_error(one)
    elif one.is_dir():
        yield from _load_folder(one)
    else:
        yield from _load_file(one)


def _type_error(given: object) -> TypeError:
    expected = "str, Path, Document or an iterable of these"
    return TypeError(f"expected {expected}, got {type(given).__name__}")


def _load_folder(folder: Path) -> Iterator[Document | Failure]:
    closed: list[OSError] = []
    tree = os.walk(folder, onerror=closed.append)
    files = sorted(Path(parent, name) for parent, _, names in tree for name in names)
    paths = [path for path in files if path.suffix.lower() in SUFFIXES]
    if not paths and not closed:
        raise ConfigError(f"{folder} holds no readable file ({', '.join(SUFFIXES)})")
    _warn_of_skipped(folder, files)
    for error in closed:
        yield Failure(error.filename, None, f"cannot read {error.filename}: {error.strerror}")
    for path in paths:
        yield from _load_or_fail(path)


def _warn_of_skipped(folder: Path, files: Iterable[Path]) -> None:
    """Warn of files that are not read, except hidden ones and those of an index."""
    suffixes = Counter(
        path.suffix.lower() or "without suffix"
        for path in files
        if "/." not in f"/{path.relative_to(folder).as_posix()}"
        and path.suffix.lower() not in SUFFIXES
        and not path.name.startswith(DATABASE)
    )
    if suffixes:
        skipped = ", ".join(f"{count} {suffix}" for suffix, count in suffixes.most_common(5))
        log.warning("%s: skipped %s; only %s are read", folder, skipped, ", ".join(SUFFIXES))


def _load_file(path: Path) -> Iterator[Document]:
    text = read_text(path)
    if not text.strip():
        raise ConfigError(f"{path} is empty")
    if path.suffix.lower() == ".jsonl":
        yield from list(_parse_lines(path, text))  # a bad line refuses the whole file
    else:
        yield Document(text, title=path.stem, source=str(path))


def read_text(path: Path) -> str:
    """A text file's content; `ConfigError` if it cannot be read, or is no text."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    return decoded(data, str(path))


def _parse_lines(path: Path, text: str) -> Iterator[Document]:
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
        key: item for key, item in value.items() if key in FIELDS and item is not None
    }
    for key in TEXT_FIELDS:
        if isinstance(known.get(key), int | float) and not isinstance(known[key], bool):
            known[key] = str(known[key])
    metadata = known.get("metadata", {})
    if isinstance(metadata, dict):
        others = {key: item for key, item in value.items() if key not in FIELDS}
        known["metadata"] = {**others, **metadata}
    try:
        return Document(**{"source": source, **known})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
