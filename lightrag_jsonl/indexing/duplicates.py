"""Finds pairs of entities that may be the same, with the evidence, for a person to decide."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.core.text import has_cjk, search_terms, sentence_spans
from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.storage.rows import EntityRow
from lightrag_jsonl.storage.store import Snapshot

VARIANT, ACRONYM, SPELLING, LIKENESS = 0.9, 0.7, 0.6, 0.8  # scores
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
HIS, HERS = "mr sir lord 先生", "mrs ms miss dame lady 女士 夫人 太太 小姐"
TITLES = f"{HIS} {HERS} dr prof professor st saint the"
LEFT_OUT = frozenset(f"{LEGAL_FORMS} {TITLES}".split())
SMALL_WORDS = "a an and at by de del der des di du for in la le of on the to van von"
UNTYPED = {"", UNKNOWN_TYPE, "other", "未知", "其他"}
CJK_ENDING = re.compile(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
NUMBER = re.compile(r"\d+[a-z]*|(?<=\s)[ivxlc]+\b")
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


def find_duplicates(snapshot: Snapshot, *, limit: int = 100) -> tuple[Duplicate, ...]:
    """The likeliest pairs, best first; nothing is merged.

    Names with the same name key are one entity already. Names with different numbers are never
    paired.
    """
    names = {id: _Name(row) for id, row in snapshot.entity_rows().items()}
    proposed: dict[Pair, dict[str, Evidence]] = defaultdict(dict)
    lanes = _variants(names), _acronyms(names), _spellings(names), _alike(snapshot, names)
    for pair, evidence in chain(*lanes):
        if names[pair[0]].agrees(names[pair[1]]):
            proposed[pair].setdefault(evidence.kind, evidence)
    found = []
    for pair, signs in proposed.items():
        score = 1.0 - prod(1.0 - one.score for one in signs.values())
        one, other = names[pair[0]], names[pair[1]]
        if not one.may_be(other):
            detail = f"{one.row.type} and {other.row.type}"
            signs["types"] = Evidence("types", detail, 0.0)
            score *= OTHER_TYPE
        degrees = snapshot.graph.degrees(np.array(pair)).tolist()
        fame = [(d, len(names[id].row.name), -id) for d, id in zip(degrees, pair, strict=True)]
        less, more = (one.row, other.row) if fame[0] < fame[1] else (other.row, one.row)
        types = less.type, more.type
        evidence_ = tuple(signs.values())
        found.append(Duplicate(less.name, more.name, types, round(score, 4), evidence_))
    return tuple(sorted(found, key=lambda one: (-one.score, one.into, one.name))[:limit])


# ── names ───────────────────────────────────────────────────────────────────────


class _Name:
    """An entity's name taken apart; its core leaves out legal forms, titles and additions."""

    def __init__(self, row: EntityRow) -> None:
        parts = unicodedata.normalize("NFKD", row.name)
        plain = "".join(char for char in parts if not unicodedata.combining(char)).casefold()
        bare = ASIDE.sub("", plain) or plain
        self.row = row
        self.cjk = has_cjk(plain)
        if self.cjk:
            letters = "".join(filter(str.isalnum, bare))
            self.words, self.core = [plain], CJK_ENDING.sub("", letters) or letters
            self.numbers = sorted(CJK_NUMBER.findall(self.core))
        else:
            self.words, kept = search_terms(plain), search_terms(REVERSED_NAME.sub(r"\2 \1", bare))
            self.core = "".join([word for word in kept if word not in LEFT_OUT] or kept)
            self.numbers = sorted(NUMBER.findall(plain))

    def agrees(self, other: _Name) -> bool:
        """Whether neither numbers nor titles tell two names apart ("Henry IV", "Mrs. Smith")."""
        couple = {self.title(), other.title()} == {HIS, HERS}
        return (self.numbers == other.numbers or self.core == other.core) and not couple

    def title(self) -> str:
        """The titles to which its own belongs."""
        for titles in (HIS, HERS):
            words = titles.split()
            if self.words[0].endswith(tuple(words)) if self.cjk else set(words) & {*self.words[:2]}:
                return titles
        return ""

    def may_be(self, other: _Name) -> bool:
        """Whether the types do not speak against it."""
        types = {self.row.type.casefold(), other.row.type.casefold()}
        return len(types) == 1 or not types.isdisjoint(UNTYPED)

    def is_short(self) -> bool:
        """Whether it may abbreviate a longer name."""
        letters = self.row.name.replace(".", "")
        return 2 <= len(self.core) <= 4 if self.cjk else letters.isupper() and len(letters) < 8

    def initials(self) -> Iterator[str]:
        """What may abbreviate it; in Chinese the first character with one or two later ones."""
        if self.cjk and 4 <= len(self.core) <= 12:
            rest = self.core[1:]
            for later in chain(combinations(rest, 1), combinations(rest, 2)):
                yield self.core[0] + "".join(later)
        elif len(self.words) > 1:
            yield "".join(word[0] for word in self.words)
            yield "".join(word[0] for word in self.words if word not in SMALL_WORDS.split())

    def sentences(self) -> set[str]:
        """The sentences that describe it."""
        text = self.row.description
        return {text[start:end] for start, end in sentence_spans(text)}


