"""Loads documents from texts, files and folders; files may wait in the store until an insert reads them."""

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.index_reports import FileNote, SkippedFile
from lightrag_jsonl.core.types import Document, Failure, Json
from lightrag_jsonl.indexing.folders import PROGRAM_FOLDERS, FolderContents, irregularity
from lightrag_jsonl.readers.chats import SlackExports, conversation_files
from lightrag_jsonl.readers.encoding import decoded
from lightrag_jsonl.readers.formats import (
    NO_TEXT,
    PICTURE_SUFFIXES,
    READERS,
    UNPACKERS,
    Readers,
    decompressed,
    file_suffix,
)
from lightrag_jsonl.readers.limits import FileLimits
from lightrag_jsonl.readers.old_office import OLD_FORMATS, office_program, why_not_converted
from lightrag_jsonl.readers.process import ReadingProcess
from lightrag_jsonl.text.numbers import natural_order
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import digest, sanitize

if TYPE_CHECKING:
    from lightrag_jsonl.storage.rows import PendingDocument
    from lightrag_jsonl.storage.store import Store

Given: TypeAlias = str | Path | Document
UnreadSource: TypeAlias = Failure | FileNote | SkippedFile
Loaded: TypeAlias = Document | UnreadSource
FileInside: TypeAlias = tuple[str, bytes | ConfigError]  # name, and content or why there is none
CHAT_SUFFIX = ".json"  # of exports of chats
PART_MARK = "#/"  # in the id of a file inside another, between the two paths
LINE_MARK = "#line-"  # in the id of a line, between the path and the digest of the text
JSONL_SUFFIX = ".jsonl"  # of a file with a document on each line
BAD_LINES = 1_000  # of a file, which are named one by one
FIELDS = frozenset(field.name for field in fields(Document) if field.name != "pictures")
IF_MEANT = (
    "If it should be empty (and is no folder of a disk that is not mounted), --allow-empty removes its "
    "documents (in Python allow_empty=True)"
)
ADDRESS = pattern_of(r"(?:https?|ftp|s3|file)://\S+")
NO_ADDRESS = "{} is an address, and nothing is fetched: save the page, and insert the file"
LIST_OF_SLACK = (
    "it lists the people or channels of an export of Slack, whose messages have the names"
)
READ_AS_TEXT = "%r is read as a text, not as a file: for that, give Path(%r)"

log = logging.getLogger(__name__)


def load_documents(
    sources: Given | Iterable[Given],
    readers: Readers | None = None,
    limits: FileLimits | None = None,
    *,
    sees: bool = False,
    allow_empty: bool | None = None,
) -> Iterator[Loaded]:
    """All documents, each read on demand; with `sees`, with the pictures of their files.

    A folder stands for the readable files in it and in its subfolders, sorted. Links, pipes and
    devices in a folder are not read: each gives a `SkippedFile`. A
    `FileNote` follows a document that lacks a part of its file. Files are read by `READERS` within
    `limits`, and by the user's own `readers` (by suffix, such as ".abc"); the id of a file is its
    path. A `.jsonl` file has one document a line, and a bad line is a `Failure`. A single text or
    file that cannot be read raises `ConfigError`; among several, each unreadable text or file gives
    a `Failure`, and the reading goes on. With `allow_empty`, a folder may hold no readable file, or be
    gone; False says that the error should name the way to allow it.
    """
    readers = readers or {}
    for suffix in readers:
        if suffix != suffix.lower() or not suffix.startswith("."):
            raise ConfigError(f"a reader's suffix is like '.abc', not {suffix!r}")
    if isinstance(sources, Document):  # nothing is to be read
        yield sources
        return
    with ReadingProcess(limits, sees=sees) as reading:
        loader = _Loader(reading, readers, allow_empty)
        if isinstance(sources, str | Path):
            yield from loader.load(sources)
        elif isinstance(sources, Iterable) and not isinstance(sources, dict | bytes):
            for source in sources:
                yield from loader.load_or_fail(source)
        else:
            raise _type_error(sources)


def readable_suffixes(readers: Readers | None = None, *, sees: bool) -> list[str]:
    """The suffixes of the files that are read in a folder.

    Without a vision model, a folder of pages with their pictures is no folder of failures; without
    LibreOffice, one of old files of Office is none.
    """
    old = OLD_FORMATS if office_program() else ()
    own = [suffix for suffix in READERS if sees or suffix not in PICTURE_SUFFIXES]
    return [*dict.fromkeys((*own, *(readers or {}), *old)), JSONL_SUFFIX, *UNPACKERS]


