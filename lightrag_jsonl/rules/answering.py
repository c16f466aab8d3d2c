"""Answers without a model: the sentences nearest to the question, each cited."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain

import numpy as np

from lightrag_jsonl.core.aio import in_daemon_thread
from lightrag_jsonl.core.answers import Context, PlacedQuote, QuotedAnswer
from lightrag_jsonl.core.headings import Outline
from lightrag_jsonl.core.languages import FIXED_WORDS, FixedWords, Language, written_in
from lightrag_jsonl.core.protocols import Embedder
from lightrag_jsonl.core.types import HEADING_SEPARATOR, Page
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.rules.asked_parts import quotes_of_parts, text_of_parts, without_parts
from lightrag_jsonl.rules.dated_quotes import are_of_dates, date_terms
from lightrag_jsonl.rules.definitions import defining_first
from lightrag_jsonl.rules.keywords import names_in_question
from lightrag_jsonl.rules.overviews import overview_outline, overview_quotes
from lightrag_jsonl.rules.quotes import (
    Quote,
    citable_line,
    content_terms,
    context_quotes,
    led_line,
    terms_with_characters,
)
from lightrag_jsonl.text.cjk import FUNCTION_CHARACTERS, has_cjk, is_cjk, is_lone
from lightrag_jsonl.text.dates import days_and_months
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.numbers import NumberedPart, numbered_parts
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.question_kinds import (
    asks_about_everything,
    asks_for_list,
    content_words,
    is_of_any_text,
)

NEAREST_SENTENCES = 3  # sentences of an answer
MOST_EMBEDDED = 40  # sentences of the best passages, where none has a word of the question
# Not tuned: from half to twice as much, answers of SQuAD, DRCD and CMRC 2018 hold as many of the labels.
SETTING_WEIGHT = 0.5  # of a term that stands only in the headings above a sentence
CHARACTER_WEIGHT = 0.5  # of a Chinese character beside the pairs of characters
RANK_DECAY = 0.08  # how fast scores fall with the rank of the passage

_COUNTS: Mapping[str, int] = {
    **{"a": 1, "single": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6},
    **{"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6},
}
_COUNT_WORD = r"a|single|one|two|three|four|five|six|\d{1,3}"
_NUMBER_WITH_POINTS = pattern_of(r"(?<![\d.])\d+(?:\.\d+)+(?!\.?\d)")
_SENTENCE_COUNT = pattern_of(  # the last number counts: "two or three short sentences"
    rf"\b(?P<number>{_COUNT_WORD})(?:\s+(?!(?:{_COUNT_WORD})\b)\w+){{0,2}}\s+sentences?\b",
    re.IGNORECASE,
)
_CHINESE_SENTENCE_COUNT = pattern_of(
    r"(?P<number>[一二两三四五六]|\d{1,3})\s*个?[^，。；\s\d一二两三四五六]{0,4}?句"
)


class ExtractiveAnswerer:
    """An `Answerer` without a model: the three sentences of the passages nearest to the question,
    or the number in the context's `response_type`, each with `[n]`.

    Sentences are scored by the terms of the question and of the low-level keywords, by the rarity
    of the terms in the context and by the rank of the passage; if the question has a single name,
    sentences with the name come first. Whether a sentence answers the question is left open.
    Without a sentence with words or the name of the question, the answer says so; or, to a question
    about the whole text, gives the beginnings of the passages. From an overview, a sentence of each
    section is quoted.

    With an `embedder` that does more than count words, a question without a name still gets the
    sentences nearest by meaning ("rent", "lease"), and the answer says so.
    """

    def __init__(self, language: Language = "en", embedder: Embedder | None = None) -> None:
        self._language: Language = language
        has_meaning = embedder is not None and not getattr(embedder, "lexical", False)
        self._embedder = embedder if has_meaning else None

    async def answer(self, question: str, context: Context) -> str:
        """The answer as text, in the question's language."""
        return (await self.quoted_answer(question, context)).text

    async def quoted_answer(self, question: str, context: Context) -> QuotedAnswer:
        """The answer, and the place of each quote in the order of the text."""
        call = partial(select_answer, question, context, self._language)
        answer = await in_daemon_thread(call)
        if answer.quotes or self._embedder is None or context.listing is not None:
            return answer
        similar_quotes = await self._similar_quotes(question, context, self._embedder)
        if not similar_quotes:
            return answer
        words = FIXED_WORDS[written_in(question, self._language)]
        notes = _moment_notes(context, words)
        return _quoted(similar_quotes, words.nearest_by_meaning, notes, context)

    async def _similar_quotes(
        self, question: str, context: Context, embedder: Embedder
    ) -> list[Quote]:
        """The sentences of the best passages nearest to the question by vector, the nearest first;
        empty if the question has names, and no sentence has a name of the question.
        """
        question = context.keywords.question or question
        quotes = context_quotes(context)[:MOST_EMBEDDED]
        if not quotes or names_in_question(question, self._language):
            return []
        question_vectors = await embed_texts(embedder, [question], "query")
        vectors = await embed_texts(embedder, [quote.line for quote in quotes], "passage")
        cosines = np.einsum("ij,j->i", vectors, question_vectors[0])
        ranked = _by_score(list(zip(quotes, cosines.tolist(), strict=True)))
        return ranked[: sentence_limit(context.response_type) or NEAREST_SENTENCES]

    def notice(self, question: str) -> str:
        """A notice that no model wrote the answers, in the question's language."""
        return FIXED_WORDS[written_in(question, self._language)].selected


