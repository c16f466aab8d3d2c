"""Names with several bearers: proposed where documents contradict each other, told apart by qualifiers.

A document has a single bearer of a name (one sense per discourse: Gale, Church and Yarowsky,
1992). Documents with the same further entities are about the same bearer, unless types or dates
contradict.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod

from msgspec import structs

from lightrag_jsonl.core.errors import ConfigError, NotFoundError
from lightrag_jsonl.core.languages import STATING_NOTHING
from lightrag_jsonl.core.types import UNKNOWN_TYPE, EntityMention
from lightrag_jsonl.curation.compared_names import first_years
from lightrag_jsonl.curation.duplicates import Evidence
from lightrag_jsonl.indexing.merging import GraphMerger, IndexChange, stored_times
from lightrag_jsonl.indexing.name_parts import PEOPLE, PLACES, UNTYPED
from lightrag_jsonl.indexing.overrides import name_keys, stored_hand_values
from lightrag_jsonl.storage.rows import EntityMentionRow, RelationMentionRow
from lightrag_jsonl.storage.views import Snapshot, StoreView
from lightrag_jsonl.text.names import clean_name, name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words as word_set

# Scores of evidence for two bearers; not tuned.
DATES_SCORE = 0.9
TYPES_SCORE = 0.4
WHEREABOUTS_SCORE = 0.5
RARE_TYPE = 0.2  # of the documents of a name

VAGUE_TYPES = word_set(
    f"{UNKNOWN_TYPE} concept event category 概念 事件 类别"
)  # change with the passage
HUB_DOCUMENTS = 20  # an entity of more documents joins none of them
MOST_NAME_DOCUMENTS = 200  # of a name that is looked at

_QUALIFIED = pattern_of(r"^(?P<name>.*\S) \((?P<qualifier>[^()]+)\)$")


@dataclass(frozen=True, slots=True)
class Homonym:
    """A name with perhaps several bearers: the ids of the documents of each, by a qualifier."""

    name: str
    bearers: Mapping[str, tuple[str, ...]]
    score: float
    evidence: tuple[Evidence, ...]


@dataclass(slots=True)
class _Portrait:
    """The facts of documents about the bearer of a name."""

    documents: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)  # words of the texts, by kind
    years: set[str] = field(default_factory=set)
    neighbours: set[int] = field(default_factory=set)
    places: dict[str, set[str]] = field(default_factory=dict)  # names, by document

    def add(self, portrait: "_Portrait") -> None:
        """Take in the facts of further documents."""
        self.documents |= portrait.documents
        self.types |= portrait.types
        self.years |= portrait.years
        self.neighbours |= portrait.neighbours
        self.places |= portrait.places


def find_homonyms(snapshot: Snapshot, *, limit: int = 100) -> tuple[Homonym, ...]:
    """The names with contradictory documents, the likeliest first; nothing is changed."""
    homonyms: list[Homonym] = []
    portraits_by_entity = _portraits(snapshot)
    names = snapshot.entity_names(portraits_by_entity)
    for entity, portraits in portraits_by_entity.items():
        homonym = _homonym(names[entity], portraits)
        if homonym is not None:
            homonyms.append(homonym)
    homonyms.sort(key=lambda homonym: (-homonym.score, homonym.name))
    return tuple(homonyms[:limit])


# ── what each document says ─────────────────────────────────────────────────────


def _portraits(snapshot: Snapshot) -> dict[int, list[_Portrait]]:
    """A portrait for each document of an entity with several, in the order of the documents' ids."""
    document_ids = {row: chunk.document_id for row, chunk in snapshot.chunks().items()}
    documents_by_entity: dict[int, set[str]] = defaultdict(set)
    entities_by_document: dict[str, set[int]] = defaultdict(set)
    for entity, chunk in zip(*map(list, snapshot.graph.all_mentions), strict=True):
        documents_by_entity[int(entity)].add(document_ids[int(chunk)])
        entities_by_document[document_ids[int(chunk)]].add(int(entity))
    candidates = {
        entity
        for entity, documents in documents_by_entity.items()
        if 1 < len(documents) <= MOST_NAME_DOCUMENTS
    }
    portraits: dict[int, dict[str, _Portrait]] = defaultdict(dict)
    for mention in snapshot.entity_mentions(entities=candidates):
        document = document_ids[mention.chunk]
        portrait = portraits[mention.owner or 0].setdefault(document, _Portrait({document}))
        _take_mention(portrait, mention.mention)
    places = _stated_places(snapshot, document_ids)
    for entity, by_document in portraits.items():
        _drop_rare_types(by_document.values())
        for document, portrait in by_document.items():
            portrait.neighbours = {
                row
                for row in entities_by_document[document] - {entity}
                if len(documents_by_entity[row]) <= HUB_DOCUMENTS
            }
            portrait.places = {document: places[entity, document]}
    return {
        entity: [by_document[document] for document in sorted(by_document)]
        for entity, by_document in sorted(portraits.items())
    }


