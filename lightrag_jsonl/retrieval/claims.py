"""The claims of an index: what each mention says about a subject, and from when to when.

A kind of claim is functional if a subject has one value at a time: a price, the head of an office. A user
states such kinds, or they are learned: from counts of how often one document gives a subject several
values, and of how often documents about the same time agree.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import TypeAlias

from lightrag_jsonl.core.claims import claim_stems
from lightrag_jsonl.core.dates import first_day, last_day
from lightrag_jsonl.core.languages import MENTIONED_TOGETHER
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.views import StoreView

# How a kind is learned to be functional; chosen by reason, and checked by `benchmarks/versions.py`.
LEAST_SUBJECTS = 5  # with claims of the kind
MOST_SEVERAL = 0.05  # share of documents that give a subject several values at a time
LEAST_COMPARED = 3  # pairs of documents that speak about a subject at the same time
LEAST_AGREEMENT = 0.6  # share of these pairs with the same value
MOST_COMPARED = 30  # claims about one subject that are compared with each other: bounds the time

INVERSE = "^"  # before a kind that leads from the object of a relation to its subject
_STATING_NOTHING = frozenset(MENTIONED_TOGETHER.values())
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

SubjectAndKind: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one mention says: that a predicate leads from a subject to a value, both by key.

    `mention`, `chunk` and `document` are row ids. `kind` is the predicate as it is compared, after "^" if
    the subject is the object of the relation. `written` is the date of the document in our form, or "".
    """

    mention_kind: Kind
    mention: int
    chunk: int
    document: int
    subject: str
    kind: str
    value: str
    names: tuple[str, str]
    predicate: str
    description: str
    valid_from: str
    valid_to: str
    written: str

    @property
    def begin(self) -> str:
        """From when the claim holds: by its words, or else by the date of the document; "" if unknown."""
        return self.valid_from or self.written

    @property
    def source_and_target(self) -> tuple[str, str]:
        """The keys of both ends in the direction of the relation."""
        is_inverse = self.kind.startswith(INVERSE)
        return (self.value, self.subject) if is_inverse else (self.subject, self.value)


@dataclass(frozen=True)
class ClaimIndex:
    """The claims of one state of an index; those of people are left out, since they are decisions.

    `stated_kinds` are kinds that a user calls functional. `decided` has the sorted keys of the ends of
    each relation that a person made or changed.
    """

    claims: Sequence[Claim]
    stated_kinds: frozenset[str] = frozenset()
    decided: frozenset[tuple[str, ...]] = frozenset()

    @cached_property
    def by_subject(self) -> Mapping[SubjectAndKind, Sequence[Claim]]:
        """The claims of each subject and kind."""
        groups: defaultdict[SubjectAndKind, list[Claim]] = defaultdict(list)
        for claim in self.claims:
            groups[claim.subject, claim.kind].append(claim)
        return groups

    @cached_property
    def by_chunk(self) -> Mapping[int, Sequence[Claim]]:
        """The claims of functional kinds in each chunk, by row id."""
        claims_by_chunk: defaultdict[int, list[Claim]] = defaultdict(list)
        for claim in self.claims:
            if claim.kind in self.functional_kinds:
                claims_by_chunk[claim.chunk].append(claim)
        return claims_by_chunk

    def of_chunks(self, chunks: Iterable[int]) -> "ClaimIndex":
        """The claims of functional kinds in some chunks, with the kinds of the whole index."""
        claims = [claim for chunk in chunks for claim in self.by_chunk.get(chunk, ())]
        return ClaimIndex(claims, self.functional_kinds, self.decided)

    @cached_property
    def functional_kinds(self) -> frozenset[str]:
        """The kinds of which a subject has one value at a time: stated, or learned."""
        groups: defaultdict[str, list[Sequence[Claim]]] = defaultdict(list)
        for (_, kind), claims in self.by_subject.items():
            groups[kind].append(claims)
        learned = [kind for kind, subjects in groups.items() if is_functional(subjects)]
        return frozenset(learned) | self.stated_kinds

    def functional_groups(self) -> Iterator[Sequence[Claim]]:
        """The claims of each subject and functional kind, if there are several."""
        for (_, kind), claims in sorted(self.by_subject.items()):
            if kind in self.functional_kinds and len(claims) > 1:
                yield claims


