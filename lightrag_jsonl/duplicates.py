"""Which entities may be one and the same: pairs, each with what speaks for it, for a person to judge."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from lightrag_jsonl.naming import (
    Name,
    abbreviates,
    deletions,
    differ_by_a_letter,
    initials,
    is_acronym,
    numbers_agree,
    read_name,
    titles_agree,
)
from lightrag_jsonl.neighbours import nearest_neighbours
from lightrag_jsonl.storage import reading
from lightrag_jsonl.storage.snapshot import Snapshot
from lightrag_jsonl.text import sentence_spans

NEAREST = 6  # neighbours of an entity that are looked at, itself included
SIMILAR = 0.85  # cosine from which two entities of one type are proposed
CROWD = 24  # names that meet under one block: more of them say nothing about any two
COMPARED = 200_000  # pairs that are weighed at most, the surest kinds first
OTHER_TYPE = 0.5  # of the score is left where the types differ
UNTYPED = frozenset({"", "unknown", "other", "未知", "其他"})

VARIANT, ACRONYM, SPELLING, PART, LIKENESS = 0.9, 0.7, 0.6, 0.5, 0.8
COMPANY = 0.3  # both stand in one chunk, or share a neighbour


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that speaks for, or (with `score` 0) against, two names meaning the same."""

    kind: str
    detail: str
    score: float


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two entities that may be one; `into` is the better known, `name` would become its alias."""

    name: str
    into: str
    types: tuple[str, str]
    score: float
    evidence: tuple[Evidence, ...]


def find_duplicates(snapshot: Snapshot, *, limit: int = 100) -> tuple[Duplicate, ...]:
    """The likeliest pairs, best first; nothing is merged.

    Entities whose names share a key are one already. Names that differ in a number never pair.
    """
    known = _known(snapshot)
    proposed: dict[tuple[int, int], list[Evidence]] = {}
    lanes = (_variants(known), _acronyms(known), _alike(snapshot, known), _spellings(known))
    for pair, evidence in itertools.islice(itertools.chain(*lanes, _parts(known)), COMPARED):
        said = proposed.setdefault(pair, [])
        if all(evidence.kind != other.kind for other in said):
            said.append(evidence)
    pairs = sorted(proposed, key=lambda pair: (-_sum(proposed[pair]), pair))[: 4 * limit]
    judged = (_judged(snapshot, known, pair, proposed[pair]) for pair in pairs)
    found = [one for one in judged if one is not None]
    return tuple(sorted(found, key=lambda one: (-one.score, one.into, one.name))[:limit])


# ── where pairs come from ───────────────────────────────────────────────────────

Pair = tuple[int, int]
Proposal = tuple[Pair, Evidence]


@dataclass(frozen=True, slots=True)
class _Entity:
    """An entity as it is compared."""

    row: int
    name: Name
    type: str

    @property
    def typed(self) -> bool:
        return self.type.casefold() not in UNTYPED


Known = Mapping[int, _Entity]


def _known(snapshot: Snapshot) -> dict[int, _Entity]:
    rows = snapshot.connection.execute("SELECT id, name, type FROM entities ORDER BY id")
    return {row: _Entity(row, read_name(name), kind) for row, name, kind in rows}


def _variants(known: Known) -> Iterator[Proposal]:
    """Names that are the same but for articles, titles, legal forms, order and marks."""
    for pair in _meeting((one.name.core, row) for row, one in known.items()):
        yield pair, Evidence("variant", "the same but for form, title or punctuation", VARIANT)


def _acronyms(known: Known) -> Iterator[Proposal]:
    """A short name that is spelled by the first letters of a longer one; the fewer such, the surer."""
    short: dict[str, list[int]] = {}
    for row, one in known.items():
        if is_acronym(one.name):
            short.setdefault(one.name.core, []).append(row)
    meant: dict[int, dict[int, None]] = {}
    for row, one in known.items():
        for other in (found for letters in initials(one.name) for found in short.get(letters, ())):
            if other != row and abbreviates(known[other].name, one.name):
                meant.setdefault(other, {})[row] = None
    for row, longer in meant.items():
        for other in list(longer)[:CROWD]:
            detail = f"“{known[row].name.text}” stands for “{known[other].name.text}”"
            yield _pair(row, other), Evidence("acronym", detail, round(ACRONYM / len(longer), 4))


def _alike(snapshot: Snapshot, known: Known) -> Iterator[Proposal]:
    """Entities of one type whose names and descriptions mean nearly the same.

    Not those that one sentence tells of: it makes them alike, and names them beside each other.
    """
    told = lru_cache(maxsize=10_000)(partial(_sentences, snapshot))
    ids, neighbours, cosines = nearest_neighbours(snapshot.vectors["entity"], NEAREST)
    places, columns = np.nonzero((cosines >= SIMILAR) & (neighbours >= 0))
    for place, column in zip(places.tolist(), columns.tolist(), strict=True):
        one, other = int(ids[place]), int(neighbours[place, column])
        if not (one < other and one in known and other in known):
            continue
        if _same_type(known[one], known[other]) and not told(one) & told(other):
            cosine = float(cosines[place, column])
            score = LIKENESS * (cosine - SIMILAR) / (1 - SIMILAR)
            yield (one, other), Evidence("meaning", f"cosine {cosine:.2f}", round(score, 4))


def _sentences(snapshot: Snapshot, row: int) -> frozenset[str]:
    """What is told of an entity."""
    query = "SELECT description FROM entities WHERE id = ?"
    (told,) = snapshot.connection.execute(query, (row,)).fetchone()
    return frozenset(told[start:end] for start, end in sentence_spans(told))


def _spellings(known: Known) -> Iterator[Proposal]:
    """Names of one type that are a letter apart."""
    blocks = ((cut, row) for row, one in known.items() for cut in deletions(one.name))
    for one, other in _meeting(blocks):
        alike = differ_by_a_letter(known[one].name, known[other].name)
        if alike and _same_type(known[one], known[other]):
            yield (one, other), Evidence("spelling", "one letter apart", SPELLING)


def _parts(known: Known) -> Iterator[Proposal]:
    """A name of one word that is the first or last word of just one longer name of its type."""
    ends: dict[tuple[str, str], list[int]] = {}
    for row, one in known.items():
        words = one.name.words
        if 1 < len(words) <= 4:
            for word in dict.fromkeys((words[0], words[-1])):
                ends.setdefault((word, one.type), []).append(row)
    for row, one in known.items():
        longer = ends.get((one.name.words[0], one.type), ()) if len(one.name.words) == 1 else ()
        if len(longer) == 1 and one.typed and longer[0] != row:
            detail = f"the only {one.type} so called is “{known[longer[0]].name.text}”"
            yield _pair(row, longer[0]), Evidence("part", detail, PART)


# ── weighing ────────────────────────────────────────────────────────────────────


def _judged(
    snapshot: Snapshot, known: Known, pair: Pair, said: Sequence[Evidence]
) -> Duplicate | None:
    """A pair with all that speaks for and against it; None where too little does."""
    one, other = known[pair[0]], known[pair[1]]
    if not (numbers_agree(one.name, other.name) and titles_agree(one.name, other.name)):
        return None
    evidence = [*said, *_company(snapshot, pair)]
    kinds = {item.kind for item in evidence}
    if kinds == {"part"}:
        return None
    score = _sum(evidence)
    if one.typed and other.typed and one.type != other.type:
        evidence.append(Evidence("types", f"{one.type} and {other.type}", 0.0))
        score *= OTHER_TYPE
    less, more = sorted((one, other), key=lambda entity: (_fame(snapshot, entity), -entity.row))
    return Duplicate(
        less.name.text, more.name.text, (less.type, more.type), round(score, 4), tuple(evidence)
    )


def _company(snapshot: Snapshot, pair: Pair) -> Iterator[Evidence]:
    """Whether the two keep the same company in the graph."""
    around = [_around(snapshot, row) for row in pair]
    shared = (around[0] & around[1]) - set(pair)
    if shared:
        names = reading.entity_names(snapshot.connection, sorted(shared)[:3])
        detail = f"both are related to {', '.join(names[row] for row in sorted(names))}"
        yield Evidence("neighbours", detail, COMPANY)


def _around(snapshot: Snapshot, row: int) -> set[int]:
    relations = snapshot.graph.relations_of([row])[1][:1_000]
    return set(snapshot.graph.ends(relations).ravel().tolist())


def _fame(snapshot: Snapshot, entity: _Entity) -> tuple[int, int]:
    """How well known an entity is: by its relations, then by the length of its name."""
    return int(snapshot.graph.degrees([entity.row])[0]), len(entity.name.text)


def _sum(evidence: Iterable[Evidence]) -> float:
    """Independent signs together: 1 less the chance that all of them mislead."""
    doubt = 1.0
    for item in evidence:
        doubt *= 1.0 - item.score
    return 1.0 - doubt


# ── helpers ─────────────────────────────────────────────────────────────────────


def _meeting(blocks: Iterable[tuple[str, int]]) -> Iterator[Pair]:
    """Pairs of rows under one block; blocks without a name, and crowded ones, are passed over."""
    members: dict[str, list[int]] = {}
    for block, row in blocks:
        if block:
            members.setdefault(block, []).append(row)
    for rows in members.values():
        if 1 < len(rows) <= CROWD:
            yield from itertools.combinations(sorted(set(rows)), 2)


def _same_type(one: _Entity, other: _Entity) -> bool:
    return one.type == other.type or not (one.typed and other.typed)


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