def select_answer(question: str, context: Context, language: Language) -> QuotedAnswer:
    """The answer in the question's language, with the places of the quotes."""
    if context.listing is not None:
        return QuotedAnswer("")  # the list is appended to the answer
    question_language = written_in(question, language)
    words = FIXED_WORDS[question_language]
    question = context.keywords.question or question
    limit = sentence_limit(context.response_type)
    notes = _moment_notes(context, words)
    if quotes := overview_quotes(question, context, limit):
        return _quoted(quotes, overview_outline(context, question_language), notes, context)
    quotes = defining_first(question, nearest_quotes(question, context, language))
    if quotes := quotes[: limit or NEAREST_SENTENCES]:
        notes = [*_missing_words_note(question, context, quotes, language), *notes]
        if asks_for_list(question, amounts=False) and not context.has_records:
            notes.append(words.lists_need_records)
        return _quoted(quotes, words.nearest_sentences, notes, context)
    if asks_about_everything(question) and (quotes := _beginnings(context)):
        quotes = quotes[: limit or NEAREST_SENTENCES]
        return _quoted(quotes, words.beginnings, notes, context)
    nothing_found = _nothing_found(question, language, words, filtered=bool(context.where))
    return QuotedAnswer("\n\n".join([nothing_found, *notes]))


def _quoted(
    quotes: Sequence[Quote], opening: str, notes: Sequence[str], context: Context
) -> QuotedAnswer:
    """The answer with quotes: a list after the opening, or text if `response_type` has a number."""
    if sentence_limit(context.response_type):
        text = " ".join([f"{quote.line} [{quote.number}]" for quote in quotes])
    else:
        lines = [
            f"- {line} [{quote.number}]"
            for quote, line in zip(quotes, _lines_under_headings(quotes, context), strict=True)
        ]
        text = "\n\n".join([opening, "\n".join(lines), *notes])
    places = [PlacedQuote(quote.chunk_id, quote.start, quote.end) for quote in quotes]
    return QuotedAnswer(text, tuple(places))


