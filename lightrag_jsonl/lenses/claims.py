"""The claims of an index: the statements of mentions about subjects, with dates.

They are the records of models and users: what rules read claims nothing.

A kind of claim is functional if a subject has one value at a time: a price, the head of an office. A user
states such kinds, or counts decide: of documents with several values of a subject, and of agreement
between documents about the same time.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from threading import Lock
from typing import TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.languages import STATING_NOTHING
from lightrag_jsonl.core.types import Kind, RelationMention
from lightrag_jsonl.storage.rows import EntityMentionRow, RelationMentionRow, RowIds
from lightrag_jsonl.storage.views import Snapshot, StoreView
from lightrag_jsonl.text.dates import find_dates, first_day, last_day
from lightrag_jsonl.text.names import name_key, nfkc_casefold
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.terms import GRAMMAR_WORDS, content_stems, search_terms

# How a kind is learned to be functional; chosen by reason, and checked by `benchmarks/versions.py`.
LEAST_SUBJECTS = 5  # with claims of the kind
MOST_SEVERAL = 0.05  # share of documents that give a subject several values at a time
LEAST_COMPARED = 3  # pairs of documents that speak about a subject at the same time
LEAST_AGREEMENT = 0.6  # share of these pairs with the same value
MOST_COMPARED = 30  # claims about one subject that are compared with each other: bounds the time

# Of a sentence whose words are a kind, for relations that state nothing and for numbers; by reason.
LONGEST_STATEMENT = 120  # characters
MOST_KIND_CHARACTERS = 40  # beside names and times
MOST_KIND_WORDS = 8

NEGATED = "not"  # among the words of a kind
# for an answer: bounds the time, to about half a second after a change
RELATIONS_LEARNED_FROM = 5_000

INVERSE = "^"  # before a kind that leads from the object of a relation to its subject
# "According to the yearbook, …", "The yearbook reports: …", 据年鉴记载，
_ATTRIBUTION = pattern_of(
    r"^\s*(?:according to [^,]{1,40},|[^:：]{1,40}[:：]|据[^，]{1,20}，)", re.IGNORECASE
)
_NEGATION = pattern_of(r"\b(?:not|never|no longer|no|without)\b|n['’]t\b", re.IGNORECASE)
_LETTERS_ONLY = pattern_of(r"[^\W\d_]+")
_VALUE_NUMBER = pattern_of(r"\d+(?:[.,]\d+)*")

SubjectAndKind: TypeAlias = tuple[str, str]


class Claim(Struct, frozen=True, kw_only=True):
    """The statement of a mention: a predicate from a subject to a value, both by key.

    `mention`, `chunk` and `document` are row ids. `kind` is the predicate for comparison, after "^" if
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


class ClaimIndex(Struct, frozen=True, dict=True):
    """The claims of one state of an index, without the claims of people, which are decisions.

    `stated_kinds` are the functional kinds by a user's word. `decided` has the sorted keys of the
    ends of each relation made or changed by a person. Unless the index `learns`, only stated kinds
    are functional.
    """

    claims: Sequence[Claim]
    stated_kinds: frozenset[str] = frozenset()
    decided: frozenset[tuple[str, ...]] = frozenset()
    learns: bool = True

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
        """The claims of functional kinds in the given chunks, with the kinds of the whole index."""
        claims = [claim for chunk in chunks for claim in self.by_chunk.get(chunk, ())]
        return ClaimIndex(claims, self.functional_kinds, self.decided, learns=False)

    def visible_in(self, chunks: Collection[int]) -> "ClaimIndex":
        """The claims of the given chunks alone; kinds are learned from these, too: nothing of a hidden
        document counts.
        """
        claims = [claim for claim in self.claims if claim.chunk in chunks]
        return ClaimIndex(claims, self.stated_kinds, self.decided, self.learns)

    @cached_property
    def functional_kinds(self) -> frozenset[str]:
        """The functional kinds: stated, or learned."""
        if not self.learns:
            return self.stated_kinds
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
    """The claims of an index, kept for a single generation.

    `stated_kinds` are the functional predicates by a user's word.
    """

    def __init__(self, stated_kinds: Iterable[str] = ()) -> None:
        self.predicates = tuple(stated_kinds)
        self._stated_kinds = frozenset(map(kind_of, self.predicates))
        self._generation = -1
        self._index = ClaimIndex(())
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["ClaimMemory"], tuple[tuple[str, ...]]]:
        return ClaimMemory, (self.predicates,)  # another process reads its own

    def claims(self, view: StoreView) -> ClaimIndex:
        """The claims of the present state."""
        with self._lock:
            generation = view.generation
            if generation != self._generation:
                self._index = read_claims(view, self._stated_kinds)
                self._generation = generation
            return self._index

    def claims_of_chunks(self, snapshot: Snapshot, chunk_ids: Collection[str]) -> ClaimIndex:
        """The claims of functional kinds in some chunks. In a graph with more than `RELATIONS_LEARNED_FROM`
        relations only the stated kinds count: to learn others for each answer would take too long.
        """
        may_learn = snapshot.count_relations(RELATIONS_LEARNED_FROM + 1) <= RELATIONS_LEARNED_FROM
        if not (may_learn or self._stated_kinds):
            return ClaimIndex(())
        if may_learn and not self.claims(snapshot).by_chunk:
            return ClaimIndex(())
        chunks = snapshot.chunks(ids=chunk_ids)
        if may_learn:
            return self.claims(snapshot).of_chunks(chunks)
        index = read_claims(snapshot, self._stated_kinds, chunks)
        return ClaimIndex(index.claims, self._stated_kinds, index.decided, learns=False)


