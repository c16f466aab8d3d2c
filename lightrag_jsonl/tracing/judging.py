"""Judges the claims of a text against passages by facts that words can decide.

Words tell what is `missing` near the nearest sentence: a number, a date, a name, a quotation, a "not"
too many or too few. They never tell that a sentence supports a claim.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lightrag_jsonl.core.answers import Span, Verdict
from lightrag_jsonl.core.cjk import has_cjk, is_cjk, simplified
from lightrag_jsonl.core.headings import find_headings
from lightrag_jsonl.core.names import nfkc_casefold
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS, is_grammatical
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.tracing.claim_facts import (
    ClaimFact,
    base,
    name_facts,
    polarity,
    quotation_facts,
    value_facts,
    words_of,
)
from lightrag_jsonl.tracing.claim_words import HEDGES, STRONG_WORDS

_SHORTEST_COPY = 12  # characters of a claim that is a quotation word for word
_QUOTATION_MARKS = "“”\"'‘’「」"
_FULL_STOPS = ".。!！?？…"
_CAPITAL_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+")
_NEAR = 0.5  # of the words of a claim, in a sentence about the same
_RESTATED = 0.5  # of the words of a clause of that sentence, in the claim
_CLAUSE_BORDER = re.compile(r"[,;:](?=\s)|[，；：。！？]|\s[–—]\s|——")
_CLAUSE_BORDERS = _FULL_STOPS + _QUOTATION_MARKS + ",;:，；：、\n|()（）—"
_BEST = 3  # sentences that share most words with a claim; they and their neighbours are looked at
_PRECISION = 0.01  # "about" allows a hundredth
_EXACT = 1e-6
_COUNTABLE = 12  # a number of things up to this may be counted instead of written


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """A text that a claim is judged by, and what stands beside it: title, headings, date."""

    text: str
    background: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Characters `start` to `end` of a passage, by its number among the passages."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a claim is marked, in words; the characters of the claim, and those of the passage of the
    nearest sentence, that differ. One that does not decide only asks to compare.
    """

    kind: str
    text: str
    differing: Span | None = None
    instead: Span | None = None
    decides: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimJudgement:
    """What words tell of a claim: its nearest sentence, if one shares a word, the window of sentences
    that were looked at, and the reasons to mark the claim.
    """

    nearest: Place | None = None
    window: str = ""
    reasons: tuple[Reason, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """ "missing", "compare" or "nearest": words never tell that a sentence supports a claim."""
        if any(reason.decides for reason in self.reasons):
            return "missing"
        return "compare" if self.reasons else "nearest"

    @property
    def reason(self) -> str:
        """The reasons of the verdict in words."""
        return "; ".join([reason.text for reason in self._own_reasons])

    @property
    def differing(self) -> tuple[Span, ...]:
        """The characters of the claim that differ."""
        return tuple([reason.differing for reason in self._own_reasons if reason.differing])

    @property
    def instead(self) -> tuple[Span, ...]:
        """The characters of the passage of the nearest sentence that stand there instead."""
        spans = [reason.instead for reason in self._own_reasons if reason.instead]
        return tuple(dict.fromkeys(spans))

    @property
    def _own_reasons(self) -> list[Reason]:
        decides = self.verdict == "missing"
        return [reason for reason in self.reasons if reason.decides == decides]


def judge_claim(
    claim: str, passages: Sequence[JudgedPassage], *, known_words: Collection[str] = frozenset()
) -> ClaimJudgement:
    """The nearest sentence of a claim in passages, and what of the claim does not stand near it.

    `known_words` are words of names, in lower case, such as those of the index: they tell a name from
    a word at the start of a claim.
    """
    copied = _copied_place(claim, passages)
    if copied is not None:
        return ClaimJudgement(nearest=copied, window=_text_at(copied, passages))
    texts = _read(tuple(passages))
    terms = claim_bases(claim)
    best = texts.best(terms) or texts.best_by_characters(claim)
    if not best:
        return ClaimJudgement(reasons=tuple(_reasons_of_strangers(claim, texts)))
    window = _Window(texts, best, terms)
    return ClaimJudgement(
        nearest=best[0].place,
        window=window.text,
        reasons=tuple(_reasons(claim, window, known_words)),
    )


def words_of_names(names: Iterable[str]) -> frozenset[str]:
    """The words of names, in lower case, as `judge_claim` knows them."""
    return frozenset(word for name in names for word in nfkc_casefold(name).split())


def _copied_place(claim: str, passages: Sequence[JudgedPassage]) -> Place | None:
    """The place of a claim that stands in a passage word for word: it is a quotation."""
    quoted = claim.strip().strip(_QUOTATION_MARKS).rstrip(_FULL_STOPS)
    if len(quoted) < _SHORTEST_COPY:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, quoted.split())))
    for number, passage in enumerate(passages):
        match = pattern.search(passage.text)
        if match is not None:
            start, end = _whole_sentences(passage.text, *match.span())
            return Place(passage=number, start=start, end=end)
    return None


