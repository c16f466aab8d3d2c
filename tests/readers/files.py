"""Files for the tests, made by the libraries that people's programs use."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, cast

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from lightrag_jsonl import Document
from lightrag_jsonl.core.headings import find_headings
from lightrag_jsonl.readers import read_file


def read(data: bytes | str, name: str, readers: Any = None, **limits: Any) -> Document:
    """The document in these bytes."""
    return cast(Document, read_content(data, name, readers, **limits).document)


def read_content(data: bytes | str, name: str, readers: Any = None, **limits: Any) -> Any:
    """The document in these bytes, and notes on what is missing from the text."""
    content = data if isinstance(data, bytes) else data.encode()
    return read_file(content, PurePath(name), readers, **limits)


def headings_in(document: Document) -> list[Any]:
    """The headings of a text by which an index tells where a chunk stands."""
    return list(find_headings(document.text))


def pdf(draw: Callable[[Canvas], None], **options: Any) -> bytes:
    """A PDF file, drawn by a function; the last page is shown by itself."""
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=A4, **options)
    draw(canvas)
    canvas.save()
    return target.getvalue()


def lines(canvas: Canvas, texts: list[str], *, left: int = 50, top: int = 800) -> None:
    """Lines of text, one below the other."""
    for number, text in enumerate(texts):
        canvas.drawString(left, top - 14 * number, text)


def saved(document: Any) -> bytes:
    """The bytes of a document of python-docx, python-pptx or openpyxl."""
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP of these parts."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return target.getvalue()


def replaced(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """A ZIP with one part changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    return zipped({**parts, name: change(parts[name])})


def epub(chapters: Mapping[str, str], **others: str) -> bytes:
    """An e-book of XHTML chapters, listed in this order; `others` are more files of META-INF."""
    items = "".join(f'<item id="{n}" href="text/{n}.xhtml"/>' for n in chapters)
    spine = "".join(f'<itemref idref="{n}"/>' for n in chapters)
    title = '<dc:title xmlns:dc="http://purl.org/dc/elements/1.1/">西域记</dc:title>'
    opf = '<package xmlns="http://www.idpf.org/2007/opf"><metadata>'
    opf += f"{title}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    container = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    container += '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    head = '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
    # a dictionary keeps its order, an archive need not: the spine decides
    parts: dict[str, str] = {
        f"OEBPS/text/{name}.xhtml": f"{head}<head><title>x</title></head><body>{body}</body></html>"
        for name, body in reversed(chapters.items())
    }
    parts |= {"META-INF/container.xml": container, "OEBPS/book.opf": opf}
    return zipped(parts | {f"META-INF/{name}.xml": text for name, text in others.items()})
