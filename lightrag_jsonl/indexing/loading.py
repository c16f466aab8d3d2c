"""Loads what callers give as documents (texts, files, folders), and makes it storable."""

import json
import logging
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.text import digest, sanitize
from lightrag_jsonl.core.types import (
    Document,
    Failure,
    FileNote,
    InsertReport,
    Json,
    Page,
    SkippedFile,
)
from lightrag_jsonl.indexing.chunking import document_pages
from lightrag_jsonl.readers import READERS, Readers, file_suffix
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.readers.process import ReadingProcess
from lightrag_jsonl.storage.rows import PendingDocument, StoredDocument

Given: TypeAlias = str | Path | Document
Unread: TypeAlias = Failure | FileNote | SkippedFile
Loaded: TypeAlias = Document | Unread
LINE_MARK = "#line-"  # in the id of a line, between the path and the digest of its text
LINES = ".jsonl"  # a file with a document on each line
DATABASE = "index.sqlite"  # the file of an index
FIELDS = frozenset(field.name for field in fields(Document))

log = logging.getLogger(__name__)


def load_documents(
    given: Given | Iterable[Given],
    readers: Readers | None = None,
    limits: FileLimits | None = None,
) -> Iterator[Loaded]:
    """All documents, each read only when it is needed.

    A folder stands for the files in it that can be read, sorted, those of its subfolders included.
    Links, pipes and devices in it are not read: each gives a `SkippedFile`. A `FileNote` follows a
    document that lacks a part of its file. Files are read by
    `READERS` within `limits`, and by the user's own `readers` (by suffix, such as ".abc"); the id of
    a file is its path. A `.jsonl` file has one document a line, and a bad line is a `Failure`. A
    single text or file that cannot be read raises `ConfigError`; one of several gives a `Failure`,
    and the others are still read.
    """
    readers = readers or {}
    if wrong := [suffix for suffix in readers if suffix != suffix.lower() or suffix[:1] != "."]:
        raise ConfigError(f"a reader's suffix is like '.abc', not {wrong[0]!r}")
    with ReadingProcess(limits) as reading:
        loader = _Loader(reading, readers)
        if isinstance(given, str | Path | Document):
            yield from loader.load(given)
        elif isinstance(given, Iterable) and not isinstance(given, dict | bytes):
            for item in given:
                yield from loader.load_or_fail(item)
        else:
            raise _type_error(given)


class _Loader:
    """Loads texts, files and folders with these readers."""

    def __init__(self, reading: ReadingProcess, readers: Readers) -> None:
        self._reading = reading
        self._readers = readers
        self._suffixes = [*{**READERS, **readers}, LINES]

    def load_or_fail(self, item: Given) -> Iterator[Loaded]:
        """As `load`, but what cannot be read is a `Failure`."""
        try:
            yield from self.load(item)
        except ConfigError as error:
            if not Path(str(item), DATABASE).is_file():  # an index's folder, matched by a pattern
                yield Failure(str(item), None, str(error))

    def load(self, item: Given) -> Iterator[Loaded]:
        """The documents of a text, a file or a folder; `ConfigError` if it cannot be read."""
        if isinstance(item, str | Document):
            if isinstance(item, str) and os.path.isfile(item):  # noqa: PTH113 - accepts any text
                words = "%r is read as a text, not as a file: for that, give Path(%r)"
                log.warning(words, item, item)
            yield Document(item) if isinstance(item, str) else item
        elif not isinstance(item, Path):
            raise _type_error(item)
        elif item.is_dir():
            yield from self._load_folder(item)
        else:
            yield from self._load_file(item)

    def _load_file(self, path: Path) -> Iterator[Loaded]:
        for document in documents_in(_read_bytes(path), path, self._reading, self._readers):
            if isinstance(document, Document) and not document.id:
                id = path_id(path)
                if file_suffix(path) == LINES:  # a line is known by its text, wherever it stands
                    id += LINE_MARK + digest(document.text, *(document.pages or ()))
                document = replace(document, id=id)
            yield document

    def _load_folder(self, folder: Path) -> Iterator[Loaded]:
        contents = FolderContents(folder)
        paths = [path for path in contents.files if file_suffix(path) in self._suffixes]
        supported = ", ".join(self._suffixes)
        if not paths and not contents.closed:
            words = f"{folder} holds no readable file (supported: {supported})"
            raise ConfigError(
                words + "".join(f"; {item.path}: {item.reason}" for item in contents.skipped[:1])
            )
        unread = Counter(file_suffix(path) or "without suffix" for path in contents.files)
        unread -= Counter(map(file_suffix, paths))
        if unread:
            counts = ", ".join(f"{count} {suffix}" for suffix, count in unread.items())
            log.warning("%s: skipped %s (supported: %s)", folder, counts, supported)
        for error in contents.closed:
            yield Failure(error.filename, None, f"cannot read {error.filename}: {error.strerror}")
        yield from contents.skipped
        for path in paths:
            yield from self.load_or_fail(path)


