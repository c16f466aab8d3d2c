"""Finds pairs of entities that may be the same, with the evidence, for a person to decide."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.core.text import has_cjk, search_terms, sentence_spans
from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.storage.rows import EntityRow
from lightrag_jsonl.storage.store import Snapshot

VARIANT, ACRONYM, SPELLING, LIKENESS, NEIGHBOURS = 0.9, 0.7, 0.6, 0.8, 0.3  # scores
OTHER_TYPE = 0.5  # factor of the score if the types differ
SIMILAR = 0.85  # the least cosine of the vectors of two entities that are proposed for it
NEAREST = 6  # nearest neighbours that are compared, itself included
MOST_COMPARED = 10_000  # entities whose vectors are compared
CROWD = 24  # if more names than this share a key, the key is no evidence
BATCH = 256  # vectors searched at a time

LEGAL_FORMS = (
    "inc incorporated ltd limited llc llp plc corp corporation co company gmbh ag sa spa bv nv "
    "oy ab kg pte pty group holdings"
)
HIS = "mr sir lord 先生"
HERS = "mrs ms miss dame lady 女士 夫人 太太 小姐"
TITLES = f"{HIS} {HERS} dr prof professor st saint the"
SMALL_WORDS = "a an and at by de del der des di du for in la le of on the to van von"
LEFT_OUT, SMALL = frozenset(f"{LEGAL_FORMS} {TITLES}".split()), frozenset(SMALL_WORDS.split())
UNTYPED = {"", UNKNOWN_TYPE, "other", "未知", "其他"}
CJK_ENDING = re.compile(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
NUMBER = re.compile(r"\d+[a-z]*|\b(?<=\s)[ivxlc]+\b")
CJK_NUMBER = re.compile(r"[一二三四五六七八九十百千零〇甲乙丙丁]|\d+")
REVERSED_NAME = re.compile(r"^([^,]+),\s*([^,]+)$")  # "Smith, John"
ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")

Pair: TypeAlias = tuple[int, int]
Proposal: TypeAlias = "tuple[Pair, Evidence]"


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


@dataclass(frozen=True, slots=True)
class _Name:
    """An entity's name taken apart. The core leaves out legal forms, titles and additions."""

    row: EntityRow
    cjk: bool
    words: tuple[str, ...]
    core: str
    numbers: tuple[str, ...]
    title: str  # whose title it has: "his", "hers", or "" for none


def find_duplicates(snapshot: Snapshot, *, limit: int = 100) -> tuple[Duplicate, ...]:
    """The likeliest pairs, best first; nothing is merged.

    Names with the same name key are one entity already. Names with different numbers are never
    paired.
    """
    names = {id: _taken_apart(row) for id, row in snapshot.entity_rows().items()}
    proposed: dict[Pair, dict[str, Evidence]] = defaultdict(dict)
    by_core = ((one.core, id) for id, one in names.items())
    for pair in _sharing(by_core):
        detail = "the same but for form, title or punctuation"
        proposed[pair]["variant"] = Evidence("variant", detail, VARIANT)
    found = itertools.chain(_acronyms(names), _spellings(names), _alike(snapshot, names))
    for pair, evidence in found:
        proposed[pair].setdefault(evidence.kind, evidence)
    pairs = sorted(proposed, key=lambda pair: (-_score(proposed[pair].values()), pair))
    agreeing = (pair for pair in pairs if _agree(names[pair[0]], names[pair[1]]))
    judge = partial(_judged, snapshot, names)
    judged = [judge(pair, proposed[pair]) for pair in itertools.islice(agreeing, 4 * limit)]
    return tuple(sorted(judged, key=lambda one: (-one.score, one.into, one.name))[:limit])


# ── names ───────────────────────────────────────────────────────────────────────


def _taken_apart(row: EntityRow) -> _Name:
    parts = unicodedata.normalize("NFKD", row.name)
    plain = "".join(char for char in parts if not unicodedata.combining(char)).casefold()
    cjk = has_cjk(plain)
    bare = ASIDE.sub("", plain) or plain
    if cjk:
        letters = "".join(filter(str.isalnum, bare))
        words, core = [row.name], CJK_ENDING.sub("", letters) or letters
    else:
        words = search_terms(plain) or [row.key]
        kept = search_terms(REVERSED_NAME.sub(r"\2 \1", bare))
        core = "".join([word for word in kept if word not in LEFT_OUT] or kept)

    numbers = CJK_NUMBER.findall(core) if cjk else NUMBER.findall(plain)
    title = ""
    for whose, titles in (("his", HIS), ("hers", HERS)):
        words_of = titles.split()
        if plain.endswith(tuple(words_of)) if cjk else set(words_of).intersection(words[:2]):
            title = whose
    return _Name(row, cjk, tuple(words), core, tuple(sorted(numbers)), title)


def _agree(one: _Name, other: _Name) -> bool:
    """Whether neither numbers nor titles tell two names apart ("Henry IV", "Mrs. Smith")."""
    titles = {one.title, other.title}
    return (one.numbers == other.numbers or one.core == other.core) and titles != {"his", "hers"}


def _initials(name: _Name) -> Iterator[str]:
    """What may abbreviate a name; in Chinese the first character with one or two later ones."""
    if not name.cjk and len(name.words) > 1:
        yield "".join(word[0] for word in name.words)
        yield "".join(word[0] for word in name.words if word not in SMALL)
    elif name.cjk and 4 <= len(name.core) <= 12:
        for length in (1, 2):
            for rest in itertools.combinations(name.core[1:], length):
                yield name.core[0] + "".join(rest)


