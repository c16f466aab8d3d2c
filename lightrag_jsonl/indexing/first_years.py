"""The years of birth, foundation and publication of people, firms and works, from descriptions."""

import re
from collections.abc import Iterable

from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans

_NAMED_YEAR = r"(?P<year>1[0-9]{3}|20[0-9]{2})"
_BEGINNINGS = (
    re.compile(
        rf"\b(?:born|founded|established|incorporated|released|published)\b[^.;)]{{0,40}}?\b{_NAMED_YEAR}"
    ),
    re.compile(rf"\(\s?(?:[^()]{{0,30}}\b)?{_NAMED_YEAR}\s?[-–—]"),
    re.compile(rf"\b(?:is|was)\s+an?\s+{_NAMED_YEAR}\b"),
    re.compile(
        rf"{_NAMED_YEAR}\s?年[^。；，,]{{0,12}}?(?:出生|生于|成立|创立|创办|上映|出版|发行)"
    ),
    re.compile(rf"(?:出生于|生于|成立于|创立于|创办于|上映于|出版于)\s?{_NAMED_YEAR}"),
    re.compile(rf"[（(]\s?{_NAMED_YEAR}\s?年?[^()（）]{{0,12}}[-–—]"),
)
_YEAR_ATTRIBUTES = pattern_of(
    r"born|birth|founded|established|released|published|出生|生年|生日|成立|创立|上映|出版",
    re.IGNORECASE,
)
_ARTICLE = pattern_of(r"^[“\"《]?(?:The |A |An )?")


def first_years(name: str, attributes: Iterable[tuple[str, str]], description: str) -> set[str]:
    """The first years by attributes, and by the first dated sentence that begins with the name."""
    years: set[str] = set()
    for attribute, value in attributes:
        match = re.search(_NAMED_YEAR, value) if _YEAR_ATTRIBUTES.search(attribute) else None
        if match is not None:
            years.add(match["year"])
    for start, end in sentence_spans(description):
        sentence = _ARTICLE.sub("", description[start:end])
        year = _first_year(sentence) if sentence.startswith(_ARTICLE.sub("", name)) else None
        if year is not None:
            return years | {year}
    return years


def _first_year(sentence: str) -> str | None:
    for pattern in _BEGINNINGS:
        year = pattern.search(sentence)
        if year is not None:
            return year["year"]
    return None
