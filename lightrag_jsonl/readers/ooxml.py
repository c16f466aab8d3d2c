"""Opens packages of Office: also Strict ones, templates, and those with macros, which never run."""

import re
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

from lightrag_jsonl.readers.compression import open_zip

CONTENT_TYPES = "[Content_Types].xml"
# ISO/IEC 29500-1 (Strict) names its vocabularies differently from 29500-4 (Transitional).
_STRICT_NAME = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_TRANSITIONAL_NAME = rb"http://schemas.openxmlformats.org/\1/2006/\2"
_MAIN_TYPES = (
    (
        re.compile(
            rb"application/vnd\.(?:ms-word\.(?:document|template)\.macroEnabled(?:Template)?"
            rb"|openxmlformats-officedocument\.wordprocessingml\.template)\.main\+xml"
        ),
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    ),
    (
        re.compile(
            rb"application/vnd\.(?:ms-powerpoint\.(?:presentation|slideshow|template)\.macroEnabled"
            rb"|openxmlformats-officedocument\.presentationml\.(?:slideshow|template))\.main\+xml"
        ),
        b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
    ),
)


_STYLE_OF_CELL = re.compile(rb"(<(?:\w+:)?c\b[^<>]*?)\ss=\"[^\"]*\"")
_FORMATS = re.compile(
    rb"<(?P<tag>(?:\w+:)?(?:conditionalFormatting|dataValidations|extLst))\b"
    rb"(?:[^<>]*/>|.*?</(?P=tag)>)",
    re.DOTALL,
)


def without_styles(package: bytes) -> bytes:
    """The workbook without styles, conditional formats and checks of input."""
    target = BytesIO()
    with ZipFile(BytesIO(package)) as workbook, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        for part in dict.fromkeys(workbook.namelist()):
            content = workbook.read(part)
            if part.endswith("styles.xml"):
                continue
            if "/worksheets/" in part:
                content = _FORMATS.sub(b"", _STYLE_OF_CELL.sub(rb"\1", content))
            copy.writestr(part, content)
    return target.getvalue()


def usual_package(data: bytes, kind: str) -> bytes:
    """The package as the libraries expect it, the same bytes if it is a usual one already.

    Names of Strict packages become Transitional ones; the type of a template, of a show or of a file
    with macros becomes that of a plain document. `ConfigError` as by `open_zip`.
    """
    with open_zip(data, kind) as package:
        names = package.namelist()
        if CONTENT_TYPES not in names:
            return data
        types = package.read(CONTENT_TYPES)
        usual_types = types
        for pattern, usual in _MAIN_TYPES:
            usual_types = pattern.sub(usual, usual_types)
        relations = package.read("_rels/.rels") if "_rels/.rels" in names else b""
        is_strict = _STRICT_NAME.search(relations) is not None
        if usual_types == types and not is_strict:
            return data
        target = BytesIO()
        with ZipFile(target, "w", ZIP_DEFLATED) as copy:
            for part in dict.fromkeys(names):
                content = usual_types if part == CONTENT_TYPES else package.read(part)
                if is_strict and part.endswith((".xml", ".rels")):
                    content = _STRICT_NAME.sub(_TRANSITIONAL_NAME, content)
                copy.writestr(part, content)
    return target.getvalue()