class _Loader:
    """Loads texts, files and folders with a set of readers."""

    def __init__(self, reading: ReadingProcess, readers: Readers, allow_empty: bool | None) -> None:
        self._allow_empty = allow_empty
        self._reading = reading
        self._readers = readers

    @cached_property
    def _slack(self) -> SlackExports:
        return SlackExports(_bytes_if_there)

    @cached_property
    def _suffixes(self) -> list[str]:
        return readable_suffixes(self._readers, sees=self._reading.sees)

    def load_or_fail(self, source: Given) -> Iterator[Loaded]:
        """As `load`, but an unreadable source is a `Failure`."""
        try:
            yield from self.load(source)
        except ConfigError as error:
            from lightrag_jsonl.storage.opening import has_index

            if not has_index(Path(str(source))):  # an index's folder matches a pattern
                yield Failure(str(source), None, str(error))

    def load(self, source: Given) -> Iterator[Loaded]:
        """The documents of a text, a file or a folder; `ConfigError` for an unreadable source."""
        if isinstance(source, Document):
            yield source
        elif isinstance(source, str):
            if ADDRESS.fullmatch(source.strip()):
                raise ConfigError(NO_ADDRESS.format(source.strip()))
            if os.path.exists(source):  # noqa: PTH110 - accepts any text
                log.warning(READ_AS_TEXT, source, source)
            yield Document(source)
        elif not isinstance(source, Path):
            raise _type_error(source)
        elif source.is_dir():
            yield from self._load_folder(source)
        elif self._allow_empty and not source.exists():
            log.warning("%s is gone", source)
        else:
            yield from self._load_file(source)

    def _load_file(self, path: Path) -> Iterator[Loaded]:
        data = self._slack.with_names(_read_bytes(path), path)
        for document in documents_in(data, path, self._reading, self._readers):
            if (
                isinstance(document, Document)
                and document.id
                and document.id.startswith(f"{path}{PART_MARK}")
            ):
                document = replace(document, id=path_id(path) + document.id.removeprefix(str(path)))
            elif isinstance(document, Document) and not document.id:
                id = path_id(path)
                if file_suffix(path) == JSONL_SUFFIX:  # the text names a line, wherever it stands
                    id += LINE_MARK + digest(document.text, *(document.pages or ()))
                document = replace(document, id=id)
            yield document

    def _load_folder(self, folder: Path) -> Iterator[Loaded]:
        limits = self._reading.limits
        contents = FolderContents(folder, exclude=limits.exclude, include=limits.include)
        paths = [path for path in contents.files if file_suffix(path) in self._suffixes]
        if not paths and not contents.closed and not self._allow_empty:
            raise ConfigError(self._nothing_readable(folder, contents))
        self._warn_of_unread(folder, contents, paths)
        for error in contents.closed:
            yield Failure(error.filename, None, f"cannot read {error.filename}: {error.strerror}")
        yield from contents.skipped
        for path in contents.files:
            if file_suffix(path) in OLD_FORMATS and file_suffix(path) not in self._suffixes:
                yield SkippedFile(str(path), why_not_converted(file_suffix(path)))
        for path in paths:
            if self._slack.is_list(path):
                yield SkippedFile(str(path), LIST_OF_SLACK)
            else:
                yield from map(self._or_skipped, self.load_or_fail(path))

    def _or_skipped(self, item: Loaded) -> Loaded:
        """A file of a folder without a text is no failure: a note with properties only, an `__init__.py`."""
        if isinstance(item, Failure) and item.reason == NO_TEXT.format(item.document_id):
            return SkippedFile(item.document_id, "it is empty")
        return item

    def _nothing_readable(self, folder: Path, contents: FolderContents) -> str:
        supported = ", ".join(self._suffixes)
        problem = f"{folder} holds no readable file (supported: {supported})"
        if contents.skipped:
            example = contents.skipped[0]
            problem += f"; {example.path}: {example.reason}"
        return problem if self._allow_empty is None else f"{problem}. {IF_MEANT}"

    def _warn_of_unread(
        self, folder: Path, contents: FolderContents, paths: Iterable[Path]
    ) -> None:
        unread = Counter(file_suffix(path) or "without suffix" for path in contents.files)
        unread -= Counter(map(file_suffix, paths))
        if unread:
            counts = ", ".join(f"{count} {suffix}" for suffix, count in unread.items())
            log.warning("%s: files of other kinds are skipped: %s", folder, counts)