# ── where pairs come from ───────────────────────────────────────────────────────


def _variants(names: dict[int, _Name]) -> Iterator[Proposal]:
    """Pairs of names that differ only in articles, titles, legal forms, word order or punctuation."""
    for pair in _sharing((one.core, id) for id, one in names.items()):
        yield pair, Evidence("variant", "the same but for form, title or punctuation", VARIANT)


def _acronyms(names: dict[int, _Name]) -> Iterator[Proposal]:
    """Pairs of a short name and a longer one with these initials; surer if few longer names match."""
    short: dict[str, list[int]] = defaultdict(list)
    for id, one in names.items():
        if one.is_short():
            short[one.core].append(id)
    longer: dict[int, dict[int, None]] = defaultdict(dict)
    for id, one in names.items():
        for other in chain.from_iterable(short.get(letters, ()) for letters in one.initials()):
            if names[other].core not in one.core:
                longer[other][id] = None
    for id, found in longer.items():
        for other in list(found)[:CROWD]:
            detail = f"“{names[id].row.name}” stands for “{names[other].row.name}”"
            score = round(ACRONYM / len(found), 4)
            yield (min(id, other), max(id, other)), Evidence("acronym", detail, score)


def _spellings(names: dict[int, _Name]) -> Iterator[Proposal]:
    """Pairs of names of one type that differ by one letter, but not the first."""
    from rapidfuzz.distance import OSA

    cores = [(id, one.core) for id, one in names.items() if not one.cjk and 5 <= len(one.core) < 41]
    without_a_letter = (
        (core[:at] + core[at + 1 :], id) for id, core in cores for at in range(len(core) + 1)
    )
    for one, other in _sharing(without_a_letter):
        first, second = names[one].core, names[other].core
        alike = first[0] == second[0] and OSA.distance(first, second) == 1
        if alike and names[one].may_be(names[other]):
            yield (one, other), Evidence("spelling", "one letter apart", SPELLING)


def _alike(snapshot: Snapshot, names: dict[int, _Name]) -> Iterator[Proposal]:
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
            if one >= other or not names[one].may_be(names[other]):
                continue
            if not names[one].sentences() & names[other].sentences():
                cosine = float(cosines[index, column])
                score = round(LIKENESS * (cosine - SIMILAR) / (1 - SIMILAR), 4)
                yield (one, other), Evidence("meaning", f"cosine {cosine:.2f}", score)


def _sharing(keyed: Iterable[tuple[str, int]]) -> Iterator[Pair]:
    """Pairs of ids that share a key; keys that are shared by too many are skipped."""
    members: dict[str, set[int]] = defaultdict(set)
    for key, id in keyed:
        members[key].add(id)
    for key, ids in members.items():
        if key and 1 < len(ids) <= CROWD:
            yield from combinations(sorted(ids), 2)