def _lines_under_headings(quotes: Sequence[Quote], context: Context) -> Iterator[str]:
    """The lines of quotes, each behind those of its headings that another quote of the same passage does not have:
    only the headings may tell which of two motions was lost.
    """
    paths = [_headings_above(quote, context) for quote in quotes]
    for quote, path in zip(quotes, paths, strict=True):
        paths_of_passage = [
            headings
            for own_quote, headings in zip(quotes, paths, strict=True)
            if own_quote.number == quote.number
        ]
        levels = [len({*level}) == 1 for level in zip(*paths_of_passage, strict=False)]
        first_own = [*levels, False].index(False)
        own_headings = HEADING_SEPARATOR.join(path[first_own:])
        is_led = quote.lead and own_headings.endswith(quote.lead.rstrip(":："))
        line = quote.text if is_led else quote.line
        yield led_line(own_headings, line) if own_headings else quote.line


def _headings_above(quote: Quote, context: Context) -> list[str]:
    """The headings above a quote, the outermost first, without the title of the document."""
    chunk = context.chunks[quote.rank]
    pages = [Page(chunk.document_id, 1, chunk.text)]
    path = Outline(pages).path_at(1, quote.start - chunk.start) or chunk.heading
    title = context.documents.get(chunk.document_id)
    headings = [heading for heading in path.split(HEADING_SEPARATOR) if heading != title]
    return [citable_line(heading).rstrip(":：") for heading in headings]


def nearest_quotes(question: str, context: Context, language: Language) -> list[Quote]:
    """The sentences of the passages with words of the question, the nearest first; empty if the
    question has names, and no sentence has half of the words of a name; also if the question has a
    numbered part, and no passage has the part.
    """
    quotes = context_quotes(context)
    parts = numbered_parts(question)
    inside, naming = quotes_of_parts(quotes, parts) if parts else (quotes, [])
    quotes = [*inside, *naming]
    names = names_in_question(without_parts(question, parts), language)
    spellings_by_name = [_names_of_bearer(name, context) for name in names]
    if names and not any(map(partial(_is_held, quotes), spellings_by_name)):
        return []
    weights = _term_weights(question, context, quotes)
    if parts:
        titles = {*context.documents.values()}
        return _quotes_of_asked_text(question, parts, titles, (inside, naming), weights)
    own_names = spellings_by_name[0] if len(names) == 1 else []
    of_dates = are_of_dates(quotes, context, days_and_months(question))
    # Where all have the name or are of the date, its words tell nothing.
    known_terms = frozenset[str]().union(*map(terms_with_characters, own_names))
    if any(of_dates):
        known_terms |= date_terms(question)
    other_weights = {term: weight for term, weight in weights.items() if term not in known_terms}
    groups = defaultdict[int, list[tuple[Quote, float]]](list)
    for quote, is_of_date in zip(quotes, of_dates, strict=True):
        if score := _score(quote, weights):
            has_name = any(map(quote.has_name, own_names))
            precedence = 2 * is_of_date + has_name  # what the name did on other days is no answer
            if precedence:
                score = _score(quote, other_weights)
            groups[precedence].append((quote, score))
    ranked = [quote for level in sorted(groups, reverse=True) for quote in _by_score(groups[level])]
    passages = {quote.number for level, scored in groups.items() if level for quote, _ in scored}
    return _with_what_is_asked(ranked, passages, other_weights)


def _quotes_of_asked_text(
    question: str,
    parts: Sequence[NumberedPart],
    titles: Set[str],
    groups: Sequence[Sequence[Quote]],
    weights: Mapping[str, float],
) -> list[Quote]:
    """The quotes of parts that a question names, a group after the other, the nearest to the question's other words
    first: only those under the titles, of all that were found, with most of the words that name the text.
    """
    written_parts = " ".join([question[part.start : part.end] for part in parts])
    own_terms = terms_with_characters(written_parts)
    other_weights = {term: weight for term, weight in weights.items() if term not in own_terms}
    naming_terms = terms_with_characters(text_of_parts(question, parts)) & other_weights.keys()
    weights_of_titles: dict[str, float] = {}
    for title in titles:
        title_terms = terms_with_characters(title) & naming_terms
        weights_of_titles[title] = sum([other_weights[term] for term in sorted(title_terms)])
    greatest = max(weights_of_titles.values(), default=0.0)
    return [
        quote
        for group in groups
        for quote in sorted(group, key=lambda quote: -_score(quote, other_weights))
        if weights_of_titles.get(quote.title, 0.0) == greatest
    ]


