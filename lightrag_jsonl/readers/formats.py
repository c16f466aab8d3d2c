"""Reads files of many formats; a table names the reader for each suffix."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeAlias

from lightrag_jsonl.core.errors import ConfigError, described
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.calendars import read_calendar
from lightrag_jsonl.readers.chats import whatsapp_document
from lightrag_jsonl.readers.compression import archived_files, gunzip
from lightrag_jsonl.readers.limits import FileLimits, FileMeter
from lightrag_jsonl.readers.mail import (
    mailbox_files,
    read_mail,
    read_outlook_mail,
    read_web_archive,
)
from lightrag_jsonl.readers.markdown import read_markdown
from lightrag_jsonl.readers.notebooks import read_notebook
from lightrag_jsonl.readers.old_office import OLD_FORMATS, converted
from lightrag_jsonl.readers.open_document import read_odp, read_ods, read_odt
from lightrag_jsonl.readers.org import read_org
from lightrag_jsonl.readers.pdf import read_pdf
from lightrag_jsonl.readers.pictures import read_picture_file
from lightrag_jsonl.readers.rst import read_rst
from lightrag_jsonl.readers.rtf import read_rtf
from lightrag_jsonl.readers.slides import read_pptx
from lightrag_jsonl.readers.source_code import read_python, read_source
from lightrag_jsonl.readers.structured import (
    read_fiction_book,
    read_json_file,
    read_notes,
    read_xml,
)
from lightrag_jsonl.readers.subtitles import read_subtitles
from lightrag_jsonl.readers.tables import read_csv, read_xlsx
from lightrag_jsonl.readers.tex import read_tex
from lightrag_jsonl.readers.web import read_epub, read_html
from lightrag_jsonl.readers.word import read_docx

NO_TEXT = "{} is empty"
FileReader: TypeAlias = Callable[[bytes], Document]
Readers: TypeAlias = Mapping[str, FileReader]  # by suffix, such as ".abc"
FormatReader: TypeAlias = Callable[[bytes, FileMeter], Document]


def read_plain(data: bytes, meter: FileMeter) -> Document:
    """A plain text, unchanged; the chunking finds the headings."""
    text = meter.decode(data)
    return whatsapp_document(text) or Document(text)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files: the name in English and in Chinese, and the suffixes, the usual suffix
    first.

    `needs_extra` says whether the reader imports packages of the extra `files`.
    """

    names: tuple[str, str]
    suffixes: tuple[str, ...]
    read: FormatReader
    needs_extra: bool = True