class ClaimMemory:
    """The claims of an index, kept for the generation that they were read in.

    `stated_kinds` are the predicates that a user calls functional.
    """

    def __init__(self, stated_kinds: Iterable[str] = ()) -> None:
        self._stated_kinds = frozenset(map(kind_of, stated_kinds))
        self._generation = -1
        self._index = ClaimIndex(())
        self._lock = Lock()

    def claims(self, view: StoreView) -> ClaimIndex:
        """The claims of the present state."""
        with self._lock:
            generation = view.generation
            if generation != self._generation:
                self._index = read_claims(view, self._stated_kinds)
                self._generation = generation
            return self._index


def kind_of(predicate: str) -> str:
    """A predicate as it is compared, such as "^heads": "head of" and "is the head of" are one kind."""
    is_inverse = predicate.startswith(INVERSE)
    words = predicate.removeprefix(INVERSE)
    return f"{INVERSE if is_inverse else ''}{_folded_predicate(words)}"


@lru_cache(10_000)  # the same predicates come again and again
def _folded_predicate(predicate: str) -> str:
    stems = claim_stems(predicate)
    return " ".join(sorted(stems) or search_terms(predicate)) or name_key(predicate)


# ── reading ─────────────────────────────────────────────────────────────────────


def read_claims(view: StoreView, stated_kinds: frozenset[str] = frozenset()) -> ClaimIndex:
    """All claims of a view: of relations in both directions, and of statements with a value."""
    targets = view.aliases().targets
    documents = view.chunk_documents()
    by_hand = set(view.edited_chunks())

    def key_of(name: str) -> str:
        key = name_key(name)
        return targets.get(key, key)

    claims = [
        claim
        for claims in (
            _relation_claims(view, documents, key_of),
            _attributes(view, documents, key_of),
        )
        for claim in claims
        if claim.chunk not in by_hand
    ]
    decided = [
        tuple(sorted(map(key_of, override.names)))
        for override in view.overrides().values()
        if len(override.names) > 1 and override.action != "delete"
    ]
    return ClaimIndex(claims, stated_kinds, frozenset(decided))


def _relation_claims(
    view: StoreView,
    documents: Mapping[int, tuple[int, str]],
    key_of: Callable[[str], str],
) -> Iterator[Claim]:
    for row in view.relation_mentions():
        mention = row.mention
        keywords = [word for word in mention.keywords if word not in _STATING_NOTHING]
        if row.owner is None or row.chunk not in documents:
            continue
        document, written = documents[row.chunk]
        source = key_of(mention.source)
        target = key_of(mention.target)
        for keyword in keywords:
            kind = kind_of(keyword)
            for is_inverse in (False, True):
                yield Claim(
                    mention_kind="relation",
                    mention=row.id,
                    chunk=row.chunk,
                    document=document,
                    subject=target if is_inverse else source,
                    kind=INVERSE + kind if is_inverse else kind,
                    value=source if is_inverse else target,
                    names=(mention.source, mention.target),
                    predicate=keyword,
                    description=mention.description,
                    valid_from=mention.valid_from,
                    valid_to=mention.valid_to,
                    written=written,
                )


def _attributes(
    view: StoreView,
    documents: Mapping[int, tuple[int, str]],
    key_of: Callable[[str], str],
) -> Iterator[Claim]:
    for row in view.entity_mentions():
        mention = row.mention
        if row.owner is None or row.chunk not in documents:
            continue
        document, written = documents[row.chunk]
        for attribute, value in mention.attributes:
            yield Claim(
                mention_kind="entity",
                mention=row.id,
                chunk=row.chunk,
                document=document,
                subject=key_of(mention.name),
                kind=kind_of(attribute),
                value=name_key(value),
                names=(mention.name, value),
                predicate=attribute,
                description=mention.description,
                valid_from=mention.valid_from,
                valid_to=mention.valid_to,
                written=written,
            )


