"""Writes a context as text: numbered entities, relations and passages, then their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.types import Chunk, Entity, Language, Relation

LABEL_LENGTH = 200  # characters; longer titles are cut


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
class ContextFormatter:
    """Writes items, without their numbers, and whole contexts in one language.

    `documents` maps document ids to what readers know them by.
    """

    words: Words
    documents: Mapping[str, str]

    def entity(self, entity: Entity) -> str:
        """An entity on one line."""
        kind = f" ({_line(entity.type)})" if entity.type else ""
        return f"{_line(entity.name)}{kind}{_described(entity.description)}"

    def relation(self, relation: Relation) -> str:
        """A relation on one line."""
        facts = [self.words.weight.format(relation.weight)]
        if relation.created_at is not None:
            facts.append(relation.created_at.date().isoformat())
        source, target = _line(relation.source), _line(relation.target)
        ends = f"{source} — {_line(relation.predicate)} → {target}"
        return f"{ends} ({self.words.separator.join(facts)}){_described(relation.description)}"

    def chunk(self, chunk: Chunk) -> str:
        """A passage under its heading."""
        return f"{self._heading(chunk)}:\n{chunk.text}"

    def frame(self, chunk: Chunk) -> str:
        """The text around a chunk's own: its heading, and its entry among the sources."""
        return f"[99] {self._heading(chunk)}:\n- {self._title(chunk.document_id)}: [99]"

    def headings(self) -> str:
        """The headings of all sections."""
        words = self.words
        return f"{words.entities}:\n\n{words.relations}:\n\n{words.passages}:\n\n{words.sources}:"

    def prompt(
        self, entities: Sequence[Entity], relations: Sequence[Relation], chunks: Sequence[Chunk]
    ) -> str:
        """The whole text; a section without items has no heading."""
        first_chunk = len(entities) + len(relations) + 1
        sections = (
            (self.words.entities, map(self.entity, entities), 1),
            (self.words.relations, map(self.relation, relations), len(entities) + 1),
            (self.words.passages, map(self.chunk, chunks), first_chunk),
        )
        parts = []
        for heading, texts, first in sections:
            lines = [f"[{number}] {text}" for number, text in enumerate(texts, first)]
            if lines:
                parts.append("\n".join([f"{heading}:", *lines]))
        numbers: dict[str, str] = {}
        for number, chunk in enumerate(chunks, first_chunk):
            numbers[chunk.document_id] = f"{numbers.get(chunk.document_id, '')}[{number}]"
        if numbers:
            lines = [f"- {self._title(document)}: {cited}" for document, cited in numbers.items()]
            parts.append("\n".join([f"{self.words.sources}:", *lines]))
        return "\n\n".join(parts)

    def _heading(self, chunk: Chunk) -> str:
        return self._title(chunk.document_id) + self.words.page.format(chunk.page)

    def _title(self, document: str) -> str:
        return _line(self.documents.get(document, document))[:LABEL_LENGTH]


def _line(text: str) -> str:
    """A text without line breaks."""
    return text if text.isprintable() else " ".join(text.split())


def _described(description: str) -> str:
    text = _line(description)
    return f": {text}" if text else ""
