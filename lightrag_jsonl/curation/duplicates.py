"""Finds pairs of entities that may be the same, with evidence, for a person or a model to decide."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.curation.compared_names import NO_PART, ComparedName
from lightrag_jsonl.curation.english_statements import (
    described_roles,
    english_name_statements,
    name_role,
)
from lightrag_jsonl.curation.short_forms import (
    bracketed_pairs,
    chinese_short_pairs,
    initial_pairs,
)
from lightrag_jsonl.indexing.bearers import as_written
from lightrag_jsonl.indexing.chinese_names import name_statements, surname
from lightrag_jsonl.storage.views import Snapshot
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.sentences import sentence_spans

# Scores of evidence.
STATED = 0.95
STATED_OPENLY = 0.5  # if the words may be of another name: about half are right
VARIANT = 0.9
SPELLING = 0.6
LIKENESS = 0.8
PART = 0.6
SAME_DOCUMENT = 0.7  # factor of the score if the names share a document, but no passage
DESCRIBED = 0.7
TITLED = 0.5  # times the share of passages

SIMILAR = 0.85  # the least cosine of the vectors of two entities, for a proposal by vectors alone
NEIGHBOURS_COMPARED = 6  # nearest neighbours to compare, including the entity
CROWD = 24  # if more names than this share a key, the key is no evidence
MAIN_SHARE = 0.5  # of the passages that a title shares with people of its surname, the first has
DESCRIPTION_CHARACTERS = 300  # of a description for display
VECTORS_AT_ONCE = 256  # in one search

NAMED_TOGETHER = {"stated", "short form"}  # evidence that no number or title contradicts

EntityPair: TypeAlias = tuple[int, int]  # row ids, ascending
Proposal: TypeAlias = "tuple[EntityPair, Evidence]"
NamesById: TypeAlias = Mapping[int, ComparedName]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sign for two names of one entity, or for two bearers of one name."""

    kind: str
    detail: str
    score: float


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two entities, perhaps the same; `into` has more relations, `name` would become its alias.

    `certain` pairs are merged by rule, if asked for: see `_certain_pairs`.
    """

    name: str
    into: str
    types: tuple[str, str]
    score: float
    evidence: tuple[Evidence, ...]
    descriptions: tuple[str, str] = ("", "")
    certain: bool = False


@dataclass(frozen=True, slots=True)
class _SharedPlaces:
    """The places of entities: passages, related entities (as negative row ids), and documents."""

    places: Mapping[int, set[int]]
    documents: Mapping[int, set[str]]
    related: Collection[EntityPair]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_SharedPlaces":
        """The places of all entities."""
        places: dict[int, set[int]] = defaultdict(set)
        documents: dict[int, set[str]] = defaultdict(set)
        document_ids = {row: chunk.document_id for row, chunk in snapshot.chunks().items()}
        for entity, chunk in np.stack(snapshot.graph.all_mentions, axis=1).tolist():
            places[entity].add(chunk)
            documents[entity].add(document_ids[chunk])
        ends = snapshot.graph.all_ends.tolist()
        for low, high in ends:
            places[low] |= {-low, -high}
            places[high] |= {-low, -high}
        return cls(places, documents, {_id_pair(low, high) for low, high in ends})

    def count(self, first: int, second: int) -> int:
        """The number of passages that mention both entities, and of entities related to both."""
        return len(self.places[first] & self.places[second])

    def nearness(self, first: int, second: int) -> float:
        """1 in a shared place, less in a shared document, else 0."""
        if self.count(first, second):
            return 1.0
        return 0.0 if self.documents[first].isdisjoint(self.documents[second]) else SAME_DOCUMENT


@dataclass(frozen=True, slots=True)
class _StatedAlias:
    """A statement, in a record or a text, of an entity's name as another name of the bearer."""

    bearer: int
    alias: int
    words: str
    is_open: bool = False


def find_duplicates(
    snapshot: Snapshot, *, limit: int = 100, has_meaning: bool = True
) -> tuple[Duplicate, ...]:
    """The likeliest pairs, best first; nothing is merged.

    Names with the same name key are one entity already. Names with different numbers are paired
    only by a statement. Without `has_meaning` vectors only count words, and propose nothing.
    """
    names = {id: ComparedName(row) for id, row in snapshot.entity_rows().items()}
    stated_aliases = list(_stated_aliases(snapshot, names))
    evidence_by_pair = _evidence_by_pair(snapshot, names, stated_aliases, has_meaning=has_meaning)
    certain = set(_certain_pairs(snapshot, names, stated_aliases))
    duplicates = [
        _duplicate(snapshot, pair, evidence, names, certain=pair in certain)
        for pair, evidence in evidence_by_pair.items()
    ]
    duplicates.sort(key=lambda pair: (-pair.score, pair.into, pair.name))
    return tuple(duplicates[:limit])