def _tells_something(term: str) -> bool:
    """Whether a term is no lone character, and no pair of characters with one that only joins words."""
    return not is_lone(term) and not any(character in FUNCTION_CHARACTERS for character in term)


def _names_of_bearer(name: str, context: Context) -> list[str]:
    """A name, and the other names of the entity that the graph has under it."""
    key = name_key(name)
    names_by_entity = [(entity.name, *entity.aliases) for entity in context.entities]
    names_of_bearers = [names for names in names_by_entity if key in map(name_key, names)]
    return [*dict.fromkeys([name, *chain.from_iterable(names_of_bearers)])]


def _with_what_is_asked(
    quotes: Sequence[Quote], passages: Set[int], weights: Mapping[str, float]
) -> list[Quote]:
    """The quotes, with the one of some passages, which have the name or the date, that has most of the question's
    other words among the first: prose does not repeat its subject in each sentence.
    """
    first = quotes[:NEAREST_SENTENCES]
    telling = {term: weight for term, weight in weights.items() if _tells_something(term)}
    of_passages = [quote for quote in quotes if quote.number in passages]
    most_asked = max(of_passages, key=lambda quote: _score(quote, telling), default=None)
    if most_asked is None or most_asked in first:
        return [*quotes]
    in_order = [quote for quote in quotes if quote is not most_asked]
    in_order.insert(NEAREST_SENTENCES - 1, most_asked)
    return in_order


def sentence_limit(response_type: str) -> int | None:
    """The number of sentences in a form such as "One sentence" or "两三句话", if there is a number."""
    count = _SENTENCE_COUNT.search(response_type) or _CHINESE_SENTENCE_COUNT.search(response_type)
    if count is None:
        return None
    number = count["number"].casefold()
    return max(_COUNTS.get(number) or int(number), 1)


def _nothing_found(question: str, language: Language, words: FixedWords, *, filtered: bool) -> str:
    """The answer if no sentence has the words of the question, with the question's names; `filtered` if other
    documents than those that pass a filter were not searched.
    """
    found_with = words.filtered_nothing_with if filtered else words.nothing_with
    parts = numbered_parts(question)
    written_parts = [question[part.start : part.end].strip() for part in parts]
    names = names_in_question(without_parts(question, parts), language)
    if parts and not names:  # other texts may have such parts
        naming_words = content_words(text_of_parts(question, parts))
        names = [word for word in naming_words if not is_of_any_text(word)]
    if names := [*names, *written_parts]:
        return found_with.format(words.list_comma.join(names))
    return words.filtered_nothing_found if filtered else words.nothing_found


def _moment_notes(context: Context, words: FixedWords) -> list[str]:
    """What an answer as of a moment leaves out, and how many of its sources have no date."""
    if not context.as_of:
        return []
    note = words.as_of if context.has_records else words.as_of_documents
    notes = [note.format(context.as_of)]
    sources = {chunk.document_id for chunk in context.chunks}
    if undated := sources - context.dates.keys():
        notes.append(words.undated_sources.format(len(undated), len(sources)))
    return notes


