"""Turns the records of an answer into mentions, with dates in our form, and checks each mention."""

import html
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec import Struct, field

from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.options import Limits
from lightrag_jsonl.core.types import (
    UNKNOWN_TYPE,
    Chunk,
    EntityMention,
    Extraction,
    Json,
    Record,
    Rejection,
    RejectionReason,
    RelationMention,
)
from lightrag_jsonl.indexing.examples import NAME_FIELDS, Examples, TextWords
from lightrag_jsonl.llm.reader import rejected_text
from lightrag_jsonl.rules import extract_names, has_other_name, name_problem
from lightrag_jsonl.text.dates import iso_date, resolved_date
from lightrag_jsonl.text.names import clean_name, name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import clipped

if TYPE_CHECKING:
    from lightrag_jsonl.indexing.ontology import Ontology


NO_NAME_BUT_THOUGHT = "the model thinks aloud, or writes a sentence, in place of a name"
NO_NAME_BUT_CODE = "it is code, not a name"
_HESITATION = pattern_of(
    r"\b(?:let me|let's|wait|actually|hmm+|oops|no,|sorry,|i (?:should|need|think|will|must|have|guess|mean)"
    r"|i'll|i'm|not sure|should be|correct(?:ion|ed)?:|reconsider|on second thought"
    r"|the (?:text|user|passage|document) (?:says|said|mentions|states|does|is|only))\b"
    r"|嗯[，,]|让我|等一下|等等[，,]|不对|其实|应该是|我(?:认为|觉得|需要|应该|想|再)|更正|纠正"
    r"|(?:原文|文中|文本|用户)(?:中)?(?:提到|说|只|没有|要求)",
    re.IGNORECASE,
)
_TWO_SENTENCES = pattern_of(
    r"(?<=[a-z]{4})[.!?…]\s+[A-Za-z]|[。！？]\s*\w"
)  # unlike "St. John" and "Dr. No"
_MARKS_OF_CODE = pattern_of(  # but "chroot() system call" is a name
    r"[{}]|;\s*\w+[.(]|==|!=|:=|=>|->|^\w+\s?=\s?.*[\[({\"';]|^[a-z_][\w.]*\([^()]+\)\W*$|\w\[[\d'\":]"
    r"|^(?:def|return|import|elif|const|let|var|lambda|SELECT|for \w+ in|while|if \S+ [<>=])\s|^[$>]\s"
)
_BEFORE_REMARK = " \t\r\n\xa0\u3000(（[,，;；:：—–-"  # between a name and the remark behind it


def usable_name(name: str, is_in_text: Callable[[str], bool]) -> tuple[str, str]:
    """A name that does not stand in the text, without the remark behind it, and what is wrong with the name as it
    was written, or "". The name is "" if nothing of it is one.
    """
    hesitation = _HESITATION.search(name)
    is_sentence = hesitation is not None or _TWO_SENTENCES.search(name) is not None
    is_code = not is_sentence and _MARKS_OF_CODE.search(name) is not None
    if not (is_sentence or is_code):
        return name, ""
    if hesitation is None:
        return "", NO_NAME_BUT_CODE if is_code else NO_NAME_BUT_THOUGHT
    name_alone = name[: hesitation.start()].rstrip(_BEFORE_REMARK)
    return (name_alone if name_alone and is_in_text(name_alone) else ""), NO_NAME_BUT_THOUGHT


# ── dates ─────────────────────────────────────────────────────────────────────

NewMention = TypeVar("NewMention", EntityMention, RelationMention)


def dated_extraction(extraction: Extraction, chunk: Chunk) -> Extraction:
    """The extraction with the different mentions, their dates in our form; relative dates are resolved by
    the date of the document.
    """
    written = iso_date(chunk.date)
    entities = [_dated_mention(mention, written) for mention in extraction.entities]
    relations = [_dated_mention(mention, written) for mention in extraction.relations]
    return replace(
        extraction,
        entities=tuple(dict.fromkeys(entities)),
        relations=tuple(dict.fromkeys(relations)),
    )


def _dated_mention(mention: NewMention, written: str) -> NewMention:
    if not (mention.valid_from or mention.valid_to):
        return mention
    return replace(
        mention,
        valid_from=resolved_date(mention.valid_from, written),
        valid_to=resolved_date(mention.valid_to, written),
    )


# ── mentions ──────────────────────────────────────────────────────────────────

RecordProblem: TypeAlias = tuple[RejectionReason, str]

