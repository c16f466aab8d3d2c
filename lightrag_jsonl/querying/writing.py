"""Writes a context as text: numbered entities, relations and passages, then their sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias, TypeVar

from lightrag_jsonl.languages import Language
from lightrag_jsonl.types import Chunk, Entity, Relation

LABEL_LENGTH = 200  # characters; longer titles are cut

Item = TypeVar("Item", Entity, Relation, Chunk)
Sections: TypeAlias = tuple[Sequence[str], Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Words:
    """The fixed words of a context in one language."""

    entities: str
    relations: str
    passages: str
    sources: str
    page: str
    weight: str
    separator: str


WORDS: Mapping[Language, Words] = {
    "en": Words("Entities", "Relations", "Passages", "Sources", ", page {}", "weight {:g}", ", "),
    "zh": Words("实体", "关系", "原文", "来源", "，第 {} 页", "权重 {:g}", "，"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What was retrieved, best first; `documents` maps document ids to what readers know them by."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    documents: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.entities or self.relations or self.chunks)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes items, without their numbers, and whole contexts in one language."""

    words: Words
    documents: Mapping[str, str]

    def entity(self, entity: Entity) -> str:
        return _entity(entity.name, entity.type, entity.description)

    def relation(self, relation: Relation) -> str:
        return _relation(
            self.words.weight,
            self.words.separator,
            relation.source,
            relation.predicate,
            relation.target,
            relation.weight,
            relation.created_at,
            relation.description,
        )

    def chunk(self, chunk: Chunk) -> str:
        page = self.words.page.format(chunk.page)
        return f"{self.title(chunk.document_id)}{page}:\n{chunk.text}"

    def frame(self, chunk: Chunk) -> str:
        """The text around a chunk's own: its heading, and its entry among the sources."""
        title = self.title(chunk.document_id)
        return f"[99] {title}{self.words.page.format(chunk.page)}:\n- {title}: [99]"

    def headings(self) -> str:
        """The headings of all sections."""
        words = self.words
        return f"{words.entities}:\n\n{words.relations}:\n\n{words.passages}:\n\n{words.sources}:"

    def title(self, document: str) -> str:
        return _line(self.documents.get(document, document))[:LABEL_LENGTH]

    def sections(self, found: Found) -> Sections:
        """The lines of entities, of relations and of passages; a section without items has no lines."""
        relations_from = len(found.entities) + 1
        chunks_from = relations_from + len(found.relations)
        return (
            _section(self.words.entities, self.entity, found.entities, 1),
            _section(self.words.relations, self.relation, found.relations, relations_from),
            _section(self.words.passages, self.chunk, found.chunks, chunks_from),
        )

    def sources(self, found: Found) -> Sequence[str]:
        """The documents of the passages, each with the passages' numbers."""
        numbers: dict[str, list[int]] = {}
        start = len(found.entities) + len(found.relations) + 1
        for number, chunk in enumerate(found.chunks, start):
            numbers.setdefault(chunk.document_id, []).append(number)
        lines = [
            f"- {self.title(document)}: {''.join(f'[{number}]' for number in found_at)}"
            for document, found_at in numbers.items()
        ]
        return [f"{self.words.sources}:", *lines] if lines else ()

    def prompt(self, found: Found, sections: Sections) -> str:
        """The whole text: the given sections and the sources."""
        lines: list[str] = []
        for part in (*sections, self.sources(found)):
            lines += ("", *part) if lines and part else part
        return "\n".join(lines)


# ── helpers ─────────────────────────────────────────────────────────────────────


def _section(
    heading: str, write: Callable[[Item], str], items: Sequence[Item], start: int
) -> Sequence[str]:
    lines: list[str] = [f"[{number}] {write(item)}" for number, item in enumerate(items, start)]
    return [f"{heading}:", *lines] if lines else ()


REMEMBERED = (
    10_000  # cached lines of each kind, about 5 MB: the same facts are written again and again
)


@lru_cache(REMEMBERED)
def _entity(name: str, type: str, description: str) -> str:
    kind = f" ({_line(type)})" if type else ""
    return f"{_line(name)}{kind}{_told(description)}"


@lru_cache(REMEMBERED)
def _relation(
    weighs: str,
    separator: str,
    source: str,
    predicate: str,
    target: str,
    weight: float,
    created_at: datetime | None,
    description: str,
) -> str:
    facts = [weighs.format(weight)]
    if created_at is not None:
        facts.append(created_at.date().isoformat())
    ends = f"{_line(source)} — {_line(predicate)} → {_line(target)}"
    return f"{ends} ({separator.join(facts)}){_told(description)}"


def _line(text: str) -> str:
    """A text without line breaks."""
    return text if text.isprintable() else " ".join(text.split())


def _told(description: str) -> str:
    told = _line(description)
    return f": {told}" if told else ""
