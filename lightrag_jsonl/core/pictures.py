"""The texts read by a model on the pictures of a document, with their places."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lightrag_jsonl.core.text import digest
from lightrag_jsonl.core.types import Document, Picture

# In the metadata of a document: of each text that a model has read on a picture the page, the box, and the
# characters of the page from `start` to `end`.
SEEN_PICTURES = "seen_pictures"


class Reading(NamedTuple):
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


def with_texts(document: Document, texts: Sequence[str]) -> Document:
    """The document with a text for each picture at the place of the picture, and without pictures."""
    pages = list(document.pages or document.text.split("\f"))
    readings_by_page: dict[int, list[Reading]] = defaultdict(list)
    for picture, text in zip(document.pictures, texts, strict=True):
        if text:
            readings_by_page[picture.page].append(Reading(picture, text))
    places: list[dict[str, Any]] = []
    for number, readings in sorted(readings_by_page.items()):
        pages[number - 1], page_places = _page_with_texts(pages[number - 1], readings)
        places += page_places
    metadata = dict(document.metadata)
    if places:
        metadata[SEEN_PICTURES] = places
    return replace(document, pages=tuple(pages), pictures=(), metadata=metadata)


def _page_with_texts(
    page_text: str, readings: Sequence[Reading]
) -> tuple[str, list[dict[str, Any]]]:
    """A page with the texts of its pictures, each a paragraph of its own, and the places of the texts."""
    text = ""
    taken = 0
    places: list[dict[str, Any]] = []
    for reading in sorted(readings, key=lambda reading: _offset(reading.picture, page_text)):
        offset = _offset(reading.picture, page_text)
        text = _paragraph_end(_paragraph_end(text) + page_text[taken:offset].strip("\n"))
        taken = offset
        start = len(text)
        text += reading.text
        place = {"page": reading.picture.page, "box": list(reading.picture.box)}
        places.append({**place, "start": start, "end": len(text)})
    remainder = page_text[taken:].strip("\n")
    return (_paragraph_end(text) + remainder if remainder else text), places


def _offset(picture: Picture, page_text: str) -> int:
    return len(page_text) if picture.offset is None else picture.offset


def _paragraph_end(text: str) -> str:
    """A text after which a paragraph can begin."""
    text = text.rstrip()
    return f"{text}\n\n" if text else ""


def seen_box(
    metadata: Mapping[str, Any], page: int, start: int, end: int
) -> tuple[float, ...] | None:
    """The box of the picture behind some characters of a page, read by a model."""
    places = metadata.get(SEEN_PICTURES)
    for place in places if isinstance(places, list) else ():
        if place["page"] == page and place["start"] <= start and end <= place["end"]:
            return tuple(place["box"])
    return None
