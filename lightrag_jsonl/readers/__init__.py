"""Reads files of many kinds, each by the reader that a table has for its suffix."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeAlias

from lightrag_jsonl.core.encoding import decoded
from lightrag_jsonl.core.errors import ConfigError, described
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileLimits, FileMeter
from lightrag_jsonl.readers.office import read_docx, read_pptx
from lightrag_jsonl.readers.packed import gunzip
from lightrag_jsonl.readers.pdf import read_pdf
from lightrag_jsonl.readers.tables import read_csv, read_xlsx
from lightrag_jsonl.readers.web import read_epub, read_html

Reader: TypeAlias = Callable[[bytes], Document]
Readers: TypeAlias = Mapping[str, Reader]  # by suffix, such as ".abc"
PackagedReader: TypeAlias = Callable[[bytes, FileMeter], Document]


def read_plain(data: bytes, meter: FileMeter) -> Document:
    """A text as it is; the headings of Markdown are found when it is cut into chunks."""
    return Document(decoded(data))


READERS: Mapping[str, PackagedReader] = MappingProxyType(
    {
        ".txt": read_plain,
        ".text": read_plain,
        ".md": read_plain,
        ".markdown": read_plain,
        ".pdf": read_pdf,
        ".docx": read_docx,
        ".pptx": read_pptx,
        ".xlsx": read_xlsx,
        ".csv": read_csv,
        ".tsv": read_csv,
        ".html": read_html,
        ".htm": read_html,
        ".epub": read_epub,
    }
)
ARCHIVES = frozenset(
    (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".7z", ".rar", ".bz2", ".xz", ".zst")
)
OLD_FORMATS = {".doc": ".docx", ".ppt": ".pptx", ".xls": ".xlsx"}


def file_suffix(path: PurePath) -> str:
    """The suffix that says what a file is, in lower case; that of `a.pdf.gz` is .pdf."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()


def is_read_here(path: PurePath, readers: Readers | None = None) -> bool:
    """Whether a file is plain text or read by a user's own reader, so that no process is needed."""
    suffix = file_suffix(path)
    return suffix in (readers or {}) or READERS.get(suffix, read_plain) is read_plain


def read_document(
    data: bytes,
    path: PurePath,
    readers: Readers | None = None,
    *,
    limits: FileLimits | None = None,
) -> Document:
    """The document in a file's bytes, read as its suffix says, or else as plain text.

    `readers` are a user's own, by suffix with the dot; they come before those of `READERS`. The
    title is the name of the file, unless its content has one. `ConfigError` says why a file cannot
    be read: it is broken, encrypted, empty, beyond one of the `limits`, or an extra is not installed.
    A `ReadingProcess` also keeps the limits of seconds and memory, which this function does not.
    """
    suffix = file_suffix(path)
    own_reader = (readers or {}).get(suffix)
    try:
        content = _unpacked(data, path)
        if own_reader is not None:
            document = own_reader(content)
        else:
            meter = FileMeter(limits or FileLimits())
            document = READERS.get(suffix, read_plain)(content, meter)
    except ModuleNotFoundError as error:
        needs = f"{suffix} files need the package {error.name}"
        raise ConfigError(f"{needs}: pip install 'lightrag-jsonl[files]'") from error
    except ConfigError as error:
        raise ConfigError(f"{path} {str(error).removeprefix('the file ')}") from error
    except Exception as error:
        raise ConfigError(f"{path} cannot be read: {described(error)}") from error
    if not isinstance(document, Document):
        raise ConfigError(f"{path}: its reader gave {type(document).__name__}, not a Document")
    if not any(map(str.strip, document.pages or (document.text,))):
        raise ConfigError(f"{path} is empty")
    stem = path.with_suffix("").stem if path.suffix.lower() == ".gz" else path.stem
    return replace(document, title=document.title or stem)


def _unpacked(data: bytes, path: PurePath) -> bytes:
    """The content of a file, which is decompressed if its name ends with .gz.

    `ConfigError` if that is broken or too large, or if the file is an archive of files or in an
    older format of Office.
    """
    if file_suffix(path) in ARCHIVES:
        raise ConfigError("is an archive: unpack it, and insert the folder")
    if newer := OLD_FORMATS.get(file_suffix(path)):
        raise ConfigError(f"is in an older format: save it as {newer}")
    return gunzip(data) if path.suffix.lower() == ".gz" else data
