"""Answers to questions about a whole text: the best sentence of each section, from beginning to end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.question_scope import is_of_any_text
from lightrag_jsonl.providers.offline.quotes import Quote, chunk_quotes, content_terms

SECTIONS = 6  # sentences of an answer
LEAST_TERMS = 6  # of a sentence that can be understood alone
ENOUGH_NAMES = 3  # in a sentence; with more it is rather a list
CUT_MARK = "…"  # of a long sentence that was cut
SPEECH = "\"'“‘「『"  # a sentence that begins so needs to be told who speaks

_OPENING_SENTENCE: Mapping[Language, str] = {
    "en": "From the beginning to the end, in the order of the text:",
    "zh": "按原文顺序，从头到尾摘录如下：",
}


def overview_answer(question: str, context: Context, language: Language, limit: int | None) -> str:
    """Quotes of an overview's excerpts on a line each, in the order of the text, at most `limit`; ""
    if no excerpt can be quoted.
    """
    terms = frozenset([term for term in content_terms(question) if not is_of_any_text(term)])
    quotes = _excerpt_quotes(context, terms)
    if not quotes:
        return ""
    names = [name for community in context.communities for name in community.entities]
    sections = min(limit or SECTIONS, len(quotes))
    best_quotes: list[Quote] = []
    for number in range(sections):
        start = number * len(quotes) // sections
        end = (number + 1) * len(quotes) // sections
        best_quotes.append(_best_of_section(quotes[start:end], terms, names))
    if limit:
        return " ".join([f"{quote.text} [{quote.number}]" for quote in best_quotes])
    lines = [f"- {quote.text} [{quote.number}]" for quote in best_quotes]
    return "\n".join([_OPENING_SENTENCE[language], "", *lines])


def _excerpt_quotes(context: Context, terms: frozenset[str]) -> list[Quote]:
    """The sentences of the excerpts that can be understood alone, or else all."""
    chunks = []
    for chunk in context.chunks:
        sentences = [chunk.text[start:end] for start, end in context.excerpts.get(chunk.id, ())]
        chunks.append(
            replace(chunk, text="\n".join([" ".join(text.split()) for text in sentences]))
        )
    quotes = chunk_quotes(replace(context, chunks=tuple(chunks)))
    return [quote for quote in quotes if _is_understandable(quote, terms)] or quotes


def _is_understandable(quote: Quote, terms: frozenset[str]) -> bool:
    """Whether a quote is a whole sentence that is long enough or has words of the question."""
    begins_well = not quote.text[0].islower() and quote.text[0] not in SPEECH
    is_whole = not quote.text[-1].isalnum() and quote.text[-1] != CUT_MARK
    tells_enough = len(quote.terms) >= LEAST_TERMS or not quote.terms.isdisjoint(terms)
    return begins_well and is_whole and tells_enough


def _best_of_section(quotes: Sequence[Quote], terms: frozenset[str], names: Sequence[str]) -> Quote:
    """The quote with most words of the question, then with enough names, then the shortest."""
    return max(quotes, key=lambda quote: _merits(quote, terms, names))


def _merits(quote: Quote, terms: frozenset[str], names: Sequence[str]) -> tuple[int, int, int]:
    named = sum([name in quote.text for name in names])
    return len(quote.terms & terms), min(named, ENOUGH_NAMES), -len(quote.text)
