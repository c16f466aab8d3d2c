"""Turns records into mentions, and checks each mention."""

import html
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.names import clean_name, folded_text, name_key
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.types import (
    PROVIDED,
    UNKNOWN_TYPE,
    Chunk,
    ChunkState,
    EntityMention,
    Extraction,
    Json,
    Record,
    Rejection,
    RejectionReason,
    RelationMention,
)
from lightrag_jsonl.indexing.examples import Examples, SourceWords
from lightrag_jsonl.llm.field_aliases import normalize_graph_record
from lightrag_jsonl.llm.reader import rejected_text
from lightrag_jsonl.llm.schemas import Schema

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology

Problem: TypeAlias = tuple[RejectionReason, str]

GRAPH_PROMPT = "extract-graph"
COPIED = "it repeats the example of the prompt, and says nothing of the text"
ENTITY_FIELDS = attrgetter(*EntityMention.__slots__)
RELATION_FIELDS = attrgetter(*RelationMention.__slots__)


@dataclass
class MentionCollector:
    """Collects the mentions of one chunk from the records that answer a prompt, each once.

    `declared` holds the numbers of entities and relations that the model says it wrote. Copies of
    the prompt's `examples` are refused, unless the text or its `background` holds their words.
    """

    text: str
    prompt: str = GRAPH_PROMPT
    ontology: "Ontology | None" = None
    limits: Limits = Limits()
    examples: Examples = Examples()
    background: str = ""
    entities: dict[EntityMention, None] = field(default_factory=dict)
    relations: dict[RelationMention, None] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    declared: tuple[Json, Json] | None = None
    _keys: set[str | tuple[str, ...]] = field(default_factory=set)  # of names and of pairs
    _types: dict[str, str] = field(default_factory=dict)  # by name key

    def add(self, records: Iterable[tuple[int, Record]]) -> int:
        """Add (line, record) pairs; returns how many new names and pairs they brought."""
        before = len(self._keys)
        for line, record in records:
            if self.ontology and (violation := self.ontology.check(record, self._types)):
                self.reject(line, record, "ontology", violation)
                continue
            record = self.ontology.declared(record) if self.ontology else record
            parts = [record] if self.prompt == GRAPH_PROMPT else [*graph_records(record)]
            if any(self.examples.is_copy(part, self._source_words) for part in parts):
                self.reject(line, record, "example", COPIED)
                continue
            for part in parts:
                if problem := self._add(part):
                    self.reject(line, record, *problem)
        return len(self._keys) - before

    def extraction(self) -> Extraction:
        """The mentions in the order in which their names occur in the text, whatever the order of
        the records.

        An end of a relation that no entity names becomes an entity of unknown type.
        """
        relations = sorted(self.relations, key=self._order)
        named = {name_key(one.name) for one in self.entities}
        for end in chain.from_iterable((one.source, one.target) for one in relations):
            if name_key(end) not in named:
                named.add(name_key(end))
                unknown = EntityMention(end, UNKNOWN_TYPE, "", self._is_in_text(name_key(end)))
                self.entities[unknown] = None
        entities = sorted(self.entities, key=self._order)
        return Extraction(tuple(entities), tuple(relations))

    def reject(self, line: int, record: Record, reason: RejectionReason, detail: str) -> None:
        """Keep a record that gives no mention, and why."""
        text = rejected_text(json.dumps(record, ensure_ascii=False))
        self.rejections.append(Rejection(line, text, reason, detail))

    def _add(self, record: Record) -> Problem | None:
        """Add what a record of `extract-graph` says; returns what is wrong with it. The keywords of
        the whole text are not used.
        """
        type = record.get("type")
        if type == "entity":
            return self._add_entity(record)
        if type == "relationship":
            return self._add_relation(record)
        if type == "done":
            self.declared = record.get("entities"), record.get("relationships")
        return None

    def _add_entity(self, record: Record) -> Problem | None:
        name = clean_name(_text(record.get("name")))
        if not name:
            return "empty_name", "the entity has no name"
        if self._is_too_long(name):
            return self._too_long("a name")
        key, type = name_key(name), _text(record.get("entity_type")) or UNKNOWN_TYPE
        type = type if self.ontology else type.casefold()
        self._keys.add(key)
        self._types.setdefault(key, type)
        description, value = _text(record.get("description")), record.get("attribute")
        attributes: tuple[tuple[str, str], ...] = ()
        if isinstance(value, list) and len(value) == 2:
            attributes = ((_text(value[0]), _text(value[1])),)
        aliases = self._aliases(record, key) if record.get("aliases") else ()
        about = description, self._is_in_text(key), attributes, aliases
        self.entities[EntityMention(name, type, *about)] = None
        return None

    def _aliases(self, record: Record, own: str) -> tuple[str, ...]:
        """The other names that a record gives, as far as the text holds them; each once."""
        found: dict[str, str] = {}
        for name in map(clean_name, _texts(record.get("aliases"))):
            found.setdefault(name_key(name), name)
        kept = [
            name for key, name in found.items() if key not in ("", own) and self._is_in_text(key)
        ]
        return tuple(sorted(kept))

    def _add_relation(self, record: Record) -> Problem | None:
        source, target = (clean_name(_text(record.get(end))) for end in ("source", "target"))
        keys = tuple(sorted((name_key(source), name_key(target))))
        if not (source and target):
            return "empty_name", "an end of the relation has no name"
        if self._is_too_long(source) or self._is_too_long(target):
            return self._too_long("a name")
        if keys[0] == keys[1]:
            return "self_relation", f"{source!r} is related to itself"
        self._keys.add(keys)
        strength = record.get("strength")
        weight = strength if isinstance(strength, float) else 1.0
        every = _texts(record.get("keywords"))
        keywords = tuple(itertools.filterfalse(self._is_too_long, every))
        about = keywords, _text(record.get("description"))
        self.relations[RelationMention(source, target, *about, weight)] = None
        return None if keywords == every else self._too_long("kept without a keyword that")

    def _is_too_long(self, text: str) -> bool:
        return len(text) > self.limits.name_characters

    def _too_long(self, what: str) -> Problem:
        return "limit", f"{what} has more than {self.limits.name_characters} characters"

    @cached_property
    def _source_words(self) -> SourceWords:
        return SourceWords(f"{self.background}\n{self.text}")

    # ── where names occur ───────────────────────────────────────────────────────

    @cached_property
    def _folded(self) -> str:
        return folded_text(self.text)

    def _is_in_text(self, key: str) -> bool:
        """Whether a name occurs, also with other punctuation, or (in Chinese) over a line break."""
        if key in self._folded:
            return True
        return has_cjk(key) and "".join(key.split()) in "".join(self._folded.split())

    def _order(self, mention: EntityMention | RelationMention) -> tuple[object, ...]:
        """Where the (last) name of a mention first occurs, or the end; then its fields."""
        if isinstance(mention, EntityMention):
            return self._position(mention.name), *ENTITY_FIELDS(mention)
        last = max(self._position(mention.source), self._position(mention.target))
        return last, *RELATION_FIELDS(mention)

    def _position(self, name: str) -> int:
        found = self._folded.find(name_key(name))
        return found if found >= 0 else len(self._folded)


