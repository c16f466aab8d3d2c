"""Merges of names by a person: name keys and the entities meant."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.validation import check_storable
from lightrag_jsonl.indexing.bearers import DocumentMentions, as_written
from lightrag_jsonl.indexing.merging import GraphMerger, IndexChange, stored_times
from lightrag_jsonl.indexing.overrides import mentions_of, name_keys, stored_hand_values
from lightrag_jsonl.storage.rows import Aliases, EntityMentionRow, RelationMentionRow
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.names import clean_name, name_key


def aliases_of(
    links: Mapping[str, str], displays: Mapping[str, str], apart: Iterable[str] = ()
) -> Aliases:
    """Merges of names, with the display names of merge targets and of renamed entities.

    Renamed entities, and entities with keys in `apart`, stand for themselves, unless merged.
    """
    displayed_keys = {*links.values(), *displays.keys() - links.keys()}
    renamed = displays.keys() - set(links.values())
    return Aliases(
        links=dict(links),
        displays={key: name for key, name in displays.items() if key in displayed_keys},
        apart=frozenset({*apart, *renamed} - links.keys()),
    )


def merged_aliases(view: StoreView, names: Iterable[str], into: str) -> Aliases:
    """The aliases after a merge: several names, with all aliases, stand for `into`.

    `NotFoundError` lists names without an entity; `ConfigError` if nothing of `into` is left after
    the cleaning of names.
    """
    check_storable("the name that they are merged into", into)
    display = clean_name(into)
    target = name_key(display)
    if not target:
        raise ConfigError("the name that they are merged into is empty")
    names_by_key = {name_key(name): name for name in names}
    entity_ids = view.entity_ids(names_by_key)
    missing = [name for key, name in names_by_key.items() if key not in entity_ids]
    if missing:
        raise NotFoundError(f"no such entity: {', '.join(missing)}")
    aliases = view.aliases()
    links = {key: end for key, end in aliases.links.items() if key != target}  # no circles
    for key in names_by_key.keys() - {target}:
        links[key] = target
    return aliases_of(links, {**aliases.displays, target: display}, aliases.apart)


def unmerged_aliases(view: StoreView, names: Iterable[str]) -> Aliases:
    """The aliases once names stand for themselves again; earlier merges into the names stay.

    For the target of merges, all merges into the target are undone. Afterwards the names stand for
    themselves, also names joined to a longer name by documents: no document joins these names any
    more. `NotFoundError` lists names without a merge.
    """
    aliases = view.aliases()
    names_by_key = {name_key(name): name for name in names}
    targets = names_by_key.keys() - aliases.links.keys()
    merged = names_by_key.keys() & {*aliases.links, *aliases.displays}
    joined_keys = {key: _joined_keys(view, key) for key in names_by_key.keys() - merged}
    if not_merged := [names_by_key[key] for key, joined in joined_keys.items() if not joined]:
        raise NotFoundError(f"not merged into another entity: {', '.join(not_merged)}")
    links = {
        key: end
        for key, end in aliases.links.items()
        if key not in names_by_key and end not in targets
    }
    renamed = aliases.displays.keys() - set(aliases.links.values()) - names_by_key.keys()
    displayed_keys = {*links.values(), *renamed}
    displays = {key: name for key, name in aliases.displays.items() if key in displayed_keys}
    unmerged_keys = (aliases.links.keys() - links.keys()).union(*joined_keys.values())
    return aliases_of(links, displays, aliases.apart | unmerged_keys)


def _joined_keys(view: StoreView, key: str) -> set[str]:
    """The key itself, if documents join the name to a longer name, or the keys of the joined names."""
    entity_ids = {*view.entity_rows(keys=[key]), *[id for id, _ in view.alias_claims(keys=[key])]}
    joined = {
        name_key(row.written[0]): name_key(row.mention.name)
        for row in view.entity_mentions(entities=entity_ids)
        if row.written
    }
    return {key} if key in joined else {short for short, bearer in joined.items() if bearer == key}


def plan_renaming(new_aliases: Callable[[StoreView], Aliases], view: StoreView) -> IndexChange:
    """Change the merges of names; only the mentions of the affected entities are merged again, and
    of documents that may now join other names.
    """
    before = view.aliases()
    after = new_aliases(view)
    hand_values = stored_hand_values(view, after.targets)
    merger = GraphMerger(view, view.next_ids(), after.targets, hand_values)
    changed_displays = {*before.displays.items()} ^ {*after.displays.items()}
    renamed = {key for key, _ in changed_displays}
    merger.start_with(view.entity_rows(keys=renamed).values(), ())
    entity_mentions, relation_mentions = _moved_mentions(view, before.targets, after.targets)
    changed_chunks: set[int] = set()
    joined_entities: dict[int, EntityMentionRow] = {}
    joined_relations: dict[int, RelationMentionRow] = {}
    for mentions in _documents_with(view, before.apart ^ after.apart, before.targets):
        joined = mentions.with_bearers(after.apart)
        changed_chunks |= mentions.chunks_changed_in(joined)
        joined_entities |= {row.id: row for row in joined.entities}
        joined_relations |= {row.id: row for row in joined.relations}
    if changed_chunks:  # then all mentions of a chunk, since they may be of the same entities
        changed_chunks |= {row.chunk for row in entity_mentions}
        changed_chunks |= {row.chunk for row in relation_mentions}
        entity_mentions = view.entity_mentions(chunks=changed_chunks)
        relation_mentions = view.relation_mentions(chunks=changed_chunks)
    merger.remove(entity_mentions, relation_mentions)
    created = stored_times(view, entity_mentions, relation_mentions)
    merger.add(
        [joined_entities.get(row.id, row) for row in entity_mentions],
        [joined_relations.get(row.id, row) for row in relation_mentions],
        created,
    )
    return IndexChange(graph=merger.finish(after.displays), aliases=after)


def _documents_with(
    view: StoreView, keys: Collection[str], targets: Mapping[str, str]
) -> Iterator[DocumentMentions]:
    """All mentions of each document with a name of these keys."""
    if not keys:
        return
    claiming = {id for id, _ in view.alias_claims(keys=keys)}
    rows = mentions_of(view, {targets.get(key, key) for key in keys}, targets)
    rows += view.entity_mentions(entities=claiming)
    chunks = {row.chunk for row in rows if name_key(as_written(row).name) in keys}
    for document in sorted({chunk.document_id for chunk in view.chunks(chunks).values()}):
        mentions = DocumentMentions()
        mentions.add_stored(view, view.chunks(documents=[document]))
        yield mentions


def _moved_mentions(
    view: StoreView, before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[list[EntityMentionRow], list[RelationMentionRow]]:
    """The mentions of entities with a lost or a new name, and of the relations of such entities."""
    moved = {key for key in {*before, *after} if before.get(key, key) != after.get(key, key)}
    entity_keys = {before.get(key, key) for key in moved} | {after.get(key, key) for key in moved}
    entity_mentions = mentions_of(view, entity_keys, before)
    names = {key for row in entity_mentions for key in name_keys(row.mention, {})}
    chunks = {row.chunk for row in entity_mentions}
    relation_mentions = [
        row
        for row in view.relation_mentions(chunks=chunks)
        if not names.isdisjoint(name_keys(row.mention, {}))
    ]
    return entity_mentions, relation_mentions
