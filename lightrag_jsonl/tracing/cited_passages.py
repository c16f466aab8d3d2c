"""The passages that claims are judged by: their sentences, the words of each, and the nearest to a claim."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from msgspec import Struct

from lightrag_jsonl.core.headings import find_headings
from lightrag_jsonl.text.cjk import simplified
from lightrag_jsonl.text.names import letters_and_digits
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import BULLETS, sentence_spans
from lightrag_jsonl.text.terms import GRAMMAR_WORDS, content_stems, search_terms, stem
from lightrag_jsonl.tracing.claim_facts import (
    ClaimFact,
    capitalized_words,
    value_facts,
    values_in_passage,
)

BEST = 3  # sentences that share most words with a claim; they and their neighbours are looked at
_WORDS_A_SENTENCE = 20  # about
_LONGEST_HEADING = 60  # characters, of one without a mark
_INITIAL = pattern_of(r"\b[A-Z](?=\w)")
_NEAR = 0.5  # of the words of a claim, in a sentence about the same
_ALIKE = 2 / 3  # in a sentence that says the same, perhaps without a "not"


class JudgedPassage(Struct, frozen=True):
    """A text that a claim is judged by, and what stands beside it: title, headings, date."""

    text: str
    background: str = ""


class Place(Struct, frozen=True, kw_only=True):
    """Characters `start` to `end` of a passage, by its number among the passages."""

    passage: int
    start: int
    end: int


class PassageSentence(NamedTuple):
    """A sentence of a text by its characters, with its stems of content."""

    start: int
    end: int
    stems: frozenset[str]
    is_heading: bool


class _ReadText:
    """A text whose words are counted; sentences are read where a claim may be near."""

    def __init__(self, text: str) -> None:
        self.text = text
        words = [term for term in search_terms(text) if term not in GRAMMAR_WORDS]
        self.counts = Counter(map(stem, words))  # of each stem of content

    @cached_property
    def sentences(self) -> tuple[PassageSentence, ...]:
        text = self.text
        headings = [heading.start for heading in find_headings(text)]
        sentences: list[PassageSentence] = []
        for start, end in sentence_spans(text):
            place = bisect_right(headings, end - 1) - 1
            is_heading = place >= 0 and start <= headings[place] < end
            is_heading = is_heading or _stands_alone(text, start, end)
            stems = content_stems(text[start:end], without=GRAMMAR_WORDS)
            sentences.append(PassageSentence(start, end, stems, is_heading))
        return tuple(sentences)

    @cached_property
    def values(self) -> list[ClaimFact]:
        return values_in_passage(self.text)

    @cached_property
    def capitalized_words(self) -> frozenset[str]:
        return capitalized_words(self.text)

    @cached_property
    def initials(self) -> str:
        return "".join(_INITIAL.findall(self.text))

    @cached_property
    def letters(self) -> str:
        return letters_and_digits(simplified(self.text))


_POINT_OR_ROW = pattern_of(rf"[-*|·{BULLETS}]")
_text_of_passage = lru_cache(400)(_ReadText)  # a passage is often cited several times


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a sentence is a short line between blank lines, without a full stop: a heading."""
    line = text[start:end]
    ends_otherwise = line[-1] in '.。!！?？…”"」）)：:;；|'
    if len(line) > _LONGEST_HEADING or ends_otherwise or _POINT_OR_ROW.match(line):
        return False
    before = text[:start].rstrip(" ")
    after = text[end:].lstrip(" ")
    return before.endswith("\n\n") and after.startswith("\n")


