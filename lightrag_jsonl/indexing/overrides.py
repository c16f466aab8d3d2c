"""What people set by hand: the values of each entity and relation, from edits in order of time."""

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from lightrag_jsonl.core.types import EntityMention, RelationMention
from lightrag_jsonl.storage.rows import EntityMentionRow, Override, RelationMentionRow
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import name_key

GraphMention: TypeAlias = EntityMention | RelationMention

# The name key of an entity, or the two name keys of a relation, sorted: for either direction.
SubjectKey: TypeAlias = tuple[str, ...]

# The fields of an entity or a relation with the values from people, or `deleted`.
HandValues: TypeAlias = Mapping[SubjectKey, Mapping[str, Any]]


# ── keys ────────────────────────────────────────────────────────────────────────


def resolved_key(name: str, targets: Mapping[str, str]) -> str:
    """The key of the entity with a name, after merges of names."""
    key = name_key(name)
    return targets.get(key, key)


def name_keys(mention: GraphMention, targets: Mapping[str, str]) -> tuple[str, ...]:
    """The key of an entity, or the keys of the source and the target of a relation."""
    return tuple([resolved_key(name, targets) for name in mentioned_names(mention)])


def mentioned_names(mention: GraphMention) -> tuple[str, ...]:
    """The name of an entity, or the names of the source and the target of a relation."""
    if isinstance(mention, EntityMention):
        return (mention.name,)
    return (mention.source, mention.target)


def is_about(
    mention: GraphMention, subjects: Collection[SubjectKey], targets: Mapping[str, str]
) -> bool:
    """Whether the mentioned entity or relation, or an end of the relation, is among the subjects."""
    keys = name_keys(mention, targets)
    return tuple(sorted(keys)) in subjects or any((key,) in subjects for key in keys)


def end_keys(subjects: Iterable[SubjectKey]) -> set[str]:
    """The keys of all entities of these subjects, as subjects or as ends of relations."""
    return {key for subject in subjects for key in subject}


# ── from edits to values ────────────────────────────────────────────────────────


def hand_values(overrides: Iterable[Override], targets: Mapping[str, str]) -> HandValues:
    """The values from edits, the later after the earlier; only subjects with values, or deleted."""
    values_by_subject: dict[SubjectKey, dict[str, Any]] = {}
    for override in sorted(overrides, key=attrgetter("at", "chunk_id")):
        subject = tuple(sorted([resolved_key(name, targets) for name in override.names]))
        match override.action:
            case "create":
                values_by_subject[subject] = {}
            case "delete":
                values_by_subject[subject] = {"deleted": True}
            case "edit":
                values = {**values_by_subject.get(subject, {}), **override.changes}
                values.pop("deleted", None)
                values_by_subject[subject] = values
    return {subject: values for subject, values in values_by_subject.items() if values}


def stored_hand_values(view: StoreView, targets: Mapping[str, str]) -> HandValues:
    """The values from all stored edits."""
    return hand_values(view.overrides().values(), targets)


def deleted_subjects(values: HandValues) -> set[SubjectKey]:
    """The entities and relations that a person deleted."""
    return {subject for subject, fields in values.items() if "deleted" in fields}


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
    subjects: Collection[SubjectKey],
    targets: Mapping[str, str],
    *,
    without: Collection[int],
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The stored mentions of subjects, and of relations with an end among the subjects; except in
    the chunks `without`.
    """
    around = [
        row for row in mentions_of(view, end_keys(subjects), targets) if row.chunk not in without
    ]
    relations = view.relation_mentions(chunks={row.chunk for row in around})
    return (
        [row for row in around if is_about(row.mention, subjects, targets)],
        [row for row in relations if is_about(row.mention, subjects, targets)],
    )
