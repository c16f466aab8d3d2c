"""What people set by hand: read from the stored mentions of edits, the later edit wins.

A person's edit is a document; each mention of the document carries a `claim`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.types import PERSON, UNKNOWN_TYPE, EntityMention, RelationMention
from lightrag_jsonl.storage.rows import (
    MILLION,
    EntityMentionRow,
    RelationMentionRow,
    StoredChunk,
    stored_at,
)
from lightrag_jsonl.storage.views import StoreView

GraphMention: TypeAlias = EntityMention | RelationMention

# The name key of an entity, or the two name keys of a relation, sorted: for either direction.
SubjectKey: TypeAlias = tuple[str, ...]

# The fields of an entity or a relation with the values from people, or `deleted`.
Overrides: TypeAlias = Mapping[SubjectKey, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class EditMention:
    """A mention in an edit, with the time in seconds and the id of the chunk."""

    at: float
    chunk_id: str
    mention: GraphMention


# ── keys ────────────────────────────────────────────────────────────────────────


def name_keys(mention: GraphMention, targets: Mapping[str, str]) -> tuple[str, ...]:
    """The key of an entity, or the keys of the source and the target of a relation."""
    if isinstance(mention, EntityMention):
        keys = [name_key(mention.name)]
    else:
        keys = [name_key(mention.source), name_key(mention.target)]
    return tuple([targets.get(key, key) for key in keys])


def subject_key(mention: GraphMention, targets: Mapping[str, str]) -> SubjectKey:
    """The key of the mentioned entity or relation."""
    return tuple(sorted(name_keys(mention, targets)))


def is_about(
    mention: GraphMention, subjects: Collection[SubjectKey], targets: Mapping[str, str]
) -> bool:
    """Whether the mentioned entity or relation, or an end of the relation, is among the subjects."""
    keys = name_keys(mention, targets)
    return tuple(sorted(keys)) in subjects or any((key,) in subjects for key in keys)


def end_keys(subjects: Iterable[SubjectKey]) -> set[str]:
    """The keys of all entities of these subjects, as subjects or as ends of relations."""
    return {key for subject in subjects for key in subject}


def deleted_subjects(overrides: Overrides) -> set[SubjectKey]:
    """The entities and relations that a person deleted."""
    return {subject for subject, values in overrides.items() if "deleted" in values}


# ── from edits to values ────────────────────────────────────────────────────────


def stored_overrides(view: StoreView, targets: Mapping[str, str]) -> Overrides:
    """The values from all stored edits."""
    return merge_edits(_stored_edit_mentions(view, without=()), targets)


def overrides_after(
    view: StoreView,
    targets: Mapping[str, str],
    *,
    old_chunks: Collection[int],
    new_chunks: Iterable[StoredChunk],
) -> Overrides:
    """The values from edits, once old chunks are gone and new chunks are there."""
    mentions = _stored_edit_mentions(view, without=old_chunks)
    for chunk in new_chunks:
        if chunk.extraction.extractor == PERSON:
            mentions += _new_edit_mentions(chunk)
    return merge_edits(mentions, targets)


def merge_edits(mentions: Iterable[EditMention], targets: Mapping[str, str]) -> Overrides:
    """The values from edits, the later after the earlier; only subjects with values, or deleted."""
    overrides: dict[SubjectKey, dict[str, Any]] = {}
    for edit in sorted(mentions, key=attrgetter("at", "chunk_id")):
        subject = subject_key(edit.mention, targets)
        match edit.mention.claim:
            case "create":
                overrides[subject] = {}
            case "delete":
                overrides[subject] = {"deleted": True}
            case "edit":
                values = {**overrides.get(subject, {}), **_edited_values(edit.mention)}
                values.pop("deleted", None)
                overrides[subject] = values
    return {subject: values for subject, values in overrides.items() if values}


def _edited_values(mention: GraphMention) -> dict[str, Any]:
    """The values in an edit; empty fields mean no change."""
    values: dict[str, Any] = {"description": mention.description}
    if isinstance(mention, EntityMention):
        values["type"] = "" if mention.type == UNKNOWN_TYPE else mention.type
    else:
        values["keywords"] = list(mention.keywords)
        values["weight"] = round(mention.strength * MILLION)
    return {field: value for field, value in values.items() if value}


def _stored_edit_mentions(view: StoreView, *, without: Collection[int]) -> list[EditMention]:
    """The mentions in stored edits, except in the chunks `without`."""
    rows = [row for row in view.edited_chunks() if row not in without]
    if not rows:
        return []
    chunks = view.chunks(rows)
    mentions: list[EntityMentionRow | RelationMentionRow] = []
    mentions += view.entity_mentions(chunks=rows)
    mentions += view.relation_mentions(chunks=rows)
    return [
        EditMention(stored_at(chunks[row.chunk]), chunks[row.chunk].id, row.mention)
        for row in mentions
    ]


def _new_edit_mentions(chunk: StoredChunk) -> list[EditMention]:
    at = round(chunk.created_at, 6)
    mentions: list[GraphMention] = [*chunk.extraction.entities, *chunk.extraction.relations]
    return [EditMention(at, chunk.chunk.id, mention) for mention in mentions]


# ── what changed edits touch ────────────────────────────────────────────────────


def mentions_of(
    view: StoreView, keys: Collection[str], targets: Mapping[str, str]
) -> list[EntityMentionRow]:
    """All mentions of the entities with these keys, also of deleted entities."""
    rows = view.entity_rows(keys=keys)
    mentions = view.entity_mentions(entities=rows)
    for row in view.entity_mentions(deleted=True):
        if name_keys(row.mention, targets)[0] in keys:
            mentions.append(row)
    return mentions


def mentions_to_merge_again(
    view: StoreView,
    before: Overrides,
    after: Overrides,
    targets: Mapping[str, str],
    *,
    without: Collection[int],
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The stored mentions of all subjects that are deleted by changed edits, or restored; except
    in the chunks `without`.
    """
    subjects = deleted_subjects(before) ^ deleted_subjects(after)
    around = [
        row for row in mentions_of(view, end_keys(subjects), targets) if row.chunk not in without
    ]
    relations = view.relation_mentions(chunks={row.chunk for row in around})
    return (
        [row for row in around if is_about(row.mention, subjects, targets)],
        [row for row in relations if is_about(row.mention, subjects, targets)],
    )
