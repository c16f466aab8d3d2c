"""Finds pairs of entities that may be the same, with the evidence, for a person or a model to decide."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations
from math import prod
from typing import TypeAlias

import numpy as np

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.indexing.naming import stated_names, surname
from lightrag_jsonl.storage.rows import EntityRow
from lightrag_jsonl.storage.views import Snapshot

STATED, VARIANT, SPELLING, LIKENESS = 0.95, 0.9, 0.6, 0.8  # scores
PART, TITLED = 0.6, 0.5  # likewise; the latter times the share of passages
OTHER_TYPE = 0.5  # factor of the score if the types differ
SIMILAR = 0.85  # the least cosine of the vectors of two entities that are proposed for it
NEAREST = 6  # nearest neighbours that are compared, itself included
CROWD = 24  # if more names than this share a key, the key is no evidence
MAIN_SHARE = 0.5  # of the passages that a title shares with people of its surname, the first has
SHOWN = 300  # characters of a description that are shown
BATCH = 256  # vectors searched at a time

LEGAL_FORMS = "inc incorporated ltd limited llc plc corp corporation co company gmbh ag sa group"
TITLES = "mr sir lord mrs ms miss dame lady dr prof professor st saint the"
LEFT_OUT = frozenset(f"{LEGAL_FORMS} {TITLES}".split())
EPITHETS = "a an old young little tiny poor dear master"
NO_PART = LEFT_OUT | frozenset(EPITHETS.split())  # do not make one name a part of another
UNTYPED = {"", UNKNOWN_TYPE, "other", "未知", "其他"}
CJK_ENDING = re.compile(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
NUMBER = re.compile(r"\d+[a-z]*|(?<=\s)[ivxlc]+\b")
CJK_NUMBER = re.compile(r"[一二三四五六七八九十百千零〇甲乙丙丁]|\d+")
HIS = re.compile(r"\b(?:mr|sir|lord)\b|先生$")
HERS = re.compile(r"\b(?:mrs|ms|miss|dame|lady)\b|(?:女士|夫人|太太|小姐)$")
PEOPLE = {"person", "people", "character", "human", "creature", "人物", "人", "角色", "生物"}
GHOST = "ghost|spirit|spectre|soul|shade"
GHOST_OF = re.compile(rf"^(?:the )?(?:{GHOST}) of (.*)|^(.*)['’]s (?:{GHOST})$")
OWNER = re.compile(r"^.*\w['’]s?\s+(?=\w)")  # "Scrooge's nephew" is no longer name of Scrooge
CJK_TITLE = re.compile(
    r"(?:公|侯|贼|氏|某|将军|司徒|太师|丞相|相国|太守|中郎|尚书|刺史|国舅|使君|府君|皇叔|侍郎|校尉|太尉"
    r"|先生|女士|夫人|太太|小姐|教授|老师|博士|总|经理|主任|校长|院长|部长|市长|主席|总统|總統|將軍|國舅)$"
)
REVERSED_NAME = re.compile(r"^([^,]+),\s*([^,]+)$")  # "Smith, John"
ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")

Pair: TypeAlias = tuple[int, int]
Claim: TypeAlias = tuple[int, int, str]
Proposal: TypeAlias = "tuple[Pair, Evidence]"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sign that two names mean the same, or (with `score` 0) that they do not."""

    kind: str
    detail: str
    score: float


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two entities that may be the same; `into` has more relations, `name` would become its alias.

    `certain` pairs are merged by rule, if asked for: see `_certain`.
    """

    name: str
    into: str
    types: tuple[str, str]
    score: float
    evidence: tuple[Evidence, ...]
    descriptions: tuple[str, str] = ("", "")
    certain: bool = False


def find_duplicates(snapshot: Snapshot, *, limit: int = 100) -> tuple[Duplicate, ...]:
    """The likeliest pairs, best first; nothing is merged.

    Names with the same name key are one entity already. Names with different numbers are paired
    only if that is stated.
    """
    names = {id: _Name(row) for id, row in snapshot.entity_rows().items()}
    near, claims = _near(snapshot), list(_claims(snapshot, names))
    variant = Evidence("variant", "the same but for form, title or punctuation", VARIANT)
    sources = (
        ((_pair(claim[0], claim[1]), Evidence("stated", claim[2], STATED)) for claim in claims),
        ((pair, variant) for pair in _sharing((one.core, id) for id, one in names.items())),
        _spellings(names),
        _parts(names, near),
        _titled(names, near),
        _alike(snapshot, names),
    )
    proposed: dict[Pair, dict[str, Evidence]] = defaultdict(dict)
    for pair, evidence in chain(*sources):
        if evidence.kind == "stated" or names[pair[0]].agrees(names[pair[1]]):
            proposed[pair].setdefault(evidence.kind, evidence)
    certain = {_pair(*one) for one in _certain(snapshot, names, claims)}
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
        found.append(
            Duplicate(
                less.name,
                more.name,
                (less.type, more.type),
                round(score, 4),
                tuple(signs.values()),
                (less.description[:SHOWN], more.description[:SHOWN]),
                pair in certain,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.score, one.into, one.name))[:limit])


def groups(pairs: Iterable[Duplicate]) -> tuple[tuple[str, ...], ...]:
    """The names that pairs connect; each group begins with the name that the others go into."""
    joined: dict[str, list[str]] = {}
    for pair in pairs:
        into, other = joined.get(pair.into, [pair.into]), joined.get(pair.name, [pair.name])
        group = list(dict.fromkeys([*into, *other]))
        joined.update(dict.fromkeys(group, group))
    return tuple({id(group): tuple(group) for group in joined.values()}.values())


class _Name:
    """An entity's name taken apart; its core leaves out legal forms, titles and additions."""

    def __init__(self, row: EntityRow) -> None:
        parts = unicodedata.normalize("NFKD", row.name)
        plain = "".join(char for char in parts if not unicodedata.combining(char)).casefold()
        bare = ASIDE.sub("", plain) or plain
        self.row = row
        self.keys = {row.key, *map(name_key, row.names)}
        self.person = row.type.casefold() in PEOPLE
        self.cjk = has_cjk(plain)
        self.title = bool(HIS.search(plain)), bool(HERS.search(plain))
        if self.cjk:
            letters = "".join(filter(str.isalnum, bare))
            self.core = CJK_ENDING.sub("", letters) or letters
            self.numbers = sorted(CJK_NUMBER.findall(self.core))
            self.words: tuple[str, ...] = ()
        else:
            bare = REVERSED_NAME.sub(r"\2 \1", bare)
            words = search_terms(bare)
            self.core = "".join([word for word in words if word not in LEFT_OUT] or words)
            self.numbers = sorted(NUMBER.findall(plain))
            ghost = GHOST_OF.search(bare)
            bare = (ghost[1] or ghost[2]) if ghost else OWNER.sub("", bare)
            self.words = tuple(word for word in search_terms(bare) if word not in NO_PART)

    def agrees(self, other: "_Name") -> bool:
        """Whether neither numbers nor titles tell two names apart ("Henry IV", "Mrs. Smith")."""
        couple = sorted((self.title, other.title)) == [(False, True), (True, False)]
        return (self.numbers == other.numbers or self.core == other.core) and not couple

    def is_part_of(self, other: "_Name") -> bool:
        """Whether it is a part of a longer name: any of a person's, else its last words."""
        if not self.may_be(other):
            return False
        if self.cjk or other.cjk:
            ends = other.core.endswith(self.core) and other.person and len(self.core) > 1
            return ends and self.core != other.core
        one, all_ = self.words, other.words
        if "and" in all_ or not one or not set(one) <= set(all_):
            return False
        if not (self.person and other.person):
            return one == all_[-len(one) :]
        proper = not any(word.islower() and len(word) > 3 for word in other.row.name.split())
        return proper or set(one) == set(all_)

    def may_be(self, other: "_Name") -> bool:
        """Whether the types do not speak against it."""
        types = {self.row.type.casefold(), other.row.type.casefold()}
        return len(types) == 1 or not types.isdisjoint(UNTYPED)

    def sentences(self) -> set[str]:
        """The sentences that describe it."""
        text = self.row.description
        return {text[start:end] for start, end in sentence_spans(text)}