def _stated_places(
    snapshot: Snapshot, document_ids: Mapping[int, str]
) -> Mapping[tuple[int, str], set[str]]:
    """The places and organizations in stated relations with an entity in a document."""
    entities = snapshot.entity_rows()
    relations = snapshot.relation_rows()
    places: dict[tuple[int, str], set[str]] = defaultdict(set)
    for row in snapshot.relation_mentions():
        relation = relations.get(row.owner or 0)
        if relation is None or not set(row.mention.keywords) - STATING_NOTHING:
            continue
        document = document_ids[row.chunk]
        for end, other_end in ((relation.low, relation.high), (relation.high, relation.low)):
            if entities[other_end].type.casefold() in PLACES:
                places[end, document].add(entities[other_end].name)
    return places


def _drop_rare_types(portraits: Collection[_Portrait]) -> None:
    """Forget types in few of the documents, as mistakes of the extraction."""
    counts = Counter(kind for portrait in portraits for kind in portrait.types)
    least = RARE_TYPE * len(portraits)
    for portrait in portraits:
        portrait.types = {
            kind: word for kind, word in portrait.types.items() if counts[kind] >= least
        }


def _take_mention(portrait: _Portrait, mention: EntityMention) -> None:
    word = mention.type.casefold()
    if word not in UNTYPED | VAGUE_TYPES:
        kind = "person" if word in PEOPLE else "place" if word in PLACES else word
        portrait.types.setdefault(kind, word)
    portrait.years |= first_years(mention.name, mention.attributes, mention.description)


# ── from portraits to bearers ───────────────────────────────────────────────────


def _homonym(name: str, portraits: Sequence[_Portrait]) -> Homonym | None:
    """The bearers of a name with contradictory documents."""
    bearers = _joined_portraits(
        _joined_portraits(portraits, _are_one), lambda first, second: not _against(first, second)
    )
    if len(bearers) < 2:
        return None
    evidence = [
        sign for first, second in combinations(bearers, 2) for sign in _against(first, second)
    ]
    kinds: dict[str, Evidence] = {}
    for sign in evidence:
        kinds.setdefault(sign.kind, sign)
    score = 1.0 - prod(1.0 - sign.score for sign in kinds.values())
    return Homonym(
        name=name,
        bearers=_qualified(bearers),
        score=round(score, 4),
        evidence=tuple(kinds.values()),
    )


def _joined_portraits(
    portraits: Iterable[_Portrait], belong_together: Callable[[_Portrait, _Portrait], bool]
) -> list[_Portrait]:
    """The portraits of each bearer joined, in order of the number of documents, largest first."""
    bearers: list[_Portrait] = []
    ordered = sorted(portraits, key=lambda item: (-len(item.documents), min(item.documents)))
    for portrait in ordered:
        matching = [bearer for bearer in bearers if belong_together(bearer, portrait)]
        if matching:
            matching[0].add(portrait)
        else:
            copied = _Portrait()
            copied.add(portrait)
            bearers.append(copied)
    return bearers