def documents_in(
    data: bytes, path: PurePath, reading: ReadingProcess, readers: Readers | None = None
) -> Iterator[Document | Failure | FileNote]:
    """The documents in a file's bytes: one for each line of a `.jsonl` file, each file of an archive, each
    message of a mailbox; one of any other file.

    The path is their source. Notes on the file follow. `ConfigError` if the file cannot be read.
    """
    files = None if file_suffix(path) in (readers or {}) else _files_inside(data, path)
    if files is not None:
        yield from _documents_inside(files, path, reading, readers or {})
        return
    content = reading.read_file(data, path, readers)
    document = content.document
    if file_suffix(path) == JSONL_SUFFIX:
        yield from _parse_lines(path, document.text)
    else:
        yield replace(document, source=document.source or str(path))
    for note in content.notes:
        yield FileNote(str(path), note)


def _files_inside(data: bytes, path: PurePath) -> list[FileInside] | None:
    """The files in an archive or a mailbox, and the conversations of an export; None for other files."""
    suffix = file_suffix(path)
    if suffix not in (CHAT_SUFFIX, *UNPACKERS):
        return None
    try:
        content = decompressed(data, path)
        if suffix == CHAT_SUFFIX:
            return list(conversation_files(content)) or None
        return list(UNPACKERS[suffix](content))
    except ConfigError as error:
        raise ConfigError(f"{path} {error}") from error


def _documents_inside(
    files: Sequence[FileInside], path: PurePath, reading: ReadingProcess, readers: Readers
) -> Iterator[Document | Failure | FileNote]:
    """The documents of the files inside a file, with ids such as "notes.zip#/ada.md".

    A file that cannot be read is a `Failure`. Files of other kinds, hidden ones and archives are noted.
    """
    unread = Counter[str]()
    contents = {PurePosixPath(name): content for name, content in files}
    readable = {place: data for place, data in contents.items() if isinstance(data, bytes)}
    slack = SlackExports(readable.get)  # type: ignore[arg-type]
    for name, content in sorted(files, key=lambda file: natural_order(PurePosixPath(file[0]))):
        parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..")]
        inner = path.joinpath(*parts)
        suffix = file_suffix(inner)
        is_hidden = any(part.startswith(".") for part in parts) or PROGRAM_FOLDERS & set(parts)
        if isinstance(content, bytes):
            content = slack.with_names(content, PurePosixPath(name))
        is_left_out = is_hidden or slack.is_list(PurePosixPath(name))
        if is_left_out or suffix not in (*READERS, *readers, *OLD_FORMATS, JSONL_SUFFIX):
            unread[suffix or "without suffix"] += 1
            continue
        try:
            if isinstance(content, ConfigError):
                raise ConfigError(f"{inner} {content}")
            for item in documents_in(content, inner, reading, readers):
                if isinstance(item, Document) and not item.id:
                    mark = LINE_MARK + digest(item.text) if suffix == JSONL_SUFFIX else ""
                    id = f"{path}{PART_MARK}{PurePosixPath(*parts)}{mark}"
                    yield replace(item, id=id)
                else:
                    yield item
        except ConfigError as error:
            yield Failure(str(inner), None, str(error))
    if unread:
        counts = ", ".join(f"{count} {suffix}" for suffix, count in unread.items())
        yield FileNote(str(path), f"not read, of the files inside: {counts}")


def path_id(path: Path) -> str:
    """The id of a file's document: the absolute path, so that an edited file replaces its text."""
    return sanitize(path.resolve().as_posix())


def gone_files(
    folder: Path, indexed: Iterable[str], loaded: Collection[str], failed: Iterable[str]
) -> list[str]:
    """The `indexed` ids of documents from a folder whose files, or lines of files, are gone.

    `loaded` are the ids that were just read from the folder, `failed` the paths that could not be
    read: documents of failed paths stay, and so do lines with ids of their own.
    """
    root = path_id(folder).rstrip("/") + "/"
    failed_roots = tuple(path_id(Path(path)) for path in failed)
    return [
        id
        for id in indexed
        if id.startswith(root) and id not in loaded and not id.startswith(failed_roots)
        if LINE_MARK in id or not Path(id).is_file() or path_id(Path(id)) != id  # now a link
    ]


def _type_error(source: object) -> TypeError:
    expected = "str, Path, Document or an iterable of these"
    return TypeError(f"expected {expected}, got {type(source).__name__}")


