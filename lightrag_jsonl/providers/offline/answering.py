"""Answers composed of the best sentences of the context, each with its citation."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from anyio import to_thread

from lightrag_jsonl.core.answers import Context, Keywords
from lightrag_jsonl.core.cjk import FUNCTION_CHARACTERS, is_cjk, is_lone, simplified
from lightrag_jsonl.core.languages import FIXED_WORDS, Language
from lightrag_jsonl.core.names import folded_text, name_key
from lightrag_jsonl.core.question_scope import asks_about_everything
from lightrag_jsonl.providers.offline.evidence import AnswerEvidence
from lightrag_jsonl.providers.offline.keywords import offline_keywords
from lightrag_jsonl.providers.offline.overviews import overview_answer
from lightrag_jsonl.providers.offline.question import analyze_question
from lightrag_jsonl.providers.offline.question_parts import QuestionPart, question_parts
from lightrag_jsonl.providers.offline.quotes import (
    LONGEST_QUOTE,
    Quote,
    chunk_quotes,
    content_terms,
    description_quotes,
    terms_with_characters,
)
from lightrag_jsonl.providers.offline.sentences import written_in

_MOST_SENTENCES = 5  # of an answer
_CERTAIN_SENTENCES = 2  # are used even if they are weak, if they add something
_WEAK = 0.45  # times the best score: weaker sentences are left out
_WORTHLESS = 0.15  # times the best score: such a sentence is left out in any case
_ALIKE = 0.8  # a sentence without a new term must have so much of the first one's weight
_IMPLIED = 0.5  # the weight of a term that a sentence has by its pronoun only
_BRIDGE = 0.5  # the weight of a name from an earlier sentence, next to the question's terms
_RANK_DECAY = 0.08  # how fast scores fall with the rank of the chunk
_BEGINNING = 80  # characters of a passage that its first sentences have at least
_NAME_GAPS = 3  # so many characters may stand between those of a name
_NEAREST = 3  # sentences that are shown where none answers
_MOST_DEFINING = 3  # sentences of the answer to "What is …?"

_WHOLE_TEXT: Mapping[Language, str] = {
    "en": "No single sentence answers this question about the whole text. The passages found begin "
    "as follows:",
    "zh": "这个问题问的是全文，没有哪一句能直接回答。检索到的段落开头如下：",
}
_NO_SENTENCE: Mapping[Language, str] = {
    "en": f"{FIXED_WORDS['en'].no_sentence} The nearest ones in the passages found:",
    "zh": f"{FIXED_WORDS['zh'].no_sentence}检索到的段落中最接近的是：",
}
_NOT_ANSWERED: Mapping[Language, str] = {  # before a part of a question
    "en": "No sentence clearly answers this part: ",
    "zh": "没有哪一句能明确回答其中一问：",
}
_COUNTS: Mapping[str, int] = {
    **{"a": 1, "single": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6},
    **{"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6},
}
_COUNT_WORD = r"a|single|one|two|three|four|five|six|\d{1,3}"
_SENTENCE_COUNT = re.compile(  # the last number counts: "two or three short sentences"
    rf"\b(?P<number>{_COUNT_WORD})(?:\s+(?!(?:{_COUNT_WORD})\b)\w+){{0,2}}\s+sentences?\b",
    re.IGNORECASE,
)
_CHINESE_SENTENCE_COUNT = re.compile(
    r"(?P<number>[一二两三四五六]|\d{1,3})\s*个?[^，。；\s\d一二两三四五六]{0,4}?句"
)
_DEFINED_SUBJECT = re.compile(  # of "Who is …?" and the like
    r"\W*(?:who|what)(?:\s+(?:is|was|are|were)|['’]s)\s+(?:an?\s+|the\s+)?([^?]{1,60}?)\s*\??"
    r"|(?:请问)?(?:什么是|谁是|何为)([^？?]{1,20})[？?]?"
    r"|(?:请问)?([^，？?]{1,20}?)(?:究竟|到底)?(?:是|字)(?:谁|何人|什么(?:人|东西)?)[？?]?",
    re.IGNORECASE,
)


class ExtractiveAnswerer:
    """An `Answerer` without a model: quotes up to 5 sentences, or the number in the context's
    `response_type`, each with `[n]`.

    Sentences are scored by the terms of the question and of the low-level keywords, by the rarity of
    the terms in the context and by the rank of the chunk. The names in a chosen sentence count for
    the next one, which must add a term of the question. If no chunk contains any of the terms,
    descriptions are quoted; if nothing speaks of the keywords, the answer is that nothing was found,
    or, to a question about the whole text ("Summarize the book."), the beginnings of the passages. From
    an overview, a sentence of each section of the text is quoted.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    async def answer(self, question: str, context: Context) -> str:
        """The answer as text, in the question's language."""
        return await to_thread.run_sync(select_answer, question, context, self._language)

    def notice(self, question: str) -> str:
        """Who wrote the answers, in the question's language."""
        return FIXED_WORDS[written_in(question, self._language)].selected