def groups(pairs: Iterable[Duplicate]) -> tuple[tuple[str, ...], ...]:
    """Groups of names connected by pairs, the target of the merge first."""
    groups_by_name: dict[str, list[str]] = {}
    for pair in pairs:
        target_group = groups_by_name.get(pair.into, [pair.into])
        name_group = groups_by_name.get(pair.name, [pair.name])
        group = list(dict.fromkeys([*target_group, *name_group]))
        groups_by_name.update(dict.fromkeys(group, group))
    distinct = {id(group): tuple(group) for group in groups_by_name.values()}
    return tuple(distinct.values())


def _evidence_by_pair(
    snapshot: Snapshot,
    names: NamesById,
    stated_aliases: Collection[_StatedAlias],
    *,
    has_meaning: bool,
) -> dict[EntityPair, list[Evidence]]:
    """The first evidence of each kind for each proposed pair."""
    shared_places = _SharedPlaces.of(snapshot)
    proposals = chain(
        _stated(stated_aliases),
        _variants(names),
        _spellings(snapshot, names),
        _parts(snapshot, names, shared_places),
        _short_forms(names, shared_places),
        _by_role(names, shared_places),
        _titled(snapshot, names, shared_places, stated_aliases),
        _alike(snapshot, names, shared_places) if has_meaning else (),
    )
    evidence_by_kind: dict[EntityPair, dict[str, Evidence]] = defaultdict(dict)
    for pair, evidence in proposals:
        if evidence.kind in NAMED_TOGETHER or _may_agree(pair, names, shared_places):
            evidence_by_kind[pair].setdefault(evidence.kind, evidence)
    return {pair: list(evidence.values()) for pair, evidence in evidence_by_kind.items()}


def _may_agree(pair: EntityPair, names: NamesById, shared_places: _SharedPlaces) -> bool:
    """Whether nothing tells two names apart; of two related names, neither is a title."""
    first, second = [names[id] for id in pair]
    is_couple = pair in shared_places.related and first.titles != second.titles
    return first.agrees(second) and not is_couple


def _duplicate(
    snapshot: Snapshot,
    pair: EntityPair,
    evidence: Sequence[Evidence],
    names: NamesById,
    *,
    certain: bool,
) -> Duplicate:
    """A pair with the score; the less known entity would be merged into the better known entity."""
    minor, major = [names[id] for id in _by_fame(snapshot, pair, names)]
    score = 1.0 - prod(1.0 - sign.score for sign in evidence)
    return Duplicate(
        name=minor.row.name,
        into=major.row.name,
        types=(minor.row.type, major.row.type),
        score=round(score, 4),
        evidence=tuple(evidence),
        descriptions=(
            minor.row.description[:DESCRIPTION_CHARACTERS],
            major.row.description[:DESCRIPTION_CHARACTERS],
        ),
        certain=certain,
    )


def _by_fame(snapshot: Snapshot, pair: EntityPair, names: NamesById) -> list[int]:
    """The pair by number of relations, then by length of the name, then the later row first."""
    degrees = dict(zip(pair, snapshot.graph.degrees(np.array(pair)).tolist(), strict=True))
    return sorted(pair, key=lambda id: (degrees[id], len(names[id].row.name), -id))


def _id_pair(first: int, second: int) -> EntityPair:
    return (first, second) if first < second else (second, first)


# ── statements ──────────────────────────────────────────────────────────────────


