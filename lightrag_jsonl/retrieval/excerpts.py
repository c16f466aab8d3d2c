"""Chooses the sentences that stand for whole texts: central ones, from the beginning to the end."""

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from lightrag_jsonl.core.display import LINK_TARGET
from lightrag_jsonl.core.front_matter import is_label
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.sentences import TABLE_ROW, sentence_spans
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.types import Chunk, Excerpt
from lightrag_jsonl.providers.offline.markup import without_markup

# Tuned on A Christmas Carol and on notes about anaesthesia (`python -m benchmarks.overview`), and measured
# on two other texts.
TERM_WEIGHT = 0.05  # of a word, where the name of an entity has 1
# How much more a sentence counts with all words of the question; 4 or 12, chosen on A Christmas Carol and on
# this project's documentation.
QUESTION_GAIN = 12.0
NEIGHBOR_WEIGHT = 0.3  # how much more a sentence counts beside a chosen one: texts read better
SECTION_SENTENCES = 3  # on average chosen from each section of equal length
LONGEST_SENTENCE = 600  # characters; a longer sentence is a table or a list
CHARACTERS_OF_A_TOKEN = 4  # where the tokens of a chunk are unknown
REST_TERMS = 3  # words; a text with fewer that begins with a small letter is the rest of a sentence
SENTENCE_JOINT = 1  # tokens between two sentences
LISTED_NAMES = 6  # at least, in a sentence that is a list of names
LIST_SHARE = 0.6  # of the letters of a list, at least, are letters of the names
GAP_TOKENS = 3  # that a sentence costs besides, so that the shortest are not always chosen


_LONE_LINK = pattern_of(  # of Markdown, with nothing beside
    rf"\A[\s*+•\d.)-]*+!?\[[^\[\]\n]+\]{LINK_TARGET}[\s.,;|]*\Z"
)


class CandidateSentence(Struct, frozen=True, kw_only=True):
    """A sentence: `chunk` is the position of the chunk, `span` the characters in the chunk's text.

    `names` are the row ids of the entities named, `terms` the other words without endings, and `tokens`
    an estimate of the length.
    """

    chunk: int
    span: Excerpt
    terms: frozenset[str]
    names: tuple[int, ...]
    tokens: float


@lru_cache(5_000)  # the statements about a hub are looked at for many questions
def content_stems(text: str) -> frozenset[str]:
    """The different words of a text without endings, and without function words."""
    return frozenset([stem(term) for term in search_terms(text) if term not in FUNCTION_WORDS])


def split_sentences(
    chunks: Sequence[Chunk], names: Sequence[Mapping[int, str]]
) -> list[CandidateSentence]:
    """The sentences of chunks, each text once, given the names of the entities in each chunk."""
    sentences: list[CandidateSentence] = []
    texts: set[str] = set()
    for position, (chunk, chunk_names) in enumerate(zip(chunks, names, strict=True)):
        density = _tokens_of_a_character(chunk)
        name_terms = {row: terms_of_name(name) for row, name in chunk_names.items()}
        for span, stems, terms in _quotable_sentences(chunk.text):
            text = chunk.text[slice(*span)]
            if text in texts:
                continue
            texts.add(text)
            rows = [row for row, words in name_terms.items() if words and words <= terms]
            if _lists_names(text, [chunk_names[row] for row in rows]):
                continue
            sentence = CandidateSentence(
                chunk=position,
                span=span,
                terms=stems,
                names=tuple(rows),
                tokens=density * len(text) + SENTENCE_JOINT,
            )
            sentences.append(sentence)
    return sentences


@lru_cache(1_000)  # questions about the whole read the same chunks
def _quotable_sentences(text: str) -> list[tuple[Excerpt, frozenset[str], frozenset[str]]]:
    """The sentences of a text that say something by themselves, each with its stems and its terms: no code,
    and rows of tables only where there is nothing else.
    """
    sentences: list[tuple[Excerpt, frozenset[str], frozenset[str]]] = []
    rows: list[tuple[Excerpt, frozenset[str], frozenset[str]]] = []
    plain = without_markup(text)
    for start, end in whole_sentences(plain):
        sentence = plain[start:end]
        stems = content_stems(sentence)
        if _is_quotable(sentence, stems):
            among = rows if TABLE_ROW.match(sentence) else sentences
            among.append(((start, end), stems, frozenset(search_terms(sentence))))
    return sentences or rows