def _are_one(first: _Portrait, second: _Portrait) -> bool:
    """Whether two portraits share a year or another entity, and neither dates nor types contradict."""
    if _contradicted(first.years, second.years) or _contradicted(first.types, second.types):
        return False
    return not (
        first.neighbours.isdisjoint(second.neighbours) and first.years.isdisjoint(second.years)
    )


def _against(first: _Portrait, second: _Portrait) -> list[Evidence]:
    """The evidence for two bearers."""
    evidence: list[Evidence] = []
    if _contradicted(first.years, second.years):
        evidence.append(Evidence("dates", _both(first.years, second.years), DATES_SCORE))
    is_apart = first.neighbours.isdisjoint(second.neighbours)
    if is_apart and _contradicted(first.types, second.types):
        evidence.append(
            Evidence("types", _both(first.types.values(), second.types.values()), TYPES_SCORE)
        )
    places, other_places = [set().union(*bearer.places.values()) for bearer in (first, second)]
    are_people = {"person"} == set(first.types) == set(second.types)
    if are_people and is_apart and _contradicted(places, other_places):
        evidence.append(Evidence("places", _both(places, other_places), WHEREABOUTS_SCORE))
    return evidence


def _contradicted(first: Collection[str], second: Collection[str]) -> bool:
    """Whether both are known and nothing is common."""
    return bool(first) and bool(second) and set(first).isdisjoint(second)


def _both(first: Iterable[str], second: Iterable[str]) -> str:
    first_words = ", ".join(sorted(first)[:3])
    second_words = ", ".join(sorted(second)[:3])
    return f"{first_words} / {second_words}"


def _qualified(bearers: Sequence[_Portrait]) -> dict[str, tuple[str, ...]]:
    """The documents of each bearer by a qualifier: a year, a place or a type in all documents of
    this bearer alone, or else a number. So no qualifier remains of a deleted document.
    """
    usage = Counter(word for bearer in bearers for word in set(_qualifiers(bearer)))
    qualified: dict[str, tuple[str, ...]] = {}
    for number, bearer in enumerate(bearers, start=1):
        own = [word for word in _qualifiers(bearer) if usage[word] == 1]
        qualified[own[0] if own else str(number)] = tuple(sorted(bearer.documents))
    return qualified


def _qualifiers(bearer: _Portrait) -> list[str]:
    """Possible qualifiers of a bearer, the best first."""
    shared_places = set.intersection(*bearer.places.values()) if bearer.places else set()
    is_one_document = len(bearer.documents) == 1
    years = bearer.years if is_one_document else set()
    types = bearer.types.values() if is_one_document else ()
    words = [
        *sorted(years),
        *sorted(shared_places, key=lambda name: (len(name), name)),
        *sorted(types),
    ]
    return [word for word in words if not re.search(r"[()（）]", word)]


# ── separating, and undoing that ────────────────────────────────────────────────


def plan_separating(
    view: StoreView, name: str, bearers: Mapping[str, Collection[str]]
) -> IndexChange:
    """Give a name a qualifier in the documents of each bearer: "John Gale (Kestrel Works)".

    The bare name becomes an alias, by which questions find each bearer. `NotFoundError` for an unknown
    name, or without a mention in a document; `ConfigError` for a name merged with further names.
    """
    key = name_key(name)
    rows = view.entity_rows(keys=[key])
    if not rows:
        raise NotFoundError(f"no such entity: {name}")
    if key in set(view.aliases().links.values()):
        raise ConfigError(f"other names are merged into {name}: unmerge them first")
    qualifiers = {
        document: _plain_qualifier(qualifier)
        for qualifier, documents in bearers.items()
        for document in documents
    }
    document_ids = {
        row: chunk.document_id for row, chunk in view.chunks(documents=list(qualifiers)).items()
    }
    mentioned = {
        document_ids[mention.chunk]
        for mention in view.entity_mentions(entities=rows)
        if mention.chunk in document_ids
    }
    if missing := sorted(qualifiers.keys() - mentioned):
        raise NotFoundError(f"{name} is not mentioned in: {', '.join(missing)}")

    def qualified(mentioned_name: str, chunk: int) -> str:
        document = document_ids.get(chunk)
        if document is None or name_key(mentioned_name) != key:
            return mentioned_name
        return f"{mentioned_name} ({qualifiers[document]})"

    return _plan_new_names(view, set(document_ids), list(rows), qualified)