def _missing_words_note(
    question: str, context: Context, quotes: Sequence[Quote], language: Language
) -> list[str]:
    """The names of a question that neither the quotes nor the headings above have, the numbers of names ("PEP 603")
    and of versions ("2.7"); and its other words, if more than half of those beside its names are missing: not single
    letters, and not words that fit any text ("say", "happened"). Of Chinese characters in a row, no two may stand in a
    quote.
    """
    quoted = frozenset[str]().union(*[quote.terms | quote.setting_terms for quote in quotes])
    names = names_in_question(question, language)
    numbers = filter(str.isdecimal, chain.from_iterable(map(str.split, names)))
    quoted_texts = [f"{quote.setting}\n{quote.line}" for quote in quotes]
    missing_numbers = [
        number
        for number in (*numbers, *_NUMBER_WITH_POINTS.findall(question))
        if not any(number in text for text in quoted_texts)
    ]
    held_names = [name for name in names if _is_held(quotes, _names_of_bearer(name, context))]
    terms_of_names = frozenset[str]().union(*map(content_terms, held_names))
    quoted |= terms_of_names
    content = [
        word
        for word in content_words(question)
        if len(word) > 1
        and not word.isdecimal()
        and not is_of_any_text(word)
        and content_terms(word).isdisjoint(terms_of_names)
    ]
    missing = [word for word in content if content_terms(word).isdisjoint(quoted)]
    missing_names = [name for name in names if name not in held_names]
    if 2 * len(missing) > len(content):
        missing += filter(has_cjk, missing_names)
    else:
        words_of_names = chain.from_iterable(map(str.split, missing_names))
        missing = [word for word in words_of_names if content_terms(word).isdisjoint(quoted)]
    missing_words = dict.fromkeys([*missing, *missing_numbers])
    if not missing_words:
        return []
    words = FIXED_WORDS[written_in(question, language)]
    return [words.words_not_quoted.format(words.keyword_comma.join(missing_words))]


def _beginnings(context: Context) -> list[Quote]:
    """The first sentence of each passage, in the order of rank."""
    first_quotes: dict[int, Quote] = {}
    for quote in context_quotes(context):
        first_quotes.setdefault(quote.number, quote)
    return list(first_quotes.values())


# ── nearness ────────────────────────────────────────────────────────────────────


def _term_weights(question: str, context: Context, quotes: Sequence[Quote]) -> dict[str, float]:
    """How rare each term of the question is among the quotes; Chinese characters count less."""
    texts = (question, *context.keywords.low_level)
    terms = frozenset[str]().union(*map(content_terms, texts))
    characters = frozenset(filter(is_cjk, folded_text(question))) - {*FUNCTION_CHARACTERS} - terms
    counts = Counter(term for quote in quotes for term in quote.terms)
    weights = {term: math.log(1 + len(quotes) / max(counts[term], 1)) for term in terms}
    for character in characters:
        if counts[character]:
            rarity = math.log(1 + len(quotes) / counts[character])
            weights[character] = CHARACTER_WEIGHT * rarity
    return weights


def _score(quote: Quote, weights: Mapping[str, float]) -> float:
    """The weight of the quote's terms, less for a low rank; 0 without a word of the question."""
    own_terms = quote.terms & weights.keys()
    setting_terms = (quote.setting_terms & weights.keys()) - own_terms
    if all(map(is_lone, own_terms | setting_terms)):
        return 0.0
    own_weight = sum([weights[term] for term in sorted(own_terms)])
    setting_weight = sum([weights[term] for term in sorted(setting_terms)])
    weight = own_weight + SETTING_WEIGHT * setting_weight
    return quote.weight * weight / (1 + RANK_DECAY * quote.rank)


def _is_held(quotes: Sequence[Quote], spellings: Sequence[str]) -> bool:
    """Whether a quote, or a heading above, has half of the words of a name in one of its spellings."""
    terms_of_spellings = list(map(content_terms, spellings))
    return any(_holds_half(quote, terms) for quote in quotes for terms in terms_of_spellings)


def _holds_half(quote: Quote, name_terms: frozenset[str]) -> bool:
    """Whether a quote, or a heading above, has half of the words of a name."""
    return 2 * len(name_terms & (quote.terms | quote.setting_terms)) >= len(name_terms)


def _by_score(scored: Sequence[tuple[Quote, float]]) -> list[Quote]:
    """The quotes, the best first; equal scores by rank and place."""
    ordered = sorted(scored, key=lambda pair: (-pair[1], pair[0].rank, pair[0].start))
    return [quote for quote, _ in ordered]
