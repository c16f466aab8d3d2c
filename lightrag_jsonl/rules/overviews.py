"""Answers to questions about a whole text: the parts, the central names, and the best sentence of
each section, from beginning to end.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.languages import FIXED_WORDS, FixedWords, Language
from lightrag_jsonl.core.types import HEADING_SEPARATOR
from lightrag_jsonl.rules.quotes import Quote, content_terms, context_quotes, safe_title
from lightrag_jsonl.text.cjk import CJK
from lightrag_jsonl.text.question_kinds import asks_about_everything, is_of_any_text

SECTIONS = 6  # sentences of an answer
LEAST_TERMS = 6  # of a sentence that can be understood alone
ENOUGH_NAMES = 3  # in a sentence; with more it is rather a list
# Bytes of a sentence that tells enough, 30 Chinese characters or 15 English words; of longer ones the
# shortest is quoted.
ENOUGH_BYTES = 90
MOST_PARTS = 20  # titles of documents or chapters
MOST_OVERVIEW_NAMES = 8
CUT_MARK = "…"  # of a long sentence that was cut
SPEECH = "\"'“‘「『"  # a sentence that begins so needs to be told who speaks

_OPENING_SENTENCE: Mapping[Language, str] = {
    "en": "Sentences from several places, in the order of the text:",
    "zh": "按原文顺序，从各处摘录如下：",
}


def overview_quotes(question: str, context: Context, limit: int | None) -> list[Quote]:
    """Sentences of the excerpts of an overview, one for each section, in the order of the text:
    `limit` or six; empty without excerpts.
    """
    terms: frozenset[str] = frozenset()  # "these village reports" are not only about villages
    if not asks_about_everything(question):
        terms = frozenset([term for term in content_terms(question) if not is_of_any_text(term)])
    quotes = _excerpt_quotes(context, terms)
    names = [name for community in context.communities for name in community.entities]
    sections = min(limit or SECTIONS, len(quotes))
    best_quotes: list[Quote] = []
    for number in range(sections):
        start = number * len(quotes) // sections
        end = (number + 1) * len(quotes) // sections
        best_quotes.append(_best_of_section(quotes[start:end], terms, names))
    return best_quotes


def overview_outline(context: Context, language: Language) -> str:
    """The parts and the central names of an overview, and an introduction of the quotes."""
    words = FIXED_WORDS[language]
    outline = [_parts_line(context, words), _names_line(context, words)]
    return "\n\n".join([*filter(None, outline), _OPENING_SENTENCE[language]])


def _parts_line(context: Context, words: FixedWords) -> str:
    """The titles of the documents, or of the chapters of a single document; "" for a single title."""
    documents = {chunk.document_id for chunk in context.chunks}
    titles: list[str] = []
    for chunk in context.chunks:
        title = chunk.heading.split(HEADING_SEPARATOR)[-1]
        if len(documents) > 1:
            title = context.documents.get(chunk.document_id, "")
        titles.append(safe_title(title))
    parts = [*dict.fromkeys(filter(None, titles))]
    if len(parts) < 2:
        return ""
    listed = words.semicolon.join(parts[:MOST_PARTS])
    if len(parts) > MOST_PARTS:
        listed += f" {words.not_listed.format(len(parts) - MOST_PARTS)}"
    return words.parts + listed


def _names_line(context: Context, words: FixedWords) -> str:
    """The names of the communities most mentioned in the passages, apart from longer ones; "" without communities."""
    central = [
        name
        for community in context.communities
        for name in community.entities[:MOST_OVERVIEW_NAMES]
    ]
    containing = {
        name
        for community in context.communities
        for name in community.entities
        if any(part in name for part in central)
    }
    longest_first = sorted(containing, key=lambda name: (-len(name), name))
    alternatives = "|".join(map(re.escape, longest_first))
    any_name = re.compile(rf"(?<![^\W_{CJK}])(?:{alternatives})(?![^\W_{CJK}])")
    mentions = Counter(name for chunk in context.chunks for name in any_name.findall(chunk.text))
    mentioned = [name for name in dict.fromkeys(central) if mentions[name]]
    names = sorted(mentioned, key=lambda name: -mentions[name])[:MOST_OVERVIEW_NAMES]
    listed = words.list_comma.join(map(safe_title, names))
    return words.names_mentioned_most + listed if names else ""


def _excerpt_quotes(context: Context, terms: frozenset[str]) -> list[Quote]:
    """The sentences of the excerpts that can be understood alone, or else all."""
    quotes: list[Quote] = []
    for quote in context_quotes(context):
        chunk = context.chunks[quote.rank]
        for start, end in context.excerpts.get(chunk.id, ()):
            is_inside = chunk.start + start <= quote.start and quote.end <= chunk.start + end
            if is_inside and quote.text:
                quotes.append(quote)
                break
    return [quote for quote in quotes if _is_understandable(quote, terms)] or quotes


def _is_understandable(quote: Quote, terms: frozenset[str]) -> bool:
    """Whether a quote is a whole sentence, and long enough or with words of the question."""
    begins_well = not quote.text[0].islower() and quote.text[0] not in SPEECH
    is_whole = not quote.text[-1].isalnum() and quote.text[-1] != CUT_MARK
    tells_enough = len(quote.terms) >= LEAST_TERMS or not quote.terms.isdisjoint(terms)
    return begins_well and is_whole and tells_enough


def _best_of_section(quotes: Sequence[Quote], terms: frozenset[str], names: Sequence[str]) -> Quote:
    """The quote with most words of the question, then with enough names, then the shortest that
    tells enough.
    """
    return max(quotes, key=lambda quote: _merits(quote, terms, names))


def _merits(quote: Quote, terms: frozenset[str], names: Sequence[str]) -> tuple[int, int, int, int]:
    named = sum([name in quote.text for name in names])
    return (
        len(quote.terms & terms),
        min(named, ENOUGH_NAMES),
        min(len(quote.text.encode()), ENOUGH_BYTES),
        -len(quote.text),
    )
