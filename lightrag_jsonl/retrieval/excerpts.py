"""Chooses the sentences that stand for whole texts: central ones, from the beginning to the end."""

import heapq
import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from msgspec import Struct

from lightrag_jsonl.core.display import LINK_TARGET
from lightrag_jsonl.core.front_matter import is_label
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.sentences import TABLE_ROW, sentence_spans
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.types import Chunk, Excerpt
from lightrag_jsonl.providers.offline.markup import without_markup
from lightrag_jsonl.retrieval.hits import column

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
    """A sentence of a chunk, at `span` of its text.

    `names` are the row ids of the entities named, `terms` the other words without endings, sorted, and
    `tokens` an estimate of the length. Of a sentence that `is_list`, names are listed and nothing is said.
    """

    span: Excerpt
    terms: tuple[str, ...]
    names: tuple[int, ...]
    tokens: float
    is_list: bool


@lru_cache(5_000)  # the statements about a hub are looked at for many questions
def content_stems(text: str) -> frozenset[str]:
    """The different words of a text without endings, and without function words."""
    return frozenset([stem(term) for term in search_terms(text) if term not in FUNCTION_WORDS])


def split_sentences(
    chunks: Sequence[Chunk], names: Sequence[Mapping[int, str]]
) -> list[list[CandidateSentence]]:
    """The sentences of each chunk, each text once, given the names of the entities in each chunk."""
    sentences: list[list[CandidateSentence]] = []
    texts: set[str] = set()
    for chunk, chunk_names in zip(chunks, names, strict=True):
        new_sentences: list[CandidateSentence] = []
        for sentence in _sentences_of(chunk.text, chunk.tokens, tuple(chunk_names.items())):
            text = chunk.text[slice(*sentence.span)]
            if text not in texts:
                texts.add(text)
                new_sentences.append(sentence)
        sentences.append([sentence for sentence in new_sentences if not sentence.is_list])
    return sentences


@lru_cache(2_000)  # questions about the whole read many chunks again; of long ones, this is 65 MB
def _sentences_of(
    text: str, tokens: int, names: Sequence[tuple[int, str]]
) -> list[CandidateSentence]:
    """The sentences of a text that say something by themselves: no code, and rows of tables only where there
    is nothing else.
    """
    sentences: list[CandidateSentence] = []
    rows: list[CandidateSentence] = []
    density = tokens / max(len(text), 1) if tokens else 1 / CHARACTERS_OF_A_TOKEN
    names_with_terms = [(row, name, terms_of_name(name)) for row, name in names]
    plain = without_markup(text)
    for start, end in whole_sentences(plain):
        sentence = plain[start:end]
        terms = frozenset(search_terms(sentence))
        stems = frozenset([stem(term) for term in terms if term not in FUNCTION_WORDS])
        if not _is_quotable(sentence, stems):
            continue
        named = [(row, name) for row, name, words in names_with_terms if words and words <= terms]
        among = rows if TABLE_ROW.match(sentence) else sentences
        among.append(
            CandidateSentence(
                span=(start, end),
                terms=tuple(sorted(stems)),
                names=tuple([row for row, _ in named]),
                tokens=density * (end - start) + SENTENCE_JOINT,
                is_list=_lists_names(text[start:end], [name for _, name in named]),
            )
        )
    return sentences or rows


