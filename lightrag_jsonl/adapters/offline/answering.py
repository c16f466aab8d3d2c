"""Answers questions by quoting the best sentences of the context, each with its citation."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lightrag_jsonl.adapters.offline import chinese_words, english_words
from lightrag_jsonl.adapters.offline.keywords import find_keywords
from lightrag_jsonl.adapters.offline.phrases import TAG
from lightrag_jsonl.adapters.offline.reading import written_in
from lightrag_jsonl.markers import MARKER
from lightrag_jsonl.text import is_cjk, is_lone, search_terms, sentence_spans
from lightrag_jsonl.types import Context, Keywords, Language

_MOST = 5  # sentences in an answer
_LEAST = 2  # so many sentences are taken even if the second is weak, but shares a term
_WEAK = 0.45  # times the best score: sentences with less are left out
_RANK_DECAY = 0.08  # lowers a sentence's score with each place of its item in the ranking
_LONGEST = 400  # characters of one quoted sentence

_CLOSING: Mapping[Language, str] = {
    "en": "These sentences were selected from the sources; no model wrote them.",
    "zh": "以上句子选自资料原文，并非由模型撰写。",
}
_NOTHING: Mapping[Language, str] = {
    "en": "Nothing about this was found in the sources.",
    "zh": "资料中没有找到与此相关的内容。",
}


class ExtractiveAnswerer:
    """Answerer without a model: quotes 2 to 5 sentences (fewer if fewer match), each with `[n]`.

    A sentence is scored by the terms it shares with the question and with its low-level keywords
    (which resolve the pronouns of a follow-up question), weighted by rarity in the context, and by
    the rank of its chunk. If no chunk matches, descriptions of relations and entities are quoted.
    The last line says that no model wrote the answer.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    async def answer(self, question: str, context: Context) -> str:
        """The answer as text, in the question's language."""
        return await asyncio.to_thread(select_answer, question, context, language=self._language)


def select_answer(question: str, context: Context, *, language: Language) -> str:
    """The answer as text, in the question's language."""
    spoken = written_in(question, language)
    best = _best(question, context.keywords, context)
    if not best and context.keywords == Keywords():  # the mode extracts no keywords
        best = _best(question, find_keywords(question, language=language), context)
    if not best:
        return _NOTHING[spoken]
    quoted = " ".join(f"{quote.text} [{quote.number}]" for quote in best)
    return f"{quoted}\n\n{_CLOSING[spoken]}"


# ── quotes ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence and the number it is cited by; `rank` is the place of its item, from 0."""

    number: int
    rank: int
    text: str
    terms: frozenset[str]


def _chunk_quotes(context: Context) -> list[_Quote]:
    first = len(context.entities) + len(context.relations) + 1
    return _distinct(_quotes((("", chunk.text) for chunk in context.chunks), first))


def _fact_quotes(context: Context) -> list[_Quote]:
    relations = ((f"{one.source} {one.target}", one.description) for one in context.relations)
    entities = ((one.name, one.description) for one in context.entities)
    return _distinct([*_quotes(relations, len(context.entities) + 1), *_quotes(entities, 1)])


def _quotes(told: Iterable[tuple[str, str]], first: int) -> Iterator[_Quote]:
    """The sentences of items, given as (subject, text); items are numbered from `first`."""
    for rank, (about, text) in enumerate(told):
        for start, end in sentence_spans(text):
            line = _on_one_line(text[start:end])
            if len(line) > 2:
                yield _Quote(first + rank, rank, line, _terms(f"{about} {line}"))


_CODE_OR_MARK = re.compile(rf"`[^`]*`| ?{MARKER.pattern}")
_NOTE_NUMBERS = range(1, 1000)  # other numbers in brackets are indexes from 0, years and the like
_WORD_JOINER = "\u2060"  # of zero width


def _on_one_line(sentence: str) -> str:
    """The sentence on one line, without tags, footnote marks, or anything that reads as a citation."""
    line = " ".join(TAG.sub(" ", sentence).split())
    line = _CODE_OR_MARK.sub(_without_note, line).strip()
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
    return MARKER.sub(lambda mark: mark[0][0] + _WORD_JOINER + mark[0][1:], line)