def plan_rejoining(view: StoreView, names: Iterable[str]) -> IndexChange:
    """Take the qualifiers off names again; `NotFoundError` lists names without an entity or qualifier."""
    keys = {name_key(name): name for name in names}
    rows = view.entity_rows(keys=keys)
    missing_keys = keys.keys() - {row.key for row in rows.values()}
    plain = [name for name in keys.values() if not _QUALIFIED.match(clean_name(name))]
    if missing := [*plain, *[keys[key] for key in sorted(missing_keys)]]:
        raise NotFoundError(f"not separated: {', '.join(dict.fromkeys(missing))}")
    chunks = {mention.chunk for mention in view.entity_mentions(entities=rows)}

    def bare(mentioned_name: str, chunk: int) -> str:
        match = _QUALIFIED.match(mentioned_name)
        return match["name"] if match and name_key(mentioned_name) in keys else mentioned_name

    return _plan_new_names(view, chunks, list(rows), bare)


def _plain_qualifier(qualifier: str) -> str:
    text = clean_name(qualifier)
    if not text or re.search(r"[()（）]", text):
        raise ConfigError(f"a qualifier is a text without brackets, not {qualifier!r}")
    return text


def _plan_new_names(
    view: StoreView,
    chunks: Collection[int],
    entities: Collection[int],
    new_name: Callable[[str, int], str],
) -> IndexChange:
    """Rename the entities of mentions, and the ends of relations."""
    aliases = view.aliases()
    entity_mentions = [
        mention for mention in view.entity_mentions(entities=entities) if mention.chunk in chunks
    ]
    ends = {name_keys(row.mention, {})[0] for row in entity_mentions}
    relation_mentions = [
        row
        for row in view.relation_mentions(chunks=chunks)
        if not ends.isdisjoint(name_keys(row.mention, {}))
    ]
    hand_values = stored_hand_values(view, aliases.targets)
    merger = GraphMerger(view, view.next_ids(), aliases.targets, hand_values)
    merger.remove(entity_mentions, relation_mentions)
    created = stored_times(view, entity_mentions, relation_mentions)
    renamed_entities = [
        structs.replace(row, mention=_renamed(row, new_name)) for row in entity_mentions
    ]
    renamed_relations = [_with_new_ends(row, new_name) for row in relation_mentions]
    merger.add(renamed_entities, renamed_relations, created)
    return IndexChange(graph=merger.finish(aliases.displays))


def _renamed(row: EntityMentionRow, new_name: Callable[[str, int], str]) -> EntityMention:
    """A mention with another name; a bare name is an alias as long as there is a qualifier, but not of a short form,
    which has its bearer's name only while it is joined to it.
    """
    mention = row.mention
    name = new_name(mention.name, row.chunk)
    aliases = mention.aliases
    if len(name) < len(mention.name):
        aliases = tuple([alias for alias in aliases if alias != name])
    elif len(name) > len(mention.name) and not row.written:
        aliases = (*aliases, mention.name)
    return replace(mention, name=name, aliases=aliases)


def _with_new_ends(
    row: RelationMentionRow, new_name: Callable[[str, int], str]
) -> RelationMentionRow:
    """A mention with other names of the ends, also of those that short forms were joined to."""
    source, target = [
        new_name(name, row.chunk) for name in (row.mention.source, row.mention.target)
    ]
    written = tuple([new_name(name, row.chunk) for name in row.written])
    mention = replace(row.mention, source=source, target=target)
    return structs.replace(row, mention=mention, written=written)
