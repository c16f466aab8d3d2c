"""Edits by hand: each edit is a document with the person's words, and an override of the graph.

So an edit is kept, cited and, by deleting the document, undone like any other document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from msgspec import structs

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.languages import known_language
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import (
    PERSON,
    UNKNOWN_TYPE,
    Document,
    EditAction,
    EntityMention,
    Extraction,
    Record,
    RelationMention,
)
from lightrag_jsonl.core.validation import check_storable
from lightrag_jsonl.indexing.chunking import provided_chunks
from lightrag_jsonl.indexing.incoming import IncomingDocument, incoming_document, storable
from lightrag_jsonl.indexing.mentions import MentionCollector
from lightrag_jsonl.indexing.overrides import mentioned_names
from lightrag_jsonl.storage.rows import MILLION, Override, PendingDocument, stored_at
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.strings import digest, sanitize

CHANGEABLE = ("entity_type", "description", "keywords", "strength")
TIME_STEP = 1e-5  # seconds between edits of the same moment
EDIT_WORDS: dict[str, Mapping[str, str]] = {
    "en": {
        "create": "Created by {}", "edit": "Edited by {}", "delete": "Deleted by {}",
        "at": "{}, {}.", "reason": "Reason", "keywords": "Keywords", "strength": "Weight",
        "colon": ": ", "comma": ", ", "brackets": " ({})",
    },
    "zh": {
        "create": "由{}新建", "edit": "由{}修改", "delete": "由{}删除",
        "at": "{}，{}。", "reason": "理由", "keywords": "关键词", "strength": "权重",
        "colon": "：", "comma": "、", "brackets": "（{}）",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edit:
    """A person's statement about the entity or relation of a record of `extract-graph`.

    `by` is the person. Fields of the record that are None stay unchanged.
    """

    action: EditAction
    record: Record
    by: str
    reason: str = ""

    @property
    def is_entity(self) -> bool:
        """Whether the edit is about an entity, not about a relation."""
        return self.record["type"] == "entity"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the entity, or the names of the relation's ends."""
        if self.is_entity:
            return (str(self.record["name"]),)
        return (str(self.record["source"]), str(self.record["target"]))

    def check(self, view: StoreView) -> None:
        """`ConfigError` if the edit creates what exists, or changes nothing; `NotFoundError` if
        the entity or relation to change, or an end of a new relation, does not exist.
        """
        self._check_fields()
        names_by_key = {name_key(sanitize(name)): name for name in self.names}
        ids = view.entity_ids(names_by_key)
        creates = self.action == "create"
        missing = [name for key, name in names_by_key.items() if key not in ids]
        if missing and not (creates and self.is_entity):
            raise NotFoundError(f"no such entity: {', '.join(missing)}")
        ends = tuple(
            sorted(ids.values())
        )  # a single one of an entity that is to be related to itself
        is_related = len(ends) == 2 and bool(view.relation_rows(pairs=[(ends[0], ends[1])]))
        exists = not missing and (self.is_entity or is_related)
        subject = f"{'entity' if self.is_entity else 'relation'}: {' – '.join(self.names)}"
        if exists and creates:
            raise ConfigError(f"already exists, edit it instead: {subject}")
        if not exists and not creates:
            raise NotFoundError(f"no such {subject}")

    def _check_fields(self) -> None:
        keywords = self.record.get("keywords")
        listed = keywords if isinstance(keywords, list) else ()
        for text in (self.by, self.reason, *self.record.values(), *listed):
            check_storable("a text of the edit", text)
        if not self.by.strip():
            raise ConfigError("an edit names who makes it: by is empty")
        changes = [field for field in CHANGEABLE if self.record.get(field) is not None]
        if self.action == "edit" and not changes:
            raise ConfigError(f"an edit changes something: one of {', '.join(CHANGEABLE)}")

    def title(self, language: str) -> str:
        """The action and the person."""
        return EDIT_WORDS[known_language(language)][self.action].format(self.by.strip())

    def text(self, at: datetime, language: str) -> str:
        """The edit in words: person and time, the statement, the reason; a paragraph each."""
        words = EDIT_WORDS[known_language(language)]
        author = words["at"].format(self.title(language), f"{at:%Y-%m-%d %H:%M:%S} UTC")
        keywords = self.record.get("keywords")
        listed = map(str, keywords) if isinstance(keywords, list) else ()
        details = {
            "reason": self.reason,
            "keywords": words["comma"].join(listed),
            "strength": self.record.get("strength"),
        }
        lines = [
            f"{words[name]}{words['colon']}{detail}" for name, detail in details.items() if detail
        ]
        return sanitize("\n\n".join([author, self._statement(words), *lines]))

    def _statement(self, words: Mapping[str, str]) -> str:
        statement = " → ".join(self.names)
        if self.record.get("entity_type"):
            statement += words["brackets"].format(self.record["entity_type"])
        if self.record.get("description"):
            statement += f"{words['colon']}{self.record['description']}"
        return statement

    def extraction(self, text: str) -> Extraction:
        """The mentions in the record; `ConfigError` if the record is refused."""
        collector = MentionCollector(text)
        record: Record = {name: value for name, value in self.record.items() if value is not None}
        collector.add([(1, record)])
        if collector.rejections:
            raise ConfigError(collector.rejections[0].detail)
        mentions = collector.extraction()
        default_strength = 1.0 if self.action == "create" else 0.0
        strength = float(str(record.get("strength", default_strength)))
        relations = [replace(relation, strength=strength) for relation in mentions.relations]
        return Extraction(mentions.entities, tuple(relations), records=1, extractor=PERSON)

    def override(self, extraction: Extraction, *, chunk_id: str, at: float) -> Override:
        """The changed fields, by the mention of the entity or relation."""
        mentions = extraction.entities if self.is_entity else extraction.relations
        mention = mentions[0]
        return Override(
            chunk_id=chunk_id,
            action=self.action,
            names=mentioned_names(mention),
            changes=_changes(mention) if self.action == "edit" else {},
            by=sanitize(self.by),
            at=round(at, 6),
            reason=sanitize(self.reason),
        )


