"""Writes a context as the text that a model reads: passages, entities, relations, sources."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.answers import Community, Context
from lightrag_jsonl.core.languages import FixedWords
from lightrag_jsonl.core.text import on_one_line
from lightrag_jsonl.core.types import (
    HEADING_SEPARATOR,
    UNKNOWN_TYPE,
    Chunk,
    Entity,
    Excerpt,
    Relation,
)

ELLIPSIS = "…"  # for what is left out between two excerpts
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
        return f"{self.mark} [{number}] {self._place(chunk)}{self.words.colon.rstrip()}"

    def _place(self, chunk: Chunk) -> str:
        """The title, date, heading path and page of a chunk."""
        parts = (self._title(chunk.document_id), self._section(chunk))
        return self.words.comma.join(filter(None, dict.fromkeys(parts)))

    def _section(self, chunk: Chunk) -> str:
        """The heading path and page of a chunk."""
        page = ""
        if chunk.document_id in self.context.paged:
            page = self.words.page.format(chunk.page)
        heading = chunk.heading.removeprefix(f"{chunk.title}{HEADING_SEPARATOR}")
        parts = (safe_line(heading)[:LABEL_LENGTH], page)
        return self.words.comma.join(filter(None, parts))

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

    def overview_headings(self) -> list[str]:
        """The first line, and the headings of both sections of an overview."""
        sections = (self.words.communities, self.words.excerpts)
        headings = [f"{self.mark} {heading}{self.words.colon}" for heading in sections]
        return [f"{self.words.first_line}{self.mark}", *headings]

    def overview(
        self,
        communities: Sequence[Community],
        chunks: Sequence[Chunk],
        excerpts: Mapping[str, Sequence[Excerpt]],
    ) -> str:
        """The complete text of an overview, from the chunks with excerpts, by chunk id."""
        numbers = {chunk.id: number for number, chunk in enumerate(chunks, 1)}
        sections = (
            [self.community(community, numbers) for community in communities],
            self._excerpts(chunks, excerpts),
        )
        first_line, *headings = self.overview_headings()
        texts = [
            "\n".join([heading.rstrip(), *lines])
            for heading, lines in zip(headings, sections, strict=True)
            if lines
        ]
        return "\n\n".join([first_line, *texts]) if texts else ""

    def community(self, community: Community, numbers: Mapping[str, int]) -> str:
        """A community on one line: names, and the numbers of its passages."""
        names = "".join([self.listed_name(name) for name in community.entities])
        passages = [f"[{numbers[id]}]" for id in community.chunk_ids if id in numbers]
        report = f"{self.words.colon}{safe_line(community.report)}" if community.report else ""
        return f"- {names.rstrip(self.words.list_comma)} {''.join(passages)}{report}"

    def listed_name(self, name: str) -> str:
        """A name in a list of names."""
        return f"{safe_line(name)}{self.words.list_comma}"

    def _excerpts(
        self, chunks: Sequence[Chunk], excerpts: Mapping[str, Sequence[Excerpt]]
    ) -> list[str]:
        """A line for each chunk; title, path of headings and page stand where they change."""
        lines: list[str] = []
        title = ""
        section = ""
        for number, chunk in enumerate(chunks, 1):
            chunk_title = self._title(chunk.document_id)
            chunk_section = self._section(chunk)
            place = chunk_section if chunk_section != section else ""
            if chunk_title != title:
                place = self._place(chunk)
            title = chunk_title
            section = chunk_section
            text = safe_line(excerpt_text(chunk, excerpts[chunk.id]))
            lines.append(f"[{number}] {place}{self.words.colon if place else ''}{text}")
        return lines

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


def excerpt_text(chunk: Chunk, spans: Sequence[Excerpt]) -> str:
    """The spans of a chunk's text, with an ellipsis for what is left out between them."""
    pieces: list[str] = []
    last_end = 0
    for start, end in spans:
        if pieces:
            gap = chunk.text[last_end:start]
            pieces.append(f" {ELLIPSIS} " if gap.strip() else gap)
        pieces.append(chunk.text[start:end])
        last_end = end
    return "".join(pieces)


def escaped(text: str) -> str:
    """A document's text with a backslash before each bracket that opens a number."""
    if "[" in text or "［" in text or "【" in text:
        return _OPENED_NUMBER.sub(r"\\\g<0>", text)
    return text


def safe_line(text: str) -> str:
    """A text on one line, with escaped brackets, so that nothing in it looks like an item."""
    return escaped(on_one_line(text))