# ── values and times ────────────────────────────────────────────────────────────


def is_same_value(value: str, further_value: str) -> bool:
    """Whether two values say the same: the same numbers, or a name and a part of it."""
    if value == further_value:
        return True
    numbers = _NUMBER.findall(value)
    further_numbers = _NUMBER.findall(further_value)
    if numbers or further_numbers:
        return sorted(numbers) == sorted(further_numbers) and _share_words(value, further_value)
    if value.isascii() and further_value.isascii():
        words = set(value.split())
        further_words = set(further_value.split())
        return words <= further_words or further_words <= words
    return value in further_value or further_value in value


def _share_words(value: str, further_value: str) -> bool:
    """Whether one of two values has no words beside its numbers and signs, or both have words in common."""
    words = set(_WORD.findall(value))
    further_words = set(_WORD.findall(further_value))
    return not (words and further_words) or bool(words & further_words)


def are_apart(claim: Claim, further_claim: Claim) -> bool:
    """Whether the claims hold at different times, or the later one takes the place of the other.

    Dates that only touch ("until 2020", "since 2020") are apart.
    """
    for first, second in ((claim, further_claim), (further_claim, claim)):
        if _ends_before(first, second) and _begins_before(first, second):
            return True
    first, second = sorted((claim, further_claim), key=lambda item: _day_of(item.begin))
    if not (first.begin and second.begin):
        return False
    if last_day(first.begin) >= first_day(second.begin):
        return False
    return not first.valid_to or first_day(first.valid_to) <= last_day(second.begin)


def _ends_before(first: Claim, second: Claim) -> bool:
    """Whether the first claim ends before, or when, the second begins, by their words."""
    if not (first.valid_to and second.valid_from):
        return False
    return first_day(first.valid_to) <= last_day(second.valid_from)


def _begins_before(first: Claim, second: Claim) -> bool:
    return not first.valid_from or first_day(first.valid_from) < first_day(second.valid_from)


def _day_of(date: str) -> int:
    return first_day(date) if date else 0


# ── functional kinds ────────────────────────────────────────────────────────────


def is_functional(subjects: Collection[Sequence[Claim]]) -> bool:
    """Whether a kind, given the claims of each subject, has one value at a time."""
    if len(subjects) < LEAST_SUBJECTS:
        return False
    several = 0
    statements = 0
    agreeing = 0
    compared = 0
    for claims in subjects:
        by_document: defaultdict[int, list[Claim]] = defaultdict(list)
        for claim in claims[:MOST_COMPARED]:
            by_document[claim.document].append(claim)
        statements += len(by_document)
        several += sum(map(_gives_several_values, by_document.values()))
        for first, second in itertools.combinations(by_document.values(), 2):
            if not are_apart(first[0], second[0]):
                compared += 1
                agreeing += is_same_value(first[0].value, second[0].value)
    if several > MOST_SEVERAL * statements:
        return False
    return compared >= LEAST_COMPARED and agreeing >= LEAST_AGREEMENT * compared


def _gives_several_values(claims: Sequence[Claim]) -> bool:
    """Whether a document gives a subject two values for the same time."""
    return any(
        not is_same_value(first.value, second.value) and not _hold_apart(first, second)
        for first, second in itertools.combinations(claims, 2)
    )


def _hold_apart(first: Claim, second: Claim) -> bool:
    """Whether the words of a document itself separate two claims in time."""
    is_dated = bool(first.valid_from or first.valid_to) and bool(
        second.valid_from or second.valid_to
    )
    return is_dated and are_apart(first, second)