def _stated_aliases(snapshot: Snapshot, names: NamesById) -> Iterator[_StatedAlias]:
    """The statements, in records and texts, of two entities as names of one bearer."""
    ids_by_key = {key: id for id, name in names.items() for key in name.keys}
    claims = {
        (row.owner, name_key(alias))
        for row in snapshot.entity_mentions(entities={id for id, _ in snapshot.alias_claims()})
        for alias in as_written(row).aliases
    }
    for id, key in sorted((owner or 0, key) for owner, key in claims):
        alias = ids_by_key.get(key, id)
        if alias != id:
            words = f"{names[id].row.name}: {names[alias].row.name}"
            yield _StatedAlias(bearer=id, alias=alias, words=words)
    full_names = _full_names(names)
    for sentence in _stating_sentences(snapshot, names):
        statements = chain(
            name_statements(sentence, ids_by_key, full_names),
            english_name_statements(sentence, ids_by_key),
        )
        for statement in statements:
            bearer = ids_by_key[statement.bearer]
            alias = ids_by_key[statement.alias]
            if bearer != alias and names[bearer].may_be(names[alias]):
                yield _StatedAlias(bearer, alias, statement.words, statement.is_open)


def _stating_sentences(snapshot: Snapshot, names: NamesById) -> Iterator[str]:
    """The sentences of all texts that may state names, folded."""
    for text in _stating_texts(snapshot, names):
        for start, end in sentence_spans(text):
            yield folded_text(text[start:end])


def _stating_texts(snapshot: Snapshot, names: NamesById) -> Iterator[str]:
    """All passages, and all descriptions: a model's words may be plainer about identities."""
    for chunk in snapshot.chunks().values():
        yield chunk.text
    for name in names.values():
        yield name.row.description
    for relation in snapshot.relation_rows().values():
        yield relation.description


def _full_names(names: NamesById) -> dict[str, list[str]]:
    """The keys of people with full Chinese names, by the given name."""
    full_names: dict[str, list[str]] = defaultdict(list)
    for name in names.values():
        key = name.row.key
        family = surname(key) if name.is_person else ""
        if family:
            full_names[key[len(family) :]].append(key)
    return full_names


def _stated(stated_aliases: Iterable[_StatedAlias]) -> Iterator[Proposal]:
    for statement in stated_aliases:
        pair = _id_pair(statement.bearer, statement.alias)
        score = STATED_OPENLY if statement.is_open else STATED
        yield pair, Evidence("stated", statement.words, score)


def _certain_pairs(
    snapshot: Snapshot, names: NamesById, stated_aliases: Collection[_StatedAlias]
) -> Iterator[EntityPair]:
    """Pairs with unambiguous evidence: an alias is stated, of no further entity and with no further
    bearer, also openly; the types agree; and the alias is no common word or title.
    """
    bearers: dict[int, set[int]] = defaultdict(set)
    aliases: dict[int, set[int]] = defaultdict(set)
    for statement in stated_aliases:
        bearers[statement.alias].add(statement.bearer)
        aliases[statement.bearer].add(statement.alias)
    certain = {
        (statement.bearer, statement.alias) for statement in stated_aliases if not statement.is_open
    }
    for bearer, alias in certain:
        family = {bearer} | aliases[bearer] | bearers[bearer]
        is_alone = bearers[alias] <= family and aliases[alias] <= family
        may_be_one = is_alone and names[bearer].may_be(names[alias])
        if may_be_one and not _is_word_of_passages(snapshot, names[alias]):
            yield _id_pair(bearer, alias)


def _is_word_of_passages(snapshot: Snapshot, name: ComparedName) -> bool:
    """Whether a name is a title, or a word in lower case in its own passages."""
    if name.cjk:
        return name.title_start == 0
    word = " ".join(name.spelled_words)
    if not word:
        return True
    chunks = snapshot.graph.chunks_of(np.array([name.row.id]))[1].tolist()
    text = " ".join([chunk.text for chunk in snapshot.chunks(chunks).values()])
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


# ── likeness of names ───────────────────────────────────────────────────────────


def _variants(names: NamesById) -> Iterator[Proposal]:
    """Pairs of names with the same core."""
    evidence = Evidence("variant", "the same but for form, title or punctuation", VARIANT)
    for pair in _pairs_with_shared_key((name.core, id) for id, name in names.items()):
        yield pair, evidence


def _spellings(snapshot: Snapshot, names: NamesById) -> Iterator[Proposal]:
    """Pairs of names of the same type: the two numbers of a noun without an article, or names with a slip
    inside, of which neither is a common word ("chair", "choir").
    """
    cores = {
        id: name.core for id, name in names.items() if not name.cjk and 5 <= len(name.core) <= 40
    }
    shortened_cores = (
        (core[:at] + core[at + 1 :], id)
        for id, core in cores.items()
        for at in range(len(core) + 1)
    )
    for first, second in _pairs_with_shared_key(shortened_cores):
        if not names[first].may_be(names[second]):
            continue
        if names[first].is_plural_of(names[second]):
            yield (first, second), Evidence("spelling", "singular and plural", SPELLING)
        elif _has_slip(cores[first], cores[second]) and not any(
            _is_word_of_passages(snapshot, names[id]) for id in (first, second)
        ):
            yield (first, second), Evidence("spelling", "one letter apart", SPELLING)


