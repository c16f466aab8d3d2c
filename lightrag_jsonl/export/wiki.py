"""The graph as a folder of linked Markdown pages, each sentence with the nearest one of the sources.

The pages follow the Open Knowledge Format 0.2 (GoogleCloudPlatform/knowledge-catalog,
okf/SPEC.md): YAML front matter with a `type`, links of standard Markdown, and `index.md`. The
pages are a function of the visible documents alone, without times, row ids and the order of
storing.
"""

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml

from lightrag_jsonl.core.answers import Community, Context
from lightrag_jsonl.core.languages import STATING_NOTHING, Language
from lightrag_jsonl.core.types import (
    UNKNOWN_TYPE,
    Chunk,
    Entity,
    EntityMention,
    Relation,
    RelationMention,
)
from lightrag_jsonl.storage.rows import Mention, MentionRow
from lightrag_jsonl.storage.status import with_documents
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans
from lightrag_jsonl.text.strings import (
    clipped_at_mark,
    clipped_at_word,
    digest,
    joined_lines,
    sanitize,
    single_spaced,
)
from lightrag_jsonl.tracing.citations import beside_passage
from lightrag_jsonl.tracing.cited_passages import JudgedPassage
from lightrag_jsonl.tracing.judging import ClaimJudgement, judge_claim, words_of_names

OKF_VERSION = "0.2"
QUOTE_CHARACTERS = 240
_BOLD = "**"
SUMMARY_CHARACTERS = 160
MOST_PASSAGES = 12  # that a sentence is judged by
NAME_CHARACTERS = 60  # of a file's name; most file systems take 255 bytes
_RESERVED_NAMES = frozenset(
    ["index", "log", "con", "prn", "aux", "nul"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10)]
)
_NOT_IN_FILES = pattern_of(
    r'[\x00-\x1f\x7f<>:"/\\|?*#^\[\]%]+'
)  # of Windows and of Obsidian's links
_MARKDOWN = pattern_of(r"[\\`*_\[\]<>#$~|]|(?<==)=|^(?:[-+]|\d+[.)])(?=\s)", re.MULTILINE)
_NOT_IN_LINKS = pattern_of(r"[\s()<>\\%]")
WIKI_WORDS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("wiki_words.toml").read_text(encoding="utf-8")
)


def wiki_pages(
    view: StoreView, communities: Sequence[Community], language: Language
) -> dict[str, str]:
    """The text of every page by its path in the folder."""
    wiki = _Wiki.read(view, communities, language)
    pages = {"index.md": wiki.index_page()}
    for name in wiki.entities:
        pages[wiki.entity_paths[name]] = wiki.entity_page(name)
    for number, community in enumerate(communities):
        if number in wiki.community_paths:
            pages[wiki.community_paths[number]] = wiki.community_page(number, community)
    for document_id in wiki.document_paths:
        pages[wiki.document_paths[document_id]] = wiki.document_page(document_id)
    return {path: sanitize(text) for path, text in pages.items()}


class _Place(NamedTuple):
    """Characters of a page nearest to a sentence, or the whole passage if no sentence shares a word; the
    characters that differ, and why the sentence is marked.
    """

    chunk_id: str
    start: int
    end: int
    differing: tuple[tuple[int, int], ...] = ()
    reason: str = ""
    is_whole: bool = False


