"""What people claim by hand: read from the stored mentions, later claims before earlier ones."""

from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.types import UNKNOWN_TYPE, EntityMention, RelationMention
from lightrag_jsonl.storage.rows import MILLION, EntityMentionRow, RelationMentionRow, stored_at
from lightrag_jsonl.storage.views import StoreView

Mention: TypeAlias = EntityMention | RelationMention

# What people changed, by the key of an entity or pair: the values that they gave, or "deleted".
Edits: TypeAlias = Mapping[str, Mapping[str, Any]]


def graph_keys(mention: Mention, targets: Mapping[str, str]) -> list[str]:
    """The key of an entity, or those of the source and the target of a relation."""
    if isinstance(mention, EntityMention):
        names: tuple[str, ...] = (mention.name,)
    else:
        names = mention.source, mention.target
    keys = map(name_key, names)
    return [targets.get(key, key) for key in keys]


def edit_key(keys: Iterable[str]) -> str:
    """The key of an entity or relation in `Edits`, whatever the direction."""
    return "\0".join(sorted(keys))


def is_about(mention: Mention, changed: Collection[str], targets: Mapping[str, str]) -> bool:
    """Whether the entity or relation, or an end of the relation, is among these keys of `Edits`."""
    keys = graph_keys(mention, targets)
    return any(key in changed for key in (*keys, edit_key(keys)))


def edits_of(claims: Iterable[tuple[float, str, Mention]], targets: Mapping[str, str]) -> Edits:
    """What the claims of people, each with its time and chunk id, amount to; later ones win."""
    found: dict[str, dict[str, Any]] = {}
    for _, _, one in sorted(claims, key=itemgetter(0, 1)):
        key = edit_key(graph_keys(one, targets))
        if one.claim == "edit":
            found[key] = {**found.get(key, {}), **_given(one)}
            found[key].pop("deleted", None)
        elif one.claim:
            found[key] = {"deleted": True} if one.claim == "delete" else {}
    return {key: edited for key, edited in found.items() if edited}


def _given(one: Mention) -> dict[str, Any]:
    """The values that an edit gives; the others stay as they are."""
    given: dict[str, Any] = {"description": one.description}
    if isinstance(one, EntityMention):
        given["type"] = "" if one.type == UNKNOWN_TYPE else one.type
    else:
        given |= {"keywords": [*one.keywords], "weight": round(one.strength * MILLION)}
    return {name: value for name, value in given.items() if value}


def stored_claims(
    view: StoreView, without: Collection[int] = ()
) -> list[tuple[float, str, Mention]]:
    """The mentions in edits by hand, each with its time and chunk id; none of chunks in `without`."""
    rows = [row for row in view.edited_chunks() if row not in without]
    if not rows:
        return []
    chunks = view.chunks(rows)
    mentions: list[EntityMentionRow | RelationMentionRow] = [*view.entity_mentions(chunks=rows)]
    mentions += view.relation_mentions(chunks=rows)
    return [(stored_at(chunks[one.chunk]), chunks[one.chunk].id, one.mention) for one in mentions]


def stored_edits(view: StoreView, targets: Mapping[str, str]) -> Edits:
    """What people changed, of all that is stored."""
    return edits_of(stored_claims(view), targets)


def mentions_of(
    view: StoreView, keys: Collection[str], targets: Mapping[str, str]
) -> list[EntityMentionRow]:
    """All mentions of the entities with these keys, deleted ones included."""
    gone = [
        one for one in view.entity_mentions(deleted=True) if is_about(one.mention, keys, targets)
    ]
    return [*view.entity_mentions(entities=view.entity_rows(keys=keys)), *gone]


def refolded(
    view: StoreView,
    before: Edits,
    after: Edits,
    targets: Mapping[str, str],
    *,
    without: Collection[int],
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The stored mentions of everything that was deleted, or is there again, by changed edits; none
    of chunks in `without`.
    """
    changed = {
        key
        for key in {*before, *after}
        if ("deleted" in before.get(key, {})) != ("deleted" in after.get(key, {}))
    }
    ends = {end for key in changed for end in key.split("\0")}
    around = [row for row in mentions_of(view, ends, targets) if row.chunk not in without]
    relations = view.relation_mentions(chunks={row.chunk for row in around})
    return (
        [row for row in around if is_about(row.mention, changed, targets)],
        [one for one in relations if is_about(one.mention, changed, targets)],
    )