GRAPH_PROMPT = "extract-graph"
LONGEST_SHOWN_NAME = 80  # characters
SMALL_PROMPT = "extract-small"  # asks small models for names; sentences of the text tell of them
PRONOUNS = frozenset(
    {"I", "You", "He", "She", "It", "We", "They", "Him", "Her", "Them"}
    | {"我", "你", "您", "他", "她", "它", "我们", "你们", "他们", "她们", "它们", "咱们", "自己"}
)
PERSONS = frozenset({"person", "人物", "人", UNKNOWN_TYPE})  # "It" is a novel, and "He" helium


class MentionCollector(Struct, dict=True):
    """Collects the different mentions of a chunk from the records that answer a prompt.

    `declared` holds the numbers of entities and relations that the model claims to have written.
    Copies of the prompt's `examples` are refused, unless the words occur in the text or in the
    `background`.
    """

    text: str
    prompt: str = GRAPH_PROMPT
    language: Language = "en"
    ontology: "Ontology | None" = None
    limits: Limits = Limits()
    examples: Examples = Examples()
    background: str = ""
    entities: dict[EntityMention, None] = field(default_factory=dict)
    relations: dict[RelationMention, None] = field(default_factory=dict)
    content_keywords: dict[str, None] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    declared: tuple[Json, Json] | None = None
    _keys: set[str | tuple[str, ...]] = field(default_factory=set)  # of names and of pairs
    _types: dict[str, str] = field(default_factory=dict)  # by name key
    _usable_names: dict[str, tuple[str, RecordProblem | None]] = field(default_factory=dict)

    def add(self, records: Iterable[tuple[int, Record]]) -> int:
        """Add (line, record) pairs; returns the number of new names and pairs."""
        count_before = len(self._keys)
        records = list(records)
        may_be_copies = self.examples.may_be_copies(
            [record for _, record in records], self._source_words
        )
        for (line, record), may_be_copy in zip(records, may_be_copies, strict=True):
            if self.ontology:
                if violation := self.ontology.check(record, self._types):
                    self.reject(line, record, "ontology", violation)
                    continue
                record = self.ontology.declared(record)
            self._add_record(line, record, may_be_copy=may_be_copy)
        return len(self._keys) - count_before

    def extraction(self) -> Extraction:
        """The mentions in the order in which the names occur in the text, in whatever order the
        records came.

        An end of a relation without an entity becomes an entity of unknown type. The names of a small
        model join those of the rules of the language; sentences of the text describe all.
        """
        if self.prompt == SMALL_PROMPT:
            names = [entity.name for entity in self.entities]
            return extract_names(self.text, names, self.language)
        relations = sorted(self.relations, key=self._order)
        keys = {name_key(entity.name) for entity in self.entities}
        ends = ((relation.source, relation.target) for relation in relations)
        for end in chain.from_iterable(ends):
            key = name_key(end)
            if key not in keys:
                keys.add(key)
                mention = EntityMention(end, UNKNOWN_TYPE, "", self._text_words.has_whole_name(key))
                self.entities[mention] = None
        entities = sorted(self.entities, key=self._order)
        return Extraction(
            tuple(entities),
            tuple(relations),
            content_keywords=tuple(sorted(self.content_keywords)),
        )

    def lacks_a_name(self) -> bool:
        """Whether a name of the text is in no record, neither whole nor as a part of a longer name."""
        ends = [end for relation in self.relations for end in (relation.source, relation.target)]
        aliases = [alias for entity in self.entities for alias in entity.aliases]
        names = [*(entity.name for entity in self.entities), *ends, *aliases]
        return has_other_name(self.text, self.language, frozenset(map(name_key, names)))

    def name_lines(self) -> list[str]:
        """The ends of relations and the names of entities as records, without what is said of them."""
        pairs = dict.fromkeys((relation.source, relation.target) for relation in self.relations)
        names = dict.fromkeys(entity.name for entity in self.entities)
        if self.prompt == SMALL_PROMPT:
            return [json.dumps(name, ensure_ascii=False) for name in names]
        records: list[Record] = []
        for source, target in pairs:
            records.append({"type": "relationship", "source": source, "target": target})
        records += [{"type": "entity", "name": name} for name in names]
        return [json.dumps(record, ensure_ascii=False) for record in records]

    def reject(self, line: int, record: Record, reason: RejectionReason, detail: str) -> None:
        """Store a record that gives no mention, with the reason."""
        text = rejected_text(json.dumps(record, ensure_ascii=False))
        self.rejections.append(Rejection(line, text, reason, detail))

    def _add_record(self, line: int, record: Record, *, may_be_copy: bool) -> None:
        """Add the mentions in a record, or refuse the record."""
        is_graph = self.prompt in (GRAPH_PROMPT, SMALL_PROMPT)
        parts = [record] if is_graph else [*graph_records(record)]
        if may_be_copy:
            own_parts = [self._without_copies(part) for part in parts]
            if None in own_parts:
                detail = "it repeats the example of the prompt, and says nothing of the text"
                self.reject(line, record, "example", detail)
                return
            parts = list(filter(None, own_parts))
        for part in parts:
            part, problem = self._with_usable_names(part)
            if problem is not None:
                self.reject(line, record, *problem)
                if not part.get("name") and not (part.get("source") and part.get("target")):
                    continue
                problem = None
            match part.get("type"):
                case "entity" if self.prompt == SMALL_PROMPT:
                    problem = self._add_name(part)
                case "entity":
                    problem = self._add_entity(part)
                case "relationship":
                    problem = self._add_relation(part)
                case "content_keywords":
                    self._add_content_keywords(part)
                case "done":
                    self.declared = part.get("entities"), part.get("relationships")
            if problem is not None:
                self.reject(line, record, *problem)

    def _with_usable_names(self, record: Record) -> tuple[Record, RecordProblem | None]:
        """A record with clean names, cut where the model thinks aloud in them, with the fault of a name; a
        name of which nothing is left is "".
        """
        problem: RecordProblem | None = None
        names: Record = {}
        for key in NAME_FIELDS:
            if key in record:
                names[key], fault = self._usable_name(record[key])
                problem = fault or problem
        return {**record, **names}, problem

    def _usable_name(self, value: Json) -> tuple[str, RecordProblem | None]:
        """The clean name of which nothing may be left, and the fault; most names come in several records."""
        text = value if isinstance(value, str) else _plain_text(value)
        if text not in self._usable_names:
            written = clean_name(_plain_text(text))
            if not written or self._has_name(written):  # what stands in the text is a name
                self._usable_names[text] = written, None
            else:
                self._usable_names[text] = self._name_beside_text(written)
        return self._usable_names[text]

    def _name_beside_text(self, written: str) -> tuple[str, RecordProblem | None]:
        """What is usable of a name that does not stand in the text, and the fault."""
        name, fault = usable_name(written, self._has_name)
        if not fault:
            return name, None
        return name, ("empty_name", f"{fault}: {clipped(written, LONGEST_SHOWN_NAME)!r}")

    def _has_name(self, name: str) -> bool:
        return self._text_words.has_whole_name(name_key(name))

    def _without_copies(self, record: Record) -> Record | None:
        """A record without what comes from the prompt's examples; None if nothing is left."""
        return self.examples.checked(
            record, self._source_words, with_keywords=self.prompt == GRAPH_PROMPT
        )

    def _add_content_keywords(self, record: Record) -> None:
        for keyword in _plain_texts(record.get("keywords")):
            if not self._is_too_long(keyword):
                self.content_keywords[keyword] = None

    def _add_entity(self, record: Record) -> RecordProblem | None:
        name = str(record.get("name", ""))
        if not name:
            return "empty_name", "the entity has no name"
        if self._is_too_long(name):
            return self._too_long("a name")
        key = name_key(name)
        type = _plain_text(record.get("entity_type")) or UNKNOWN_TYPE
        if not self.ontology:
            type = type.casefold()
        if _is_pronoun(name, type):
            return "empty_name", f"{name!r} is a pronoun, not a name"
        self._keys.add(key)
        self._types.setdefault(key, type)
        mention = EntityMention(
            name=name,
            type=type,
            description=_plain_text(record.get("description")),
            grounded=self._text_words.has_whole_name(key),
            attributes=_attributes(record),
            aliases=self._aliases(record, key) if record.get("aliases") else (),
            valid_from=_plain_text(record.get("valid_from")),
            valid_to=_plain_text(record.get("valid_to")),
            quoted=record.get("quoted") is True,
        )
        self.entities[mention] = None
        return None

    def _aliases(self, record: Record, own_key: str) -> tuple[str, ...]:
        """The different aliases in a record that occur in the text."""
        names_by_key: dict[str, str] = {}
        for name in map(clean_name, _plain_texts(record.get("aliases"))):
            names_by_key.setdefault(name_key(name), name)
        return tuple(
            sorted(
                name
                for key, name in names_by_key.items()
                if key not in ("", own_key) and self._text_words.has_whole_name(key)
            )
        )

    def _add_relation(self, record: Record) -> RecordProblem | None:
        source = str(record.get("source", ""))
        target = str(record.get("target", ""))
        if not (source and target):
            return "empty_name", "an end of the relation has no name"
        if self._is_too_long(source) or self._is_too_long(target):
            return self._too_long("a name")
        source_key = name_key(source)
        target_key = name_key(target)
        if source_key == target_key:
            return "self_relation", f"{source!r} is related to itself"
        for name, key in ((source, source_key), (target, target_key)):
            if _is_pronoun(name, self._types.get(key, UNKNOWN_TYPE)):
                return "empty_name", f"{name!r} is a pronoun, not a name"
        self._keys.add(tuple(sorted((source_key, target_key))))
        strength = record.get("strength")
        all_keywords = _plain_texts(record.get("keywords"))
        keywords = tuple(itertools.filterfalse(self._is_too_long, all_keywords))
        mention = RelationMention(
            source=source,
            target=target,
            keywords=keywords,
            description=_plain_text(record.get("description")),
            strength=strength if isinstance(strength, float) else 1.0,
            valid_from=_plain_text(record.get("valid_from")),
            valid_to=_plain_text(record.get("valid_to")),
        )
        self.relations[mention] = None
        if keywords != all_keywords:
            return self._too_long("kept without a keyword that")
        return None

    def _add_name(self, record: Record) -> RecordProblem | None:
        """Add a name that a small model read, unless the text does not have it, or it is none."""
        name = str(record.get("name", ""))
        problem = name_problem(name, self.text) if name else ""
        if problem:
            return "unsupported", problem
        return self._add_entity({"name": name})

    def _is_too_long(self, text: str) -> bool:
        return len(text) > self.limits.name_characters

    def _too_long(self, subject: str) -> RecordProblem:
        return "limit", f"{subject} has more than {self.limits.name_characters} characters"

    @cached_property
    def _source_words(self) -> TextWords:
        """The words of the text and the background."""
        if not self.background:
            return self._text_words
        return TextWords(f"{self.background}\n{self.text}")

    # ── where names occur ───────────────────────────────────────────────────────

    @cached_property
    def _text_words(self) -> TextWords:
        return TextWords(self.text)

    def _order(self, mention: EntityMention | RelationMention) -> tuple[object, ...]:
        """The first position of the (last) name of a mention, or the end; then the fields."""
        if isinstance(mention, EntityMention):
            return self._position(mention.name), mention
        position = max(self._position(mention.source), self._position(mention.target))
        return position, mention

    def _position(self, name: str) -> int:
        folded = self._text_words.folded
        position = folded.find(name_key(name))
        return position if position >= 0 else len(folded)


