"""The texts read by a model on the pictures of a document, with their places."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lightrag_jsonl.core.text import digest
from lightrag_jsonl.core.types import Document

# In the metadata of a document: of each text that a model has read on a picture the page, the box, and the
# characters of the page from `start` to `end`.
SEEN_PICTURES = "seen_pictures"


def with_id(document: Document) -> Document:
    """The document with an id; without its own, a digest of texts and pictures, whatever a model reads."""
    if document.id:
        return document
    pictures = [hashlib.sha256(picture.data).hexdigest() for picture in document.pictures]
    texts = document.pages or (document.text,)
    return replace(document, id="doc-" + digest(*texts, *pictures))


def with_texts(document: Document, texts: Sequence[str]) -> Document:
    """The document with a text for each picture at the end of the page, and without pictures."""
    pages = list(document.pages or document.text.split("\f"))
    places: list[dict[str, Any]] = []
    for picture, text in zip(document.pictures, texts, strict=True):
        if not text:
            continue
        page_text = pages[picture.page - 1].rstrip()
        if page_text:
            page_text += "\n\n"
        start = len(page_text)
        pages[picture.page - 1] = page_text + text
        places.append(
            {
                "page": picture.page,
                "box": list(picture.box),
                "start": start,
                "end": start + len(text),
            }
        )
    metadata = dict(document.metadata)
    if places:
        metadata[SEEN_PICTURES] = places
    return replace(document, pages=tuple(pages), pictures=(), metadata=metadata)


def seen_box(
    metadata: Mapping[str, Any], page: int, start: int, end: int
) -> tuple[float, ...] | None:
    """The box of the picture behind some characters of a page, read by a model."""
    places = metadata.get(SEEN_PICTURES)
    for place in places if isinstance(places, list) else ():
        if place["page"] == page and place["start"] <= start and end <= place["end"]:
            return tuple(place["box"])
    return None