@dataclass(slots=True)
class _Page:
    """A page in the making: lines, and footnotes in the order of their first use."""

    lines: list[str] = field(default_factory=list)
    numbers: dict[_Place, int] = field(default_factory=dict)

    def add_list(self, heading: str, items: Sequence[str]) -> None:
        """A list under a heading; nothing without items."""
        if not items:
            return
        self.lines += [f"## {heading}", ""]
        for item in items:
            self.lines.append(f"- {item}")
        self.lines.append("")

    def mark(self, place: _Place | None) -> str:
        """The footnote mark of a place; (!) before the one of a marked sentence."""
        if place is None:
            return ""
        number = self.numbers.setdefault(place, len(self.numbers) + 1)
        if place.reason:
            return f" (!)[^{number}]"
        return f"[^{number}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wiki:
    """The material of the pages: rows by the names of the entities, and the paths of all pages."""

    words: Mapping[str, str]
    entities: Mapping[str, Entity]
    entity_mentions: Mapping[str, Sequence[MentionRow[EntityMention]]]
    relations: Sequence[tuple[Relation, Sequence[MentionRow[RelationMention]]]]
    relations_by_name: Mapping[str, Sequence[int]]
    names_by_document: Mapping[str, Set[str]]
    chunks: Mapping[int, Chunk]
    chunks_by_id: Mapping[str, Chunk]
    context: Context
    sources: Mapping[str, str | None]
    communities: Sequence[Community]
    entity_paths: Mapping[str, str]
    community_paths: Mapping[int, str]
    document_paths: Mapping[str, str]
    words_of_names: frozenset[str]

    @classmethod
    def read(cls, view: StoreView, communities: Sequence[Community], language: Language) -> "_Wiki":
        """The visible graph of an index."""
        chunks = view.chunks()
        context = with_documents(view, Context(chunks=tuple(chunks.values())))
        documents = sorted(view.documents(), key=lambda document: document.id)
        entity_rows = view.entities(view.listed("entity"))
        entities = sorted(entity_rows.values(), key=lambda entity: name_key(entity.name))
        relation_rows = view.relations(view.listed("relation"))
        relation_mentions = _by_owner(view.relation_mentions())
        heaviest_first = sorted(relation_rows, key=lambda row: _relation_order(relation_rows[row]))
        relations = [(relation_rows[row], relation_mentions[row]) for row in heaviest_first]
        relations_by_name = defaultdict[str, list[int]](list)
        for number, (relation, _) in enumerate(relations):
            relations_by_name[relation.source].append(number)
            relations_by_name[relation.target].append(number)
        entity_mentions = _by_owner(view.entity_mentions())
        names_by_document = defaultdict[str, set[str]](set)
        for row, entity in entity_rows.items():
            for mention in entity_mentions[row]:
                document_id = chunks[mention.chunk].document_id
                names_by_document[document_id].add(entity.name)
        return cls(
            words=WIKI_WORDS[language],
            entities={entity.name: entity for entity in entities},
            entity_mentions={
                entity.name: entity_mentions[row] for row, entity in entity_rows.items()
            },
            relations=relations,
            relations_by_name=relations_by_name,
            names_by_document=names_by_document,
            chunks=chunks,
            chunks_by_id={chunk.id: chunk for chunk in chunks.values()},
            context=context,
            sources={document.id: document.source for document in documents},
            communities=communities,
            entity_paths={
                entity.name: f"entities/{_file_name(entity.name)}" for entity in entities
            },
            community_paths=_community_paths(communities),
            document_paths={
                document.id: f"documents/{_document_file(document.id, context)}"
                for document in documents
            },
            words_of_names=words_of_names(entity.name for entity in entities),
        )

    # ── pages ───────────────────────────────────────────────────────────────────

    def index_page(self) -> str:
        """The list of all pages."""
        page = _Page()
        communities = self._outer_communities()
        links = [_link(community.title, path) for community, path in communities]
        page.add_list(self.words["communities"], links)
        documents = [(self._title(id), path) for id, path in self.document_paths.items()]
        links = [_link(title, path) for title, path in sorted(documents)]
        page.add_list(self.words["documents"], links)
        entities: list[str] = []
        for name, entity in self.entities.items():
            text = name if entity.type in ("", UNKNOWN_TYPE) else f"{name} ({entity.type})"
            entities.append(_link(text, self.entity_paths[name]))
        page.add_list(self.words["entities"], entities)
        return self._text({"okf_version": OKF_VERSION}, "", page)

    def entity_page(self, name: str) -> str:
        """The page of an entity: description, attributes, relations and community."""
        entity = self.entities[name]
        mentions = self.entity_mentions[name]
        page = _Page()
        page.lines += [self._confirmed(entity.description, mentions, page), ""]
        attributes: list[str] = []
        for attribute in entity.attributes:
            stating = [row for row in mentions if attribute in row.mention.attributes]
            key, value = attribute
            attributes.append(self._with_place(f"{key}: {value}", stating or mentions, page))
        page.add_list(self.words["attributes"], attributes)
        self._add_relations(name, page)
        links = [
            _link(community.title, f"../{path}")
            for community, path in self._outer_communities()
            if name in community.entities
        ]
        page.add_list(self.words["communities"], links)
        front_matter = {
            "type": entity.type or "entity",
            "title": name,
            "description": clipped_at_word(entity.description, SUMMARY_CHARACTERS),
            "aliases": list(entity.aliases),
        }
        return self._text(front_matter, name, page)

    def community_page(self, number: int, community: Community) -> str:
        """The page of a community: the report, if any, the entities and the parts."""
        page = _Page()
        title = community.title
        if report := community.report:
            title = report.title
            chunks = self._present_chunks(community.chunk_ids)
            summary = [
                self._with_nearest(sentence, chunks, page)
                for sentence in _sentences(report.summary)
            ]
            page.lines += [" ".join(summary), ""]
            for finding in report.findings:
                chunks = self._present_chunks(finding.chunk_ids)
                page.lines.append(f"- {self._with_nearest(finding.text, chunks, page)}")
            page.lines.append("")
        entities: list[str] = []
        for name in community.entities:
            sentences = _sentences(self.entities[name].description)[:1]
            description = self._confirmed("".join(sentences), self.entity_mentions[name], page)
            entities.append(f"{self._entity_link(name)}: {description}")
        page.add_list(self.words["entities"], entities)
        parts = [
            _link(self.communities[part].title, Path(self.community_paths[part]).name)
            for part in self._parts(number)
        ]
        page.add_list(self.words["parts"], parts)
        front_matter = {"type": self.words["community"], "title": title}
        return self._text(front_matter, title, page)

    def document_page(self, document_id: str) -> str:
        """The page of a document: origin and entities."""
        title = self._title(document_id)
        page = _Page()
        names = self.names_by_document.get(document_id, ())
        links = [self._entity_link(name) for name in self.entities if name in names]
        page.add_list(self.words["entities"], links)
        front_matter = {
            "type": self.words["document"],
            "title": title,
            "resource": self.sources[document_id] or document_id,
            "timestamp": self.context.dates.get(document_id, ""),
        }
        return self._text(front_matter, title, page)

    # ── parts of pages ──────────────────────────────────────────────────────────

    def _outer_communities(self) -> Iterator[tuple[Community, str]]:
        """The communities that are no parts of others, with their paths."""
        for number, path in self.community_paths.items():
            community = self.communities[number]
            if community.level == 0:
                yield community, path

    def _title(self, document_id: str) -> str:
        return self.context.documents.get(document_id, document_id)

    def _add_relations(self, name: str, page: _Page) -> None:
        """The relations of an entity with their descriptions; mere common mentions as links alone."""
        stated: list[str] = []
        together: list[str] = []
        for number in self.relations_by_name.get(name, ()):
            relation, mentions = self.relations[number]
            end = relation.target if relation.source == name else relation.source
            keywords = [word for word in relation.keywords if word not in STATING_NOTHING]
            if not keywords and not relation.reverse_keywords:
                place, _ = self._nearest(relation.description, self._chunks_of(mentions))
                together.append(f"{self._entity_link(end)}{page.mark(place)}")
                continue
            source = self._entity_link(relation.source)
            target = self._entity_link(relation.target)
            predicate = _escaped(self.words["separator"].join(keywords or relation.keywords))
            description = self._confirmed(relation.description, mentions, page)
            stated.append(f"{source} → {predicate} → {target}: {description}")
        page.add_list(self.words["relations"], stated)
        page.add_list(self.words["together"], together)

    def _confirmed(
        self,
        text: str,
        mentions: Sequence[MentionRow[EntityMention]] | Sequence[MentionRow[RelationMention]],
        page: _Page,
    ) -> str:
        """A text with footnotes after each sentence."""
        pieces = [self._with_place(sentence, mentions, page) for sentence in _sentences(text)]
        return " ".join(pieces)

    def _with_place(
        self,
        sentence: str,
        mentions: Sequence[MentionRow[EntityMention]] | Sequence[MentionRow[RelationMention]],
        page: _Page,
    ) -> str:
        """A sentence of a description with the footnote of its nearest sentence in the texts."""
        stating = [row for row in mentions if sentence in row.mention.description]
        return self._with_nearest(sentence, self._chunks_of(stating or mentions), page)

    def _with_nearest(self, sentence: str, chunks: Sequence[Chunk], page: _Page) -> str:
        """A sentence with a footnote; words that do not stand in the texts are bold."""
        place, judgement = self._nearest(sentence, chunks)
        return _with_bold(sentence, judgement.differing) + page.mark(place)

    def _nearest(
        self, sentence: str, chunks: Sequence[Chunk]
    ) -> tuple[_Place | None, ClaimJudgement]:
        """The place nearest to a sentence, or else the first passage, and the judgement of the sentence."""
        passages = [
            JudgedPassage(chunk.text, beside_passage(chunk, self.context)) for chunk in chunks
        ]
        judgement = judge_claim(sentence, passages, known_words=self.words_of_names)
        if not chunks:
            return None, judgement
        chunk = chunks[0]
        start = 0
        end = len(chunk.text)
        nearest = judgement.nearest
        if nearest is not None:
            chunk = chunks[nearest.passage]
            start = nearest.start
            end = nearest.end
        differing = [(first - start, last - start) for first, last in judgement.instead]
        place = _Place(
            chunk_id=chunk.id,
            start=chunk.start + start,
            end=chunk.start + end,
            differing=tuple(differing),
            reason=judgement.reason,
            is_whole=nearest is None,
        )
        return place, judgement

    def _chunks_of(
        self, mentions: Sequence[MentionRow[EntityMention] | MentionRow[RelationMention]]
    ) -> list[Chunk]:
        """The passages of mentions, each once."""
        rows = dict.fromkeys([row.chunk for row in mentions])
        return [self.chunks[row] for row in rows][:MOST_PASSAGES]

    def _present_chunks(self, ids: Iterable[str]) -> list[Chunk]:
        """The passages with these ids that the index still has."""
        return [self.chunks_by_id[id] for id in ids if id in self.chunks_by_id]

    def _entity_link(self, name: str) -> str:
        return _link(name, f"../{self.entity_paths[name]}")

    def _parts(self, number: int) -> list[int]:
        """The numbers of the parts of a community: the following communities of the next level."""
        parts: list[int] = []
        level = self.communities[number].level
        for following in range(number + 1, len(self.communities)):
            if self.communities[following].level <= level:
                break
            is_part = self.communities[following].level == level + 1
            if is_part and following in self.community_paths:
                parts.append(following)
        return parts

    def _text(self, front_matter: Mapping[str, object], title: str, page: _Page) -> str:
        """A page as Markdown: front matter, title, lines and footnotes."""
        present = {key: value for key, value in front_matter.items() if value}
        header = yaml.safe_dump(present, allow_unicode=True, sort_keys=False, width=10_000)
        lines = ["---", header.rstrip("\n"), "---", ""]
        if title:
            lines += [f"# {_escaped(title)}", ""]
        lines += page.lines
        for place, number in page.numbers.items():
            lines.append(f"[^{number}]: {self._footnote(place)}")
        return "\n".join(lines).rstrip("\n") + "\n"

    def _footnote(self, place: _Place) -> str:
        """The document, the page and the characters of a place, with the sentence there."""
        chunk = self.chunks_by_id[place.chunk_id]
        document_id = chunk.document_id
        parts = [_link(self._title(document_id), f"../{self.document_paths[document_id]}")]
        if document_id in self.context.paged:
            parts.append(self.words["page"].format(chunk.page))
        parts.append(self.words["characters"].format(place.start, place.end))
        if not place.is_whole:
            quoted = chunk.text[place.start - chunk.start : place.end - chunk.start]
            marked = _with_bold(quoted, place.differing)
            excerpt = clipped_at_mark(marked, QUOTE_CHARACTERS, _BOLD)
            if excerpt.count(_BOLD) % 2:  # cut within bold words
                excerpt += _BOLD
            parts.append(self.words["quote"].format(excerpt))
        if place.reason:
            parts.append(self.words["marked"].format(_escaped(place.reason)))
        return "".join(parts)


