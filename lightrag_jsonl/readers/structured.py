"""Reads JSON and XML as texts: names with values, nested parts below headings."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Json
from lightrag_jsonl.readers.chats import chat_document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading
from lightrag_jsonl.readers.web import declared_encoding, html_text, read_html
from lightrag_jsonl.readers.xml_elements import check_depth, local_name, xml_root
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

DEEPEST = 200  # levels of nesting; Python's own parser gives up at about a thousand
TITLE_ELEMENTS = frozenset(["title", "head", "heading", "subtitle", "dc:title"])
PARAGRAPH_ELEMENTS = frozenset(
    ["p", "para", "simpara", "paragraph", "ab", "l", "li", "item", "note", "verse"]
)
NO_ATTRIBUTES = pattern_of(r"\{|id$|ref$|href$|class$|style$|xmlns|schemaLocation")
_HTML_TAG = pattern_of(r"</\w+>|<br */?>")


def read_json_file(data: bytes, meter: FileMeter) -> Document:
    """The names and values of JSON; each object of a list is a paragraph "name: Ada; born: 1815".

    A file with a value on each line is read as a list; a conversation as messages.
    """
    text = meter.decode(data)
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ConfigError("is nested too deeply") from error
    except ValueError as error:
        value = _parsed_json_lines(text)
        if value is None:
            raise ConfigError(f"is not valid JSON: {error}") from error
    if conversation := chat_document(value, meter):
        return conversation
    paragraphs = []
    for paragraph in json_paragraphs(value):
        meter.add_characters(len(paragraph))
        paragraphs.append(paragraph)
    return Document("\n\n".join(paragraphs))


def _parsed_json_lines(text: str) -> list[Json] | None:
    try:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None


def json_paragraphs(value: Json, level: int = 1, depth: int = 1) -> Iterator[str]:
    """The paragraphs of a value; `level` is the level of headings for nested objects and lists."""
    if depth > DEEPEST:
        raise ConfigError(f"is nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        fields: list[str] = []
        nested: dict[str, Json] = {}
        for name, item in value.items():
            if _is_field(item):
                fields.append(f"{name}: {_scalar_text(item)}")
            elif item:
                nested[name] = item
        if fields:
            yield "; ".join(fields)
        for name, item in nested.items():
            yield markdown_heading(name, level)
            yield from json_paragraphs(item, level + 1, depth + 1)
    elif isinstance(value, list) and not _is_field(value):
        for item in value:
            yield from json_paragraphs(item, level, depth + 1)
    elif text := _scalar_text(value):
        yield text


def _is_field(value: Json) -> bool:
    """Whether a value, or all values of a list, can stand in a line."""
    if isinstance(value, list):
        return bool(value) and not any(isinstance(item, list | dict) for item in value)
    return value is not None and not isinstance(value, dict)


def _scalar_text(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_scalar_text, value)))
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value)
    return value.strip() if "\n" in value else single_spaced(value)


def read_xml(data: bytes, meter: FileMeter) -> Document:
    """The texts of XML: paragraphs, titles as headings, and "ship: name: Petrel" of a record.

    A page of XHTML is read as HTML. No entity of the file is resolved: "&name;" stays as it is.
    """
    text = meter.decode(data, declared=declared_encoding(data))
    root = _xml_root(text)
    if root is None:
        return Document("")
    if local_name(root) == "html":
        return read_html(text.encode("utf-8", "replace"), meter)
    paragraphs = []
    for paragraph in _xml_paragraphs(root, 0):
        meter.add_characters(len(paragraph))
        paragraphs.append(paragraph)
    return Document("\n\n".join(paragraphs))


def read_notes(data: bytes, meter: FileMeter) -> Document:
    """The notes of an export of Evernote (.enex), each below the title."""
    root = _xml_root(meter.decode(data, declared=declared_encoding(data)))
    if root is None:
        return Document("")
    blocks: list[str] = []
    for note in root.iter("note"):
        if title := single_spaced(note.findtext("title")):
            blocks.append(f"## {title}")
        if text := html_text(note.findtext("content") or ""):
            meter.add_characters(len(text))
            blocks.append(text)
    return Document("\n\n".join(blocks))


def read_fiction_book(data: bytes, meter: FileMeter) -> Document:
    """The chapters of an e-book in a single file of XML (.fb2), with titles as headings."""
    from lxml import etree

    root = _xml_root(meter.decode(data, declared=declared_encoding(data)))
    if root is None or local_name(root) != "FictionBook":
        raise ConfigError("is not an .fb2 file")
    title = single_spaced(root.findtext(".//{*}book-title"))
    date = single_spaced(root.findtext(".//{*}title-info/{*}date"))
    for element in list(root.iter("{*}*")):
        name = local_name(element)
        if name in ("description", "binary"):
            element.clear()
        elif name == "title":
            level = sum(local_name(parent) == "section" for parent in element.iterancestors())
            words = single_spaced(" ".join(element.itertext()))
            element.clear(keep_tail=True)
            element.tag = f"h{min(level + 1, 6)}" if words else "p"
            element.text = words
        elif name in ("v", "subtitle", "text-author"):
            element.tag = "p"
        else:
            element.tag = name
    text = html_text(etree.tostring(root, encoding="unicode"))
    meter.add_characters(len(text))
    return Document(text, title=title or None, date=date or None)


def _xml_root(text: str) -> Any:
    """The root element of a text of XML; None without a text. No entity of the file is resolved."""
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)  # its encoding is no longer that of the bytes
    if not text.strip():
        return None
    root = xml_root(text.encode("utf-8", "replace"))
    if root is None:
        raise ConfigError("is not valid XML")
    check_depth(root.getroottree().parser)
    return root


def _xml_paragraphs(element: Any, level: int) -> Iterator[str]:
    """The paragraphs of an element: the own text, or the fields, then the children's paragraphs."""
    if _is_paragraph(element):
        text = _element_text(element)
        if text and local_name(element) in TITLE_ELEMENTS:
            text = markdown_heading(text, level)
        if text:
            yield text
        return
    label = local_name(element)
    fields = [f"{name}: {text}" for name, text in _readable_attributes(element).items()]
    for child in _children(element):
        if _is_field_element(child):
            value = _element_text(child)
            if value:
                fields.append(f"{local_name(child)}: {value}")
            continue
        if fields:
            yield f"{label}: {'; '.join(fields)}"
            fields = []
        yield from _xml_paragraphs(child, min(level + 1, DEEPEST))
    if fields:
        yield f"{label}: {'; '.join(fields)}"


