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

VARIANT, SPELLING, LIKENESS = 0.9, 0.6, 0.8  # scores
OTHER_TYPE = 0.5  # factor of the score if the types differ
SIMILAR = 0.85  # the least cosine of the vectors of two entities that are proposed for it
NEAREST = 6  # nearest neighbours that are compared, itself included
CROWD = 24  # if more names than this share a key, the key is no evidence
BATCH = 256  # vectors searched at a time

LEGAL_FORMS = "inc incorporated ltd limited llc plc corp corporation co company gmbh ag sa group"
TITLES = "mr sir lord mrs ms miss dame lady dr prof professor st saint the"
LEFT_OUT = frozenset(f"{LEGAL_FORMS} {TITLES}".split())
UNTYPED = {"", UNKNOWN_TYPE, "other", "未知", "其他"}
CJK_ENDING = re.compile(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
NUMBER = re.compile(r"\d+[a-z]*|(?<=\s)[ivxlc]+\b")
CJK_NUMBER = re.compile(r"[一二三四五六七八九十百千零〇甲乙丙丁]|\d+")
HIS = re.compile(r"\b(?:mr|sir|lord)\b|先生$")
HERS = re.compile(r"\b(?:mrs|ms|miss|dame|lady)\b|(?:女士|夫人|太太|小姐)$")
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
    for pair, evidence in chain(_variants(names), _spellings(names), _alike(snapshot, names)):
        if names[pair[0]].agrees(names[pair[1]]):
            proposed[pair].setdefault(evidence.kind, evidence)
    found = []
    for pair, signs in proposed.items():
        one, other = names[pair[0]], names[pair[1]]
        score = 1.0 - prod(1.0 - sign.score for sign in signs.values())
        if not one.may_be(other):
            signs["types"] = Evidence("types", f"{one.row.type} and {other.row.type}", 0.0)
            score *= OTHER_TYPE
        degrees = snapshot.graph.degrees(np.array(pair)).tolist()
        fame = [(d, len(names[id].row.name), -id) for d, id in zip(degrees, pair, strict=True)]
        less, more = (one.row, other.row) if fame[0] < fame[1] else (other.row, one.row)
        pair_types, evidence_ = (less.type, more.type), tuple(signs.values())
        found.append(Duplicate(less.name, more.name, pair_types, round(score, 4), evidence_))
    return tuple(sorted(found, key=lambda one: (-one.score, one.into, one.name))[:limit])


class _Name:
    """An entity's name taken apart; its core leaves out legal forms, titles and additions."""

    def __init__(self, row: EntityRow) -> None:
        parts = unicodedata.normalize("NFKD", row.name)
        plain = "".join(char for char in parts if not unicodedata.combining(char)).casefold()
        bare = ASIDE.sub("", plain) or plain
        self.row = row
        self.cjk = has_cjk(plain)
        self.title = bool(HIS.search(plain)), bool(HERS.search(plain))
        if self.cjk:
            letters = "".join(filter(str.isalnum, bare))
            self.core = CJK_ENDING.sub("", letters) or letters
            self.numbers = sorted(CJK_NUMBER.findall(self.core))
        else:
            words = search_terms(REVERSED_NAME.sub(r"\2 \1", bare))
            self.core = "".join([word for word in words if word not in LEFT_OUT] or words)
            self.numbers = sorted(NUMBER.findall(plain))

    def agrees(self, other: _Name) -> bool:
        """Whether neither numbers nor titles tell two names apart ("Henry IV", "Mrs. Smith")."""
        couple = sorted((self.title, other.title)) == [(False, True), (True, False)]
        return (self.numbers == other.numbers or self.core == other.core) and not couple

    def may_be(self, other: _Name) -> bool:
        """Whether the types do not speak against it."""
        types = {self.row.type.casefold(), other.row.type.casefold()}
        return len(types) == 1 or not types.isdisjoint(UNTYPED)

    def sentences(self) -> set[str]:
        """The sentences that describe it."""
        text = self.row.description
        return {text[start:end] for start, end in sentence_spans(text)}


def _variants(names: dict[int, _Name]) -> Iterator[Proposal]:
    """Pairs of names that differ only in articles, titles, legal forms, word order or punctuation."""
    for pair in _sharing((one.core, id) for id, one in names.items()):
        yield pair, Evidence("variant", "the same but for form, title or punctuation", VARIANT)


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
    ids = np.array(list(names), np.int64)
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
