"""How a context is written: numbered entities, relations and passages, then their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import count

from lightrag_jsonl.types import Chunk, Entity, Relation

LABEL_LENGTH = 200  # characters of a title that are shown
A_NUMBER = "[99] "  # such as stands before each item


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the context's own text in one language."""

    entities: str
    relations: str
    passages: str
    sources: str
    page: str
    weight: str
    separator: str


WORDS: Mapping[str, Words] = {
    "en": Words("Entities", "Relations", "Passages", "Sources", ", page {}", "weight {:g}", ", "),
    "zh": Words("实体", "关系", "原文", "来源", "，第 {} 页", "权重 {:g}", "，"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """What was retrieved, best first; `documents` maps document ids to what they are called."""

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
    """Writes items and whole contexts in one language.

    A fact's line is the same string each time, as long as it is remembered: nobody has to read it
    to know it again.
    """

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

    def passage(self, number: int, chunk: Chunk) -> str:
        """A chunk with its number: long texts are not put together twice."""
        page = self.words.page.format(chunk.page)
        return f"[{number}] {self.title(chunk.document_id)}{page}:\n{chunk.text}"

    def frame(self, chunk: Chunk) -> str:
        """What a chunk costs beside its own text: its heading, and its place among the sources."""
        title = self.title(chunk.document_id)
        return f"{A_NUMBER}{title}{self.words.page.format(chunk.page)}:\n- {title}: {A_NUMBER}"

    def headings(self) -> str:
        """The headings of all sections."""
        words = self.words
        return f"{words.entities}:\n\n{words.relations}:\n\n{words.passages}:\n\n{words.sources}:"

    def title(self, document: str) -> str:
        return _line(self.documents.get(document, document))[:LABEL_LENGTH]

    def sections(self, found: Found) -> tuple[str, str, str]:
        """The texts of entities, relations and passages, "" where there are none."""
        entities = map(self.entity, found.entities)
        relations, relations_from = map(self.relation, found.relations), len(found.entities) + 1
        chunks_from = relations_from + len(found.relations)
        return (
            _section(self.words.entities, _numbered(entities, 1)),
            _section(self.words.relations, _numbered(relations, relations_from)),
            _section(
                self.words.passages, list(map(self.passage, count(chunks_from), found.chunks))
            ),
        )

    def sources(self, found: Found) -> str:
        """The documents of the passages, each with its numbers."""
        numbers: dict[str, list[int]] = {}
        start = len(found.entities) + len(found.relations) + 1
        for number, chunk in enumerate(found.chunks, start):
            numbers.setdefault(chunk.document_id, []).append(number)
        lines = [
            f"- {self.title(document)}: {''.join(f'[{number}]' for number in found_at)}"
            for document, found_at in numbers.items()
        ]
        return "\n".join([f"{self.words.sources}:", *lines]) if lines else ""

    def prompt(self, found: Found, sections: tuple[str, str, str]) -> str:
        """The whole text: the sections that `sections` wrote, and the sources."""
        parts = [*sections, self.sources(found)]
        return "\n\n".join(part for part in parts if part)


# ── helpers ─────────────────────────────────────────────────────────────────────


def _numbered(lines: Iterable[str], start: int) -> list[str]:
    return [f"[{number}] {line}" for number, line in enumerate(lines, start)]


def _section(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{heading}:", *lines]) if lines else ""


REMEMBERED = 10_000  # lines of each kind, about 5 MB: a fact is counted, shown, and asked for again


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
