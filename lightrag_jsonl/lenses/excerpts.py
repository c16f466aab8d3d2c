"""Chooses the sentences that stand for whole texts: central ones, from the beginning to the end."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lightrag_jsonl.core.types import Chunk, Excerpt
from lightrag_jsonl.lenses.front_matter import is_label
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.storage.graph_index import distinct_rows, is_among
from lightrag_jsonl.storage.vector_index import Floats, Ids
from lightrag_jsonl.text.markup import LINK_TARGET, without_markup
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import TABLE_ROW, sentence_spans
from lightrag_jsonl.text.terms import FUNCTION_WORDS, search_terms, stem, terms_of_name

SentenceRows: TypeAlias = npt.NDArray[np.void]  # of `SENTENCE`

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


SENTENCE = np.dtype(
    [
        ("chunk", np.int64),  # its position
        ("start", np.int32),
        ("end", np.int32),
        ("tokens", np.float64),  # an estimate
        ("digest", np.int64),  # of the text
        ("is_list", np.bool_),  # of names: nothing is said of them
        ("words", np.int32),  # how many, with the names
    ]
)


class Sentences(Struct, frozen=True, kw_only=True):
    """Sentences of chunks as the rows of a table, in the order of the text.

    `words` are the names and words of one sentence after another: a name is the row id of its entity, one of
    `names`; another word is the hash of its stem, in 64 bits, so that no two words share one.
    """

    rows: SentenceRows
    words: Ids
    names: Ids


def split_sentences(chunks: Sequence[Chunk], names: Sequence[Mapping[int, str]]) -> Sentences:
    """The sentences of chunks, each text once, given the names of the entities in each chunk."""
    groups = [
        sentences_of(chunk.text, chunk.tokens, tuple(chunk_names.items()))
        for chunk, chunk_names in zip(chunks, names, strict=True)
    ]
    return different_sentences(groups)


def different_sentences(groups: Sequence[Sentences]) -> Sentences:
    """The sentences of several chunks, each text once, without lists of names."""
    rows = np.concatenate(
        [np.zeros(0, SENTENCE), *[group.rows for group in groups]], dtype=SENTENCE
    )
    rows["chunk"] = np.repeat(np.arange(len(groups)), [len(group.rows) for group in groups])
    is_taken = np.zeros(len(rows), np.bool_)
    is_taken[np.unique(rows["digest"], return_index=True)[1]] = True
    is_taken &= ~rows["is_list"]
    words = np.concatenate([np.zeros(0, np.int64), *[group.words for group in groups]])
    return Sentences(
        rows=rows[is_taken],
        words=words[np.repeat(is_taken, rows["words"])],
        names=np.concatenate([np.zeros(0, np.int64), *[group.names for group in groups]]),
    )


@lru_cache(2_000)  # chunks are read again under a filter; of long ones, 15 MB and the texts
def sentences_of(text: str, tokens: int, names: tuple[tuple[int, str], ...]) -> Sentences:
    """The sentences of a text that say something by themselves: no code, and rows of tables only where there
    is nothing else.
    """
    sentences: list[tuple[float, ...]] = []
    table_rows: list[tuple[float, ...]] = []
    words_by_start: dict[int, list[int]] = {}
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
        words_by_start[start] = [*[row for row, _ in named], *map(hash, sorted(stems))]
        among = table_rows if TABLE_ROW.match(sentence) else sentences
        among.append(
            (
                0,  # the only chunk here
                start,
                end,
                density * (end - start) + SENTENCE_JOINT,
                hash(text[start:end]),
                _lists_names(text[start:end], [name for _, name in named]),
                len(words_by_start[start]),
            )
        )
    rows = np.array(sentences or table_rows, SENTENCE)
    words = [words_by_start[start] for start in rows["start"].tolist()]
    return Sentences(
        rows=rows,
        words=column(chain.from_iterable(words)),
        names=column([row for row, _ in names]),
    )


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
        sentences: Sentences,
        *,
        question_terms: frozenset[str],
        chunk_weights: Sequence[float],
    ) -> None:
        rows = sentences.rows
        count = len(rows)
        self._rows = rows
        owners = np.repeat(np.arange(count), rows["words"])
        order = sentences.words.argsort()
        in_order = sentences.words[order]
        starts = np.flatnonzero(np.diff(in_order, prepend=in_order[:1] - 1))
        different_words = in_order[starts]
        frequencies = np.diff(starts, append=len(order))
        words = np.empty(len(order), np.int64)  # by their numbers among different words
        words[order] = np.repeat(np.arange(len(starts)), frequencies)
        rarity = np.log(1 + count / frequencies)
        self._word_weights: Floats = TERM_WEIGHT * np.log1p(frequencies) * rarity
        self._word_weights[is_among(different_words, distinct_rows(sentences.names))] = 1.0
        question_words = column(map(hash, sorted(question_terms)))
        in_question = different_words.searchsorted(
            question_words[is_among(question_words, different_words)]
        )
        shares = np.zeros(len(starts))  # of the question
        shares[in_question] = rarity[in_question] / (rarity[in_question].sum() or 1.0)
        likeness = np.bincount(owners, shares[words], count)
        of_chunks = np.array(chunk_weights)[rows["chunk"]]
        self._weights: Floats = (1 + QUESTION_GAIN * likeness) * of_chunks
        self._values: Floats = np.bincount(owners, self._word_weights[words], count).astype(
            np.float64
        )
        self._words = words
        self._word_ends: list[int] = rows["words"].cumsum().tolist()  # of each sentence
        self._owners: Ids = owners[order]  # the sentences with a word, one word after another
        self._owner_bounds: Ids = np.stack([starts, starts + frequencies])

    def choose(self, budget: int, frame_tokens: int) -> dict[int, list[Excerpt]]:
        """The spans chosen within a budget in tokens, by position of the chunk, in the order of the text.

        `frame_tokens` is what the first sentence of a chunk costs besides its own tokens.
        """
        tokens: Floats = self._rows["tokens"].copy()
        chunks = self._rows["chunk"].copy()
        if not len(tokens) or tokens.sum() + frame_tokens * len(np.unique(chunks)) <= budget:
            return _by_chunk(self._rows)
        chunk_starts, chunk_ends = _runs(chunks)
        section_starts, section_ends = _runs(_sections(tokens, budget))
        in_section = np.ones(len(tokens))  # chosen ones, and one
        costs = tokens + frame_tokens
        weights = self._weights.copy()
        factors = weights / (costs + GAP_TOKENS)
        values = self._values.copy()
        occurrences = np.zeros(len(self._word_weights), np.int64)  # in chosen sentences
        roots = np.sqrt(np.arange(len(tokens) + 2))
        losses: Floats = -np.diff(roots, n=2)  # of a word's weight with each occurrence
        # A gain is known from when the sentence was looked at last; it is looked at again as soon as no other
        # known gain is greater. So it is chosen late if it has become cheaper unseen.
        known_gains = values * factors
        is_chosen = np.zeros(len(tokens), np.bool_)
        budget_left = float(budget)
        while True:
            gains = values * factors
            estimates = np.minimum(gains, known_gains)
            best = int(estimates.argmax())
            if costs[best] > budget_left:  # those before the first that fits are out
                is_affordable = costs <= budget_left
                best = int(np.where(is_affordable, estimates, 0.0).argmax())
                known_gains[~is_affordable & (estimates > estimates[best])] = 0.0
            if not estimates[best] or costs[best] > budget_left:
                return _by_chunk(self._rows[is_chosen])
            np.copyto(known_gains, gains, where=known_gains > estimates[best])
            known_gains[best] = 0.0
            is_chosen[best] = True
            budget_left -= costs[best]
            words, counts, owners = self._words_with_owners(best)
            lost = self._word_weights[words] * losses[occurrences[words]]
            np.subtract.at(values, owners, lost.repeat(counts))
            occurrences[words] += 1
            section = slice(section_starts[best], section_ends[best])
            in_section[section] += 1
            chunk = slice(chunk_starts[best], chunk_ends[best])
            costs[chunk] = tokens[chunk]
            for neighbor in (best - 1, best + 1):
                if chunk.start <= neighbor < chunk.stop and not is_chosen[neighbor]:
                    weights[neighbor] = self._weights[neighbor] * (1 + NEIGHBOR_WEIGHT)
                    known_gains[neighbor] = np.inf
            for part in (section, chunk):
                factors[part] = weights[part] / in_section[part] / (costs[part] + GAP_TOKENS)

    def _words_with_owners(self, number: int) -> tuple[Ids, Ids, Ids]:
        """The words of a sentence, how many sentences have each, and these, one word after another."""
        end = self._word_ends[number]
        words = self._words[end - self._rows["words"][number] : end]
        first, last = self._owner_bounds[:, words]
        counts = last - first
        ends = counts.cumsum()
        shifts = first - (ends - counts)
        return words, counts, self._owners[np.arange(ends[-1]) + shifts.repeat(counts)]


def _sections(tokens: Floats, budget: int) -> Ids:
    """The section of each sentence: the text is divided into sections of equal length."""
    passed = tokens.cumsum()
    total = passed[-1]
    count = max(int(budget / (total / len(tokens) * SECTION_SENTENCES)), 1)
    sections: Ids = (count * (passed - tokens) / total).astype(np.int64)
    return np.minimum(sections, count - 1)


def _by_chunk(rows: SentenceRows) -> dict[int, list[Excerpt]]:
    """The spans of sentences, by position of the chunk."""
    spans: dict[int, list[Excerpt]] = {}
    for chunk, start, end in rows[["chunk", "start", "end"]].tolist():
        spans.setdefault(chunk, []).append((start, end))
    return spans


def _runs(ascending: Ids) -> tuple[list[int], list[int]]:
    """For each of the values, where the values equal to it begin, and where they end."""
    starts = ascending.searchsorted(ascending, "left")
    ends = ascending.searchsorted(ascending, "right")
    return starts.tolist(), ends.tolist()
