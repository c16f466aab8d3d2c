"""The texts read by a model on the pictures of a document, with their places."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.text.strings import digest


class SeenPicture(NamedTuple):
    """The place of a text that a model has read on a picture: the page, the box of the picture, and the
    characters of the page from `start` to `end`.

    It is stored beside the metadata of the document, which say whatever the document says.
    """

    page: int
    box: tuple[float, float, float, float]
    start: int
    end: int


class PictureReading(NamedTuple):
    """What a model has read on a picture."""

    picture: Picture
    text: str


def with_id(document: Document) -> Document:
    """The document with an id; without its own, a digest of texts and pictures, whatever a model reads."""
    if document.id:
        return document
    pictures = [hashlib.sha256(picture.data).hexdigest() for picture in document.pictures]
    texts = document.pages or (document.text,)
    return replace(document, id="doc-" + digest(*texts, *pictures))


def with_texts(
    document: Document, texts: Sequence[str]
) -> tuple[Document, tuple[SeenPicture, ...]]:
    """The document with a text for each picture at the place of the picture, and without pictures; and
    the places of the texts.
    """
    pages = list(document.pages or document.text.split("\f"))
    readings_by_page: dict[int, list[PictureReading]] = defaultdict(list)
    for picture, text in zip(document.pictures, texts, strict=True):
        if text:
            readings_by_page[picture.page].append(PictureReading(picture, text))
    places: list[SeenPicture] = []
    for number, readings in sorted(readings_by_page.items()):
        pages[number - 1], page_places = _page_with_texts(pages[number - 1], readings)
        places += page_places
    return replace(document, pages=tuple(pages), pictures=()), tuple(places)


def _page_with_texts(
    page_text: str, readings: Sequence[PictureReading]
) -> tuple[str, list[SeenPicture]]:
    """A page with the texts of its pictures, each a paragraph of its own, and the places of the texts."""
    text = ""
    taken = 0
    places: list[SeenPicture] = []
    for reading in sorted(readings, key=lambda reading: _offset(reading.picture, page_text)):
        offset = _offset(reading.picture, page_text)
        text = _paragraph_end(_paragraph_end(text) + page_text[taken:offset].strip("\n"))
        taken = offset
        start = len(text)
        text += reading.text
        picture = reading.picture
        places.append(SeenPicture(picture.page, picture.box, start, len(text)))
    remainder = page_text[taken:].strip("\n")
    return (_paragraph_end(text) + remainder if remainder else text), places


def _offset(picture: Picture, page_text: str) -> int:
    return len(page_text) if picture.offset is None else picture.offset


def _paragraph_end(text: str) -> str:
    """A text after which a paragraph can begin."""
    text = text.rstrip()
    return f"{text}\n\n" if text else ""
