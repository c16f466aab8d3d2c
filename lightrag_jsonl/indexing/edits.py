"""Edits by hand: each is a document that says what a person claims, when and why.

Its mentions are claims beside those that were read in texts, so that it is kept, cited and, by
deleting the document, undone like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.text import digest, sanitize
from lightrag_jsonl.core.types import PERSON, Claim, Document, Extraction, Record, known_language
from lightrag_jsonl.indexing.chunking import provided_chunks
from lightrag_jsonl.indexing.incoming import IncomingDocument as ExtractedDocument
from lightrag_jsonl.indexing.incoming import incoming_document, storable
from lightrag_jsonl.indexing.mentions import MentionCollector
from lightrag_jsonl.storage.rows import PendingDocument, stored_at
from lightrag_jsonl.storage.views import StoreView

CHANGEABLE = ("entity_type", "description", "keywords", "strength")
STEP = 1e-5  # seconds by which edits of the same moment are kept apart
WORDS: dict[str, Mapping[str, str]] = {
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

    def check(self, view: StoreView) -> None:
        """`ConfigError` if what is to be created exists, or nothing is changed; `NotFoundError` if
        what is to be changed or deleted does not exist.
        """
        if not self.by.strip():
            raise ConfigError("an edit names who makes it: by is empty")
        if self.claim == "edit" and not any(self.record.get(one) is not None for one in CHANGEABLE):
            raise ConfigError(f"an edit changes something: one of {', '.join(CHANGEABLE)}")
        keys = {name_key(sanitize(name)): name for name in self.names}
        found = view.entity_ids(keys)
        missing = [name for key, name in keys.items() if key not in found]
        creates, is_entity = self.claim == "create", self.record["type"] == "entity"
        if missing and not (creates and is_entity):
            raise NotFoundError(f"no such entity: {', '.join(missing)}")
        rows = sorted(found.values())
        there = is_entity or (len(rows) == 2 and view.relation_rows(pairs=[(rows[0], rows[1])]))
        what = f"{'entity' if is_entity else 'relation'}: {' – '.join(self.names)}"
        if not creates and not there:
            raise NotFoundError(f"no such {what}")
        if creates and not missing and there:
            raise ConfigError(f"already exists, edit it instead: {what}")

    def title(self, language: str) -> str:
        """What was done by whom."""
        return WORDS[known_language(language)][self.claim].format(self.by.strip())

    def text(self, at: datetime, language: str) -> str:
        """The edit in words: who made it and when, why, and what is claimed; a paragraph each."""
        words, record = WORDS[known_language(language)], self.record
        what = " → ".join(self.names)
        if record.get("entity_type"):
            what += words["brackets"].format(record["entity_type"])
        if record.get("description"):
            what += f"{words['colon']}{record['description']}"
        keywords = words["comma"].join(map(str, record.get("keywords") or ()))  # type: ignore[arg-type]
        more = {"reason": self.reason, "keywords": keywords, "strength": record.get("strength")}
        lines = [f"{words[name]}{words['colon']}{value}" for name, value in more.items() if value]
        who = words["at"].format(self.title(language), f"{at:%Y-%m-%d %H:%M:%S} UTC")
        return sanitize("\n\n".join([who, what, *lines]))

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
    edit: Edit, now: float, view: StoreView, tokenizer: Tokenizer, language: str
) -> ExtractedDocument:
    """The edit as a document of one chunk, later than all earlier edits; checked first."""
    edit.check(view)
    earlier = view.chunks(view.edited_chunks()[-1:]).values()
    now = max(now, *(stored_at(chunk) + STEP for chunk in earlier), 0.0)
    at = datetime.fromtimestamp(now, UTC)
    text = edit.text(at, language)
    document = Document(
        text,
        id="edit-" + digest(text, repr(now)),
        title=edit.title(language),
        date=f"{at:%Y-%m-%d}",
        metadata={"edit": edit.claim, "by": edit.by, "reason": edit.reason},
    )
    one = incoming_document(storable(PendingDocument(document, now)))
    chunks = provided_chunks(one.pages, [one.pages[0].text], tokenizer)
    return ExtractedDocument(one.document, one.pages, chunks, (edit.extraction(text),))