def select_answer(question: str, context: Context, language: Language) -> str:
    """The answer as text, in the question's language."""
    if context.listing is not None:
        return ""  # the complete list is appended to the answer
    question_language = written_in(question, language)
    question = context.keywords.question or question
    limit = sentence_limit(context.response_type)
    if overview := overview_answer(question, context, question_language, limit):
        return overview
    quotes = _best_quotes(question, context.keywords, context)
    if not quotes and context.keywords == Keywords():  # a mode without keywords
        quotes = _best_quotes(question, offline_keywords(question, (), language), context)
    is_about_everything = asks_about_everything(question)
    if is_about_everything:  # "the main street" tells nothing of the main themes
        terms = content_terms(question)
        quotes = [quote for quote in quotes if 2 * len(terms & quote.terms) > len(terms)]
    answering, unanswered = _answers_by_part(question, quotes, context, language)
    if answering:
        answer = " ".join(f"{quote.text} [{quote.number}]" for quote in answering[:limit])
        for part in unanswered:
            answer += f"\n\n{_NOT_ANSWERED[question_language]}{part}"
    elif quotes:
        nearest = [f"- {quote.text} [{quote.number}]" for quote in quotes[: limit or _NEAREST]]
        answer = "\n".join([f"{_NO_SENTENCE[question_language]}\n", *nearest])
    elif context.chunks and is_about_everything:
        beginnings = _beginnings(context, language)[: limit or _MOST_SENTENCES]
        answer = "\n".join([f"{_WHOLE_TEXT[question_language]}\n", *beginnings])
    else:
        return FIXED_WORDS[question_language].nothing_found
    return answer


def is_abstention(answer: str) -> bool:
    """Whether an answer of the rules says that no sentence of the sources answers the question."""
    nothing_found = [words.nothing_found for words in FIXED_WORDS.values()]
    openings = (*nothing_found, *_NO_SENTENCE.values(), *_WHOLE_TEXT.values())
    return answer.startswith(openings)


def _answers_by_part(
    question: str, quotes: Sequence[Quote], context: Context, language: Language
) -> tuple[list[Quote], list[str]]:
    """The quotes that answer a question, and of a question in several parts those without an answer."""
    parts = question_parts(question, language)
    if len(parts) == 1:
        return _answering_quotes(question, quotes, context, language), []
    answering: list[Quote] = []
    open_parts: list[QuestionPart] = []
    for part in parts:
        keywords = offline_keywords(part.question, (), language)
        part_quotes = _best_quotes(part.question, keywords, context)
        part_answers = _answering_quotes(part.question, part_quotes, context, language)
        subject = content_terms(part.subject)
        part_answers = [quote for quote in part_answers if subject <= quote.terms | quote.implied]
        answering += [quote for quote in part_answers if quote not in answering]
        if not part_answers:
            open_parts.append(part)
    unanswered = [
        part.words for part in open_parts if not _may_be_answered(part, answering, language)
    ]
    return answering, unanswered


def _may_be_answered(part: QuestionPart, answering: Sequence[Quote], language: Language) -> bool:
    """Whether a sentence with most words of a part may name who or what is asked for: not every name
    is known to the rules, but every date and number is.
    """
    kind = analyze_question(part.question, language).kind
    if kind not in (None, "person", "name"):
        return False
    terms = content_terms(part.question)
    return any(2 * len(terms & quote.terms) >= len(terms) for quote in answering)


