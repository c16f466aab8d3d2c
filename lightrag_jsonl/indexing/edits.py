"""Edits by hand: each is a document that says what a person claims, when and why.

Its mentions are claims beside those that were read in texts, so that it is kept, cited and, by
deleting the document, undone like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.text import digest, name_key, sanitize
from lightrag_jsonl.core.types import (
    PERSON,
    Claim,
    Document,
    Extraction,
    Json,
    Record,
    known_language,
)
from lightrag_jsonl.indexing.chunking import provided_chunks
from lightrag_jsonl.indexing.claims import stored_at
from lightrag_jsonl.indexing.loading import incoming
from lightrag_jsonl.indexing.mentions import MentionCollector
from lightrag_jsonl.indexing.merging import ExtractedDocument
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.storage.store import Reader

STEP = 1e-5  # seconds by which edits of the same moment are kept apart
WORDS: dict[str, Mapping[str, str]] = {
    "en": {
        "create": "Created by {}, {}.", "edit": "Edited by {}, {}.", "delete": "Deleted by {}, {}.",
        "reason": "Reason", "name": "Entity", "entity_type": "Type", "description": "Description",
        "source": "Relation from", "target": "to", "keywords": "Keywords", "strength": "Weight",
        "colon": ": ", "comma": ", ",
    },
    "zh": {
        "create": "由{}新建，{}。", "edit": "由{}修改，{}。", "delete": "由{}删除，{}。",
        "reason": "理由", "name": "实体", "entity_type": "类型", "description": "描述",
        "source": "关系起点", "target": "终点", "keywords": "关键词", "strength": "权重",
        "colon": "：", "comma": "、",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person claims about the entity or relation of a record of `extract-graph`.

    `by` is who says so. Fields of the record that are None stay as they are.
    """

    claim: Claim
    record: Record
    by: str
    reason: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the entity, or those of the ends of the relation."""
        fields = ("name",) if self.record["type"] == "entity" else ("source", "target")
        return tuple(str(self.record[field]) for field in fields)

    def check(self, reader: Reader) -> None:
        """`ConfigError` if what is to be created exists, `NotFoundError` if anything else does not."""
        if not self.by.strip():
            raise ConfigError("an edit names who makes it: by is empty")
        keys = {name_key(sanitize(name)): name for name in self.names}
        found = reader.entity_ids(keys)
        missing = [name for key, name in keys.items() if key not in found]
        creates, is_entity = self.claim == "create", self.record["type"] == "entity"
        if missing and not (creates and is_entity):
            raise NotFoundError(f"no such entity: {', '.join(missing)}")
        rows = sorted(found.values())
        there = is_entity or (len(rows) == 2 and reader.relation_rows(pairs=[(rows[0], rows[1])]))
        what = f"{'entity' if is_entity else 'relation'}: {' – '.join(self.names)}"
        if not creates and not there:
            raise NotFoundError(f"no such {what}")
        if creates and not missing and there:
            raise ConfigError(f"already exists, edit it instead: {what}")

    def text(self, at: datetime, language: str) -> str:
        """The edit in words, a line for each field."""
        words = WORDS[known_language(language)]
        shown: dict[str, Json] = {"reason": self.reason, **self.record}
        lines = [words[self.claim].format(self.by.strip(), f"{at:%Y-%m-%d %H:%M:%S} UTC")]
        for field, value in shown.items():
            if field != "type" and value not in (None, "", []):
                joined = words["comma"].join(map(str, value)) if isinstance(value, list) else value
                lines.append(f"{words[field]}{words['colon']}{joined}")
        return sanitize("\n".join(lines))

    def extraction(self, text: str) -> Extraction:
        """The claims; `ConfigError` if the record is refused."""
        collector = MentionCollector(text)
        record: Record = {name: value for name, value in self.record.items() if value is not None}
        collector.add([(1, record)])
        if collector.rejections:
            raise ConfigError(collector.rejections[0].detail)
        found = collector.extraction()
        strength = record.get("strength", 1.0 if self.claim == "create" else 0.0)
        relations = [
            replace(one, claim=self.claim, strength=float(str(strength))) for one in found.relations
        ]
        entities = found.entities  # the ends of a relation are only mentioned
        if not relations:
            entities = tuple([replace(one, claim=self.claim) for one in entities])
        elif self.claim == "delete":
            entities = ()
        return Extraction(entities, tuple(relations), records=1, extractor=PERSON)


def edit_document(
    edit: Edit, now: float, reader: Reader, tokenizer: Tokenizer, language: str
) -> ExtractedDocument:
    """The edit as a document of one chunk, later than all earlier edits; checked first."""
    edit.check(reader)
    earlier = reader.chunks(reader.edited_chunks()[-1:]).values()
    now = max(now, *(stored_at(chunk) + STEP for chunk in earlier), 0.0)
    at = datetime.fromtimestamp(now, UTC)
    text = edit.text(at, language)
    name = WORDS[known_language(language)][edit.claim].format(edit.by.strip(), f"{at:%Y-%m-%d}")
    document = Document(
        text,
        id="edit-" + digest(text, repr(now)),
        title=name.rstrip(".。"),
        date=f"{at:%Y-%m-%d}",
        metadata={"edit": edit.claim, "by": edit.by, "reason": edit.reason},
    )
    one = incoming(PendingDocument(document, now))
    chunks = provided_chunks(one.pages, [one.pages[0].text], tokenizer)
    return ExtractedDocument(one.document, one.pages, chunks, (edit.extraction(text),))