def _pair(one: int, other: int, *_: object) -> Pair:
    return (one, other) if one < other else (other, one)


def _near(snapshot: Snapshot) -> Callable[[int, int], int]:
    """In how many passages two entities are mentioned together, or related to the same entity."""
    places: dict[int, set[int]] = defaultdict(set)
    for entity, chunk in np.stack(snapshot.graph.all_mentions, axis=1).tolist():
        places[entity].add(chunk)
    for low, high in snapshot.graph.all_ends.tolist():  # as places of their own: negative
        places[low] |= {-low, -high}
        places[high] |= {-low, -high}
    return lambda one, other: len(places[one] & places[other])


def _claims(snapshot: Snapshot, names: Mapping[int, _Name]) -> Iterator[Claim]:
    """What records and texts say: the bearer, the entity that has its other name, and the words."""
    by_key = {key: id for id, one in names.items() for key in one.keys}
    people: dict[str, list[str]] = defaultdict(list)
    for one in names.values():
        if one.person and (family := surname(one.row.key)):
            people[one.row.key[len(family) :]].append(one.row.key)
    for id, key in snapshot.alias_claims():
        if by_key.get(key, id) != id:
            yield id, by_key[key], f"{names[id].row.name}: {names[by_key[key]].row.name}"
    for chunk in snapshot.chunks().values():
        for bearer, alias, words in stated_names(chunk.text, by_key, people):
            if by_key[bearer] != by_key[alias]:
                yield by_key[bearer], by_key[alias], words


