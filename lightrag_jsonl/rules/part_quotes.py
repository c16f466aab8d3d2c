"""The sentences of numbered parts in a question: section 12, 第二十二条."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from lightrag_jsonl.core.types import HEADING_SEPARATOR
from lightrag_jsonl.rules.quotes import Quote
from lightrag_jsonl.text.numbers import NumberedPart, numbered_lines, numbered_parts

Places: TypeAlias = defaultdict[str, set[int]]

_BEGINNING = (
    8  # characters before the number of a part that begins with the sentence: "(a) ", "## "
)


def quotes_of_parts(
    quotes: Sequence[Quote], parts: Sequence[NumberedPart]
) -> tuple[list[Quote], list[Quote]]:
    """The quotes inside the parts, and the quotes that only mention the parts; parts of several
    units narrow each other down.

    A part goes on to the next number of the unit. Where no text has the unit, as in contracts, a
    line that begins with the number is the part.
    """
    places_in, places_on = _places_by_term(quotes)
    chosen = set[int]()
    for unit in dict.fromkeys(part.unit for part in parts):
        own = [part for part in parts if part.unit == unit]
        inside = set[int]().union(*(places_on[part.term] for part in own))
        if not inside and unit.isascii():
            inside = set[int]().union(*(places_on[part.line_term] for part in own))
        chosen = (chosen & inside) or inside or chosen
    terms = {term for part in parts for term in (part.term, part.line_term)}
    standing = set[int]().union(*(places_in[term] for term in terms))
    return (
        [quotes[place] for place in sorted(chosen & standing)],
        [quotes[place] for place in sorted(chosen - standing)],
    )


def _places_by_term(quotes: Sequence[Quote]) -> tuple[Places, Places]:
    """The indexes of the quotes inside each part, below the part's heading or from the part's first
    sentence on; and of the quotes inside the part or with the part's name.
    """
    places_in: Places = defaultdict(set)
    places_on: Places = defaultdict(set)
    open_terms: dict[str, str] = {}  # by unit
    for place, quote in enumerate(quotes):
        before = quotes[max(place - 1, 0)]
        if (before.chunk_id, before.setting) != (quote.chunk_id, quote.setting):
            open_terms = {}
        named = [*numbered_parts(quote.text), *numbered_lines(quote.text)]
        lead = [*numbered_parts(quote.lead), *numbered_lines(quote.lead)]
        for part in [*lead, *named]:
            if part.start <= _BEGINNING:
                open_terms[part.unit] = part.term
        headings = quote.setting.replace(HEADING_SEPARATOR, "\n").split("\n")
        above = [
            part
            for heading in headings
            for part in numbered_parts(heading)
            if part.start <= _BEGINNING and part.unit not in open_terms
        ]
        terms_in = {*open_terms.values(), *(part.term for part in above)}
        for term in terms_in:
            places_in[term].add(place)
        for term in [*terms_in, *(part.term for part in [*lead, *named])]:
            places_on[term].add(place)
    return places_in, places_on
