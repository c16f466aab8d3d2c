"""Turns records into mentions: one adapter for each prompt, and checks on each mention."""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from lightrag_jsonl.core.text import clean_name, folded_text, has_cjk, name_key
from lightrag_jsonl.core.types import (
    UNKNOWN_TYPE,
    EntityMention,
    Extraction,
    Json,
    Record,
    Rejection,
    RejectionReason,
    RelationMention,
)
from lightrag_jsonl.llm.field_aliases import read_strength, split_keywords

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology


@dataclass(slots=True)
class MentionCollector:
    """Collects the mentions of one chunk from its records, each once.

    `declared` holds the numbers of entities and relations that the model says it wrote.
    """

    text: str
    ontology: Ontology | None = None
    entities: dict[EntityMention, None] = field(default_factory=dict)
    relations: dict[RelationMention, None] = field(default_factory=dict)
    keywords: dict[str, None] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    declared: tuple[Json, Json] | None = None
    _keys: set[str | tuple[str, ...]] = field(default_factory=set)  # of names and of pairs
    _types: dict[str, str] = field(default_factory=dict)
    _positions: dict[str, int] = field(default_factory=dict)
    _folded: str | None = None
    _folded_like_keys: str | None = None

    def add(self, records: Iterable[tuple[int, Record]], adapter: Adapter) -> int:
        """Add (line, record) pairs; returns how many new names and pairs they brought."""
        before = len(self._keys)
        for line, record in records:
            adapter(self, line, record)
        return len(self._keys) - before

    def extraction(self) -> Extraction:
        """The mentions in the order in which their names occur in the text, whatever the order of
        the records.

        An end of a relation that no entity names becomes an entity of unknown type.
        """
        relations = sorted(self.relations, key=self._relation_order)
        named = {name_key(mention.name) for mention in self.entities}
        for end in (end for relation in relations for end in (relation.source, relation.target)):
            if name_key(end) not in named:
                named.add(name_key(end))
                self.entities[EntityMention(end, UNKNOWN_TYPE, "", self._is_in_text(end))] = None
        entities = sorted(self.entities, key=self._entity_order)
        return Extraction(tuple(entities), tuple(relations), tuple(self.keywords))

    def entity(
        self,
        line: int,
        record: Record,
        name: Json,
        type: Json,
        description: Json,
        attributes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Add one mention of an entity."""
        clean = clean_name(_text(name))
        if not clean:
            self.reject(line, record, "empty_name", "the entity has no name")
            return
        self._keys.add(name_key(clean))
        type = _words(type).casefold() or UNKNOWN_TYPE
        mention = EntityMention(
            clean, type, _words(description), self._is_in_text(clean), attributes
        )
        self.entities[mention] = None

    def relation(
        self,
        line: int,
        record: Record,
        ends: tuple[Json, Json],
        keywords: Json,
        description: Json,
        strength: Json = 1.0,
    ) -> None:
        """Add one mention of how two entities are related; `ends` are source and target."""
        source, target = (clean_name(_text(end)) for end in ends)
        if not (source and target):
            self.reject(line, record, "empty_name", "an end of the relation has no name")
            return
        keys = tuple(sorted((name_key(source), name_key(target))))
        if keys[0] == keys[1]:
            self.reject(line, record, "self_relation", f"{source!r} is related to itself")
            return
        self._keys.add(keys)
        weight = read_strength(strength)
        weight = weight if isinstance(weight, float) else 1.0
        words = _keywords(keywords)
        self.relations[RelationMention(source, target, words, _words(description), weight)] = None

    def violates_ontology(self, line: int, record: Record) -> bool:
        """Check a record against the ontology, if there is one; remember the classes it gives."""
        problem = None if self.ontology is None else self.ontology.check(record, self._types)
        if problem is not None:
            self.reject(line, record, "ontology", problem)
            return True
        for field_name, type_field in TYPED_FIELDS:
            name, type = record.get(field_name), record.get(type_field)
            if isinstance(name, str) and isinstance(type, str):
                self._types.setdefault(name, type)
        return False

    def reject(self, line: int, record: Record, reason: RejectionReason, detail: str) -> None:
        """Keep a record that gives no mention, and why."""
        text = json.dumps(record, ensure_ascii=False)
        self.rejections.append(Rejection(line, text, reason, detail))

    # ── where names occur ───────────────────────────────────────────────────────

    def _is_in_text(self, name: str) -> bool:
        """Whether a name occurs, also with other punctuation, or (in Chinese) over a line break."""
        key = name_key(name)
        if self._position(name) < len(self._folded or "") or key in (self._folded or ""):
            return True
        if self._folded_like_keys is None:
            self._folded_like_keys = folded_text(self.text)
        text = self._folded_like_keys
        return key in text or (has_cjk(key) and "".join(key.split()) in "".join(text.split()))

    def _position(self, name: str) -> int:
        """Where a name first occurs in the folded text; the text's length if it does not occur."""
        position = self._positions.get(name)
        if position is None:
            if self._folded is None:
                self._folded = _fold(self.text)
            position = self._folded.find(_fold(name))
            position = position if position >= 0 else len(self._folded)
            self._positions[name] = position
        return position

    def _entity_order(self, mention: EntityMention) -> tuple[object, ...]:
        return self._position(mention.name), *ENTITY_FIELDS(mention)

    def _relation_order(self, mention: RelationMention) -> tuple[object, ...]:
        last = max(self._position(mention.source), self._position(mention.target))
        return last, *RELATION_FIELDS(mention)


ENTITY_FIELDS = attrgetter(*EntityMention.__slots__)
RELATION_FIELDS = attrgetter(*RelationMention.__slots__)
TYPED_FIELDS = (("entity", "entity_type"), ("subject", "subject_type"), ("object", "object_type"))


def _fold(text: str) -> str:
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split())