def _whole_sentences(text: str, start: int, end: int) -> Span:
    """A span with the closing marks behind it; the sentences around a span that begins inside a clause."""
    while end < len(text) and text[end] in _FULL_STOPS + _QUOTATION_MARKS:
        end += 1
    before = text[:start].rstrip(" ")
    if not before or before[-1] in _CLAUSE_BORDERS:
        return start, end
    around = [span for span in sentence_spans(text) if span[0] < end and start < span[1]]
    return min(start, around[0][0]), max(end, around[-1][1])


def _text_at(place: Place, passages: Sequence[JudgedPassage]) -> str:
    return passages[place.passage].text[place.start : place.end]


def _reasons_of_strangers(claim: str, texts: "_Texts") -> Iterator[Reason]:
    """The reasons to mark a claim that shares no word with the passages: numbers and dates that stand
    nowhere, and that nothing can be compared.
    """
    words = _words_for(claim)
    for fact in value_facts(claim):
        if not _stands_among(fact, texts.values):
            yield Reason(
                kind=fact.kind,
                text=words["lacks"].format(fact.text),
                differing=(fact.start, fact.end),
            )
    is_other = has_cjk(claim) != has_cjk(texts.whole)
    yield Reason(kind="nothing", text=words["language" if is_other else "nothing"], decides=False)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a passage, by the number of the passage and its own number among all sentences."""

    passage: int
    number: int
    start: int
    end: int
    is_heading: bool

    @property
    def place(self) -> Place:
        """Its characters."""
        return Place(passage=self.passage, start=self.start, end=self.end)


class _Texts:
    """Passages read once for all the claims of an answer: their sentences, and where each word stands."""

    def __init__(self, passages: tuple[JudgedPassage, ...]) -> None:
        self.passages = passages
        self.sentences: list[_Sentence] = []
        self._stems: list[frozenset[str]] = []
        self._postings: dict[str, list[int]] = {}
        self._first: list[int] = []  # of each passage, the place of its first sentence
        for number, passage in enumerate(passages):
            self._first.append(len(self.sentences))
            for start, end, stems, is_heading in _sentence_stems(passage.text):
                for term in stems:
                    self._postings.setdefault(term, []).append(len(self.sentences))
                self.sentences.append(
                    _Sentence(number, len(self.sentences), start, end, is_heading)
                )
                self._stems.append(stems)
        self._first.append(len(self.sentences))

    def best(self, terms: frozenset[str]) -> list[_Sentence]:
        """The sentences that share most terms of a claim, weighted by rarity, the best first; no heading."""
        scores: dict[int, float] = {}
        for term in sorted(terms):
            places = self._postings.get(term, ())
            weight = math.log(1 + len(self.sentences) / len(places)) if places else 0.0
            for place in places:
                scores[place] = scores.get(place, 0.0) + weight
        ordered = sorted(scores, key=lambda place: (-scores[place], place))
        sentences = [self.sentences[place] for place in ordered[: 4 * _BEST]]
        return [sentence for sentence in sentences if not sentence.is_heading][:_BEST]

    def best_by_characters(self, claim: str) -> list[_Sentence]:
        """The same by single CJK characters, for a claim in other words."""
        characters = _content_characters(claim)
        scores: list[tuple[float, int]] = []
        for place, sentence in enumerate(self.sentences):
            shared = (
                len(characters & _content_characters(self.text_of(sentence))) if characters else 0
            )
            if shared and not sentence.is_heading:
                scores.append((-shared, place))
        return [self.sentences[place] for _, place in sorted(scores)[:_BEST]]

    def stems(self, sentence: _Sentence) -> frozenset[str]:
        """The words of content of a sentence."""
        return self._stems[sentence.number]

    def neighbours(self, sentence: _Sentence) -> Span:
        """The characters from the sentence before to the one after, in the same passage."""
        first = max(sentence.number - 1, self._first[sentence.passage])
        last = min(sentence.number + 1, self._first[sentence.passage + 1] - 1)
        return self.sentences[first].start, self.sentences[last].end

    @cached_property
    def whole(self) -> str:
        """All passages and what stands beside them."""
        parts = dict.fromkeys(passage.background for passage in self.passages)
        return "\n".join([*[passage.text for passage in self.passages], *parts])

    @cached_property
    def letters(self) -> str:
        """Letters and digits alone."""
        return _letters_and_digits(self.whole)

    @cached_property
    def values(self) -> list[ClaimFact]:
        """All numbers and dates."""
        parts = [self.text_of(sentence) for sentence in self.sentences]
        parts += dict.fromkeys(passage.background for passage in self.passages)
        return [fact for part in parts for fact in value_facts(part)]

    def text_of(self, sentence: _Sentence) -> str:
        """The characters of a sentence."""
        return self.passages[sentence.passage].text[sentence.start : sentence.end]

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that stand with a capital inside sentences, in lower case."""
        return frozenset(match[0].lower() for match in _CAPITAL_INSIDE.finditer(self.whole))

    @cached_property
    def written_words(self) -> frozenset[str]:
        """The words as they are written."""
        return frozenset(self.whole.split())