def _changes(mention: EntityMention | RelationMention) -> dict[str, object]:
    """The changed fields with the new values; an empty value changes nothing."""
    changes: dict[str, object] = {"description": mention.description}
    if isinstance(mention, EntityMention):
        changes["type"] = "" if mention.type == UNKNOWN_TYPE else mention.type
    else:
        changes["keywords"] = list(mention.keywords)
        changes["weight"] = round(mention.strength * MILLION)
    return {field: value for field, value in changes.items() if value}


def edit_document(
    edit: Edit, *, view: StoreView, now: float, tokenizer: Tokenizer, language: str
) -> IncomingDocument:
    """The edit as a document of one chunk, later than all earlier edits, after a check."""
    edit.check(view)
    seconds = _later_than_edits(view, now)
    at = datetime.fromtimestamp(seconds, UTC)
    text = edit.text(at, language)
    document = Document(
        text,
        id="edit-" + digest(text, repr(seconds)),
        title=edit.title(language),
        date=f"{at:%Y-%m-%d}",
        metadata={"edit": edit.action, "by": edit.by, "reason": edit.reason},
    )
    new_document = incoming_document(storable(PendingDocument(document, seconds)))
    pages = new_document.pages
    chunks = provided_chunks(pages, [pages[0].text], tokenizer)
    extraction = edit.extraction(text)
    override = edit.override(extraction, chunk_id=chunks[0].id, at=seconds)
    if edit.action == "delete":  # says nothing else about the entity or relation
        extraction = Extraction(records=1, extractor=PERSON)
    return structs.replace(
        new_document, chunks=chunks, extractions=(extraction,), override=override
    )


def _later_than_edits(view: StoreView, now: float) -> float:
    """The time, or a moment after the last edit, if the clock is not later."""
    last_edits = view.chunks(view.edited_chunks()[-1:]).values()
    return max(now, 0.0, *(stored_at(chunk) + TIME_STEP for chunk in last_edits))