def _answering_quotes(
    question: str, quotes: Sequence[Quote], context: Context, language: Language
) -> list[Quote]:
    """Those of the quotes that answer the question; all definitions of what is asked for."""
    if not quotes:
        return []
    name = _defined_name(question)
    if name and (quotes[0].defines(name) or quotes[0].opens_entry(name)):
        pattern = analyze_question(question, language).answer_pattern  # of a style name (字)
        matching = [
            quote for quote in quotes if pattern is None or pattern.search(simplified(quote.text))
        ]
        if matching:
            return matching
    candidates = chunk_quotes(context) or description_quotes(context)
    return AnswerEvidence(question, candidates, language).answering(quotes)


def _beginnings(context: Context, language: Language) -> list[str]:
    """A line with the first sentences of each chunk and the citation, in the order of rank."""
    texts_by_number: dict[int, str] = {}
    for quote in chunk_quotes(context):
        text = texts_by_number.get(quote.number, "")
        if len(text) < _BEGINNING:
            space = "" if written_in(quote.text, language) == "zh" else " "
            texts_by_number[quote.number] = f"{text}{space}{quote.text}".strip()
    return [f"- {text} [{number}]" for number, text in texts_by_number.items()]


def sentence_limit(response_type: str) -> int | None:
    """The number of sentences in a form such as "One sentence" or "两三句话", if there is a number."""
    count = _SENTENCE_COUNT.search(response_type) or _CHINESE_SENTENCE_COUNT.search(response_type)
    if count is None:
        return None
    number = count["number"].casefold()
    return max(_COUNTS.get(number) or int(number), 1)


def _best_quotes(question: str, keywords: Keywords, context: Context) -> list[Quote]:
    """The quotes of an answer: definitions, or else chunks, descriptions, or parts of names."""
    chunks = chunk_quotes(context)
    descriptions = description_quotes(context)
    lone = [name_key(word) for word in (*keywords.low_level, *keywords.high_level)]
    lone_characters = frozenset(filter(is_lone, lone))
    keyword_terms = [content_terms(word) for word in keywords.low_level]
    question_terms = content_terms(question).union(lone_characters, *keyword_terms)
    name = _defined_name(question)
    if name and (quotes := _defining_quotes(name, question_terms, chunks, descriptions)):
        return quotes
    characters = filter(is_cjk, folded_text(question))
    terms = question_terms.union(char for char in characters if char not in FUNCTION_CHARACTERS)
    named_terms = [frozenset(character) for character in lone_characters] + keyword_terms
    if not keywords.low_level:
        named_terms = []
    for quotes in (chunks, descriptions):
        has_term = any(question_terms & quote.terms for quote in quotes)
        if has_term and _concern(named_terms, question_terms, quotes):
            return _select_quotes(terms, quotes, [entity.name for entity in context.entities])
    return _quotes_with_names(keywords.low_level, chunks)


def _defined_name(question: str) -> str:
    """The name in "Who is …?", 什么是… and the like, or ""."""
    subject = _DEFINED_SUBJECT.fullmatch(simplified(question.strip()))
    return next(filter(None, subject.groups())) if subject else ""


def _defining_quotes(
    name: str, question_terms: frozenset[str], chunks: list[Quote], descriptions: list[Quote]
) -> list[Quote]:
    """Quotes with a definition of a name, then the best of the chunks; none without a definition."""
    quotes_by_text = {quote.text: quote for quote in (*descriptions, *chunks)}
    defining = [quote for quote in quotes_by_text.values() if quote.defines(name)]
    defining = defining or [quote for quote in chunks if quote.opens_entry(name)]
    if not defining:
        return []
    remaining = [quote for quote in chunks if quote not in defining and quote.is_about(name)]
    terms = question_terms.union(filter(is_cjk, name))  # 姓关名羽
    selected = [*_select_quotes(terms, defining), *_select_quotes(question_terms, remaining)]
    return selected[:_MOST_DEFINING]