class CitedPassages:
    """All passages that the claims of an answer are judged by."""

    def __init__(self, passages: tuple[JudgedPassage, ...]) -> None:
        self.passages = passages
        self.backgrounds = [passage.background for passage in passages]
        self.texts = [_text_of_passage(passage.text) for passage in passages]
        self._asides = [_text_of_passage(text) for text in dict.fromkeys(self.backgrounds)]
        self._all_texts = [*self.texts, *self._asides]
        self._counts: Counter[str] = Counter()
        for text in self.texts:
            self._counts.update(text.counts)

    def window(self, claim: str) -> "Window | None":
        """The sentences nearest to a claim with their neighbours; None if none shares a word with it."""
        terms = content_stems(claim, without=GRAMMAR_WORDS)
        weights = self._weights(terms)
        best: list[tuple[float, int, int]] = []  # the negated score, the text, the sentence
        for bound, number in sorted(self._bounds(weights)):
            if len(best) == BEST and best[-1][0] <= bound:
                break  # no further text has a better sentence
            for place, sentence in enumerate(self.texts[number].sentences):
                shared = sentence.stems & terms
                if shared and not sentence.is_heading:
                    score = math.fsum([weights[term] for term in shared])
                    best.append((-score, number, place))
            best = sorted(best)[:BEST]
        if not best:
            return None
        places = [(number, place) for _, number, place in best]
        return Window(self, places, terms)

    def _weights(self, terms: frozenset[str]) -> dict[str, float]:
        """The weight of each term that stands in a text: rare ones weigh more."""
        sentences = self._counts.total() / _WORDS_A_SENTENCE
        counts = {term: self._counts[term] for term in terms if term in self._counts}
        return {term: math.log(1 + sentences / count) for term, count in counts.items()}

    def _bounds(self, weights: dict[str, float]) -> Iterator[tuple[float, int]]:
        """What a sentence of each text can score at most, negated; only of texts with a term."""
        for number, text in enumerate(self.texts):
            shared = [weight for term, weight in weights.items() if term in text.counts]
            if shared:
                yield -math.fsum(shared), number

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of content of all passages and of what stands beside them."""
        stems_beside = [aside.counts for aside in self._asides]
        return frozenset(self._counts).union(*stems_beside)

    @cached_property
    def whole(self) -> str:
        """All passages and what stands beside them."""
        return "\n".join([text.text for text in self._all_texts])

    @cached_property
    def simplified(self) -> str:
        """The same in simplified Chinese."""
        return simplified(self.whole)

    @cached_property
    def initials(self) -> str:
        """The first letters of the capitalized words."""
        return "\n".join([text.initials for text in self._all_texts])

    @cached_property
    def letters(self) -> str:
        """Letters and digits alone."""
        return "\n".join([text.letters for text in self._all_texts])

    @cached_property
    def values(self) -> list[ClaimFact]:
        """All numbers and dates."""
        return [value for text in self._all_texts for value in text.values]

    @cached_property
    def capitalized_words(self) -> frozenset[str]:
        """The words that stand with a capital inside sentences, in lower case."""
        words_by_text = [text.capitalized_words for text in self.texts]
        return frozenset[str]().union(*words_by_text)


read_passages = lru_cache(32)(CitedPassages)  # the claims of an answer have the same passages


class Window:
    """The sentences nearest to a claim, their neighbours, and what stands beside their passages."""

    def __init__(
        self, passages: CitedPassages, best: Sequence[tuple[int, int]], terms: frozenset[str]
    ) -> None:
        self.passages = passages
        self._places = best
        self._terms = terms
        number, place = best[0]
        nearest = passages.texts[number].sentences[place]
        self.place = Place(passage=number, start=nearest.start, end=nearest.end)
        self.is_near = len(nearest.stems & terms) >= _NEAR * len(terms)
        self.best = [self._sentence(number, place) for number, place in best]
        self.alike: list[str] = []
        for number, place in best:
            shared = passages.texts[number].sentences[place].stems & terms
            if len(shared) >= _ALIKE * len(terms):
                self.alike.append(self._sentence(number, place))
        self.nearest = self.best[0]
        neighbours: dict[tuple[int, int], None] = {}
        for number, place in sorted(best):
            last = len(passages.texts[number].sentences) - 1
            for neighbour in range(max(place - 1, 0), min(place + 1, last) + 1):
                neighbours[number, neighbour] = None
        self.sentences = [self._sentence(number, place) for number, place in neighbours]
        backgrounds = [passages.backgrounds[number] for number, _ in neighbours]
        self.background = "\n".join(dict.fromkeys(backgrounds))

    def passages_without(self, terms: frozenset[str]) -> CitedPassages:
        """The passages that share words with the claim in one of its nearest sentences, apart from some."""
        numbers = [
            number
            for number, place in self._places
            if self.passages.texts[number].sentences[place].stems & self._terms - terms
        ]
        return read_passages(
            tuple([self.passages.passages[number] for number in dict.fromkeys(numbers)])
        )

    def _sentence(self, number: int, place: int) -> str:
        text = self.passages.texts[number]
        sentence = text.sentences[place]
        return text.text[sentence.start : sentence.end]

    @property
    def text(self) -> str:
        """The sentences, and what stands beside them."""
        return "\n".join([*self.sentences, self.background])

    @cached_property
    def values(self) -> list[ClaimFact]:
        """The numbers and dates near the claim."""
        values: list[ClaimFact] = []
        for part in (*self.sentences, self.background):
            values += value_facts(part)
        return values