@lru_cache(10_000)
def terms_of_name(name: str) -> frozenset[str]:
    """The different search terms of a name."""
    return frozenset(search_terms(name))


def _tokens_of_a_character(chunk: Chunk) -> float:
    return chunk.tokens / max(len(chunk.text), 1) if chunk.tokens else 1 / CHARACTERS_OF_A_TOKEN


def _is_quotable(text: str, terms: frozenset[str]) -> bool:
    """Whether a sentence says something by itself: no table, list, link or label, no rest of a sentence."""
    is_rest = text[0].islower() and len(terms) < REST_TERMS
    if not terms or is_rest or len(text) > LONGEST_SENTENCE:
        return False
    return not is_label(text) and _LONE_LINK.match(text) is None


def _lists_names(text: str, names: Sequence[str]) -> bool:
    """Whether a sentence is a list of names, such as who was present: nothing is said of them."""
    if len(names) < LISTED_NAMES:
        return False
    letters = sum(map(str.isalnum, text))
    return sum(map(len, names)) > LIST_SHARE * letters


def whole_sentences(text: str) -> list[Excerpt]:
    """The sentences as (start, end), joined where a line was only wrapped: no stop before the line break,
    and no capital letter after it.
    """
    spans: list[Excerpt] = []
    for start, end in sentence_spans(text):
        if spans and text[start].islower() and text[spans[-1][1] : start].count("\n") == 1:
            last_start, last_end = spans[-1]
            if text[last_end - 1].isalnum() or text[last_end - 1] == ",":
                spans[-1] = (last_start, end)
                continue
        spans.append((start, end))
    return spans