_read = lru_cache(32)(_Texts)  # the claims of an answer have the same passages


@lru_cache(400)  # a passage is often cited several times
def _sentence_stems(text: str) -> tuple[tuple[int, int, frozenset[str], bool], ...]:
    """The sentences of a text with their stems; and whether each is a heading."""
    headings = [heading.start for heading in find_headings(text)]
    sentences = []
    for start, end in sentence_spans(text):
        place = bisect_right(headings, end - 1) - 1
        is_heading = place >= 0 and start <= headings[place] < end
        is_heading = is_heading or _stands_alone(text, start, end)
        sentences.append((start, end, claim_bases(text[start:end]), is_heading))
    return tuple(sentences)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a sentence is a short line between blank lines, without a full stop: a heading."""
    line = text[start:end]
    if end - start > 60 or line[-1] in '.。!！?？…”"」）)：:;；|' or line[0] in "-*|•·":
        return False
    return text[:start].rstrip(" ").endswith("\n\n") and text[end:].lstrip(" ").startswith("\n")


def _content_characters(text: str) -> frozenset[str]:
    """The CJK characters of a text that mean something alone."""
    return frozenset(
        [char for char in simplified(text) if is_cjk(char) and not is_grammatical(char)]
    )


def claim_bases(text: str) -> frozenset[str]:
    """The words of a text without words of grammar, English ones without their endings."""
    return frozenset([base(term) for term in search_terms(text) if term not in GRAMMAR_WORDS])


class _Window:
    """The best sentences of a claim with their neighbours, and the background of their passages."""

    def __init__(self, texts: _Texts, best: Sequence[_Sentence], terms: frozenset[str]) -> None:
        passages = texts.passages
        self.texts = texts
        self.nearest_start = best[0].start
        self.best = [texts.text_of(sentence) for sentence in best]
        self.nearest = self.best[0]
        nearest_stems = texts.stems(best[0])
        shared = len(nearest_stems & terms)
        self.claim_share = shared / max(len(terms), 1)
        self._terms = terms
        spans: dict[int, list[Span]] = {}
        for sentence in best:
            spans.setdefault(sentence.passage, []).append(texts.neighbours(sentence))
        self.parts = [
            passages[number].text[start:end]
            for number, own_spans in spans.items()
            for start, end in _joined_spans(sorted(own_spans))
        ]
        background = "\n".join(dict.fromkeys(passages[number].background for number in spans))
        self.text = "\n".join([*self.parts, background])
        self.values = [fact for part in (*self.parts, background) for fact in value_facts(part)]

    @property
    def is_near(self) -> bool:
        """Whether the nearest sentence is about the same: it has most words of the claim."""
        return self.claim_share >= _NEAR

    def restates(self, place: int) -> bool:
        """Whether the claim has most words of the clause at a place of the nearest sentence, too."""
        borders = [mark.end() for mark in _CLAUSE_BORDER.finditer(self.nearest)]
        start = max([border for border in borders if border <= place], default=0)
        end = min([border for border in borders if border > place], default=len(self.nearest))
        stems = claim_bases(self.nearest[start:end])
        return self.is_near and len(stems & self._terms) >= _RESTATED * len(stems)


def _joined_spans(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sorted spans, overlapping ones as one."""
    start, end = spans[0]
    for next_start, next_end in spans[1:]:
        if next_start > end:
            yield start, end
            start = next_start
            end = next_end
        end = max(end, next_end)
    yield start, end


