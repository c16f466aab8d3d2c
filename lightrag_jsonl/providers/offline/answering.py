"""Answers composed of the best sentences of the context, each with its citation."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from anyio import to_thread

from lightrag_jsonl.core.citation_markers import CITATION_MARKER
from lightrag_jsonl.core.cjk import FUNCTION_CHARACTERS, is_cjk, is_lone, simplified
from lightrag_jsonl.core.names import folded_text, name_key
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.types import Context, Keywords, Language
from lightrag_jsonl.providers.offline.extraction import find_keywords
from lightrag_jsonl.providers.offline.sentences import (
    HEADING,
    defines,
    quote,
    without_markup,
    written_in,
)
from lightrag_jsonl.providers.offline.words import FUNCTION_WORDS

_MOST = 5  # the most sentences of an answer
_LEAST = 2  # so many sentences are used even if they are weak, unless they share no term
_WEAK = 0.45  # times the best score: weaker sentences are left out
_RANK_DECAY = 0.08  # how fast scores fall with the rank of the chunk
_LONGEST = 400  # characters of one quoted sentence
_APART = 3  # so many characters may stand between those of a name
_MOST_DEFINING = 3  # sentences that answer what something is

_CLOSING: Mapping[Language, str] = {
    "en": "These sentences were selected from the sources; no model wrote them.",
    "zh": "以上句子选自资料原文，并非由模型撰写。",
}
_NOTHING: Mapping[Language, str] = {
    "en": "Nothing about this was found in the sources.",
    "zh": "资料中没有找到与此相关的内容。",
}


class ExtractiveAnswerer:
    """An `Answerer` without a model: quotes 2 to 5 sentences (fewer if fewer fit), each with `[n]`.

    Sentences are scored by the terms of the question and of its low-level keywords, by their rarity
    in the context and by the rank of the chunk. If no chunk contains any of the terms, descriptions
    are quoted; if nothing speaks of what the keywords name, nothing is.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    async def answer(self, question: str, context: Context) -> str:
        """The answer as text, in the question's language."""
        return await to_thread.run_sync(select_answer, question, context, self._language)


def select_answer(question: str, context: Context, language: Language) -> str:
    """The answer as text, in the question's language."""
    asked_in = written_in(question, language)
    question = context.keywords.question or question
    best = _best(question, context.keywords, context)
    if not best and context.keywords == Keywords():  # this mode finds none
        best = _best(question, find_keywords(question, (), language), context)
    if not best:
        return _NOTHING[asked_in]
    quoted = " ".join(f"{quote.text} [{quote.number}]" for quote in best)
    return f"{quoted}\n\n{_CLOSING[asked_in]}"


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence and the number it is cited by; `rank` is its item's rank, from 0."""

    number: int
    rank: int
    text: str
    terms: frozenset[str]
    heading: str = ""

    def defines(self, name: str) -> bool:
        """Whether it defines a name; under a heading with the name also by "This is a …"."""
        headed = name.casefold() in self.heading.casefold()
        is_said = defines(simplified(self.text), simplified(name))
        return is_said or (headed and _THIS_IS.match(self.text) is not None)

    def only_names(self, asked: frozenset[str]) -> bool:
        """Whether it is no sentence, but a heading that says nothing beyond what is asked."""
        words = {term for term in self.terms if not term.isdigit()}
        return words <= asked and self.text[-1:].isalnum()


_THIS_IS = re.compile(r"(?:This|It) is an? ")
_SUBJECT = re.compile(  # of "Who is …?" and the like
    r"\W*(?:who|what)(?:\s+(?:is|was|are|were)|['’]s)\s+(?:an?\s+|the\s+)?([^?]{1,60}?)\s*\??"
    r"|(?:请问)?(?:什么是|谁是|何为)([^？?]{1,20})[？?]?"
    r"|(?:请问)?([^，？?]{1,20}?)(?:究竟|到底)?(?:是|字)(?:谁|何人|什么(?:人|东西)?)[？?]?",
    re.IGNORECASE,
)


def _context_quotes(context: Context) -> tuple[list[_Quote], list[_Quote]]:
    entities = [(one.name, "", one.description) for one in context.entities]
    relations = [(f"{one.source} {one.target}", "", one.description) for one in context.relations]
    chunks = [("", context.documents.get(c.document_id, ""), c.text) for c in context.chunks]
    first, between = len(chunks) + 1, len(chunks) + len(entities) + 1
    return _quotes(chunks, 1), _quotes(relations, between) + _quotes(entities, first)


def _quotes(items: Iterable[tuple[str, str, str]], first: int) -> list[_Quote]:
    """The sentences of items (heading, title, text); a heading counts for the one under it."""
    quotes: dict[str, _Quote] = {}
    for rank, (heading, title, text) in enumerate(items):
        spans = sentence_spans(without_markup(text))
        for number, (start, end) in enumerate(spans, start=1):
            line = _on_one_line(text[start:end])
            if number < len(spans) and (HEADING.match(text, start) or line == title):
                heading += f" {line}"
                continue
            terms = _terms(f"{heading} {line}").union(filter(is_cjk, folded_text(line)))
            quotes.setdefault(line.casefold(), _Quote(first + rank, rank, line, terms, heading))
            heading = ""
    return list(quotes.values())


