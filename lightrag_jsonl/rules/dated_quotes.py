"""The quotes of the days and months that a question names."""

from collections.abc import Sequence

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.rules.quotes import Quote, terms_with_characters
from lightrag_jsonl.text.dates import days_and_months, find_dates, is_within, iso_date, tells_date


def are_of_dates(quotes: Sequence[Quote], context: Context, dates: Sequence[str]) -> list[bool]:
    """Whether each quote is of one of some days or months; one that is nothing but a date, as in a list of links, tells
    nothing of it.
    """
    if not dates:
        return [False] * len(quotes)
    passages_of_dates = [_is_of_dates(chunk, dates) for chunk in context.chunks]
    return [
        _has_words_beside_dates(quote.text)
        and (
            any(
                tells_date(words, dates)
                for words in (quote.lead, quote.text, *quote.setting.split("\n"))
            )
            or (passages_of_dates[quote.rank] and not days_and_months(quote.setting))
        )
        for quote in quotes
    ]


def _has_words_beside_dates(text: str) -> bool:
    for date in reversed(find_dates(text)):
        text = text[: date.start] + text[date.end :]
    return any(map(str.isalpha, text))


def date_terms(question: str) -> frozenset[str]:
    """The terms of the dates in a question."""
    written = [question[date.start : date.end] for date in find_dates(question)]
    return terms_with_characters(" ".join(written)) if written else frozenset()


def _is_of_dates(chunk: Chunk, dates: Sequence[str]) -> bool:
    """Whether the document of a passage, or else the first date in the passage, is of one of the dates."""
    if chunk.date:
        return is_within(iso_date(chunk.date), dates)
    return any(is_within(date, dates) for date in days_and_months(chunk.text)[:1])
