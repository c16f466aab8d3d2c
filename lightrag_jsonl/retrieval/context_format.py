"""Writes a context as text: numbered entities, relations and passages, then their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lightrag_jsonl.core.types import Chunk, Entity, Language, Relation

LABEL_LENGTH = 200  # characters; longer titles are cut


class Words(NamedTuple):
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


class ContextFormatter(NamedTuple):
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

    def frame(self, chunk: Chunk) -> str:
        """The text around a chunk's own: its heading, and its entry among the sources."""
        return f"[99] {self._heading(chunk)}:\n- {self._title(chunk.document_id)}: [99]"

    def headings(self) -> str:
        """The headings of all sections."""
        return ":\n\n".join(self.words[:4]) + ":"

    def prompt(
        self, entities: Sequence[str], relations: Sequence[str], chunks: Sequence[Chunk]
    ) -> str:
        """The whole text, given the lines of entities and relations; a section without items has no
        heading.
        """
        first_chunk = len(entities) + len(relations) + 1
        passages = [f"{self._heading(chunk)}:\n{chunk.text}" for chunk in chunks]
        numbers: dict[str, str] = {}
        for number, chunk in enumerate(chunks, first_chunk):
            numbers[chunk.document_id] = f"{numbers.get(chunk.document_id, '')}[{number}]"
        sections = (
            _numbered(entities, 1),
            _numbered(relations, len(entities) + 1),
            _numbered(passages, first_chunk),
            [f"- {self._title(id)}: {cited}" for id, cited in numbers.items()],
        )
        headed = zip(self.words[:4], sections, strict=True)
        return "\n\n".join(["\n".join([f"{head}:", *lines]) for head, lines in headed if lines])

    def _heading(self, chunk: Chunk) -> str:
        return self._title(chunk.document_id) + self.words.page.format(chunk.page)

    def _title(self, document: str) -> str:
        return _line(self.documents.get(document, document))[:LABEL_LENGTH]


def _numbered(texts: Sequence[str], first: int) -> list[str]:
    return [f"[{number}] {text}" for number, text in enumerate(texts, first)]


def _line(text: str) -> str:
    """A text without line breaks."""
    return text if text.isprintable() else " ".join(text.split())


def _described(description: str) -> str:
    text = _line(description)
    return f": {text}" if text else ""