class FolderContents:
    """The regular files in a folder and in its subfolders, sorted, and what else lies there.

    A link is not followed: it can lead out of the folder, in a circle, or to a file that is read
    anyway. `closed` are errors of folders that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.files: list[Path] = []
        self.skipped: list[SkippedFile] = []
        self.closed: list[OSError] = []
        for parent, folder_names, names in os.walk(folder, onerror=self.closed.append):
            for name in [*folder_names]:
                if _is_link(Path(parent, name)):
                    folder_names.remove(name)
                    self._add(Path(parent, name))
            for name in names:
                self._add(Path(parent, name))
        self.files.sort()
        self.skipped.sort(key=lambda item: item.path)

    def _add(self, path: Path) -> None:
        if path.name.startswith("~$"):  # open in Office
            return
        try:
            reason = "it is a link" if _is_link(path) else _irregular(path.lstat().st_mode)
        except OSError:  # it is gone, or its folder is closed: reading it says so
            reason = ""
        if reason:
            self.skipped.append(SkippedFile(str(path), reason))
        else:
            self.files.append(path)


def _is_link(path: Path) -> bool:
    """Whether a path is a symbolic link, or a junction of Windows."""
    return path.is_symlink() or getattr(os.path, "isjunction", lambda path: False)(path)


def _irregular(mode: int) -> str:
    """What a file is that is no regular one, or else nothing."""
    if stat.S_ISREG(mode):
        return ""
    kinds = ((stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISDIR, "folder"))
    kind = next((name for matches, name in kinds if matches(mode)), "device")
    return f"it is a {kind}, not a regular file"


def documents_in(
    data: bytes, path: PurePath, reading: ReadingProcess, readers: Readers | None = None
) -> Iterator[Document | Failure | FileNote]:
    """The documents in a file's bytes: one on each line of a `.jsonl` file, or else one.

    The path is their source. Notes on the file follow. `ConfigError` if the file cannot be read.
    """
    content = reading.read_file(data, path, readers)
    document = content.document
    if file_suffix(path) == LINES:
        yield from _parse_lines(path, document.text)
    else:
        yield replace(document, source=document.source or str(path))
    for note in content.notes:
        yield FileNote(str(path), note)


def with_unread(report: InsertReport, unread: Sequence[Unread]) -> InsertReport:
    """The report of an insert, with unreadable and skipped files, and with notes on files."""
    failures = [item for item in unread if isinstance(item, Failure)]
    skipped = [item for item in unread if isinstance(item, SkippedFile)]
    notes = [item for item in unread if isinstance(item, FileNote)]
    return replace(
        report,
        failures=(*failures, *report.failures),
        skipped=(*skipped, *report.skipped),
        notes=(*notes, *report.notes),
    )


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
        if LINE_MARK in id or not Path(id).is_file() or path_id(Path(id)) != id  # a link now
    ]


def _type_error(given: object) -> TypeError:
    expected = "str, Path, Document or an iterable of these"
    return TypeError(f"expected {expected}, got {type(given).__name__}")


def read_text(path: Path) -> str:
    """A text file's content; `ConfigError` if it cannot be read, or is no text."""
    return decoded(_read_bytes(path), str(path))


def _read_bytes(path: Path) -> bytes:
    """The bytes of a regular file, or of one that a link leads to.

    What is no regular file is refused: a pipe would be waited for, a device may have no end.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if reason := _irregular(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"cannot read {path}: {reason}; copy what it gives to a file")
            return file.read()
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _open_at_once(path: str, flags: int) -> int:
    """Open a file, and do not wait for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has no such pipes


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