def kind_of(predicate: str) -> str:
    """A predicate for comparison, such as "^heads": "is the head of" is the same as "head of"."""
    is_inverse = predicate.startswith(INVERSE)
    words = predicate.removeprefix(INVERSE)
    return f"{INVERSE if is_inverse else ''}{_folded_predicate(words)}"


@lru_cache(10_000)  # the same predicates come again and again
def _folded_predicate(predicate: str) -> str:
    stems = set(content_stems(predicate, without=GRAMMAR_WORDS) or search_terms(predicate))
    if _NEGATION.search(predicate):
        stems.add(NEGATED)
    return " ".join(sorted(stems)) or name_key(predicate)


# ── reading ─────────────────────────────────────────────────────────────────────


def read_claims(
    view: StoreView, stated_kinds: frozenset[str] = frozenset(), chunks: RowIds = None
) -> ClaimIndex:
    """The claims of a view, of all chunks or a choice: of relations in both directions, and of
    statements with a value.
    """
    claims = list(ClaimReader(view, chunks).claims())
    targets = view.aliases().targets
    decided = [
        tuple(sorted(targets.get(key, key) for key in map(name_key, override.names)))
        for override in view.overrides().values()
        if len(override.names) > 1 and override.action != "delete"
    ]
    return ClaimIndex(claims, stated_kinds, frozenset(decided))