def _is_pronoun(name: str, type: str) -> bool:
    """Whether a person's name is a pronoun; in capitals, as IT, it is an abbreviation."""
    if type not in PERSONS:
        return False
    form = name.capitalize() if name.islower() else name
    return form in PRONOUNS


def graph_records(record: Record) -> Iterator[Record]:
    """A record of `agent-kg-extract` or `extract-with-ontologies` as records of `extract-graph`."""
    if record.get("type") != "relationship":
        yield _graph_entity(record)
        return
    subject = record.get("subject")
    target = record.get("object")
    predicate = record.get("predicate", record.get("relation"))
    if record.get("object-entity") is False:
        yield {"type": "entity", "name": subject, "attribute": [predicate, target]}
        return
    if "subject_type" in record:
        yield {"type": "entity", "name": subject, "entity_type": record.get("subject_type")}
        yield {"type": "entity", "name": target, "entity_type": record.get("object_type")}
    yield {
        "type": "relationship",
        "source": subject,
        "target": target,
        "keywords": [predicate],
        "description": " ".join(map(_plain_text, (subject, predicate, target))),
    }


def _graph_entity(record: Record) -> Record:
    attribute: Json = None
    if record.get("type") == "attribute":
        attribute = [record.get("attribute"), record.get("value")]
    return {
        "type": "entity",
        "name": record.get("entity"),
        "attribute": attribute,
        "entity_type": record.get("entity_type"),
        "description": record.get("definition"),
    }


def _attributes(record: Record) -> tuple[tuple[str, str], ...]:
    """The values in a record: one as a pair ("attribute"), or any as texts such as "height: 30 m"."""
    value = record.get("attribute")
    if isinstance(value, list) and len(value) == 2:
        return ((_plain_text(value[0]), _plain_text(value[1])),)
    pairs: list[tuple[str, str]] = []
    for text in _plain_texts(record.get("attributes")):
        name, *content = re.split("[:：]", text, maxsplit=1)
        if name.strip() and any(content):
            pairs.append((name.strip(), content[0].strip()))
    return tuple(dict.fromkeys(pairs))


def _plain_text(value: Json) -> str:
    """A text without markup and extra spaces, or a number as text; "" for anything else."""
    if isinstance(value, str):
        text = html.unescape(value) if "&" in value else value
        return " ".join(text.split())
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


def _plain_texts(value: Json) -> tuple[str, ...]:
    return tuple(filter(None, map(_plain_text, value))) if isinstance(value, list) else ()