def _has_slip(word: str, other_word: str) -> bool:
    """Whether two words with the same first and last letter differ in one letter, or two neighbours changed
    places. A last letter more often tells names apart: Russia and Russian, Argentina and Argentine.
    """
    from rapidfuzz.distance import OSA

    has_same_ends = word[0] == other_word[0] and word[-1] == other_word[-1]
    return has_same_ends and OSA.distance(word, other_word) == 1


def _parts(
    snapshot: Snapshot, names: NamesById, shared_places: _SharedPlaces
) -> Iterator[Proposal]:
    """Pairs of a name and a part of the name, in shared places or documents, if at most one
    different name has the part. A common word ("boy") is no part of a name.
    """
    ids_by_word = _ids_by_word(names)
    for id, name in names.items():
        words = [name.core] if name.cjk else list(name.words)
        candidates = ids_by_word[words[0]] - {id} if words else set()
        longer = {candidate for candidate in candidates if name.is_part_of(names[candidate])}
        different_names = {names[candidate].words or candidate for candidate in longer}
        if len(different_names) > 2:
            continue
        for candidate in longer:
            nearness = shared_places.nearness(id, candidate)
            if nearness and not _is_word_of_passages(snapshot, name):
                score = round(PART * nearness, 4)
                yield _id_pair(id, candidate), Evidence("part", "a part of the longer name", score)


def _short_forms(names: NamesById, shared_places: _SharedPlaces) -> Iterator[Proposal]:
    """Pairs of initials or a Chinese short form and the only full name, in shared places or documents."""
    shortened = [
        (first, second)
        for first, second in chain(initial_pairs(names), chinese_short_pairs(names))
        if names[first].agrees(names[second])
    ]
    for first, second in chain(bracketed_pairs(names), shortened):
        nearness = shared_places.nearness(first, second)
        if nearness:
            score = round(PART * nearness, 4)
            yield _id_pair(first, second), Evidence("short form", "a short form of the name", score)


def _by_role(names: NamesById, shared_places: _SharedPlaces) -> Iterator[Proposal]:
    """People with the roles in their descriptions, if a role has a single bearer:
    "Ann is Eve's aunt" with Eve's Aunt, "Bill was a carter" with The Carter.
    """
    people_by_noun: dict[str, list[tuple[frozenset[str], int]]] = defaultdict(list)
    for id, name in names.items():
        if name.is_person:
            for owner, noun in described_roles(name.row.description, name.keys):
                people_by_noun[noun].append((owner, id))
    for id, name in names.items():
        role = name_role(name.row.name) if name.is_person and not name.cjk else None
        if role is None:
            continue
        owner = role[0] - NO_PART
        people = {
            person
            for person_owner, person in people_by_noun[role[1]]
            if (owner <= person_owner or owner >= person_owner > set()) and person != id
        }
        words_of_people = [set(names[person].words) for person in people]
        longest = max(words_of_people, key=len, default=set())
        if any(longest.isdisjoint(words) for words in words_of_people):  # two people
            continue
        for person in people:
            if owner or shared_places.count(id, person):
                words = f"{names[person].row.name}: {name.row.name}"
                yield _id_pair(id, person), Evidence("described", words, DESCRIBED)


def _ids_by_word(names: NamesById) -> dict[str, set[int]]:
    """The entities by the words of the names; of Chinese names by each ending."""
    ids_by_word: dict[str, set[int]] = defaultdict(set)
    for id, name in names.items():
        endings = [name.core[at:] for at in range(len(name.core) - 1)] if name.cjk else []
        for word in (*name.words, *endings):
            ids_by_word[word].add(id)
    return ids_by_word


