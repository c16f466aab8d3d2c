"""Turns records into mentions: one adapter for each prompt, and checks on each mention."""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lightrag_jsonl.drift import NUMBER, read_strength, split_keywords
from lightrag_jsonl.text import clean_name, folded_text, has_cjk, name_key
from lightrag_jsonl.types import (
    UNKNOWN_TYPE,
    EntityMention,
    Json,
    Record,
    Rejection,
    RejectionReason,
    RelationMention,
)


class OntologyCheck(Protocol):
    """The check of records against an ontology."""

    def check(self, record: Record, types: Mapping[str, str]) -> str | None:
        """What is wrong with a record, None if nothing; `types` holds the classes stated so far, by name."""
        ...


@dataclass(slots=True)
class MentionCollector:
    """Collects a chunk's mentions from its records, each once; `finish` puts them in order."""

    text: str
    ontology: OntologyCheck | None = None
    entities: dict[EntityMention, None] = field(default_factory=dict)
    relations: dict[RelationMention, None] = field(default_factory=dict)
    keywords: dict[str, None] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    declared: tuple[int, int] | None = None
    _keys: set[str] = field(default_factory=set)
    _pairs: set[tuple[str, str]] = field(default_factory=set)
    _types: dict[str, str] = field(default_factory=dict)
    _folded: str = ""
    _as_keys: str | None = None
    _places: dict[str, int] = field(default_factory=dict)

    def add(self, records: Iterable[tuple[int, Record]], adapter: Adapter) -> int:
        """Add (line, record) pairs; returns how many new names and pairs they brought."""
        before = len(self._keys) + len(self._pairs)
        for line, record in records:
            adapter(self, line, record)
        return len(self._keys) + len(self._pairs) - before

    def finish(self) -> None:
        """Add an entity of unknown type for each end of a relation that has none, and order all claims.

        They are ordered by where their names occur in the text, so that the order of arrival does
        not matter.
        """
        self.relations = dict.fromkeys(sorted(self.relations, key=self._relation_order))
        named = {name_key(mention.name) for mention in self.entities}
        for relation in self.relations:
            for end in (relation.source, relation.target):
                if name_key(end) not in named:
                    named.add(name_key(end))
                    self.entities[EntityMention(end, UNKNOWN_TYPE, "", self._grounded(end))] = None
        self.entities = dict.fromkeys(sorted(self.entities, key=self._entity_order))

    def entity(
        self,
        line: int,
        record: Record,
        name: Json,
        kind: Json,
        description: Json,
        attributes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Add one claim about an entity."""
        clean = _name(name)
        if not clean:
            self.reject(line, record, "empty_name", "the entity has no name")
            return
        self._keys.add(name_key(clean))
        mention = EntityMention(
            clean,
            _words(kind).casefold() or UNKNOWN_TYPE,
            _words(description),
            self._grounded(clean),
            attributes,
        )
        self.entities[mention] = None

    def relation(
        self,
        line: int,
        record: Record,
        source: Json,
        target: Json,
        keywords: Json,
        description: Json,
        strength: Json = 1.0,
    ) -> None:
        """Add one claim about how two entities are related."""
        ends = _name(source), _name(target)
        if not all(ends):
            self.reject(line, record, "empty_name", "an end of the relation has no name")
            return
        pair = name_key(ends[0]), name_key(ends[1])
        if pair[0] == pair[1]:
            self.reject(line, record, "self_relation", f"{ends[0]!r} is related to itself")
            return
        self._pairs.add((min(pair), max(pair)))
        words = split_keywords(keywords)
        weight = read_strength(strength)
        mention = RelationMention(
            *ends,
            tuple(str(word) for word in words) if isinstance(words, list) else (),
            _words(description),
            weight if isinstance(weight, float) else 1.0,
        )
        self.relations[mention] = None

    def refused_by_ontology(self, line: int, record: Record) -> bool:
        """Check a record against the ontology, if there is one; remember the classes it states."""
        if self.ontology is not None:
            problem = self.ontology.check(record, self._types)
            if problem is not None:
                self.reject(line, record, "ontology", problem)
                return True
        for name, kind in (
            ("entity", "entity_type"),
            ("subject", "subject_type"),
            ("object", "object_type"),
        ):
            if isinstance(record.get(name), str) and isinstance(record.get(kind), str):
                self._types.setdefault(str(record[name]), str(record[kind]))
        return False

    def reject(self, line: int, record: Record, reason: RejectionReason, detail: str) -> None:
        """Record that a record gives no mention, and why."""
        self.rejections.append(
            Rejection(line, json.dumps(record, ensure_ascii=False), reason, detail)
        )

    def _grounded(self, name: str) -> bool:
        folded = self._folded_text()
        return (
            self._where(name) < len(folded)
            or name_key(name) in folded
            or self._stands_otherwise(name_key(name))
        )

    def _stands_otherwise(self, key: str) -> bool:
        """Whether a name occurs in the text with other punctuation, or across a line break."""
        if self._as_keys is None:
            self._as_keys = folded_text(self.text)
        if key in self._as_keys:
            return True
        return has_cjk(key) and _unspaced(key) in _unspaced(self._as_keys)

    def _entity_order(self, mention: EntityMention) -> tuple[object, ...]:
        said = (mention.name, mention.type, mention.description, mention.attributes)
        return self._where(mention.name), *said

    def _relation_order(self, mention: RelationMention) -> tuple[object, ...]:
        ends = (mention.source, mention.target)
        said = (mention.keywords, mention.description, mention.strength)
        return max(map(self._where, ends)), *ends, *said

    def _where(self, name: str) -> int:
        """Where a name first occurs in the text; the text's length if it does not occur."""
        at = self._places.get(name)
        if at is None:
            folded = self._folded_text()
            at = folded.find(_fold(name))
            self._places[name] = at = at if at >= 0 else len(folded)
        return at

    def _folded_text(self) -> str:
        if not self._folded:
            self._folded = _fold(self.text)
        return self._folded


def _fold(text: str) -> str:
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split())