def _is_paragraph(element: Any) -> bool:
    """Whether an element is a text as a whole: a paragraph, a title, or text with marks inside."""
    name = local_name(element)
    if name in PARAGRAPH_ELEMENTS or name in TITLE_ELEMENTS:
        return not any(local_name(child) in PARAGRAPH_ELEMENTS for child in _children(element))
    has_text = bool((element.text or "").strip())
    return has_text or any((child.tail or "").strip() for child in element)


def _is_field_element(element: Any) -> bool:
    """Whether an element is a name with a value: no children, and no paragraph."""
    name = local_name(element)
    if name in PARAGRAPH_ELEMENTS or name in TITLE_ELEMENTS or _readable_attributes(element):
        return False
    return not _children(element)


def _children(element: Any) -> list[Any]:
    """The elements in an element, without comments and instructions."""
    return [child for child in element if isinstance(child.tag, str)]


def _readable_attributes(element: Any) -> Mapping[str, str]:
    """The attributes with words for readers: no addresses, ids or styles."""
    texts: dict[str, str] = {}
    for name, value in element.attrib.items():
        text = single_spaced(value)
        if text and not NO_ATTRIBUTES.search(name):
            texts[name] = text
    return texts


def _element_text(element: Any) -> str:
    from lxml import etree

    text = single_spaced("".join(element.itertext("*", etree.Entity)))
    if _HTML_TAG.search(text):
        text = single_spaced(html_text(text))
    return text