def _titled(
    snapshot: Snapshot,
    names: NamesById,
    shared_places: _SharedPlaces,
    stated_aliases: Iterable[_StatedAlias],
) -> Iterator[Proposal]:
    """Chinese names with a title, each with the bearer of the given name or surname mentioned last
    before, or else with the person of the same surname in most of the shared passages.
    """
    people_by_name: dict[str, list[int]] = defaultdict(list)
    stems_by_id: dict[int, str] = {}
    for id, name in names.items():
        if not name.is_person:
            continue
        start = name.title_start
        if start is not None:
            stems_by_id[id] = name.row.name[:start]
        else:
            people_by_name[surname(name.row.name)].append(id)
            people_by_name[name.row.name].append(id)
    spellings = _spellings_of_bearers(names, stated_aliases)
    for id, stem in stems_by_id.items():
        people = people_by_name.get(stem, ()) if stem else ()
        if not people:
            continue
        counts = _last_mentioned(
            snapshot, names[id], {person: spellings[person] for person in people}
        )
        if not counts:
            counts = Counter({person: shared_places.count(id, person) for person in people})
        total = counts.total()
        best = max(sorted(counts), key=lambda person: counts[person])
        if total and counts[best] >= MAIN_SHARE * total:
            share = counts[best] / total
            words = f"{counts[best]} of {total} passages with {stem}"
            yield _id_pair(id, best), Evidence("title", words, round(TITLED * share, 4))


def _spellings_of_bearers(
    names: NamesById, stated_aliases: Iterable[_StatedAlias]
) -> Mapping[int, set[str]]:
    """The name of each entity, and further names by a statement."""
    spellings = {id: {name.row.name} for id, name in names.items()}
    for statement in stated_aliases:
        spellings[statement.bearer].add(names[statement.alias].row.name)
        spellings[statement.alias].add(names[statement.bearer].row.name)
    return spellings


def _last_mentioned(
    snapshot: Snapshot, titled: ComparedName, spellings: Mapping[int, set[str]]
) -> Counter[int]:
    """How often each person is the last person mentioned before a name with a title."""
    counts: Counter[int] = Counter()
    chunks = snapshot.graph.chunks_of(np.array([titled.row.id]))[1].tolist()
    for chunk in snapshot.chunks(chunks).values():
        for match in re.finditer(re.escape(titled.row.name), chunk.text):
            ends = {
                person: max(chunk.text.rfind(name, 0, match.start()) for name in person_names)
                for person, person_names in spellings.items()
            }
            nearest = max(sorted(ends), key=lambda person: ends[person])
            if ends[nearest] >= 0:
                counts[nearest] += 1
    return counts


def _pairs_with_shared_key(keyed_ids: Iterable[tuple[str, int]]) -> Iterator[EntityPair]:
    """Pairs of ids with the same key; keys of too many ids are skipped."""
    ids_by_key: dict[str, set[int]] = defaultdict(set)
    for key, id in keyed_ids:
        ids_by_key[key].add(id)
    for key, ids in ids_by_key.items():
        if key and 1 < len(ids) <= CROWD:
            yield from combinations(sorted(ids), 2)


# ── likeness of vectors ─────────────────────────────────────────────────────────


def _alike(
    snapshot: Snapshot, names: NamesById, shared_places: _SharedPlaces
) -> Iterator[Proposal]:
    """Pairs of entities of one type with close vectors (of name and description).

    Entities in the same sentence or with a relation are left out: a common sentence or a relation
    makes vectors alike, and tells the entities apart.
    """
    for first, second, cosine in _near_vectors(snapshot, names):
        if first >= second or not names[first].may_be(names[second]):
            continue
        if (first, second) in shared_places.related:
            continue
        if names[first].sentences().isdisjoint(names[second].sentences()):
            score = round(LIKENESS * (cosine - SIMILAR) / (1 - SIMILAR), 4)
            yield (first, second), Evidence("meaning", f"cosine {cosine:.2f}", score)


def _near_vectors(snapshot: Snapshot, names: NamesById) -> Iterator[tuple[int, int, float]]:
    """Each entity with the nearest neighbours and the cosines of at least `SIMILAR`."""
    ids = np.array(list(names), np.int64)
    vectors = snapshot.vectors_by_kind["entity"]
    for start in range(0, len(ids), VECTORS_AT_ONCE):
        batch = ids[start : start + VECTORS_AT_ONCE]
        neighbours, cosines = vectors.search(vectors.matrix(batch), NEIGHBOURS_COMPARED)
        for row, column in zip(*np.nonzero(cosines >= SIMILAR), strict=True):
            yield int(batch[row]), int(neighbours[row, column]), float(cosines[row, column])
