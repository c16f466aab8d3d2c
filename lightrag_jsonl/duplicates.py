"""Finds pairs of entities that may be the same, with the evidence, for a person to decide."""

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

NEAREST = 6  # nearest neighbours compared with an entity, itself included
SIMILAR = 0.85  # the least cosine at which two entities of one type are proposed
CROWD = 24  # if more names than this share a key, the key is no evidence
COMPARED = 200_000  # at most so many proposals are weighed, the most reliable kinds first
OTHER_TYPE = 0.5  # factor of the score if the types differ
UNTYPED = frozenset({"", "unknown", "other", "未知", "其他"})

VARIANT, ACRONYM, SPELLING, PART, LIKENESS = 0.9, 0.7, 0.6, 0.5, 0.8
COMPANY = 0.3  # both are related to the same entity


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sign that two names mean the same, or (with `score` 0) that they do not."""

    kind: str
    detail: str
    score: float


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two entities that may be the same; `into` has more relations, `name` would become its alias."""

    name: str
    into: str
    types: tuple[str, str]
    score: float
    evidence: tuple[Evidence, ...]


def find_duplicates(snapshot: Snapshot, *, limit: int = 100) -> tuple[Duplicate, ...]:
    """The likeliest pairs, best first; nothing is merged.

    Names with the same name key are one entity already. Names with different numbers are never
    paired.
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
    """An entity with what is compared."""

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
    """Pairs of names that differ only in articles, titles, legal forms, word order or punctuation."""
    for pair in _meeting((one.name.core, row) for row, one in known.items()):
        yield pair, Evidence("variant", "the same but for form, title or punctuation", VARIANT)


def _acronyms(known: Known) -> Iterator[Proposal]:
    """Pairs of a short name and a longer one with these initials; surer if few longer names match."""
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
    """Pairs of entities of one type whose vectors (of name and description) are close.

    Entities that one sentence mentions together are left out: it makes their vectors alike, and
    tells them apart.
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
    """Pairs of names of one type that differ by one letter."""
    blocks = ((cut, row) for row, one in known.items() for cut in deletions(one.name))
    for one, other in _meeting(blocks):
        alike = differ_by_a_letter(known[one].name, known[other].name)
        if alike and _same_type(known[one], known[other]):
            yield (one, other), Evidence("spelling", "one letter apart", SPELLING)


def _parts(known: Known) -> Iterator[Proposal]:
    """Pairs of a one-word name and the only longer name of its type that begins or ends with it."""
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
    """The pair with all evidence for and against it; None if there is too little."""
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
    """Evidence that both are related to the same entities."""
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
    """How well known an entity is: its relations, then the length of its name."""
    return int(snapshot.graph.degrees([entity.row])[0]), len(entity.name.text)


def _sum(evidence: Iterable[Evidence]) -> float:
    """The combined score of independent signs: 1 minus the chance that all of them mislead."""
    doubt = 1.0
    for item in evidence:
        doubt *= 1.0 - item.score
    return 1.0 - doubt


# ── helpers ─────────────────────────────────────────────────────────────────────


def _meeting(blocks: Iterable[tuple[str, int]]) -> Iterator[Pair]:
    """Pairs of rows that share a key; empty keys, and keys shared by too many rows, are skipped."""
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