class ExcerptChoice:
    """Takes the sentence with the greatest gain for its tokens, again and again. The sentences are weighed
    once, and chosen from for any number of budgets.

    A sentence gains by the names and words in it, less for what chosen sentences name already and less if
    many sentences of its section are chosen, more for words of the question. Names and words count by the
    square root of how often they are chosen, as in submodular summarization (Lin and Bilmes, ACL 2011).
    `question_terms` are the words of the question; `chunk_weights` say by position of the chunk how much a
    sentence counts.
    """

    def __init__(
        self,
        sentences: Sequence[CandidateSentence],
        *,
        question_terms: frozenset[str],
        chunk_weights: Sequence[float],
    ) -> None:
        self._sentences = sentences
        count = len(self._sentences)
        frequencies = Counter(chain.from_iterable([sentence.terms for sentence in sentences]))
        rarity = {term: math.log(1 + count / frequency) for term, frequency in frequencies.items()}
        self._whole_weights: dict[str | int, float] = {  # of the first occurrence; 1 of a name
            term: TERM_WEIGHT * math.log1p(frequency) * rarity[term]
            for term, frequency in frequencies.items()
        }
        names = chain.from_iterable([sentence.names for sentence in sentences])
        self._whole_weights |= dict.fromkeys(names, 1.0)
        self._question = {term: rarity[term] for term in question_terms if term in rarity}
        self._whole_question = sum(self._question.values()) or 1.0
        self._question_weights = [
            1 + QUESTION_GAIN * self._likeness_of(sentence) for sentence in sentences
        ]
        self._chunk_weights = [chunk_weights[sentence.chunk] for sentence in sentences]
        self._words: list[list[str | int]] = [
            [*sentence.names, *sorted(sentence.terms)] for sentence in self._sentences
        ]
        self._first_values = [  # with nothing chosen
            sum(map(self._whole_weights.__getitem__, words)) * question_weight * chunk_weight
            for words, question_weight, chunk_weight in zip(
                self._words, self._question_weights, self._chunk_weights, strict=True
            )
        ]
        self._neighbors = [self._neighbors_of(number) for number in range(count)]
        self._sections: list[int] = []
        self._frame_tokens = 0
        self._chosen: set[int] = set()
        self._open_chunks: set[int] = set()
        self._covered: dict[str | int, int] = {}  # terms, and names by row id
        self._next_weights: dict[str | int, float] = {}  # of one more occurrence
        self._covered_sections: Counter[int] = Counter()

    def choose(self, budget: int, frame_tokens: int) -> dict[int, list[Excerpt]]:
        """The spans chosen within a budget in tokens, by position of the chunk, in the order of the text.

        `frame_tokens` is what the first sentence of a chunk costs besides its own tokens.
        """
        self._sections = self._divided(budget)
        self._frame_tokens = frame_tokens
        self._chosen = set()
        self._open_chunks = set()
        self._covered = {}
        self._next_weights = dict(self._whole_weights)
        self._covered_sections = Counter()
        queue = [
            (-value / (self._cost(number) + GAP_TOKENS), number)
            for number, value in enumerate(self._first_values)
        ]
        heapq.heapify(queue)
        budget_left = float(budget)
        while queue:
            gain, number = heapq.heappop(queue)
            if number in self._chosen:
                continue
            if self._sentences[number].tokens > budget_left:
                continue
            gain_now = -self._gain(number)
            if gain_now > gain + 1e-12:  # other sentences were chosen meanwhile
                heapq.heappush(queue, (gain_now, number))
                continue
            cost = self._cost(number)
            if cost > budget_left:
                continue
            budget_left -= cost
            self._take(number)
            for neighbor in self._neighbors[number]:
                if neighbor not in self._chosen:
                    heapq.heappush(queue, (-self._gain(neighbor), neighbor))
        spans: dict[int, list[Excerpt]] = {}
        for number in sorted(self._chosen):
            sentence = self._sentences[number]
            spans.setdefault(sentence.chunk, []).append(sentence.span)
        return spans

    def _gain(self, number: int) -> float:
        """What a sentence adds, for each of its tokens."""
        value = sum(map(self._next_weights.__getitem__, self._words[number]))
        value /= 1 + self._covered_sections[self._sections[number]]
        value *= self._question_weights[number]
        value *= self._chunk_weights[number]
        if not self._chosen.isdisjoint(self._neighbors[number]):
            value *= 1 + NEIGHBOR_WEIGHT
        return value / (self._cost(number) + GAP_TOKENS)

    def _cost(self, number: int) -> float:
        sentence = self._sentences[number]
        frame_tokens = 0 if sentence.chunk in self._open_chunks else self._frame_tokens
        return sentence.tokens + frame_tokens

    def _take(self, number: int) -> None:
        sentence = self._sentences[number]
        self._chosen.add(number)
        self._open_chunks.add(sentence.chunk)
        self._covered_sections[self._sections[number]] += 1
        for word in self._words[number]:
            times = self._covered.get(word, 0) + 1
            self._covered[word] = times
            share = math.sqrt(times + 1) - math.sqrt(times)
            self._next_weights[word] = self._whole_weights[word] * share

    def _neighbors_of(self, number: int) -> list[int]:
        """The sentences before and after a sentence in its chunk."""
        numbers = range(max(number - 1, 0), min(number + 2, len(self._sentences)))
        chunk = self._sentences[number].chunk
        return [
            neighbor
            for neighbor in numbers
            if neighbor != number and self._sentences[neighbor].chunk == chunk
        ]

    def _likeness_of(self, sentence: CandidateSentence) -> float:
        """The share of the question's words, by rarity, in a sentence."""
        shared = sorted(sentence.terms & self._question.keys())
        return sum([self._question[term] for term in shared]) / self._whole_question

    def _divided(self, budget: int) -> list[int]:
        """The section of each sentence: the text is divided into sections of equal length."""
        total = sum([sentence.tokens for sentence in self._sentences]) or 1.0
        mean = total / max(len(self._sentences), 1)
        count = max(int(budget / (mean * SECTION_SENTENCES)), 1)
        sections: list[int] = []
        passed = 0.0
        for sentence in self._sentences:
            sections.append(min(int(count * passed / total), count - 1))
            passed += sentence.tokens
        return sections
