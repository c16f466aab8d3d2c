"""A foreign index as documents of ours, each with the records that its chunks said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from lightrag_jsonl.migration.answers import Pairing, Subject, pair, subject
from lightrag_jsonl.migration.folder import ForeignEdge, ForeignIndex, ForeignNode
from lightrag_jsonl.migration.placing import Placed, Unmapped, place
from lightrag_jsonl.storage.documents import PendingDocument
from lightrag_jsonl.text import clean_name, digest, name_key, search_terms
from lightrag_jsonl.types import Document, Json, Record

UNKNOWN_TYPE = "unknown"
NO_SOURCE_TITLE = "imported without a source"
STRENGTHS = (1.0, 10.0)  # what one claim may weigh


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there was, or is now."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a foreign index amounts to here.

    `kept_apart` are (name there, name here) of entities that were two there though our folding
    would make them one. `documents` may hold one that was not there: what named no known chunk.
    """

    documents: tuple[PendingDocument, ...]
    read: Counts
    unmapped: tuple[Unmapped, ...]
    kept_apart: tuple[tuple[str, str], ...]


def map_index(index: ForeignIndex, *, at: float) -> Mapped:
    """Turn nodes and edges into claims of chunks, descriptions with the chunk they came from."""
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
    read = Counts(
        len(index.documents), len(index.chunks), len(index.nodes), len(index.edges)
    )
    return Mapped(tuple(work.pending(at)), read, tuple(work.odd), tuple(work.apart))


@dataclass(slots=True)
class _Mapping:
    """The records of each document, as far as they have been written."""

    index: ForeignIndex
    pairing: Pairing
    placed: list[Placed]
    odd: list[Unmapped]
    names: dict[str, str] = field(default_factory=dict)
    apart: list[tuple[str, str]] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _where: dict[str, int] = field(default_factory=dict)
    _records: list[list[Record]] = field(default_factory=list)
    _terms: dict[str, frozenset[str]] = field(default_factory=dict)
    _homeless: list[tuple[str, Record]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._records = [[] for _ in self.placed]
        self._where = {
            chunk: number for number, one in enumerate(self.placed) for chunk in one.index
        }

    def node(self, node: ForeignNode) -> None:
        """One claim for each chunk that names the entity, and each description it gave."""
        name = self._name(node.name)
        if name is None:
            self.odd.append(Unmapped("entity", node.name, "nothing is left of its name"))
            return

        def record(description: str, chunk: str | None = None) -> Record:
            kind = clean_name(node.kind) or UNKNOWN_TYPE
            return {
                "type": "entity",
                "name": name,
                "entity_type": kind,
                "description": description,
            }

        self._say(name, subject(node.name), node, record)

    def edge(self, edge: ForeignEdge) -> None:
        """One claim for each chunk that states the relation; its weight is shared among them."""
        ends = [self.names.get(edge.source), self.names.get(edge.target)]
        title = f"{edge.source} — {edge.target}"
        if None in ends or edge.source == edge.target:
            reason = "an end has no name" if None in ends else "it joins an entity with itself"
            self.odd.append(Unmapped("relation", title, reason))
            return
        about = subject(edge.source, edge.target)
        claims = self._claims(about, edge.descriptions, self._known(edge.chunks))
        share = edge.weight / max(len(claims), 1)
        strength = min(max(share, STRENGTHS[0]), STRENGTHS[1])
        if abs(strength - share) > 1e-6:
            kept = strength * max(len(claims), 1)
            reason = f"its weight {edge.weight:g} became {kept:g}: a claim weighs 1 to 10"
            self.odd.append(Unmapped("weight", title, reason))

        def record(description: str, chunk: str | None = None) -> Record:
            words: list[str] = list(_keywords(edge.keywords))
            if chunk is not None:
                words = self.pairing.keywords(about, chunk, words)
            listed: list[Json] = list(words)
            return {
                "type": "relationship",
                "source": ends[0],
                "target": ends[1],
                "keywords": listed,
                "description": description,
                "strength": strength,
            }

        self._say(f"{ends[0]} — {ends[1]}", about, edge, record)

    def pending(self, at: float) -> Iterable[PendingDocument]:
        """The documents, ready to be taken in."""
        for one, records in zip(self.placed, self._records, strict=True):
            yield PendingDocument(one.document, tuple(records), tuple(one.pieces), at)
        if self._homeless:
            pages = tuple(dict.fromkeys(text for text, _ in self._homeless))
            number = {text: index for index, text in enumerate(pages)}
            document = Document(
                "", id="doc-" + digest(*pages), title=NO_SOURCE_TITLE, pages=pages
            )
            records = tuple({**record, "chunk": number[text]} for text, record in self._homeless)
            yield PendingDocument(document, records, pages, at)