# ── the reasons ─────────────────────────────────────────────────────────────────


def _reasons(claim: str, window: _Window, known_words: Collection[str]) -> Iterator[Reason]:
    yield from _value_reasons(claim, window)
    yield from _quotation_reasons(claim, window)
    yield from _name_reasons(claim, window, known_words)
    yield from _polarity_reasons(claim, window)
    yield from _strength_reasons(claim, window)


def _value_reasons(claim: str, window: _Window) -> Iterator[Reason]:
    nearest = value_facts(window.nearest)
    for fact in value_facts(claim):
        if _stands_among(fact, window.values):
            continue
        if not window.is_near and _stands_among(fact, window.texts.values):
            continue
        counterpart = _counterpart(fact, nearest)
        countable = (
            fact.kind == "number"
            and not fact.measure
            and fact.number <= _COUNTABLE
            and fact.number % 1 == 0
        )
        decides = counterpart is not None or not countable
        words = _words_for(claim)
        if counterpart is not None:
            text = words["says"].format(counterpart.text, fact.text)
            source = (
                window.nearest_start + counterpart.start,
                window.nearest_start + counterpart.end,
            )
        else:
            text = words["lacks"].format(fact.text)
            source = None
        yield Reason(
            kind=fact.kind,
            text=text,
            differing=(fact.start, fact.end),
            instead=source,
            decides=decides,
        )


def _stands_among(fact: ClaimFact, values: Sequence[ClaimFact]) -> bool:
    """Whether a number or a date is one of these."""
    is_same = _same_date if fact.kind == "date" else _same_number
    return any(is_same(fact, value, values) for value in values)


def _counterpart(fact: ClaimFact, candidates: Sequence[ClaimFact]) -> ClaimFact | None:
    """A fact of the same kind about the same: with the same unit or the same counted word."""
    for candidate in candidates:
        if candidate.kind != fact.kind:
            continue
        if fact.kind == "date":
            return candidate
        if fact.measure and fact.measure == candidate.measure:
            return candidate
        if fact.counted and fact.counted == candidate.counted:
            return candidate
    return None


def _same_number(fact: ClaimFact, source_fact: ClaimFact, values: Sequence[ClaimFact]) -> bool:
    if source_fact.kind == "date":
        return fact.plain in source_fact.date and fact.plain > 0
    if fact.measure and source_fact.measure and fact.measure != source_fact.measure:
        return False
    if fact.measure == source_fact.measure and _equal(
        fact.number, source_fact.number, fact, source_fact
    ):
        return True
    is_open = not (fact.measure and source_fact.measure)
    return is_open and _equal(fact.plain, source_fact.plain, fact, source_fact)


def _equal(number: float, source_number: float, fact: ClaimFact, source: ClaimFact) -> bool:
    if "about" in (fact.rounding, source.rounding):
        return abs(number - source_number) <= max(_PRECISION * abs(source_number), _EXACT)
    if fact.rounding == "over" and source.rounding != "over":
        return number <= source_number * (1 + _EXACT) and number >= 0.8 * source_number
    return math.isclose(number, source_number, rel_tol=_EXACT, abs_tol=_EXACT)


def _same_date(fact: ClaimFact, source_fact: ClaimFact, values: Sequence[ClaimFact]) -> bool:
    """Whether each part of a date stands there: the year may stand elsewhere in the window."""
    if source_fact.kind == "number":
        return not any(fact.date[1:]) and source_fact.plain == fact.date[0]
    years = {value.date[0] for value in values if value.kind == "date"} | {
        value.plain for value in values if value.kind == "number"
    }
    for position, (own, source_part) in enumerate(zip(fact.date, source_fact.date, strict=True)):
        if not own or own == source_part:
            continue
        if position == 0 and not source_part and own in years:
            continue
        return False
    return True