def _quotes_with_names(names: Sequence[str], quotes: Sequence[Quote]) -> list[Quote]:
    """Quotes with the characters of all Chinese names, close together, in any order."""
    characters = frozenset(folded_text("".join(names)))
    if not all(map(is_cjk, characters)):
        return []
    with_names = [
        quote for quote in quotes if all(_has_characters(quote.text, name) for name in names)
    ]
    return _select_quotes(characters, with_names)


def _has_characters(text: str, name: str) -> bool:
    text = folded_text(text)
    characters = set(folded_text(name))
    length = len(name) + _NAME_GAPS
    return any(characters <= set(text[at : at + length]) for at in range(len(text)))


def _concern(
    named_terms: Sequence[frozenset[str]],
    question_terms: frozenset[str],
    quotes: Sequence[Quote],
) -> bool:
    """Whether a quote has half of a named thing, if any is named, or most terms of the question."""
    if not named_terms:
        return True
    for quote in quotes:
        if 2 * len(question_terms & quote.terms) > len(question_terms):
            return True
        if any(2 * len(terms & quote.terms) >= len(terms) for terms in named_terms):
            return True
    return False


def _select_quotes(
    terms: frozenset[str], quotes: Sequence[Quote], names: Sequence[str] = ()
) -> list[Quote]:
    """The best quotes, best first; a term counts less after each quote with the term.

    The `names` in a chosen quote are looked for in the next one: for a question about "the city
    where he was born", the quote that names the city leads to quotes about the city.
    """
    rarity = _rarity(quotes)
    related = [quote for quote in quotes if quote.terms & terms]
    candidates = [quote for quote in related if not quote.only_names(terms)] or related
    covered: Counter[str] = Counter()
    bridges: frozenset[str] = frozenset()
    chosen: list[Quote] = []
    best_score = 0.0
    enough_weight = 0.0
    while candidates and len(chosen) < _MOST_SENTENCES:
        weights = {term: _BRIDGE * rarity.get(term, 0.0) for term in bridges}
        weights |= {term: rarity.get(term, 0.0) / (1 + covered[term]) for term in terms}
        quote, score = _best_candidate(candidates, weights)
        candidates.remove(quote)
        least_share = _WORTHLESS if len(chosen) < _CERTAIN_SENTENCES else _WEAK
        if score < best_score * least_share:
            break
        weight = sum(rarity[term] for term in sorted(quote.terms & terms))
        new_terms = quote.terms & terms - covered.keys()
        if weight < enough_weight and not any(map(_has_meaning, new_terms)):
            continue
        chosen.append(quote)
        best_score = best_score or score
        enough_weight = enough_weight or _ALIKE * weight
        covered.update(terms & terms_with_characters(quote.text))
        quoted_names = [name for name in names if name in quote.text]
        bridges = bridges.union(*map(terms_with_characters, quoted_names))
    return chosen


def _best_candidate(
    candidates: Sequence[Quote], weights: Mapping[str, float]
) -> tuple[Quote, float]:
    """The quote with the highest score, and the score; of equal ones the first by rank."""
    scores = [_score(quote, weights) for quote in candidates]
    best = min(range(len(candidates)), key=lambda at: (-scores[at], candidates[at].rank, at))
    return candidates[best], scores[best]


def _has_meaning(term: str) -> bool:
    """Whether a term has a meaning alone: no lone Chinese character, and no pair with 在 or 的."""
    return not is_lone(term) and not set(term) & set(FUNCTION_CHARACTERS)


def _rarity(quotes: Sequence[Quote]) -> dict[str, float]:
    """How rare each term is among the quotes."""
    counts = Counter(term for quote in quotes for term in quote.terms)
    return {term: math.log(1 + len(quotes) / count) for term, count in counts.items()}


def _score(quote: Quote, weights: Mapping[str, float]) -> float:
    """The weight of the quote's terms, less for a low rank and a long text."""
    weight = sum(weights[term] for term in sorted(quote.terms & weights.keys()))
    implied = sum(weights[term] for term in sorted(quote.implied & weights.keys()))
    by_rank = (weight + _IMPLIED * implied) / (1 + _RANK_DECAY * quote.rank)
    return by_rank / (1 + len(quote.text) / LONGEST_QUOTE / 2)