# Of files that only a vision model can read, if there is one
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".gif", ".bmp")
SOURCE_SUFFIXES = (
    *(".js", ".mjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".swift", ".scala"),
    *(".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".lua", ".sh", ".sql"),
)
# The one list of formats, those first that most people look for: help and page are made from it.
FILE_FORMATS = (
    FileFormat(("PDF", "PDF"), (".pdf",), read_pdf),
    FileFormat(("Word", "Word"), (".docx", ".docm", ".dotx", ".dotm"), read_docx),
    FileFormat(("PowerPoint", "PowerPoint"), (".pptx", ".pptm", ".ppsx", ".potx"), read_pptx),
    FileFormat(("Excel", "Excel"), (".xlsx", ".xlsm", ".xltx", ".xltm"), read_xlsx),
    FileFormat(("CSV", "CSV"), (".csv", ".tsv"), read_csv, needs_extra=False),
    FileFormat(("HTML", "HTML"), (".html", ".htm", ".xhtml"), read_html),
    FileFormat(("EPUB", "EPUB"), (".epub",), read_epub),
    FileFormat(("Text", "文本"), (".txt", ".text"), read_plain, needs_extra=False),
    FileFormat(("Markdown", "Markdown"), (".md", ".markdown"), read_markdown, needs_extra=False),
    FileFormat(("reStructuredText", "reStructuredText"), (".rst",), read_rst),
    FileFormat(("Org", "Org"), (".org",), read_org, needs_extra=False),
    FileFormat(("LaTeX", "LaTeX"), (".tex", ".latex"), read_tex),
    FileFormat(
        ("Jupyter notebooks", "Jupyter 笔记本"), (".ipynb",), read_notebook, needs_extra=False
    ),
    FileFormat(("Mail", "邮件"), (".eml",), read_mail, needs_extra=False),
    FileFormat(("Outlook", "Outlook"), (".msg",), read_outlook_mail),
    FileFormat(("JSON", "JSON"), (".json", ".ndjson"), read_json_file, needs_extra=False),
    FileFormat(("XML", "XML"), (".xml",), read_xml),
    FileFormat(("OpenDocument text", "OpenDocument 文本"), (".odt", ".ott"), read_odt),
    FileFormat(("OpenDocument sheets", "OpenDocument 表格"), (".ods", ".ots"), read_ods),
    FileFormat(("OpenDocument slides", "OpenDocument 演示文稿"), (".odp", ".otp"), read_odp),
    FileFormat(("RTF", "RTF"), (".rtf",), read_rtf),
    FileFormat(("MHTML", "MHTML"), (".mht", ".mhtml"), read_web_archive),
    FileFormat(("FictionBook", "FictionBook"), (".fb2",), read_fiction_book),
    FileFormat(("Evernote", "印象笔记"), (".enex",), read_notes),
    FileFormat(("Subtitles", "字幕"), (".srt", ".vtt"), read_subtitles),
    FileFormat(("Calendar", "日历"), (".ics",), read_calendar),
    FileFormat(("Python", "Python"), (".py", ".pyi"), read_python, needs_extra=False),
    FileFormat(("Source code", "源代码"), SOURCE_SUFFIXES, read_source, needs_extra=False),
    FileFormat(("Pictures", "图片"), PICTURE_SUFFIXES, read_picture_file),
)
READERS: Mapping[str, FormatReader] = MappingProxyType(
    {suffix: format.read for format in FILE_FORMATS for suffix in format.suffixes}
)
# Files that hold other files: by suffix, what gives their names and bytes.
UNPACKERS: Mapping[str, Callable[[bytes], Iterator[tuple[str, bytes | ConfigError]]]] = (
    MappingProxyType({".zip": archived_files, ".mbox": mailbox_files})
)
ARCHIVES = frozenset((".tar", ".tgz", ".tbz2", ".txz", ".7z", ".rar", ".bz2", ".xz", ".zst"))


def file_suffix(path: PurePath) -> str:
    """The suffix of a file's format, in lower case; .pdf for `a.pdf.gz`."""
    return _unpacked_path(path).suffix.lower()


def _unpacked_path(path: PurePath) -> PurePath:
    """The path of a file without the ending .gz."""
    if path.suffix.lower() == ".gz":
        return path.with_suffix("")
    return path


def is_read_here(path: PurePath, readers: Readers | None = None) -> bool:
    """Whether a file needs no process: plain text, or a format with a user's own reader."""
    suffix = file_suffix(path)
    if suffix in (readers or {}):
        return True
    return suffix not in OLD_FORMATS and READERS.get(suffix, read_plain) is read_plain


@dataclass(frozen=True, slots=True)
class FileContent:
    """The document in a file; `notes` name the parts of the file missing from the text."""

    document: Document
    notes: tuple[str, ...] = ()


def read_document(
    data: bytes,
    path: PurePath,
    readers: Readers | None = None,
    *,
    limits: FileLimits | None = None,
) -> Document:
    """The document in a file's bytes, as by `read_file`."""
    return read_file(data, path, readers, limits=limits).document


def read_file(
    data: bytes,
    path: PurePath,
    readers: Readers | None = None,
    *,
    limits: FileLimits | None = None,
    sees: bool = False,
) -> FileContent:
    """The content of a file, read by the reader for the suffix, or else as plain text.

    With `sees`, the document has the pictures of the file: scanned pages, and pictures on pages and
    slides and in Word files. Files of pictures need `sees`.

    A user's own `readers`, by suffix with the dot, come before `READERS`. The title is the name of
    the file, unless the content has a title. `ConfigError` says why a file cannot be read: the file
    is broken, encrypted, empty or beyond a limit, or an extra is not installed. The limits of
    seconds and memory are kept by `ReadingProcess`, not here.
    """
    suffix = file_suffix(path)
    own_reader = (readers or {}).get(suffix)
    meter = FileMeter(limits or FileLimits(), sees=sees)
    try:
        content = decompressed(data, path)
        if own_reader is not None:
            document = own_reader(content)
        elif suffix in UNPACKERS:
            raise ConfigError("holds several documents: insert it by its path")
        elif suffix in OLD_FORMATS:
            newer = converted(content, suffix, meter.limits.seconds)
            document = READERS[OLD_FORMATS[suffix]](newer, meter)
        else:
            document = READERS.get(suffix, read_plain)(content, meter)
    except ModuleNotFoundError as error:
        cause = f"{suffix} files need the package {error.name}"
        raise ConfigError(f"{cause}: pip install '.[files]'") from error
    except ConfigError as error:
        raise ConfigError(f"{path} {str(error).removeprefix('the file ')}") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is nested too deeply") from error
    except Exception as error:
        raise ConfigError(f"{path} cannot be read: {described(error)}") from error
    if not isinstance(document, Document):
        raise ConfigError(f"{path}: its reader gave {type(document).__name__}, not a Document")
    has_text = any(map(str.strip, document.pages or (document.text,)))
    if not (has_text or document.pictures):
        raise ConfigError(NO_TEXT.format(path))
    name = _unpacked_path(path)
    is_code = READERS.get(suffix) in (read_python, read_source)
    file_title = name.name if is_code else name.stem
    titled = replace(document, title=document.title or file_title)
    return FileContent(titled, tuple(meter.notes))


def decompressed(data: bytes, path: PurePath) -> bytes:
    """The content of a file, decompressed if the name ends with .gz.

    `ConfigError` for broken or too large gzip files and for archives.
    """
    if file_suffix(path) in ARCHIVES:
        raise ConfigError("is an archive: unpack it, and insert the folder")
    if path.suffix.lower() == ".gz":
        return gunzip(data)
    return data