def _certain(
    snapshot: Snapshot, names: Mapping[int, _Name], claims: Collection[Claim]
) -> Iterator[Pair]:
    """Pairs whose evidence is unambiguous: that one is another name of the other is stated; of no
    other entity that, nor of it that it has a third one's name; the types agree; and it is no
    common word or title.
    """
    bearers: dict[int, set[int]] = defaultdict(set)
    aliases: dict[int, set[int]] = defaultdict(set)
    for bearer, alias, _ in claims:
        bearers[alias].add(bearer)
        aliases[bearer].add(alias)
    for bearer, alias in {(one, other) for one, other, _ in claims}:
        family = {bearer} | aliases[bearer] | bearers[bearer]
        alone = bearers[alias] <= family and aliases[alias] <= family
        if alone and names[bearer].may_be(names[alias]) and not _common(snapshot, names[alias]):
            yield bearer, alias


def _common(snapshot: Snapshot, one: _Name) -> bool:
    """Whether a name is a title, or a word that its own passages write in lower case."""
    if one.cjk:
        found = CJK_TITLE.search(one.row.name)
        return found is not None and found.start() == 0
    chunks = snapshot.graph.chunks_of(np.array([one.row.id]))[1].tolist()
    text = " ".join([chunk.text for chunk in snapshot.chunks(chunks).values()])
    word = " ".join(one.words)
    return not word or re.search(rf"\b{re.escape(word)}\b", text) is not None


def _parts(names: Mapping[int, _Name], near: Callable[[int, int], int]) -> Iterator[Proposal]:
    """Pairs of which one is a part of the other's name, if they occur near each other, and if no
    more than one name that differs has this part.
    """
    having: dict[str, set[int]] = defaultdict(set)
    for id, one in names.items():
        tails = [one.core[at:] for at in range(len(one.core) - 1)] if one.cjk else []
        for word in (*one.words, *tails):
            having[word].add(id)
    for id, one in names.items():
        words = [one.core] if one.cjk else one.words
        longer = set[int]().union(*(having[word] for word in words[:1])) - {id}
        longer = {other for other in longer if one.is_part_of(names[other])}
        if len({names[other].words or other for other in longer}) > 2:
            continue
        for other in longer:
            if near(id, other):
                yield _pair(id, other), Evidence("part", "a part of the longer name", PART)


def _titled(names: Mapping[int, _Name], near: Callable[[int, int], int]) -> Iterator[Proposal]:
    """Chinese names with a title: a given name's bearer, or of the people of a surname the one with
    whom it is mostly mentioned.
    """
    full: dict[str, list[int]] = defaultdict(list)
    titled: list[tuple[int, str]] = []
    for id, one in names.items():
        found = CJK_TITLE.search(one.row.name) if one.cjk and one.person else None
        if found is not None:
            titled.append((id, one.row.name[: found.start()]))
        elif one.person:
            full[surname(one.row.name)].append(id)
            full[one.row.name].append(id)
    for id, stem in titled:
        together = {other: near(id, other) for other in full.get(stem, ()) if stem}
        best, total = max(together, key=lambda o: together[o], default=0), sum(together.values())
        if total and together[best] >= MAIN_SHARE * total:
            share = together[best] / total
            words = f"{share:.0%} of its passages with {stem}"
            yield _pair(id, best), Evidence("title", words, round(TITLED * share, 4))


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