class ClaimReader:
    """Reads the claims of a view, but for the edits of people and what was read by rules."""

    def __init__(self, view: StoreView, chunks: RowIds = None) -> None:
        self._view = view
        self._chunks = chunks
        self._targets = view.aliases().targets
        unclaimed = {*view.edited_chunks(), *view.chunks_by_rules()}
        documents = view.chunk_documents(chunks)
        self._documents = {row: documents[row] for row in documents if row not in unclaimed}

    def claims(self) -> Iterator[Claim]:
        """The claims of relations, by keyword or, if the keywords state nothing, by the words of the
        sentence; of attributes; and of sentences with a number.
        """
        if not self._documents:  # as in an index that rules have read
            return
        for relation_row in self._view.relation_mentions(chunks=self._chunks):
            if relation_row.owner is not None and relation_row.chunk in self._documents:
                yield from self._relation_claims(relation_row)
        for entity_row in self._view.entity_mentions(chunks=self._chunks):
            if entity_row.owner is not None and entity_row.chunk in self._documents:
                yield from self._entity_claims(entity_row)

    def _relation_claims(self, row: RelationMentionRow) -> Iterator[Claim]:
        mention = row.mention
        source = self._key(mention.source)
        target = self._key(mention.target)
        names = (mention.source, mention.target)
        predicates = {
            kind_of(keyword): keyword
            for keyword in mention.keywords
            if keyword not in STATING_NOTHING
        }
        if not predicates:
            kind = sentence_kind(mention.description, names)
            predicates = {kind: ""} if kind else {}
        for kind, predicate in predicates.items():
            yield self._claim(
                row, subject=source, kind=kind, value=target, names=names, predicate=predicate
            )
            yield self._claim(
                row,
                subject=target,
                kind=INVERSE + kind,
                value=source,
                names=names,
                predicate=predicate,
            )

    def _entity_claims(self, row: EntityMentionRow) -> Iterator[Claim]:
        mention = row.mention
        subject = self._key(mention.name)
        for attribute, value in mention.attributes:
            yield self._claim(
                row,
                subject=subject,
                kind=kind_of(attribute),
                value=name_key(value),
                names=(mention.name, value),
                predicate=attribute,
            )
        if len(mention.description) > LONGEST_STATEMENT or mention.attributes:
            return
        if not _VALUE_NUMBER.search(mention.description):
            return
        numbers = _VALUE_NUMBER.findall(nfkc_casefold(without_times(mention.description)))
        kind = sentence_kind(mention.description, (mention.name,))
        if kind and numbers:
            value = " ".join(numbers)
            yield self._claim(
                row,
                subject=subject,
                kind=kind,
                value=value,
                names=(mention.name, value),
                predicate="",
            )

    def _claim(
        self,
        row: EntityMentionRow | RelationMentionRow,
        *,
        subject: str,
        kind: str,
        value: str,
        names: tuple[str, str],
        predicate: str,
    ) -> Claim:
        document, written = self._documents[row.chunk]
        mention = row.mention
        return Claim(
            mention_kind="relation" if isinstance(mention, RelationMention) else "entity",
            mention=row.id,
            chunk=row.chunk,
            document=document,
            subject=subject,
            kind=kind,
            value=value,
            names=names,
            predicate=predicate,
            description=mention.description,
            valid_from=mention.valid_from,
            valid_to=mention.valid_to,
            written=written,
        )

    def _key(self, name: str) -> str:
        key = name_key(name)
        return self._targets.get(key, key)


def sentence_kind(sentence: str, names: Iterable[str]) -> str:
    """The kind of a statement by the words of the sentence, without names, times, numbers and speakers:
    sentences without a further difference are of one kind. "" for a long or an empty sentence.
    """
    if len(sentence) > LONGEST_STATEMENT:
        return ""
    words = _timeless_words(sentence)
    for name in names:
        words = words.replace(nfkc_casefold(name), "\n")
    words = _VALUE_NUMBER.sub("\n", words)
    if (
        len(words) - words.count("\n") > MOST_KIND_CHARACTERS
        or len(search_terms(words)) > 2 * MOST_KIND_WORDS
    ):
        return ""
    stems = set(content_stems(words, without=GRAMMAR_WORDS))
    if _NEGATION.search(words):
        stems.add(NEGATED)
    return " ".join(sorted(stems)) if 0 < len(stems) <= MOST_KIND_WORDS else ""


@lru_cache(10_000)  # a sentence relates many pairs of names
def _timeless_words(sentence: str) -> str:
    """A folded sentence, without speakers and times."""
    return nfkc_casefold(without_times(_ATTRIBUTION.sub("", sentence)))


def without_times(sentence: str) -> str:
    """A sentence without dates."""
    pieces: list[str] = []
    end = 0
    for date in find_dates(sentence):
        pieces.append(sentence[end : date.start])
        end = date.end
    return "\n".join([*pieces, sentence[end:]])


# ── values and times ────────────────────────────────────────────────────────────


def is_same_value(value: str, further_value: str) -> bool:
    """Whether two values are equal in meaning: the same numbers, or a name and a part of the name."""
    if value == further_value:
        return True
    numbers = _VALUE_NUMBER.findall(value)
    further_numbers = _VALUE_NUMBER.findall(further_value)
    if numbers or further_numbers:
        return sorted(numbers) == sorted(further_numbers) and _share_words(value, further_value)
    if value.isascii() and further_value.isascii():
        words = set(value.split())
        further_words = set(further_value.split())
        return words <= further_words or further_words <= words
    return value in further_value or further_value in value


def _share_words(value: str, further_value: str) -> bool:
    """Whether a value has only numbers and signs, or the two values have words in common."""
    words = set(_LETTERS_ONLY.findall(value))
    further_words = set(_LETTERS_ONLY.findall(further_value))
    return not (words and further_words) or bool(words & further_words)


def are_apart(claim: Claim, further_claim: Claim) -> bool:
    """Whether the claims hold at different times, or the later claim replaces the earlier.

    Touching dates ("until 2020", "since 2020") are apart.
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