def _unspaced(text: str) -> str:
    return "".join(text.split())


def _name(value: Json) -> str:
    return clean_name(_text(value))


def _words(value: Json) -> str:
    text = _text(value)
    return " ".join((html.unescape(text) if "&" in text else text).split())


def _text(value: Json) -> str:
    """A text, or a number as text; "" for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, NUMBER) and not isinstance(value, bool) else ""


# ── one adapter a prompt ────────────────────────────────────────────────────────

Adapter = Callable[[MentionCollector, int, Record], None]


def read_graph(found: MentionCollector, line: int, record: Record) -> None:
    """`extract-graph`: entity, relationship, content_keywords, done."""
    kind = record.get("type")
    if kind == "entity":
        found.entity(
            line, record, record.get("name"), record.get("entity_type"), record.get("description")
        )
    elif kind == "relationship":
        found.relation(
            line,
            record,
            record.get("source"),
            record.get("target"),
            record.get("keywords"),
            record.get("description"),
            record.get("strength", 1.0),
        )
    elif kind == "content_keywords":
        words = split_keywords(record.get("keywords"))
        found.keywords.update(dict.fromkeys(map(str, words if isinstance(words, list) else ())))
    elif kind == "done":
        counts = record.get("entities"), record.get("relationships")
        if all(isinstance(count, int) for count in counts):
            found.declared = counts  # type: ignore[assignment]


def read_definitions(found: MentionCollector, line: int, record: Record) -> None:
    """`agent-kg-extract`: definition, relationship (whose object may be a value)."""
    if record.get("type") == "definition":
        found.entity(line, record, record.get("entity"), UNKNOWN_TYPE, record.get("definition"))
        return
    subject, predicate, target = (record.get(k) for k in ("subject", "predicate", "object"))
    if record.get("object-entity"):
        sentence = " ".join(_words(part) for part in (subject, predicate, target))
        found.relation(line, record, subject, target, [predicate], sentence)
    else:
        value = (_words(predicate), _words(target))
        found.entity(line, record, subject, UNKNOWN_TYPE, "", (value,))


def read_ontology(found: MentionCollector, line: int, record: Record) -> None:
    """`extract-with-ontologies`: entity, relationship, attribute, each held to the ontology."""
    if found.refused_by_ontology(line, record):
        return
    kind = record.get("type")
    if kind == "entity":
        found.entity(line, record, record.get("entity"), record.get("entity_type"), "")
    elif kind == "attribute":
        value = (_words(record.get("attribute")), _words(record.get("value")))
        found.entity(line, record, record.get("entity"), record.get("entity_type"), "", (value,))
    elif kind == "relationship":
        subject, relation, target = (record.get(k) for k in ("subject", "relation", "object"))
        for name, type_ in ((subject, "subject_type"), (target, "object_type")):
            found.entity(line, record, name, record.get(type_), "")
        sentence = " ".join(_words(part) for part in (subject, relation, target))
        found.relation(line, record, subject, target, [relation], sentence)


ADAPTERS: Mapping[str, Adapter] = {
    "extract-graph": read_graph,
    "agent-kg-extract": read_definitions,
    "extract-with-ontologies": read_ontology,
}
