"""The quotes of numbered parts that a question names: section 12, 第二十二条."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lightrag_jsonl.core.types import HEADING_SEPARATOR
from lightrag_jsonl.rules.quotes import Quote
from lightrag_jsonl.text.numbers import NumberedPart, numbered_lines, numbered_parts
from lightrag_jsonl.text.patterns import pattern_of

# Characters before the number of a part that begins with the sentence: "(a) ", "## ".
BEGINNING_OF_PART = 8

_CLAUSE_END = pattern_of(r"[，,；;。:：]")
_OF_A_TEXT = pattern_of(r"\s+(?:of|in)\s")


class PlaceInParts(Struct, frozen=True, kw_only=True):
    """The parts that a quote stands inside, and those that the quote names, as terms; `units` are those of the parts
    that begin at the quote or above.
    """

    inside: frozenset[str]
    named: frozenset[str]
    units: frozenset[str]


def quotes_of_parts(
    quotes: Sequence[Quote], parts: Sequence[NumberedPart]
) -> tuple[list[Quote], list[Quote]]:
    """The quotes inside the parts, and the quotes that only name the parts; where parts of several units are
    asked for, only quotes inside all of them.

    A part goes on to the next number of the unit. In a text whose parts do not begin with the unit, as in contracts,
    a line or a heading that begins with the number is the part.
    """
    places = [*_places_in_parts(quotes)]
    units = {part.unit for part in parts}
    titles_by_unit = {
        unit: {
            quote.title for quote, place in zip(quotes, places, strict=True) if unit in place.units
        }
        for unit in units
    }
    asked_terms = {term for part in parts for term in (part.term, part.line_term)}
    quotes_inside: list[Quote] = []
    naming_quotes: list[Quote] = []
    for quote, place in zip(quotes, places, strict=True):
        terms = place.inside if len(units) > 1 else place.inside | place.named
        units_of_lines = {
            unit for unit in units if unit.isascii() and quote.title not in titles_by_unit[unit]
        }
        own_units = {
            part.unit
            for part in parts
            if part.term in terms or (part.unit in units_of_lines and part.line_term in terms)
        }
        if own_units == units:
            if place.inside.isdisjoint(asked_terms):
                naming_quotes.append(quote)
            else:
                quotes_inside.append(quote)
    return quotes_inside, naming_quotes


def text_of_parts(question: str, parts: Sequence[NumberedPart]) -> str:
    """The words that name the text of the parts: before 第二条, or "of the lease" behind section 2; "" without any."""
    if not parts[0].unit.isascii():
        return _CLAUSE_END.split(question[: parts[0].start])[-1]
    naming = _OF_A_TEXT.match(question, parts[-1].end)
    return "" if naming is None else question[naming.end() :]


def without_parts(question: str, parts: Sequence[NumberedPart]) -> str:
    """A question without numbered parts, such as "section 12"."""
    for part in reversed(parts):
        question = f"{question[: part.start]} {question[part.end :]}"
    return question


def _places_in_parts(quotes: Sequence[Quote]) -> Iterator[PlaceInParts]:
    """Where each quote stands: below the heading of a part, or from the first sentence of the part on."""
    open_terms: dict[str, str] = {}  # by unit
    before = None
    for quote in quotes:
        passage = (quote.chunk_id, quote.setting)
        if passage != before:
            open_terms = {}
        before = passage
        headings = quote.setting.replace(HEADING_SEPARATOR, "\n").split("\n")[1:]
        parts_above = [part for heading in headings for part in _opening_parts(heading)]
        # Below a heading with a number, the numbers of lines are those of points.
        parts_of = numbered_parts if parts_above else _parts_and_lines
        lead_parts = parts_of(quote.lead)
        text_parts = parts_of(quote.text)
        opening = [part for part in lead_parts if not _is_mention(quote.lead, part)]
        opening += [part for part in text_parts if not _is_mention(quote.text, part)]
        for part in opening:
            open_terms[part.unit] = part.term
        terms_above = [part.term for part in parts_above if part.unit not in open_terms]
        yield PlaceInParts(
            inside=frozenset([*open_terms.values(), *terms_above]),
            named=frozenset(part.term for part in [*lead_parts, *text_parts]),
            units=frozenset(part.unit for part in [*opening, *parts_above]),
        )


def _opening_parts(heading: str) -> list[NumberedPart]:
    """The parts that a heading begins."""
    return [part for part in _parts_and_lines(heading) if part.start <= BEGINNING_OF_PART]


def _is_mention(sentence: str, part: NumberedPart) -> bool:
    """Whether a sentence only mentions a part: it does not begin with the part, or goes on in small letters."""
    return part.start > BEGINNING_OF_PART or sentence[part.end :].lstrip()[:1].islower()


def _parts_and_lines(text: str) -> list[NumberedPart]:
    return [*numbered_parts(text), *numbered_lines(text)]