def _quotation_reasons(claim: str, window: _Window) -> Iterator[Reason]:
    for fact in quotation_facts(claim):
        pieces = [_letters_and_digits(piece) for piece in fact.text.replace("...", "…").split("…")]
        if not all(piece in window.texts.letters for piece in pieces):
            yield Reason(
                kind="quotation",
                text=_words_for(claim)["quotation"].format(fact.text),
                differing=(fact.start, fact.end),
            )


def _letters_and_digits(text: str) -> str:
    folded = nfkc_casefold(simplified(text))
    return "".join([char for char in folded if char.isalnum()])


def _name_reasons(claim: str, window: _Window, known_words: Collection[str]) -> Iterator[Reason]:
    whole = window.texts.whole
    if not window.claim_share or has_cjk(claim) != has_cjk(window.text):
        return  # in another script, a name has other letters
    values = value_facts(claim)
    for fact in name_facts(claim, _NamedWords(window.texts, known_words)):
        if any(fact.start < value.end and value.start < fact.end for value in values):
            continue  # the month of a date
        missing = _missing_part(fact.text, window.text)
        if missing:
            elsewhere = not _missing_part(fact.text, whole)
            if elsewhere and not window.is_near:
                continue
            yield Reason(
                kind="name",
                text=_words_for(claim)["elsewhere" if elsewhere else "name"].format(missing),
                differing=(fact.start, fact.end),
                decides=not elsewhere,
            )


class _NamedWords(Collection[str]):
    """The words of names: with a capital inside a sentence of the texts, or of the index."""

    def __init__(self, texts: _Texts, known_words: Collection[str]) -> None:
        self._texts = texts
        self._known_words = known_words

    def __contains__(self, word: object) -> bool:
        if word in self._texts.names:
            return True
        return word in self._known_words and word not in self._texts.written_words

    def __iter__(self) -> Iterator[str]:
        return iter(self._known_words)

    def __len__(self) -> int:
        return len(self._known_words)


def _missing_part(name: str, text: str) -> str:
    """The part of a name that a text does not have, also not in a short form; "" if there is none."""
    folded = simplified(text)
    if has_cjk(name):
        plain = simplified(name)
        return "" if plain in folded or _is_abbreviated(plain, folded) else name
    stems = _name_stems(text)
    parts = [part for part in name.replace("-", " ").split() if part[:1].isupper()]
    missing = [part for part in parts if not _stands(part, stems)]
    if not missing:
        return ""
    if len(missing) < len(parts) and _has_short_form(parts, missing, text):
        return ""
    if _initials(parts) in stems or _is_acronym(name, text):
        return ""
    return " ".join(missing)


@lru_cache(200)
def _name_stems(text: str) -> frozenset[str]:
    return frozenset(stem(term) for term in search_terms(text)) | frozenset(search_terms(text))


def _stands(part: str, stems: Collection[str]) -> bool:
    """Whether the words of a part of a name stand among stems, or a form of them: Polish, Poland."""
    terms = search_terms(part)
    if part.endswith(".") or len(part) == 1:  # an initial
        return any(word.startswith(part[0].lower()) for word in stems)
    for term in terms:
        if term in stems or stem(term) in stems:
            continue
        if len(term) < 5 or not any(
            word[:4] == term[:4] and abs(len(word) - len(term)) < 5 for word in stems
        ):
            return False
    return True


def _has_short_form(parts: Sequence[str], missing: Sequence[str], text: str) -> bool:
    """Whether the other parts of a name stand alone somewhere: Ms McCullough for Deb McCullough."""
    for part in parts:
        if part in missing:
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", text):
            before = re.search(
                r"([A-Z][\w'’]*)\.?\s$", text[max(0, match.start() - 30) : match.start()]
            )
            after = re.match(r"\s([A-Z][\w]*)", text[match.end() :])
            has_other_before = (
                before is not None
                and before[1] not in parts
                and before[1]
                not in (
                    "Mr",
                    "Mrs",
                    "Ms",
                    "Dr",
                    "Miss",
                    "Sir",
                    "Lady",
                    "Lord",
                    "The",
                    "In",
                    "And",
                    "But",
                    "Professor",
                )
            )
            has_other_after = after is not None and after[1] not in parts
            if not has_other_before and not has_other_after:
                return True
    return False