def read_text(path: Path) -> str:
    """A text file's content; `ConfigError` if the file cannot be read, or is no text."""
    return decoded(_read_bytes(path), str(path))


def _bytes_if_there(path: PurePath) -> bytes | None:
    return _read_bytes(Path(path)) if Path(path).is_file() else None


def _read_bytes(path: Path) -> bytes:
    """The bytes of a regular file, or of a link's target.

    Irregular files are refused: reading a pipe would wait, a device may have no end.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if reason := irregularity(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"cannot read {path}: {reason}; copy what it gives to a file")
            return file.read()
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has no such pipes


def _parse_lines(path: PurePath, text: str) -> Iterator[Document | Failure]:
    """One document for each line: a string, or an object with `text` and any field of `Document`.

    Each of the first `BAD_LINES` bad lines is a `Failure`, and one more counts the others.
    """
    bad_lines = 0
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            continue
        item = _document_in_line(line, f"{path}, line {number}", str(path))
        if isinstance(item, Failure):
            bad_lines += 1
        if bad_lines <= BAD_LINES or isinstance(item, Document):
            yield item
    if bad_lines > BAD_LINES:
        yield Failure(
            str(path), None, f"{path}: {bad_lines - BAD_LINES:,} more lines are no documents"
        )


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, one in memory at a time."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _document_in_line(line: str, where: str, source: str) -> Document | Failure:
    try:
        return document_from(json.loads(line), where=where, source=source)
    except ConfigError as error:
        return Failure(source, None, str(error))
    except (ValueError, RecursionError) as error:
        return Failure(source, None, f"{where}: invalid JSON ({error})")


def document_from(value: Json, *, where: str, source: str | None = None) -> Document:
    """A document from plain JSON; keys that are no fields of `Document` go to the metadata.

    `ConfigError` begins with `where` if a field has the wrong type; numbers are accepted for texts.
    """
    if isinstance(value, str):
        return Document(value, source=source)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ConfigError(f'{where}: expected a text, or an object with a "text"')
    arguments: dict[str, Any] = {"source": source}  # of any type: `Document` checks the types
    for key in sorted(FIELDS & value.keys()):
        item = value[key]
        if item is not None:
            arguments[key] = str(item) if type(item) in (int, float) else item
    metadata = arguments.get("metadata", {})
    if isinstance(metadata, dict):
        further_keys = {key: item for key, item in value.items() if key not in FIELDS}
        arguments["metadata"] = {**further_keys, **metadata}
    try:
        return Document(**arguments)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


# ── files that wait ───────────────────────────────────────────────────────────


class WaitingFiles:
    """The documents in waiting files, one at a time; with `sees`, with the pictures of their files.

    `accepted` counts the documents that an insert took. `read_rows` are the rows of the files of
    which it took something; the others wait on. `unread` says what could not be read.
    """

    def __init__(self, store: "Store", *, accepted: Callable[[], int], sees: bool) -> None:
        self._accepted = accepted
        self.read_rows: list[int] = []
        self.unread: list[UnreadSource] = []
        self._store = store
        self._sees = sees

    def read_in(self, waiting: "Iterable[PendingDocument]") -> "Iterator[PendingDocument]":
        """The waiting documents, with the documents of a file in place of the file."""
        with ReadingProcess(sees=self._sees) as reading:
            for pending in waiting:
                if pending.is_file:
                    yield from self._documents_of(pending, reading)
                else:
                    yield pending

    def _documents_of(
        self, pending: "PendingDocument", reading: ReadingProcess
    ) -> "Iterator[PendingDocument]":
        """The documents in a file, with what was given with it; a line of a `.jsonl` file keeps its
        own id.
        """
        if pending.row is None:
            return
        with self._store.view() as view:
            content = view.pending_file(pending.row)
        if content is None:  # nobody wants it any more
            return
        metadata = pending.document
        path = PurePath(metadata.source or "")
        holds_several = file_suffix(path) in (JSONL_SUFFIX, *UNPACKERS)
        names = ("title", "date") if holds_several else ("title", "date", "id")
        properties = {name: getattr(metadata, name) for name in names if getattr(metadata, name)}
        accepted_before = self._accepted()
        try:
            for item in documents_in(content, path, reading):
                if isinstance(item, Document):
                    document = replace(item, **properties)
                    yield replace(pending, document=document, is_file=False)
                else:
                    self.unread.append(item)
        except ConfigError as error:
            self.unread.append(Failure(path.name, None, str(error)))
        if self._accepted() > accepted_before:
            self.read_rows.append(pending.row)
