"""Converts a foreign index to documents of ours, with the records that their chunks state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lightrag_jsonl.migration.answers import Pairing, Subject, pair, subject
from lightrag_jsonl.migration.folder import ForeignEdge, ForeignIndex, ForeignNode, unquoted
from lightrag_jsonl.migration.placing import Placed, Unmapped, place
from lightrag_jsonl.storage.pending import PendingDocument
from lightrag_jsonl.text import clean_name, digest, name_key, search_terms
from lightrag_jsonl.types import UNKNOWN_TYPE, Document, Json, Record

NO_SOURCE_TITLE = "imported without a source"
STRENGTHS = (1.0, 10.0)  # the limits of one claim's strength


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there was, or is now."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class Mapped:
    """A foreign index, converted.

    `kept_apart` holds (name there, name here) of entities that were separate there but have the
    same name key here. `documents` may contain an additional one for entities and relations that
    named no known chunk.
    """

    documents: tuple[PendingDocument, ...]
    read: Counts
    unmapped: tuple[Unmapped, ...]
    kept_apart: tuple[tuple[str, str], ...]
    without_source: int


def map_index(index: ForeignIndex, *, at: float) -> Mapped:
    """Turn nodes and edges into claims of chunks, with each description at the chunk it came from."""
    placed, odd = place(index)
    work = _Mapping(index, pair(index), placed, odd)
    for node in index.nodes:
        work.node(node)
    for edge in index.edges:
        work.edge(edge)
    if index.reports:
        work.odd.append(
            Unmapped("reports", f"{index.reports} community reports", "there are none here")
        )
    read = Counts(len(index.documents), len(index.chunks), len(index.nodes), len(index.edges))
    return Mapped(
        tuple(work.pending(at)),
        read,
        tuple(work.odd),
        tuple(work.apart),
        len({text for text, _ in work.homeless}),
    )


@dataclass(slots=True)
class _Mapping:
    """The records of each document, collected so far."""

    index: ForeignIndex
    pairing: Pairing
    placed: list[Placed]
    odd: list[Unmapped]
    names: dict[str, str] = field(default_factory=dict)
    apart: list[tuple[str, str]] = field(default_factory=list)
    homeless: list[tuple[str, Record]] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _last: dict[str, int] = field(default_factory=dict)
    _where: dict[str, int] = field(default_factory=dict)
    _records: list[list[Record]] = field(default_factory=list)
    _terms: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._records = [[] for _ in self.placed]
        self._where = {
            chunk: number for number, one in enumerate(self.placed) for chunk in one.index
        }

    def node(self, node: ForeignNode) -> None:
        """A claim for each chunk that names the entity, and for each description it gave."""
        name = self._name(node.name)
        if name is None:
            self.odd.append(Unmapped("entity", node.name, "nothing is left of its name"))
            return
        kind = clean_name(node.kind) or UNKNOWN_TYPE
        for chunk, text in self._claims(subject(node.name), node):
            self._say(
                chunk,
                {"type": "entity", "name": name, "entity_type": kind, "description": text},
                f"{name}: {' '.join(node.descriptions)}",
            )

    def edge(self, edge: ForeignEdge) -> None:
        """A claim for each chunk that states the relation; its weight is distributed among them."""
        source, target = self.names.get(edge.source), self.names.get(edge.target)
        if source is None or target is None or source == target:
            reason = "it joins an entity with itself" if source else "an end has no name"
            self.odd.append(Unmapped("relation", f"{edge.source} — {edge.target}", reason))
            return
        about, words = subject(edge.source, edge.target), _keywords(edge.keywords)
        claims = self._claims(about, edge)
        strength = self._strength(edge, len(claims))
        for chunk, text in claims:
            given: list[Json] = [*(self.pairing.keywords(about, chunk, words) if chunk else words)]
            self._say(
                chunk,
                {
                    "type": "relationship",
                    "source": source,
                    "target": target,
                    "keywords": given,
                    "description": text,
                    "strength": strength,
                },
                f"{source} — {target}: {' '.join(edge.descriptions)}",
            )

    def pending(self, at: float) -> Iterable[PendingDocument]:
        """The documents, ready to be taken in."""
        for one, records in zip(self.placed, self._records, strict=True):
            yield PendingDocument(one.document, tuple(records), tuple(one.pieces), at)
        if self.homeless:
            pages = tuple(dict.fromkeys(text for text, _ in self.homeless))
            number = {text: index for index, text in enumerate(pages)}
            document = Document("", id="doc-" + digest(*pages), title=NO_SOURCE_TITLE, pages=pages)
            said = tuple({**record, "chunk": number[text]} for text, record in self.homeless)
            yield PendingDocument(document, said, pages, at)

    # ── parts ───────────────────────────────────────────────────────────────────

    def _name(self, raw: str) -> str | None:
        """A node's name here; a number is added if an earlier node has the same name key."""
        name = clean_name(raw)
        if not name:
            return None
        first = name_key(name)
        while name_key(name) in self._keys:
            self._last[first] = self._last.get(first, 1) + 1
            name = f"{clean_name(raw)} ({self._last[first]})"
        if name_key(name) != first:
            self.apart.append((raw, name))
        self._keys.add(name_key(name))
        self.names[raw] = name
        return name

    def _claims(
        self, about: Subject, one: ForeignNode | ForeignEdge
    ) -> list[tuple[str | None, str]]:
        """(chunk, description) pairs; a chunk without a description gets an empty one.

        If no cached answer tells, a description goes to the chunk that shares most words with it,
        preferably one without a description. If no chunk is known, the chunks are None.
        """
        held: dict[str, list[str]] = {chunk: [] for chunk in one.chunks if chunk in self._where}
        if not held:
            return [(None, text) for text in one.descriptions or ("",)]
        left: list[tuple[int, str]] = []
        for position, text in enumerate(one.descriptions):
            told = [chunk for chunk in self.pairing.of(about, text) if chunk in held]
            for chunk in told:
                held[chunk].append(text)
            if not told:
                left.append((position, text))
        for position, text in left:
            held[self._likeliest(text, position, held)].append(text)
        return [(chunk, text) for chunk, texts in held.items() for text in texts or [""]]

    def _likeliest(self, text: str, position: int, held: Mapping[str, Sequence[str]]) -> str:
        free = [chunk for chunk, texts in held.items() if not texts] or list(held)
        if len(free) == 1:
            return free[0]
        at = list(held)[position] if position < len(held) else free[0]
        terms = frozenset(search_terms(text))
        return max(free, key=lambda chunk: (len(terms & self._words_of(chunk)), chunk == at))

    def _words_of(self, chunk: str) -> frozenset[str]:
        if chunk not in self._terms:
            self._terms[chunk] = frozenset(search_terms(self.index.chunks[chunk].text))
        return self._terms[chunk]

    def _strength(self, edge: ForeignEdge, claims: int) -> float:
        """The strength of each claim, so that their sum is the edge's weight if possible."""
        share = edge.weight / claims
        strength = min(max(share, STRENGTHS[0]), STRENGTHS[1])
        if strength != share:
            reason = f"its weight {edge.weight:g} became {strength * claims:g}"
            self.odd.append(Unmapped("weight", f"{edge.source} — {edge.target}", reason))
        return strength

    def _say(self, chunk: str | None, record: Record, text: str) -> None:
        """Add a record to its chunk; without a chunk, it gets a page of its own that states it."""
        if chunk is None:
            self.homeless.append((text, record))
            return
        number = self._where[chunk]
        self._records[number].append({**record, "chunk": self.placed[number].index[chunk]})


def _keywords(parts: Iterable[str]) -> list[str]:
    """Keywords that were joined by commas (in old versions also by the separator)."""
    words = [unquoted(word) for part in parts for word in re.split(r"[,，、;；]", part)]
    return list(dict.fromkeys(word for word in words if word))