@lru_cache(10_000)
def terms_of_name(name: str) -> frozenset[str]:
    """The different search terms of a name."""
    return frozenset(search_terms(name))


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
    `sentences` are those of each chunk, `question_terms` the words of the question; `chunk_weights` say by
    position of the chunk how much a sentence counts.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[CandidateSentence]],
        *,
        question_terms: frozenset[str],
        chunk_weights: Sequence[float],
    ) -> None:
        self._sentences = [sentence for group in sentences for sentence in group]
        self._chunks = [position for position, group in enumerate(sentences) for _ in group]
        self._tokens = [sentence.tokens for sentence in self._sentences]
        count = len(self._sentences)
        words: list[list[int | str]] = [
            [*sentence.names, *sentence.terms] for sentence in self._sentences
        ]
        numbers: defaultdict[str | int, int] = defaultdict(itertools.count().__next__)
        occurrences = np.fromiter(
            map(numbers.__getitem__, chain.from_iterable(words)), np.int64
        )  # the numbers of the words, of one sentence after another
        lengths = [*map(len, words)]
        owners = np.repeat(np.arange(count), lengths)
        frequencies = np.bincount(occurrences, minlength=len(numbers))
        rarity = np.log(1 + count / frequencies)
        whole_weights = TERM_WEIGHT * np.log1p(frequencies) * rarity  # of the first occurrence
        names = {name for sentence in self._sentences for name in sentence.names}
        whole_weights[column([numbers[name] for name in names])] = 1.0
        question_numbers = column(
            [numbers[term] for term in sorted(question_terms) if term in numbers]
        )
        question_shares = np.zeros(len(numbers))
        question_rarity = rarity[question_numbers]
        question_shares[question_numbers] = question_rarity / (question_rarity.sum() or 1.0)
        likeness = np.bincount(owners, question_shares[occurrences], count)
        weights = (1 + QUESTION_GAIN * likeness) * np.array(chunk_weights)[self._chunks]
        self._weights: list[float] = weights.tolist()
        self._first_values: list[float] = (  # with nothing chosen
            np.bincount(owners, whole_weights[occurrences], count) * weights
        ).tolist()
        self._whole_weights: list[float] = whole_weights.tolist()
        is_shared = frequencies[occurrences] > 1
        self._own_values: list[float] = np.bincount(
            owners[~is_shared], whole_weights[occurrences[~is_shared]], count
        ).tolist()
        listed = occurrences[is_shared].tolist()
        ends = np.bincount(owners[is_shared], minlength=count).cumsum().tolist()
        self._words = [listed[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def choose(self, budget: int, frame_tokens: int) -> dict[int, list[Excerpt]]:
        """The spans chosen within a budget in tokens, by position of the chunk, in the order of the text.

        `frame_tokens` is what the first sentence of a chunk costs besides its own tokens.
        """
        tokens = self._tokens
        if sum(tokens) + frame_tokens * len(set(self._chunks)) <= budget:
            return self._spans(range(len(tokens)))
        words = self._words
        own_values = self._own_values
        sections = self._divided(budget)
        covered_sections = dict.fromkeys(sections, 1)
        costs = [sentence_tokens + frame_tokens for sentence_tokens in tokens]
        weights = [*self._weights]
        next_weights = [*self._whole_weights]  # of one more occurrence of a word
        weight_of = next_weights.__getitem__
        covered: Counter[int] = Counter()
        chosen: set[int] = set()

        def gain(number: int) -> float:
            """What a sentence adds, for each of its tokens."""
            value = sum(map(weight_of, words[number]), own_values[number]) * weights[number]
            return value / covered_sections[sections[number]] / (costs[number] + GAP_TOKENS)

        queue = [
            (-value / (cost + GAP_TOKENS), number)
            for number, (value, cost) in enumerate(zip(self._first_values, costs, strict=True))
        ]
        heapq.heapify(queue)
        budget_left = float(budget)
        while queue:
            last_gain, number = queue[0]
            if number in chosen or tokens[number] > budget_left:
                heapq.heappop(queue)
                continue
            gain_now = -gain(number)
            if gain_now > last_gain + 1e-12:  # other sentences were chosen meanwhile
                heapq.heapreplace(queue, (gain_now, number))
                continue
            heapq.heappop(queue)
            if costs[number] > budget_left:
                continue
            budget_left -= costs[number]
            chosen.add(number)
            covered_sections[sections[number]] += 1
            for word in words[number]:
                covered[word] += 1
                share = math.sqrt(covered[word] + 1) - math.sqrt(covered[word])
                next_weights[word] = self._whole_weights[word] * share
            chunk = self._sentences_of_chunk(number)
            if costs[number] > tokens[number]:
                costs[chunk.start : chunk.stop] = tokens[chunk.start : chunk.stop]
            for neighbor in (number - 1, number + 1):
                if neighbor in chunk and neighbor not in chosen:
                    weights[neighbor] = self._weights[neighbor] * (1 + NEIGHBOR_WEIGHT)
                    heapq.heappush(queue, (-gain(neighbor), neighbor))
        return self._spans(sorted(chosen))

    def _spans(self, numbers: Iterable[int]) -> dict[int, list[Excerpt]]:
        """The spans of some sentences, by position of the chunk."""
        spans: dict[int, list[Excerpt]] = {}
        for number in numbers:
            spans.setdefault(self._chunks[number], []).append(self._sentences[number].span)
        return spans

    def _sentences_of_chunk(self, number: int) -> range:
        """The numbers of the sentences that share the chunk of one."""
        chunk = self._chunks[number]
        return range(bisect_left(self._chunks, chunk), bisect_right(self._chunks, chunk))

    def _divided(self, budget: int) -> list[int]:
        """The section of each sentence: the text is divided into sections of equal length."""
        total = sum(self._tokens) or 1.0
        mean = total / max(len(self._tokens), 1)
        count = max(int(budget / (mean * SECTION_SENTENCES)), 1)
        sections: list[int] = []
        passed = 0.0
        for tokens in self._tokens:
            sections.append(min(int(count * passed / total), count - 1))
            passed += tokens
        return sections
