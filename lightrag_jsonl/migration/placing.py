"""Finds foreign chunks in their documents; chunks cut at tokens may not be exact substrings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from lightrag_jsonl.migration.folder import ForeignChunk, ForeignIndex
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Document

CUT = "\ufffd \t\r\n"  # ignored at a chunk's ends: from cutting inside a character, or stripping


@dataclass(slots=True)
class Placed:
    """A document with its chunks in order; `index` maps foreign chunks to their numbers."""

    document: Document
    pieces: list[str] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Something that has no exact counterpart here."""

    kind: str
    name: str
    reason: str


def place(index: ForeignIndex) -> tuple[list[Placed], list[Unmapped]]:
    """Every document that has chunks; and what is not where it should be."""
    by_document: dict[str, list[ForeignChunk]] = defaultdict(list)
    for chunk in index.chunks.values():
        by_document[chunk.document].append(chunk)
    placed: list[Placed] = []
    odd: list[Unmapped] = []
    for id, text in index.documents.items():
        if not by_document.get(id):
            odd.append(Unmapped("document", id, "it was not processed there: insert its text"))
            continue
        placed.append(_in_text(id, text.text, text.source, by_document.pop(id), odd))
    for id, chunks in by_document.items():
        odd.append(Unmapped("document", id, "its text is missing: its chunks became its pages"))
        placed.append(_in_text(id, "", None, chunks, []))
    return [one for one in placed if one.pieces], odd


def _in_text(
    id: str, text: str, source: str | None, chunks: Iterable[ForeignChunk], odd: list[Unmapped]
) -> Placed:
    """The chunks where they occur in the text, in order; the others after it, each as a page."""
    text = sanitize(text)
    found: list[tuple[str, str]] = []
    strays: list[tuple[str, str]] = []
    position = 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk.order, chunk.id)):
        whole = sanitize(chunk.text)
        if not whole.strip(CUT):
            odd.append(Unmapped("chunk", chunk.id, "it is empty"))
            continue
        piece, start = _find(text, whole, position)
        if start < 0:
            odd.append(Unmapped("chunk", chunk.id, "not in its document: it became a page"))
            strays.append((chunk.id, whole))
            continue
        found.append((chunk.id, piece))
        position = start + 1
    pages = ([text] if text.strip() else []) + [piece for _, piece in strays]
    title = None if source is None else source.replace("\\", "/").rsplit("/", 1)[-1]
    document = Document("", id=id, title=title, source=source, pages=tuple(pages))
    together = [*found, *strays]
    numbers = {chunk: number for number, (chunk, _) in enumerate(together)}
    return Placed(document, [piece for _, piece in together], numbers)


def _find(text: str, whole: str, position: int) -> tuple[str, int]:
    """Where a chunk occurs, as it is or without the ends that a cut may have damaged; -1 if nowhere."""
    for piece in (whole, whole.strip(CUT)):
        start = text.find(piece, position)
        if start >= 0:
            return piece, start
    return whole, -1
