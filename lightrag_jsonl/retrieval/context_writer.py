"""Writes a context as the text that a model reads: passages, entities, relations, sources."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.languages import FixedWords
from lightrag_jsonl.core.text import on_one_line
from lightrag_jsonl.core.types import HEADING_SEPARATOR, UNKNOWN_TYPE, Chunk, Entity, Relation

LABEL_LENGTH = 200  # characters; longer titles are cut, so that no title fills a context

_OPENED_NUMBER = re.compile(r"(?<!\\)[\[［【](?=[^\w\[\]］】]{0,9}\d)")


@dataclass(frozen=True, slots=True)
class ContextWriter:
    """Writes items, without their numbers, and complete contexts in one language.

    `context` has the titles and dates of the documents; `mark` begins each heading, so that no
    document can pose as a heading.
    """

    words: FixedWords
    context: Context
    mark: str

    def entity(self, entity: Entity) -> str:
        """An entity on one line."""
        entity_type = ""
        if entity.type and entity.type != UNKNOWN_TYPE:
            entity_type = self.words.brackets.format(safe_line(entity.type))
        return f"{safe_line(entity.name)}{entity_type}{self._described(entity.description)}"

    def relation(self, relation: Relation) -> str:
        """A relation on one line."""
        source = safe_line(relation.source)
        target = safe_line(relation.target)
        directions = f"{source} — {self._predicate(relation.keywords)} → {target}"
        if relation.reverse_keywords:
            reverse = f"{target} — {self._predicate(relation.reverse_keywords)} → {source}"
            directions += f"{self.words.comma}{reverse}"
        weight = self.words.brackets.format(self.words.weight.format(relation.weight))
        return f"{directions}{weight}{self._described(relation.description)}"

    def frame(self, chunk: Chunk) -> str:
        """The text around a chunk's own text: its heading, and its entry among the sources."""
        title = self._title(chunk.document_id)
        return f"{self.heading(99, chunk)}\n- {title}{self.words.colon}[99]"

    def headings(self) -> list[str]:
        """The first line, and the headings of all sections."""
        sections = [f"{self.mark} {heading}{self.words.colon}" for heading in self.words.headings]
        return [f"{self.words.first_line}{self.mark}", *sections]

    def heading(self, number: int, chunk: Chunk) -> str:
        """The line above a chunk: number, title and date, heading path, page."""
        page = ""
        if chunk.document_id in self.context.paged:
            page = self.words.page.format(chunk.page)
        heading = chunk.heading.removeprefix(f"{chunk.title}{HEADING_SEPARATOR}")
        parts = [self._title(chunk.document_id), safe_line(heading)[:LABEL_LENGTH], page]
        place = self.words.comma.join(filter(None, dict.fromkeys(parts)))
        return f"{self.mark} [{number}] {place}{self.words.colon.rstrip()}"

    def text(
        self, entities: Sequence[str], relations: Sequence[str], chunks: Sequence[Chunk]
    ) -> str:
        """The complete text, from lines and chunks; a section without items has no heading."""
        facts = [
            f"[{number}] {line}"
            for number, line in enumerate([*entities, *relations], len(chunks) + 1)
        ]
        passages = [
            f"{self.heading(number, chunk)}\n{escaped(chunk.text)}"
            for number, chunk in enumerate(chunks, 1)
        ]
        sections = (
            passages,
            facts[: len(entities)],
            facts[len(entities) :],
            self._sources(chunks),
        )
        first_line, *headings = self.headings()
        texts = [
            "\n".join([heading.rstrip(), *lines])
            for heading, lines in zip(headings, sections, strict=True)
            if lines
        ]
        return "\n\n".join([first_line, *texts]) if texts else ""

    def _sources(self, chunks: Sequence[Chunk]) -> list[str]:
        """A line for each document: its title, and the numbers of its chunks."""
        numbers_by_document: dict[str, str] = {}
        for number, chunk in enumerate(chunks, 1):
            numbers = numbers_by_document.get(chunk.document_id, "")
            numbers_by_document[chunk.document_id] = f"{numbers}[{number}]"
        return [
            f"- {self._title(document_id)}{self.words.colon}{numbers}"
            for document_id, numbers in numbers_by_document.items()
        ]

    def _predicate(self, keywords: Sequence[str]) -> str:
        return safe_line(self.words.keyword_comma.join(keywords)) or self.words.related

    def _title(self, document_id: str) -> str:
        """A document's title with its date."""
        title = safe_line(self.context.documents.get(document_id, document_id))[:LABEL_LENGTH]
        date = safe_line(self.context.dates.get(document_id, ""))[:LABEL_LENGTH]
        return title + (self.words.brackets.format(date) if date else "")

    def _described(self, description: str) -> str:
        text = safe_line(description)
        return f"{self.words.colon}{text}" if text else ""


def escaped(text: str) -> str:
    """A document's text with a backslash before each bracket that opens a number."""
    if "[" in text or "［" in text or "【" in text:
        return _OPENED_NUMBER.sub(r"\\\g<0>", text)
    return text


def safe_line(text: str) -> str:
    """A text on one line, with escaped brackets, so that nothing in it looks like an item."""
    return escaped(on_one_line(text))