def _without_note(found: re.Match[str]) -> str:
    """An empty text for a footnote mark; code, and other numbers in brackets, unchanged."""
    if found["numbers"] is None:
        return found[0]
    numbers = map(int, re.findall(r"\d+", found["numbers"]))
    return "" if all(number in _NOTE_NUMBERS for number in numbers) else found[0]


def _distinct(quotes: Iterable[_Quote]) -> list[_Quote]:
    """The quotes without repetitions (chunks overlap); of equal ones the best ranked."""
    kept: dict[str, _Quote] = {}
    for quote in quotes:
        kept.setdefault(quote.text.casefold(), quote)
    return list(kept.values())


def _with_characters(quotes: Sequence[_Quote], words: frozenset[str]) -> Sequence[_Quote]:
    """The quotes; a word all of whose characters occur in a quote is added to its terms."""
    if not words:
        return quotes
    return [
        replace(quote, terms=quote.terms.union(w for w in words if set(w) <= set(quote.text)))
        for quote in quotes
    ]


# ── selection ───────────────────────────────────────────────────────────────────


def _best(question: str, keywords: Keywords, context: Context) -> list[_Quote]:
    """The best quotes of the chunks, or else of the facts, or else by single characters of keywords."""
    low, high = keywords.low_level, keywords.high_level
    lone = frozenset(filter(is_lone, (*low, *high)))
    asked = _terms(question).union(lone, *map(_terms, low))
    chunks = _chunk_quotes(context)
    best = _select(asked, _with_characters(chunks, lone))
    if best := best or _select(asked, _with_characters(_fact_quotes(context), lone)):
        return best
    spelled = frozenset({"".join(low)} if low and all(map(is_cjk, "".join(low))) else ())
    return _select(spelled, _with_characters(chunks, spelled))


def _select(asked: frozenset[str], quotes: Sequence[_Quote]) -> list[_Quote]:
    """The best quotes, best first; a term counts less the more of the chosen quotes have it."""
    counts = Counter(term for quote in quotes for term in quote.terms & asked)
    rarity = {term: math.log(1 + len(quotes) / count) for term, count in counts.items()}
    left = [quote for quote in quotes if quote.terms & asked]
    said: Counter[str] = Counter()
    chosen: list[_Quote] = []
    best = 0.0
    while left and len(chosen) < _MOST:
        score, _, _, at = max(
            (_score(quote, asked, rarity, said), -quote.rank, -at, at)
            for at, quote in enumerate(left)
        )
        best = best or score
        if len(chosen) >= _LEAST and score < _WEAK * best:
            break
        quote = left.pop(at)
        chosen.append(quote)
        said.update(quote.terms & asked)
    return chosen


def _score(
    quote: _Quote, asked: frozenset[str], rarity: Mapping[str, float], said: Mapping[str, int]
) -> float:
    held = sum(rarity[term] / (1 + said.get(term, 0)) for term in sorted(quote.terms & asked))
    return held / (1 + _RANK_DECAY * quote.rank) / (1 + len(quote.text) / _LONGEST / 2)


def _terms(text: str) -> frozenset[str]:
    """The terms of a text without function and question words; all terms if there are no others."""
    terms = frozenset(map(_stem, search_terms(text)))
    return terms - _SILENT or terms


def _stem(term: str) -> str:
    """An English word without its commonest endings: "died" and "die" become equal."""
    if not term.isascii() or not term.isalpha():
        return term
    if short := _WITH_E.fullmatch(term):
        return short[1] + "e"
    for ending, stays, instead in _ENDINGS:
        if term.endswith(ending) and len(term) - len(ending) >= stays:
            return term[: -len(ending)] + instead
    return term.removesuffix("e") if len(term) > 4 else term


_WITH_E = re.compile(r"([^aeiou]?[aeiou][^aeiouwxy]|[^aeiou]i)(?:e[ds]?|ing)")  # live, use, die
_ENDINGS = (
    ("ing", 4, ""),
    ("ies", 2, "y"),
    ("ied", 2, "y"),
    ("es", 4, ""),
    ("ed", 3, ""),
    ("s", 3, ""),
)


_SILENT = frozenset(
    _stem(word.replace("'", "")) for word in english_words.STOP_WORDS | english_words.QUESTION_WORDS
).union(*map(search_terms, chinese_words.STOP_WORDS | chinese_words.QUESTION_WORDS))