def graph_records(record: Record) -> Iterator[Record]:
    """A record of `agent-kg-extract` or `extract-with-ontologies` as records of `extract-graph`."""
    get, type = record.get, record.get("type")
    if type != "relationship":
        value: Json = [get("attribute"), get("value")] if type == "attribute" else None
        entity: Record = {"type": "entity", "name": get("entity"), "attribute": value}
        yield {**entity, "entity_type": get("entity_type"), "description": get("definition")}
        return
    subject, target = get("subject"), get("object")
    predicate = get("predicate", get("relation"))
    parts = subject, predicate, target
    if get("object-entity") is False:
        yield {"type": "entity", "name": subject, "attribute": [predicate, target]}
        return
    if "subject_type" in record:
        yield {"type": "entity", "name": subject, "entity_type": get("subject_type")}
        yield {"type": "entity", "name": target, "entity_type": get("object_type")}
    about: Record = {"keywords": [predicate], "description": " ".join(map(_text, parts))}
    yield {"type": "relationship", "source": subject, "target": target, **about}


def _text(value: Json) -> str:
    """A text without markup and extra spaces, or a number as text; "" for anything else."""
    if isinstance(value, str):
        return " ".join(html.unescape(value).split())
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, value))) if isinstance(value, list) else ()


# ── ready-made records ──────────────────────────────────────────────────────────


def provided_extractions(
    chunks: Sequence[Chunk], records: Sequence[Record], schema: Schema | None
) -> tuple[Extraction, ...]:
    """The extraction of each chunk from ready-made records; their lines count from 1.

    A chunk with refused records is never "failed", since no model could be asked again. A record
    that is no mapping, or names a chunk that does not exist, is refused in the first chunk.
    """
    collectors = [MentionCollector(chunk.text) for chunk in chunks]
    counts = [0] * len(chunks)
    for line, record in enumerate(records, 1):
        if not isinstance(record, dict):
            detail = f"records[{line - 1}] is no mapping but {type(record).__name__}"
            collectors[0].reject(line, record, "not_object", detail)
            continue
        index = 0 if record.get("chunk") is None else record["chunk"]
        if type(index) is not int or not 0 <= index < len(chunks):
            detail = f"it names chunk {index!r}; there are chunks 0 to {len(chunks) - 1}"
            collectors[0].reject(line, record, "unknown_id", detail)
            continue
        plain = {key: value for key, value in record.items() if key != "chunk"}
        for one in normalize_graph_record(plain):
            problem = None if schema is None else schema.error(schema.with_short_lists(one))
            if problem is None:
                collectors[index].add([(line, one)])
                counts[index] += 1
            else:
                collectors[index].reject(line, one, "schema", problem)
    found = []
    for collector, count in zip(collectors, counts, strict=True):
        extraction, refused = collector.extraction(), tuple(collector.rejections)
        state: ChunkState = "partial" if refused else "ok" if extraction.entities else "empty"
        extraction = replace(extraction, state=state, records=count, rejections=refused)
        found.append(replace(extraction, extractor=PROVIDED))
    return tuple(found)
