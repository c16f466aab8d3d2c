"""Loads what callers give as documents (texts, files, folders), and makes it storable."""

import json
import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.text import digest, sanitize
from lightrag_jsonl.core.types import Document, Failure, Json, Page
from lightrag_jsonl.indexing.chunking import document_pages
from lightrag_jsonl.readers import READERS, Readers, file_suffix, read_document
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument

Given: TypeAlias = str | Path | Document
LINE_MARK = "#line-"  # in the id of a line, between the path and the digest of its text
LINES = ".jsonl"  # a file with a document on each line
DATABASE = "index.sqlite"  # the file of an index
FIELDS = frozenset(field.name for field in fields(Document))

log = logging.getLogger(__name__)


def load_documents(
    given: Given | Iterable[Given], readers: Readers | None = None
) -> Iterator[Document | Failure]:
    """All documents, each read only when it is needed.

    A folder stands for the files in it that can be read, sorted, those of its subfolders included.
    Files are read by `READERS` and by the user's own `readers` (by suffix, such as ".abc"); the id
    of a file is its path. A `.jsonl` file has one document a line, and a bad line is a `Failure`. A
    single text or file that cannot be read raises `ConfigError`; one of several gives a `Failure`,
    and the others are still read.
    """
    readers = {**READERS, **(readers or {})}
    if wrong := [suffix for suffix in readers if suffix != suffix.lower() or suffix[:1] != "."]:
        raise ConfigError(f"a reader's suffix is like '.abc', not {wrong[0]!r}")
    if isinstance(given, str | Path | Document):
        yield from _load(given, readers)
    elif isinstance(given, Iterable) and not isinstance(given, dict | bytes):
        for one in given:
            yield from _load_or_fail(one, readers)
    else:
        raise _type_error(given)


def _load_or_fail(one: Given, readers: Readers) -> Iterator[Document | Failure]:
    try:
        yield from _load(one, readers)
    except ConfigError as error:
        if not Path(str(one), DATABASE).is_file():  # an index's folder, matched by a pattern
            yield Failure(str(one), None, str(error))


def _load(one: Given, readers: Readers) -> Iterator[Document | Failure]:
    if isinstance(one, str | Document):
        if isinstance(one, str) and os.path.isfile(one):  # noqa: PTH113 - accepts any text
            log.warning("%r is read as a text, not as a file: for that, give Path(%r)", one, one)
        yield Document(one) if isinstance(one, str) else one
    elif not isinstance(one, Path):
        raise _type_error(one)
    elif one.is_dir():
        yield from _load_folder(one, readers)
    else:
        for found in documents_in(_read_bytes(one), one, readers):
            if isinstance(found, Document) and not found.id:
                id = path_id(one)
                if file_suffix(one) == LINES:  # a line is known by its text, wherever it stands
                    id += LINE_MARK + digest(found.text, *(found.pages or ()))
                found = replace(found, id=id)
            yield found


def documents_in(
    data: bytes, path: PurePath, readers: Readers | None = None
) -> Iterator[Document | Failure]:
    """The documents in a file's bytes: one on each line of a `.jsonl` file, or else one.

    Their source is the path. `ConfigError` if the file cannot be read.
    """
    document = read_document(data, path, readers)
    if file_suffix(path) == LINES:
        yield from _parse_lines(path, document.text)
    else:
        yield replace(document, source=document.source or str(path))


def path_id(path: Path) -> str:
    """The id of a file's document: its absolute path, so that an edited file replaces its text."""
    return sanitize(path.resolve().as_posix())


def gone_files(
    folder: Path, known: Iterable[str], loaded: Collection[str], failed: Iterable[str]
) -> list[str]:
    """Those `known` ids of documents from a folder whose files, or lines of files, are gone.

    `loaded` are the ids that were just read from it, `failed` the paths that could not be read:
    what lies there stays. So do lines with ids of their own.
    """
    root, kept = path_id(folder).rstrip("/") + "/", tuple(path_id(Path(one)) for one in failed)
    return [
        id
        for id in known
        if id.startswith(root) and id not in loaded and not id.startswith(kept)
        if LINE_MARK in id or not Path(id).exists()
    ]


def _type_error(given: object) -> TypeError:
    expected = "str, Path, Document or an iterable of these"
    return TypeError(f"expected {expected}, got {type(given).__name__}")


def _load_folder(folder: Path, readers: Readers) -> Iterator[Document | Failure]:
    closed: list[OSError] = []
    tree = os.walk(folder, onerror=closed.append)
    files = sorted(Path(parent, name) for parent, _, names in tree for name in names)
    files = [path for path in files if not path.name.startswith("~$")]  # open in Office
    paths = [path for path in files if file_suffix(path) in {*readers, LINES}]
    supported = ", ".join([*readers, LINES])
    if not paths and not closed:
        raise ConfigError(f"{folder} holds no readable file (supported: {supported})")
    skipped = Counter(file_suffix(path) or "without suffix" for path in files)
    skipped -= Counter(map(file_suffix, paths))
    if skipped:
        counts = ", ".join(f"{n} {suffix}" for suffix, n in skipped.items())
        log.warning("%s: skipped %s (supported: %s)", folder, counts, supported)
    for error in closed:
        yield Failure(error.filename, None, f"cannot read {error.filename}: {error.strerror}")
    for path in paths:
        yield from _load_or_fail(path, readers)


def read_text(path: Path) -> str:
    """A text file's content; `ConfigError` if it cannot be read, or is no text."""
    return decoded(_read_bytes(path), str(path))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _parse_lines(path: PurePath, text: str) -> Iterator[Document | Failure]:
    """One document for each line: a string, or an object with `text` and any field of `Document`."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield document_from(json.loads(line), where=where, source=str(path))
        except ConfigError as error:
            yield Failure(str(path), None, str(error))
        except (ValueError, RecursionError) as error:
            yield Failure(str(path), None, f"{where}: invalid JSON ({error})")


def document_from(value: Json, *, where: str, source: str | None = None) -> Document:
    """A document from plain JSON; fields that `Document` does not have go to its metadata.

    `ConfigError` begins with `where` if a field has the wrong type; numbers are accepted for texts.
    """
    if isinstance(value, str):
        return Document(value, source=source)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ConfigError(f'{where}: expected a text, or an object with a "text"')
    known: dict[str, Any] = {"source": source}  # of any type: `Document` checks them
    for key in sorted(FIELDS & value.keys()):
        item = value[key]
        if item is not None:
            known[key] = str(item) if type(item) in (int, float) else item
    metadata = known.get("metadata", {})
    if isinstance(metadata, dict):
        others = {key: item for key, item in value.items() if key not in FIELDS}
        known["metadata"] = {**others, **metadata}
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


def incoming(given: PendingDocument) -> IncomingDocument:
    """A document with its id, which is derived from its text if it has none.

    `ConfigError` if the id has no visible character, or if it or another value cannot be stored.
    """
    document = given.document
    if document.id and not name_key(document.id):
        raise ConfigError(f"the id {document.id!r} has no character that can be seen")
    if document.id and sanitize(document.id) != document.id:
        raise ConfigError(f"the id {document.id!r} has characters that cannot be stored")
    pages = document_pages("", document)
    texts = [page.text for page in pages]
    derived_id = "doc-" + digest(*texts)
    id = document.id or derived_id
    about = document.title, document.source, document.date
    title, source, date = (text and sanitize(text) for text in about)
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
    return IncomingDocument(pending, stored, own)


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