def _words(value: Json) -> str:
    text = _text(value)
    return " ".join((html.unescape(text) if "&" in text else text).split())


def _text(value: Json) -> str:
    """A text, or a number as text; "" for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _keywords(value: Json) -> tuple[str, ...]:
    words = split_keywords(value)
    return tuple(map(str, words)) if isinstance(words, list) else ()


# ── one adapter a prompt ────────────────────────────────────────────────────────

Adapter = Callable[[MentionCollector, int, Record], None]


def read_graph(collector: MentionCollector, line: int, record: Record) -> None:
    """`extract-graph`: entity, relationship, content_keywords, done."""
    get, type = record.get, record.get("type")
    if type == "entity":
        collector.entity(line, record, get("name"), get("entity_type"), get("description"))
    elif type == "relationship":
        ends = get("source"), get("target")
        details = get("keywords"), get("description"), record.get("strength", 1.0)
        collector.relation(line, record, ends, *details)
    elif type == "content_keywords":
        collector.keywords.update(dict.fromkeys(_keywords(get("keywords"))))
    elif type == "done":
        collector.declared = get("entities"), get("relationships")


def read_definitions(collector: MentionCollector, line: int, record: Record) -> None:
    """`agent-kg-extract`: definition, relationship (whose object may be a value)."""
    get = record.get
    if get("type") == "definition":
        collector.entity(line, record, get("entity"), UNKNOWN_TYPE, get("definition"))
        return
    parts = subject, predicate, target = get("subject"), get("predicate"), get("object")
    if get("object-entity"):
        sentence = " ".join(map(_words, parts))
        collector.relation(line, record, (subject, target), [predicate], sentence)
    else:
        value = (_words(predicate), _words(target))
        collector.entity(line, record, subject, UNKNOWN_TYPE, "", (value,))


def read_typed(collector: MentionCollector, line: int, record: Record) -> None:
    """`extract-with-ontologies`: entity, relationship, attribute, each checked."""
    if collector.violates_ontology(line, record):
        return
    get, type = record.get, record.get("type")
    if type == "entity":
        collector.entity(line, record, get("entity"), get("entity_type"), "")
    elif type == "attribute":
        value = (_words(get("attribute")), _words(get("value")))
        collector.entity(line, record, get("entity"), get("entity_type"), "", (value,))
    elif type == "relationship":
        parts = subject, relation, target = get("subject"), get("relation"), get("object")
        collector.entity(line, record, subject, get("subject_type"), "")
        collector.entity(line, record, target, get("object_type"), "")
        sentence = " ".join(map(_words, parts))
        collector.relation(line, record, (subject, target), [relation], sentence)


ADAPTERS: Mapping[str, Adapter] = {
    "extract-graph": read_graph,
    "agent-kg-extract": read_definitions,
    "extract-with-ontologies": read_typed,
}