def _acronyms(names: Mapping[int, _Name]) -> Iterator[Proposal]:
    """Pairs of a short name and a longer one with these initials; surer if few longer names match."""
    short: dict[str, list[int]] = defaultdict(list)
    for id, one in names.items():
        letters = one.row.name.replace(".", "")
        if (2 <= len(one.core) <= 4) if one.cjk else (letters.isupper() and 2 <= len(letters) <= 7):
            short[one.core].append(id)
    longer: dict[int, dict[int, None]] = defaultdict(dict)
    for id, one in names.items():
        for other in {found: None for key in _initials(one) for found in short.get(key, ())}:
            if other != id and names[other].core not in one.core:
                longer[other][id] = None
    for id, found in longer.items():
        for other in list(found)[:CROWD]:
            detail = f"“{names[id].row.name}” stands for “{names[other].row.name}”"
            yield _pair(id, other), Evidence("acronym", detail, round(ACRONYM / len(found), 4))


def _spellings(names: Mapping[int, _Name]) -> Iterator[Proposal]:
    """Pairs of names of one type that differ by one letter, but not the first."""
    from rapidfuzz.distance import OSA

    cuts = (
        (core[:at] + core[at + 1 :], id)
        for id, core in ((id, one.core) for id, one in names.items() if not one.cjk)
        if 5 <= len(core) <= 40
        for at in range(len(core) + 1)  # also nothing
    )
    for one, other in _sharing(cuts):
        first, second = names[one], names[other]
        alike = OSA.distance(first.core, second.core) == 1 and first.core[0] == second.core[0]
        if alike and _same_type(first, second):
            yield (one, other), Evidence("spelling", "one letter apart", SPELLING)


def _alike(snapshot: Snapshot, names: Mapping[int, _Name]) -> Iterator[Proposal]:
    """Pairs of entities of one type whose vectors (of name and description) are close.

    Entities that one sentence mentions together are left out: it makes their vectors alike, and
    tells them apart.
    """
    ids = np.array(list(names)[:MOST_COMPARED], np.int64)
    for start in range(0, len(ids), BATCH):
        some = ids[start : start + BATCH]
        queries = snapshot.vector_matrix("entity", some)
        near, cosines = snapshot.search_vectors("entity", queries, NEAREST)
        for index, column in zip(*np.nonzero(cosines >= SIMILAR), strict=True):
            one, other = int(some[index]), int(near[index, column])
            if not (one < other and _same_type(names[one], names[other])):
                continue
            if not _sentences(names[one]) & _sentences(names[other]):
                cosine = float(cosines[index, column])
                score = round(LIKENESS * (cosine - SIMILAR) / (1 - SIMILAR), 4)
                yield (one, other), Evidence("meaning", f"cosine {cosine:.2f}", score)


# ── weighing ────────────────────────────────────────────────────────────────────


def _judged(
    snapshot: Snapshot, names: Mapping[int, _Name], pair: Pair, found: Mapping[str, Evidence]
) -> Duplicate:
    """The pair with all evidence for and against it."""
    evidence = [*found.values(), *_neighbours(snapshot, names, pair)]
    score = _score(evidence)
    one, other = names[pair[0]].row, names[pair[1]].row
    if not _same_type(names[pair[0]], names[pair[1]]):
        evidence.append(Evidence("types", f"{one.type} and {other.type}", 0.0))
        score *= OTHER_TYPE
    degrees = dict(zip(pair, snapshot.graph.degrees(np.array(pair)).tolist(), strict=True))
    less, more = sorted((one, other), key=lambda row: (degrees[row.id], len(row.name), -row.id))
    return Duplicate(less.name, more.name, (less.type, more.type), round(score, 4), tuple(evidence))


def _neighbours(snapshot: Snapshot, names: Mapping[int, _Name], pair: Pair) -> Iterator[Evidence]:
    """Evidence that both are related to the same entities."""
    around = []
    for id in pair:
        relations = snapshot.graph.relations_of(np.array([id]))[1][:1_000]
        around.append(set(snapshot.graph.ends(relations).ravel().tolist()))
    if shared := sorted(around[0] & around[1] - set(pair)):
        detail = ", ".join(names[id].row.name for id in shared[:3])
        yield Evidence("neighbours", f"both are related to {detail}", NEIGHBOURS)


def _score(evidence: Iterable[Evidence]) -> float:
    """The combined score of independent signs: 1 minus the chance that all of them mislead."""
    return 1.0 - prod(1.0 - one.score for one in evidence)


def _sharing(keyed: Iterable[tuple[str, int]]) -> Iterator[Pair]:
    """Pairs of ids that share a key; keys that are shared by too many are skipped."""
    members: dict[str, dict[int, None]] = defaultdict(dict)
    for key, id in keyed:
        if key:
            members[key][id] = None
    for ids in members.values():
        if 1 < len(ids) <= CROWD:
            yield from itertools.combinations(sorted(ids), 2)


def _pair(one: int, other: int) -> Pair:
    return min(one, other), max(one, other)


def _same_type(one: _Name, other: _Name) -> bool:
    types = {one.row.type.casefold(), other.row.type.casefold()}
    return len(types) == 1 or not types.isdisjoint(UNTYPED)


def _sentences(name: _Name) -> set[str]:
    text = name.row.description
    return {text[start:end] for start, end in sentence_spans(text)}
