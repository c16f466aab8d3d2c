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
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.types import Context, Keywords, Language
from lightrag_jsonl.providers.offline.extraction import find_keywords
from lightrag_jsonl.providers.offline.sentences import (
    HEADING,
    defines,
    quote,
    without_markup,
    written_in,
)

_MOST = 5  # the most sentences of an answer
_LEAST = 2  # so many sentences are used even if they are weak, if they add something
_FAINT = 0.15  # times the best score: such a sentence is left out in any case
_ALIKE = 0.8  # a sentence that adds nothing must say so much of what the first one says
_IMPLIED = 0.5  # the weight of a term that a sentence has by its pronoun only
_BRIDGE = 0.5  # the weight of a name that an earlier sentence brought in, next to what is asked
_EARLY = 10  # a pronoun among so many first words may be the sentence's subject
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
    """An `Answerer` without a model: quotes up to 5 sentences, or as many as the context's
    `response_type` asks for, each with `[n]`.

    Sentences are scored by the terms of the question and of its low-level keywords, by their rarity
    in the context and by the rank of the chunk. The names in a chosen sentence count for the next
    one, which must say something of the question that is not said yet. If no chunk contains any of
    the terms, descriptions are quoted; if nothing speaks of what the keywords name, nothing is.
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
    limit = sentence_limit(context.response_type)
    quoted = " ".join(f"{quote.text} [{quote.number}]" for quote in best[:limit])
    return quoted if limit else f"{quoted}\n\n{_CLOSING[asked_in]}"


def sentence_limit(response_type: str) -> int | None:
    """The most sentences that a form such as "One sentence" or "两三句话" allows; None if it names none."""
    found = _SENTENCES.search(response_type) or _SENTENCES_CHINESE.search(response_type)
    if found is None:
        return None
    number = found["number"].casefold()
    return max(_COUNTS.get(number) or int(number), 1)


_COUNTS: Mapping[str, int] = {
    **{"a": 1, "single": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6},
    **{"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6},
}
_COUNT_WORD = r"a|single|one|two|three|four|five|six|\d{1,3}"
_SENTENCES = re.compile(  # the last number counts: "two or three short sentences"
    rf"\b(?P<number>{_COUNT_WORD})(?:\s+(?!(?:{_COUNT_WORD})\b)\w+){{0,2}}\s+sentences?\b",
    re.IGNORECASE,
)
_SENTENCES_CHINESE = re.compile(
    r"(?P<number>[一二两三四五六]|\d{1,3})\s*个?[^，。；\s\d一二两三四五六]{0,4}?句"
)


@dataclass(frozen=True, slots=True)
class _Quote:
    """A sentence and the number it is cited by; `rank` is its item's rank, from 0."""

    number: int
    rank: int
    text: str
    terms: frozenset[str]
    heading: str = ""
    implied: frozenset[str] = frozenset()  # terms of what its pronoun stands for

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
            subject = title if _refers_back(line) else ""
            terms = _terms(heading) | _said(line) if heading else _said(line)
            found = _Quote(
                number=first + rank,
                rank=rank,
                text=line,
                terms=terms,
                heading=heading,
                implied=_said(subject) - terms if subject else frozenset(),
            )
            quotes.setdefault(line.casefold(), found)
            heading = ""
    return list(quotes.values())


def _refers_back(sentence: str) -> bool:
    """Whether a pronoun may be its subject, which is then what the text is about: its title."""
    words = sentence.split(maxsplit=_EARLY)[:_EARLY]
    return any(_PRONOUN.fullmatch(word) for word in words) or sentence[:1] in "他她它"


_PRONOUN = re.compile(r"(?:he|she|they|it|his|her|their|its)\W?", re.IGNORECASE)


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
            return _select(wanted, quotes, [entity.name for entity in context.entities])
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


def _select(
    asked: frozenset[str], quotes: Sequence[_Quote], names: Sequence[str] = ()
) -> list[_Quote]:
    """The best quotes, best first; each is valued by the terms that earlier ones lack.

    The `names` in a chosen quote are looked for in the next one: where "the city where he was born"
    is asked about, the quote that says which city this is leads to those about it.
    """
    rarity = _rarity(quotes)
    related = [quote for quote in quotes if quote.terms & asked]
    left = [quote for quote in related if not quote.only_names(asked)] or related
    covered: Counter[str] = Counter()
    bridges: frozenset[str] = frozenset()
    chosen: list[_Quote] = []
    best = enough = 0.0
    while left and len(chosen) < _MOST:
        weights = {term: _BRIDGE * rarity.get(term, 0.0) for term in bridges}
        weights |= {term: rarity.get(term, 0.0) / (1 + covered[term]) for term in asked}
        scores = [_score(quote, weights) for quote in left]
        at = min(range(len(left)), key=lambda i: (-scores[i], left[i].rank, i))
        quote = left.pop(at)
        if scores[at] < best * (_FAINT if len(chosen) < _LEAST else _WEAK):
            break
        said = sum(rarity[term] for term in sorted(quote.terms & asked))
        new = quote.terms & asked - covered.keys()
        if said < enough and not any(_has_meaning(term) for term in new):
            continue
        chosen.append(quote)
        best = best or scores[at]
        enough = enough or _ALIKE * said
        covered.update(asked & _said(quote.text))
        bridges = bridges.union(*(_said(name) for name in names if name in quote.text))
    return chosen


def _has_meaning(term: str) -> bool:
    """Whether a term says something by itself: no lone Chinese character, and no pair with 在 or 的."""
    return not is_lone(term) and not set(term) & set(FUNCTION_CHARACTERS)


def _said(text: str) -> frozenset[str]:
    """The terms of a text, and its Chinese characters."""
    return _terms(text).union(filter(is_cjk, folded_text(text)))


def _rarity(quotes: Sequence[_Quote]) -> dict[str, float]:
    """How rare each term is among the quotes."""
    counts = Counter(term for quote in quotes for term in quote.terms)
    return {term: math.log(1 + len(quotes) / count) for term, count in counts.items()}


def _score(quote: _Quote, weights: Mapping[str, float]) -> float:
    shared = sum(weights[term] for term in sorted(quote.terms & weights.keys()))
    shared += _IMPLIED * sum(weights[term] for term in sorted(quote.implied & weights.keys()))
    return shared / (1 + _RANK_DECAY * quote.rank) / (1 + len(quote.text) / _LONGEST / 2)


_ASKING = "谁哪吗呢的了是"  # two of them ask (是谁), or join what is asked (的是)


@cache
def _function_terms() -> frozenset[str]:
    terms = {term for word in FUNCTION_WORDS for term in search_terms(word)}
    return frozenset(terms | {first + second for first in _ASKING for second in _ASKING})


def _terms(text: str) -> frozenset[str]:
    """The terms of a text, without their endings, except function words; all if there are no others."""
    terms = search_terms(text)
    content = [term for term in terms if term not in _function_terms()]
    return frozenset(stem(term) for term in content or terms)