def _initials(parts: Sequence[str]) -> str:
    return "".join(part[0] for part in parts).lower() if len(parts) > 1 else "\0"


def _is_acronym(name: str, text: str) -> bool:
    """Whether a name in capitals has the initials of words of a text that follow each other."""
    letters = name.replace(".", "")
    if not letters.isupper() or not 2 <= len(letters) <= 8:
        return False
    between = r"[\w'’-]*[\s/-]+(?:(?:of|the|and|for|in|on|a|de|plus)\s+)*"
    return re.search(rf"\b{between.join(letters)}", text, re.IGNORECASE) is not None


def _is_abbreviated(name: str, text: str) -> bool:
    """Whether a text has a longer or shorter form of a Chinese name: 华测检测 for 华测, 监管局 for 监督管理局."""
    if len(name) < 4:
        return False
    pattern = r"[\u4e00-\u9fff]{0,3}".join(map(re.escape, name))
    return bool(re.search(pattern, text))


def _polarity_reasons(claim: str, window: _Window) -> Iterator[Reason]:
    claimed = polarity(claim)
    nearby = [polarity(part) for part in window.best]
    everything = polarity(window.text)
    words = _words_for(claim)
    nearest = nearby[0]
    affirmed = frozenset(
        word for sentence_polarity in nearby for word in sentence_polarity.affirmed
    )
    denied = everything.denied
    if not window.is_near:
        return
    for negation in claimed.negations:
        said_of = [word for word in negation.words if word in affirmed]
        if said_of and not any(word in denied for word in negation.words):
            yield Reason(
                kind="polarity",
                text=words["affirms"].format(negation.text),
                differing=(negation.start, negation.end),
            )
            return
    if claimed.negations:
        return
    for negation in nearest.negations:
        shared = [word for word in negation.words if word in claimed.affirmed]
        if not window.restates(negation.start):
            continue
        if shared and not all(word in everything.affirmed for word in shared):
            start = window.nearest_start
            yield Reason(
                kind="polarity",
                text=words["denies"].format(negation.text),
                instead=(start + negation.start, start + negation.end),
            )
            return


def _strength_reasons(claim: str, window: _Window) -> Iterator[Reason]:
    if not window.is_near:
        return
    words = _words_for(claim)
    text = "\n".join(window.best)
    for group in STRONG_WORDS.values():
        claimed = words_of(claim, group)
        if claimed and not words_of(text, group):
            start, end, word = claimed[0]
            yield Reason(
                kind="strength",
                text=words["strong"].format(word),
                differing=(start, end),
                decides=False,
            )
    hedges = words_of(window.nearest, HEDGES)
    if hedges and window.restates(hedges[0][0]) and not words_of(claim, HEDGES):
        start, end, word = hedges[0]
        yield Reason(
            kind="hedge",
            text=words["hedge"].format(word),
            instead=(window.nearest_start + start, window.nearest_start + end),
            decides=False,
        )


_REASON_WORDS = {
    "en": {
        "says": "the passage says “{}”, not “{}”",
        "lacks": "the passage does not say: {}",
        "quotation": "these words do not stand in the passage: “{}”",
        "name": "the passage does not name {}",
        "elsewhere": "{} is not named near this sentence",
        "affirms": "the passage says so without “{}”",
        "denies": "the passage says “{}”",
        "strong": "the passage does not say “{}”",
        "hedge": "the passage says “{}”",
        "nothing": "the passage shares no word with it",
        "language": "the passage is in another language",
    },
    "zh": {
        "says": "原文写的是“{}”，不是“{}”",
        "lacks": "原文没有写：{}",
        "quotation": "原文没有这样的原话：“{}”",
        "name": "原文没有提到{}",
        "elsewhere": "这句话附近没有提到{}",
        "affirms": "原文的说法中没有“{}”",
        "denies": "原文写的是“{}”",
        "strong": "原文没有说“{}”",
        "hedge": "原文写的是“{}”",
        "nothing": "原文与此没有共同的词语",
        "language": "原文使用另一种语言",
    },
}


def _words_for(claim: str) -> dict[str, str]:
    """The words of reasons in the language of a claim."""
    return _REASON_WORDS["zh" if has_cjk(claim) else "en"]
