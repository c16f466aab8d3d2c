"""Reads documents of Word."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.readers.drawings import DRAWING, RELATIONSHIP, drawing_text
from lightrag_jsonl.readers.formulas import formula_text
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import comment_line, markdown_heading, markdown_table
from lightrag_jsonl.readers.ooxml import opened_package
from lightrag_jsonl.readers.pictures import (
    SMALLEST_SIDE,
    add_pictures,
    packaged_picture,
    picture_bytes,
    without_logos,
)
from lightrag_jsonl.readers.titles import confirmed_title, heading_title
from lightrag_jsonl.readers.word_numbers import ParagraphNumbers, W, child_value
from lightrag_jsonl.readers.xml_elements import local_name
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

PARAGRAPH_BREAK = "\n\n"
EMU_PER_POINT = 12_700  # English Metric Units, in which drawings are measured
SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}  # by element
HIDDEN_ELEMENTS = frozenset(
    ["del", "moveFrom", "pPr", "rPr", "sdtPr", "Fallback"]
)  # copies and properties
WRAPPERS = frozenset(
    ["sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "AlternateContent", "Choice"]
)
LONGEST_MARGIN_NOTE = 500  # characters
_LETTER = pattern_of(r"[^\W\d_]{2}|[\u3400-\u9fff]")
_HEADING_STYLE = pattern_of(r"(?i)heading ([1-6])$")


def read_docx(data: bytes, meter: FileMeter) -> Document:
    """Paragraphs and tables in the order of the body, headings marked as in Markdown.

    Paragraphs of lists have their numbers or bullets; text boxes, footnotes, comments, charts, diagrams and pictures
    follow the paragraph of the reference. Inserted text counts, deleted text does not. The words in
    the headers and footers of pages are noted. The format stores no page numbers.
    """
    import docx

    document = opened_package(docx.Document, data, ".docx", meter)
    word_text = WordText(document, meter)
    texts: list[str] = []
    pictures: list[Picture] = []
    length = 0
    for block in word_text.blocks(document.element.body):
        if block:
            meter.add_characters(len(block))
            texts.append(block)
            length += len(block) + len(PARAGRAPH_BREAK)
        new_pictures = word_text.pictures[len(pictures) :]
        pictures += [replace(picture, offset=length) for picture in new_pictures]
    text = PARAGRAPH_BREAK.join(texts)
    word_text.note_margins(text)
    title = confirmed_title(document.core_properties.title, text)
    return Document(
        text,
        title=title or heading_title(text),
        pictures=add_pictures(meter, without_logos(pictures, picture_bytes)),
    )


class WordText:
    """Turns the elements of a document into texts, in order.

    With a paragraph, `pictures` gets the pictures in the paragraph; "" stands for a paragraph with nothing else.
    """

    def __init__(self, document: Any, meter: FileMeter) -> None:
        self.pictures: list[Picture] = []
        self._part = document.part
        self._meter = meter
        self._levels = _heading_levels(document.styles.element.iter(f"{W}style"))
        self._numbers = ParagraphNumbers(
            next(_part_roots(document.part, "numbering"), None), document.styles.element
        )
        self._notes = {
            (kind, note.get(f"{W}id")): note
            for kind in ("footnote", "endnote", "comment")
            for root in _part_roots(document.part, f"{kind}s")
            for note in _wrapped_children(root, kind)
        }
        self._note_count = 0

    def blocks(self, container: Any) -> Iterator[str]:
        """The texts of the paragraphs and tables in a body, a cell, a text box or a note."""
        for element in container:
            name = local_name(element)
            if name == "p":
                yield from self._paragraph(element)
            elif name == "tbl":
                rows = _wrapped_children(element, "tr")
                yield markdown_table(map(self._cells, rows))
            elif name in WRAPPERS:
                yield from self.blocks(element)
            elif name == "altChunk":
                self._meter.add_note("a document inside the document is left out")

    def _cells(self, row: Any) -> list[str]:
        """The texts of the cells of a row."""
        cells = _wrapped_children(row, "tc")
        return [" ".join(filter(None, self.blocks(cell))) for cell in cells]

    def note_margins(self, text: str) -> None:
        """Note the words in the headers and footers of pages that the text does not have."""
        lines: dict[str, None] = {}
        for name in ("header", "footer"):
            for root in _part_roots(self._part, name):
                for block in self.blocks(root):
                    line = single_spaced(block)
                    if _LETTER.search(line) and line not in text:
                        lines[line] = None
        if lines:
            words = " / ".join(lines)
            self._meter.add_note(f"headers and footers left out: {words[:LONGEST_MARGIN_NOTE]}")

    def _paragraph(self, paragraph: Any) -> Iterator[str]:
        """The text of a paragraph with the number, then text boxes, notes, charts and diagrams."""
        boxes: list[Any] = []
        notes: list[str] = []
        earlier_pictures = len(self.pictures)
        text = "".join(self._pieces(paragraph, boxes, notes)).strip()
        style = paragraph.find(f"{W}pPr/{W}pStyle")
        style_id = "" if style is None else style.get(f"{W}val", "")
        if text:
            level = self._levels.get(style_id, 0)
            list_style = style_id or "Normal"
            mark = self._numbers.next_mark(paragraph, list_style, is_heading=level > 0)
            text = f"{mark}{text}"
            yield markdown_heading(single_spaced(text), level) if level > 0 else text
        elif len(self.pictures) > earlier_pictures:
            yield ""
        for box in boxes:
            yield from self.blocks(box)
        yield from filter(None, notes)

    def _pieces(self, element: Any, boxes: list[Any], notes: list[str]) -> Iterator[str]:
        """The texts in a paragraph; text boxes, notes and drawings are added to the lists."""
        for child in element:
            name = local_name(child)
            if name == "t" and child.tag == f"{W}t":
                yield child.text or ""
            elif name in SIGNS and local_name(element) == "r":
                yield SIGNS[name]
            elif name == "oMath":
                yield formula_text(child)
            elif name == "txbxContent":
                boxes.append(child)
            elif name == "graphicData":
                yield from self._pieces(child, boxes, notes)
                notes.append(drawing_text(child, self._part, self._meter))
            elif name == "pic":
                self._add_picture(child)
            elif name in ("footnoteReference", "endnoteReference"):
                yield from self._note_mark(child, name.removesuffix("Reference"), notes)
            elif name == "commentReference":
                notes.append(self._comment(child))
            elif name not in HIDDEN_ELEMENTS:
                yield from self._pieces(child, boxes, notes)

    def _add_picture(self, picture: Any) -> None:
        """Keep a picture of some size, for a vision model."""
        blip = picture.find(f".//{DRAWING}blip")
        if not self._meter.sees or blip is None:
            return
        image_id = blip.get(f"{RELATIONSHIP}embed")
        if image_id not in self._part.related_parts:
            return
        width, height = _drawn_size(picture)
        if min(width, height) < SMALLEST_SIDE:
            return
        packed = packaged_picture(self._part.related_parts[image_id].blob, self._meter)
        if packed is not None:
            picture_data, media_type = packed
            box = (0.0, 0.0, round(width, 1), round(height, 1))
            self.pictures.append(Picture(1, box, data=picture_data, media_type=media_type))

    def _note_mark(self, reference: Any, kind: str, notes: list[str]) -> Iterator[str]:
        """The mark of a note, as in Markdown; the text of the note is added to the list."""
        note = self._notes.pop((kind, reference.get(f"{W}id")), None)  # each once, also in circles
        if note is None:
            return
        self._note_count += 1
        mark = f"[^{self._note_count}]"
        notes.append(f"{mark}: {' '.join(self.blocks(note))}")
        yield mark

    def _comment(self, reference: Any) -> str:
        """The comment at a place, with its writer; "" for a comment that was read before."""
        comment = self._notes.pop(("comment", reference.get(f"{W}id")), None)
        if comment is None:
            return ""
        words = " ".join(self.blocks(comment))
        if not words:
            return ""
        return comment_line(words, author=comment.get(f"{W}author"))


def _drawn_size(picture: Any) -> tuple[float, float]:
    """Width and height of a picture, in points."""
    extent = picture.find(f".//{DRAWING}xfrm/{DRAWING}ext")
    if extent is None:
        return 0.0, 0.0
    try:
        width = int(extent.get("cx", "0"))
        height = int(extent.get("cy", "0"))
    except ValueError:
        return 0.0, 0.0
    return width / EMU_PER_POINT, height / EMU_PER_POINT


def _part_roots(part: Any, name: str) -> Iterator[Any]:
    """The roots of the parts of a document with a name, such as "footnotes"."""
    from docx.oxml import parse_xml

    for relation in part.rels.values():
        if relation.reltype.endswith(f"/{name}") and not relation.is_external:
            yield parse_xml(relation.target_part.blob)


def _wrapped_children(container: Any, name: str) -> Iterator[Any]:
    """The elements with a name in a container, also inside content controls and the like."""
    for element in container if container is not None else ():
        if local_name(element) == name:
            yield element
        elif local_name(element) in WRAPPERS:
            yield from _wrapped_children(element, name)


def _heading_levels(styles: Iterable[Any]) -> dict[str, int]:
    """The level of each style by id: 1 to 6 for headings and styles based on them, or else 0.

    Each style is visited once, even in long chains and circles.
    """
    levels: dict[str, int] = {}
    bases: dict[str, str | None] = {}
    for style in styles:
        style_id = style.get(f"{W}styleId", "")
        bases[style_id] = child_value(style, "basedOn") or None
        if level := _level(child_value(style, "name")):
            levels[style_id] = level
    for style_id in bases:
        chain: dict[str, None] = {}
        base: str | None = style_id
        while base in bases and base not in levels and base not in chain:
            chain[base] = None
            base = bases[base]
        level = levels.get(base, 0) if base is not None else 0
        levels.update(dict.fromkeys(chain, level))
    return levels


def _level(name: str) -> int:
    """The level of a heading's style by name, 1 for the title; 0 for other styles."""
    if name == "Title":
        return 1
    heading = _HEADING_STYLE.match(name)
    return int(heading[1]) if heading else 0