def _relation_order(relation: Relation) -> tuple[float, str, str]:
    return -relation.weight, name_key(relation.source), name_key(relation.target)


def _by_owner(
    rows: Iterable[MentionRow[Mention]],
) -> defaultdict[int, list[MentionRow[Mention]]]:
    """Mentions by the row of the entity or relation, in the order of document and text."""
    rows_by_owner = defaultdict[int, list[MentionRow[Mention]]](list)
    for row in sorted(rows, key=lambda row: row.position):
        if row.owner is not None:
            rows_by_owner[row.owner].append(row)
    return rows_by_owner


def _with_bold(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text without markup, in which the characters of these spans are bold."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if position <= start < end <= len(text):
            pieces.append(_escaped_piece(text[position:start]))
            pieces.append(_BOLD + _escaped(text[start:end]) + _BOLD)
            position = end
    pieces.append(_escaped_piece(text[position:]))
    return single_spaced("".join(pieces))


def _escaped_piece(text: str) -> str:
    """A part of a line without markup, with the spaces at its ends."""
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and text.strip() else ""
    return f"{before}{_escaped(text)}{after}"


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def _community_paths(communities: Sequence[Community]) -> dict[int, str]:
    """The path of each community with at least two entities, by its number; of equal titles with a number."""
    paths: dict[int, str] = {}
    for number, community in enumerate(communities):
        if len(community.entities) < 2:
            continue
        stem = _file_name(community.title).removesuffix(".md")
        path = f"communities/{stem}.md"
        count = 2
        while path in paths.values():
            path = f"communities/{stem} ({count}).md"
            count += 1
        paths[number] = path
    return paths


def _document_file(document_id: str, context: Context) -> str:
    """The file of a document: the title, and a digest of the id, since titles may be equal."""
    title = context.documents.get(document_id, document_id)
    return f"{_readable(title)}-{digest(document_id)[:6]}.md"


def _file_name(name: str) -> str:
    """The file of a name, for all file systems; with a digest of a name unfit for a file."""
    readable = _readable(name)
    if readable == name and readable.casefold() not in _RESERVED_NAMES:
        return f"{name}.md"
    return f"{readable}-{digest(name_key(name))[:6]}.md"


def _readable(name: str) -> str:
    """A name of limited length, without characters forbidden in files and links."""
    plain = unicodedata.normalize("NFC", _NOT_IN_FILES.sub(" ", name))
    beginning = single_spaced(plain)[:NAME_CHARACTERS]
    return beginning.strip(" .") or "-"


def _link(text: str, path: str) -> str:
    target = _NOT_IN_LINKS.sub(lambda match: f"%{ord(match[0]):02X}", path)
    return f"[{_escaped(text)}]({target})"


def _escaped(text: str) -> str:
    """A text on a single line, without markup for Markdown."""
    return _MARKDOWN.sub(_escaped_mark, joined_lines(text))


def _escaped_mark(match: re.Match[str]) -> str:
    """A mark behind a backslash; of "1." only the point is one."""
    mark = match[0]
    return f"{mark[:-1]}\\{mark[-1]}"
