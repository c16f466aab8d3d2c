"""Loads what callers give as documents (texts, files, folders), and makes it storable."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import decoded, digest, name_key, sanitize
from lightrag_jsonl.core.types import Document, Failure, Json, Page
from lightrag_jsonl.indexing.chunking import document_pages
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument

Given: TypeAlias = str | Path | Document
SUFFIXES = (".txt", ".md", ".markdown", ".text", ".jsonl")
DATABASE = "index.sqlite"  # the file of an index
FIELDS = frozenset(field.name for field in fields(Document))

log = logging.getLogger(__name__)


def load_documents(given: Given | Iterable[Given]) -> Iterator[Document | Failure]:
    """All documents, each read only when it is needed.

    A folder stands for its text files, sorted, those of its subfolders included. A `.jsonl` file
    has one document a line. A single text or file that cannot be read raises `ConfigError`; one of
    several gives a `Failure`, and the others are still read.
    """
    if isinstance(given, str | Path | Document):
        yield from _load(given)
    elif isinstance(given, Iterable) and not isinstance(given, dict | bytes):
        for one in given:
            yield from _load_or_fail(one)
    else:
        raise _type_error(given)


def _load_or_fail(one: Given) -> Iterator[Document | Failure]:
    try:
        yield from _load(one)
    except ConfigError as error:
        if not Path(str(one), DATABASE).is_file():  # an index's folder, matched by a pattern
            yield Failure(str(one), None, str(error))


def _load(one: Given) -> Iterator[Document | Failure]:
    if isinstance(one, str | Document):
        yield Document(one) if isinstance(one, str) else one
    elif not isinstance(one, Path):
        raise _type_error(one)
    elif one.is_dir():
        yield from _load_folder(one)
    else:
        text = read_text(one)
        if not text.strip():
            raise ConfigError(f"{one} is empty")
        if one.suffix.lower() == ".jsonl":
            yield from list(_parse_lines(one, text))  # a bad line refuses the whole file
        else:
            yield Document(text, title=one.stem, source=str(one))


def _type_error(given: object) -> TypeError:
    expected = "str, Path, Document or an iterable of these"
    return TypeError(f"expected {expected}, got {type(given).__name__}")


def _load_folder(folder: Path) -> Iterator[Document | Failure]:
    """The folder's texts; files of other kinds are skipped with a warning."""
    closed: list[OSError] = []
    tree = os.walk(folder, onerror=closed.append)
    files = sorted(Path(parent, name) for parent, _, names in tree for name in names)
    paths = [path for path in files if path.suffix.lower() in SUFFIXES]
    if not paths and not closed:
        raise ConfigError(f"{folder} holds no readable file ({', '.join(SUFFIXES)})")
    suffixes = Counter(path.suffix.lower() or "without suffix" for path in files)
    if skipped := [f"{n} {suffix}" for suffix, n in suffixes.items() if suffix not in SUFFIXES]:
        log.warning("%s: skipped %s", folder, ", ".join(skipped))
    for error in closed:
        yield Failure(error.filename, None, f"cannot read {error.filename}: {error.strerror}")
    for path in paths:
        yield from _load_or_fail(path)


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
    known: dict[str, Any] = {"source": source}  # of any type: `Document` checks them
    others = {}
    for key, item in value.items():
        if key not in FIELDS:
            others[key] = item
        elif type(item) in (int, float):
            known[key] = str(item)
        elif item is not None:
            known[key] = item
    metadata = known.get("metadata", {})
    known["metadata"] = {**others, **metadata} if isinstance(metadata, dict) else metadata
    try:
        return Document(**known)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


# ── what can be stored ──────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class IncomingDocument:
    """A document to index, as it can be stored, and as it will be stored except for its row id."""

    pending: PendingDocument
    document: StoredDocument
    pages: tuple[Page, ...]
    has_text: bool


def incoming(given: PendingDocument) -> IncomingDocument:
    """A document with its id, which is derived from its text if it has none.

    `ConfigError` if the id has no visible character, or if a value cannot be stored.
    """
    document = given.document
    if document.id and not name_key(document.id):
        raise ConfigError(f"the id {document.id!r} has no character that can be seen")
    pages = document_pages("", document)
    texts = [page.text for page in pages]
    derived_id = "doc-" + digest(*texts)
    id = sanitize(document.id or "") or derived_id
    title = document.title and sanitize(document.title)
    source = document.source and sanitize(document.source)
    date = document.date and sanitize(document.date)
    metadata, records = plain_json((dict(document.metadata), given.records))
    # one text is one document, wherever it was found, unless the caller named it
    named = [title, source] if id != derived_id else []
    same = [*named, date, metadata, records, given.chunks]
    content = digest(*texts, json.dumps(same, ensure_ascii=False, sort_keys=True))
    size, at = sum(map(len, texts)), given.created_at
    stored = StoredDocument(0, id, title, source, date, metadata, content, "done", size, at)
    own_pages = tuple(texts) if document.pages else None
    kept = Document(sanitize(document.text), id, title, source, date, metadata, own_pages)
    records = None if records is None else tuple(records)
    own = tuple([replace(page, document_id=id) for page in pages])
    pending = replace(given, document=kept, records=records)
    return IncomingDocument(pending, stored, own, any(map(str.strip, texts)))


def plain_json(value: object) -> Any:
    """A value as it will be read back from JSON: tuples become lists, NaN and infinity null.

    `ConfigError` for values that are nested too deeply, are too long, or are not JSON.
    """
    try:
        text = sanitize(json.dumps(value, ensure_ascii=False))
        return json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"metadata of a document, and records, must be plain JSON that can be stored: {error}"
        ) from error