def _on_one_line(sentence: str) -> str:
    """The sentence without tags and footnote marks; nothing left in it looks like a citation."""
    return _NOTE.sub(_without_note, quote(sentence, _LONGEST)).strip()


_NOTE = re.compile(rf" ?{CITATION_MARKER.pattern}")
_WORD_JOINER = "\u2060"  # an invisible character, which keeps a bracket from being a citation


def _without_note(found: re.Match[str]) -> str:
    """Nothing for a footnote mark; years like 【2024】 and indices like [0] or a[1] stay."""
    numbers = [int(number) for number in re.findall(r"\d+", found["numbers"])]
    before = found.string[: found.start()][-1:]
    index = found[0][0] == "[" and before.isascii() and before.isalnum()
    if not index and all(0 < number < 1000 for number in numbers):
        return ""
    return found[0].replace(found["numbers"], _WORD_JOINER + found["numbers"])


def _best(question: str, keywords: Keywords, context: Context) -> list[_Quote]:
    low = keywords.low_level
    lone = frozenset(filter(is_lone, map(name_key, (*low, *keywords.high_level))))
    asked = _terms(question).union(lone, *map(_terms, low))
    named = [*map(frozenset, lone), *map(_terms, low)] if low else []
    chunks, descriptions = _context_quotes(context)
    if subject := _SUBJECT.fullmatch(simplified(question.strip())):
        name = next(filter(None, subject.groups()))
        every = {one.text: one for one in (*descriptions, *chunks)}.values()
        if defining := [one for one in every if one.defines(name)]:
            others = [one for one in chunks if one not in defining]
            wanted = asked.union(filter(is_cjk, name))  # 姓关名羽
            return [*_select(wanted, defining), *_select(asked, others)][:_MOST_DEFINING]
    characters = filter(is_cjk, folded_text(question))
    wanted = asked.union(char for char in characters if char not in FUNCTION_CHARACTERS)
    for quotes in (chunks, descriptions):
        if _concern(named, asked, quotes) and any(asked & quote.terms for quote in quotes):
            return _select(wanted, quotes)
    parts = frozenset(folded_text("".join(low)))
    held = [one for one in chunks if all(_holds(one.text, name) for name in low)]
    return _select(parts, held) if all(map(is_cjk, parts)) else []


def _holds(text: str, name: str) -> bool:
    """Whether the characters of a name stand in the text, close together, in any order."""
    text, wanted = folded_text(text), set(folded_text(name))
    return any(wanted <= set(text[at : at + len(name) + _APART]) for at in range(len(text)))


def _concern(
    named: Sequence[frozenset[str]], asked: frozenset[str], quotes: Sequence[_Quote]
) -> bool:
    """Whether a quote holds half of a thing that is named, if any is, or most of what is asked."""
    return not named or any(
        2 * len(asked & quote.terms) > len(asked)
        or any(2 * len(terms & quote.terms) >= len(terms) for terms in named)
        for quote in quotes
    )


def _select(asked: frozenset[str], quotes: Sequence[_Quote]) -> list[_Quote]:
    """The best quotes, best first; each is valued by the terms that earlier ones lack."""
    counts = Counter(term for quote in quotes for term in quote.terms & asked)
    rarity = {term: math.log(1 + len(quotes) / count) for term, count in counts.items()}
    found = [quote for quote in quotes if quote.terms & asked]
    left = [quote for quote in found if not quote.only_names(asked)] or found
    covered: Counter[str] = Counter()
    chosen, best = list[_Quote](), 0.0
    while left and len(chosen) < _MOST:
        scores = [_score(quote, asked, rarity, covered) for quote in left]
        at = min(range(len(left)), key=lambda i: (-scores[i], left[i].rank, i))
        best = best or scores[at]
        if len(chosen) >= _LEAST and scores[at] < _WEAK * best:
            break
        chosen.append(left.pop(at))
        covered.update(chosen[-1].terms & asked)
    return chosen


def _score(
    quote: _Quote, asked: frozenset[str], rarity: Mapping[str, float], covered: Counter[str]
) -> float:
    shared = sum(rarity[term] / (1 + covered[term]) for term in sorted(quote.terms & asked))
    return shared / (1 + _RANK_DECAY * quote.rank) / (1 + len(quote.text) / _LONGEST / 2)


_ENDING = re.compile(r"(?<=[a-z]{2})(?:ing|ies|ied|es|ed|[esy])$")  # "married" meets "marry"
_ASKING = "谁哪吗呢的了是"  # two of them ask (是谁), or join what is asked (的是)


@cache
def _function_terms() -> frozenset[str]:
    terms = {term for word in FUNCTION_WORDS for term in search_terms(word)}
    return frozenset(terms | {first + second for first in _ASKING for second in _ASKING})


def _terms(text: str) -> frozenset[str]:
    """The terms of a text, without their endings, except function words; all if there are no others."""
    terms = search_terms(text)
    content = [term for term in terms if term not in _function_terms()]
    return frozenset(_ENDING.sub("", term) for term in content or terms)
