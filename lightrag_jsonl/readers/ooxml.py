"""Opens packages of Office, also Strict ones, templates, and files with macros; macros never run."""

import posixpath
import re
from collections.abc import Callable, Collection
from io import BytesIO
from typing import Any
from urllib.parse import unquote
from zipfile import ZIP_DEFLATED, ZipFile

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.readers.compression import open_zip
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.xml_elements import is_damaged, xml_root

_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^<>]*?/>")
_TARGET = re.compile(rb"""\bTarget\s*=\s*["']([^"']*)["']""")
CONTENT_TYPES = "[Content_Types].xml"
# ISO/IEC 29500-1 (Strict) names its vocabularies differently from 29500-4 (Transitional).
_STRICT_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_TRANSITIONAL_NAME = rb"http://schemas.openxmlformats.org/\1/2006/\2"
_XML_EXTENSIONS = re.compile(
    rb"""<(?:\w+:)?Default\b(?=[^<>]*ContentType="[^"]*[+/]xml")[^<>]*Extension="(\w+)\""""
)
_MAIN_TYPES = {  # of documents, templates and shows, also with macros: all are opened as plain ones
    b"openxmlformats-officedocument.wordprocessingml.document.main+xml": re.compile(
        rb"(?:ms-word|openxmlformats-officedocument\.wordprocessingml)\.\w+(?:\.macroEnabled\w*)?\.main\+xml"
    ),
    b"openxmlformats-officedocument.presentationml.presentation.main+xml": re.compile(
        rb"(?:ms-powerpoint|openxmlformats-officedocument\.presentationml)\.\w+(?:\.macroEnabled\w*)?\.main\+xml"
    ),
}
_STYLE_OF_CELL = re.compile(rb"(<(?:\w+:)?c\b[^<>]*?)\ss=\"[^\"]*\"")
_VIEWS = re.compile(
    rb"<(?P<tag>(?:\w+:)?(?:bookViews|calcPr|definedNames))\b(?:[^<>]*/>|.*?</(?P=tag)>)", re.DOTALL
)
_UNKNOWN_STATE = re.compile(
    rb"(<(?:\w+:)?sheet\b[^<>]*?)\sstate=\"(?!(?:visible|hidden|veryHidden)\")[^\"]*\""
)
_FORMATS = re.compile(
    rb"<(?P<tag>(?:\w+:)?(?:conditionalFormatting|dataValidations|extLst))\b"
    rb"(?:[^<>]*/>|.*?</(?P=tag)>)",
    re.DOTALL,
)


def without_styles(package: bytes) -> bytes:
    """The workbook without styles, views, conditional formats and checks of input."""
    target = BytesIO()
    with ZipFile(BytesIO(package)) as workbook, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        for part in dict.fromkeys(workbook.namelist()):
            content = workbook.read(part)
            if part.endswith("styles.xml"):
                continue
            if part.endswith("/workbook.xml"):
                content = _UNKNOWN_STATE.sub(rb"\1", _VIEWS.sub(b"", content))
            if "/worksheets/" in part:
                content = _FORMATS.sub(b"", _STYLE_OF_CELL.sub(rb"\1", content))
            copy.writestr(part, content)
    return target.getvalue()


def usual_package(data: bytes, kind: str, meter: FileMeter) -> bytes:
    """The package in the usual form for the libraries; a usual package is unchanged.

    Names of Strict packages become Transitional ones; templates, shows and files with macros get
    the type of a plain document. References to missing parts, such as pictures, are left out and
    noted. `ConfigError` as by `open_zip`.
    """
    with open_zip(data, kind) as package:
        names = package.namelist()
        if CONTENT_TYPES not in names:
            raise ConfigError(f"is not a valid {kind} file: it has no part {CONTENT_TYPES}")
        types = package.read(CONTENT_TYPES)
        usual_types = types
        for usual, pattern in _MAIN_TYPES.items():
            usual_types = pattern.sub(usual, usual_types)
        relations = package.read("_rels/.rels") if "_rels/.rels" in names else b""
        is_strict = _STRICT_NAME.search(relations) is not None
        whole_relations = {
            name: _without_missing(name, package.read(name), names, meter)
            for name in dict.fromkeys(names)
            if name.endswith(".rels")
        }
        is_whole = all(package.read(name) == content for name, content in whole_relations.items())
        if usual_types == types and not is_strict and is_whole:
            return data
        target = BytesIO()
        with ZipFile(target, "w", ZIP_DEFLATED) as copy:
            for part in dict.fromkeys(names):
                content = whole_relations.get(part) or package.read(part)
                content = usual_types if part == CONTENT_TYPES else content
                if is_strict and part.endswith((".xml", ".rels")):
                    content = _STRICT_NAME.sub(_TRANSITIONAL_NAME, content)
                copy.writestr(part, content)
    return target.getvalue()


def opened_package(
    open_document: Callable[[BytesIO], Any], data: bytes, kind: str, meter: FileMeter
) -> Any:
    """The document opened by a library, from the usual package; damaged parts are mended or left out."""
    from lxml import etree

    package = usual_package(data, kind, meter)
    try:
        return open_document(BytesIO(package))
    except etree.XMLSyntaxError:
        mended = usual_package(_mended(package, meter), kind, meter)
    except KeyError as error:
        raise ConfigError(f"is not a valid {kind} file: it has no main part") from error
    try:
        return open_document(BytesIO(mended))
    except KeyError as error:
        raise ConfigError(f"is not a valid {kind} file: its main part is damaged") from error


def _mended(data: bytes, meter: FileMeter) -> bytes:
    """The package, with the readable beginning of each damaged part; a part that is no XML goes."""
    from lxml import etree

    target = BytesIO()
    with ZipFile(BytesIO(data)) as package, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        extensions = _XML_EXTENSIONS.findall(package.read(CONTENT_TYPES))
        ends = (".xml", ".rels", *(f".{extension.decode()}" for extension in extensions))
        for part in dict.fromkeys(package.namelist()):
            content = package.read(part)
            if part.endswith(ends):
                root = xml_root(content)
                if root is None:
                    continue
                if is_damaged(root):
                    meter.add_note(f"the part {part} is damaged")
                    content = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
            copy.writestr(part, content)
    return target.getvalue()


def _without_missing(
    name: str, relations: bytes, names: Collection[str], meter: FileMeter
) -> bytes:
    """The relations of a part, without relations to missing parts."""
    parts = {part.lower().lstrip("/") for part in names}
    folder = posixpath.dirname(posixpath.dirname(name))

    def kept(match: re.Match[bytes]) -> bytes:
        target = _TARGET.search(match[0])
        if target is None or b"External" in match[0]:
            return match[0]
        address = unquote(target[1].decode("utf-8", "replace")).partition("#")[0]
        path = posixpath.normpath(posixpath.join("/", folder, address)).lstrip("/")
        if not address or path.lower() in parts:
            return match[0]
        meter.add_note(f"the file lacks its part {path}")
        return b""

    return _RELATION.sub(kept, relations)
