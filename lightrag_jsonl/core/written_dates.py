"""Dates in the words of a text: "June 2021", 2021年6月, and "last March" or 去年 from the date of the text."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Struct

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.dates import (
    CHINESE_NUMBER,
    ENGLISH_MONTHS,
    ERAS,
    MONTHS,
    days_later,
    half_width,
    iso_date,
    months_later,
    written_date,
)
from lightrag_jsonl.core.number_words import ENGLISH_NUMBERS
from lightrag_jsonl.core.patterns import pattern_of


class WrittenDate(Struct, frozen=True):
    """A date at characters `start` to `end` of a text, in the form of `core/dates.py`: from the first to
    the last date of the words, different only for a decade or a span.
    """

    start: int
    end: int
    first: str
    last: str


def resolved_date(text: str, written: str = "") -> str:
    """The date in some words, in our form, relative ones from the date `written`; "" for "now" and for
    anything else.
    """
    iso = iso_date(text)
    if iso:
        return iso
    return next((date.first for date in find_dates(text, written)), "")


@lru_cache(1_000)  # a sentence relates many pairs of names
def find_dates(text: str, written: str = "") -> tuple[WrittenDate, ...]:
    """The dates of a text in order; relative dates only for a text of a known date."""
    plain = half_width(text)
    if not _may_hold_dates(plain):
        return ()
    written = iso_date(written) if written else ""
    rules = _CHINESE if has_cjk(plain) else _ENGLISH
    dates: list[WrittenDate] = []
    for match in rules.dates.finditer(plain):
        if rules.no_date.match(plain, match.end()):
            continue
        first, last = rules.resolve(match, written)
        if first:
            dates.append(WrittenDate(match.start(), match.end(), first, last))
    return tuple(dates)


def days_and_months(text: str) -> tuple[str, ...]:
    """The days and months of a text, in our form and in order; years alone are left out."""
    return tuple(dict.fromkeys([date.first for date in find_dates(text) if "-" in date.first]))


def tells_date(text: str, dates: Sequence[str]) -> bool:
    """Whether a text has a date that is one of some days, or within one of some months."""
    return any(is_within(date.first, dates) for date in find_dates(text))


def is_within(date: str, dates: Sequence[str]) -> bool:
    """Whether a date is one of others, or more precise than one of them: "2021-06-15" is within "2021-06"."""
    return any(f"{date}-".startswith(f"{asked_date}-") for asked_date in dates)


class _Rules(Struct, frozen=True, kw_only=True):
    """The dates of a language: their words, what these mean, and what after a number makes it no year."""

    dates: re.Pattern[str]
    resolve: Callable[[re.Match[str], str], tuple[str, str]]
    no_date: re.Pattern[str]


_FULL_MONTHS = "|".join(MONTHS)
_HINT = pattern_of(  # of casefolded texts: four times as fast as a pattern that ignores case
    r"\b(?:ad\b|today|yesterday|ago\b|(?:last|this|next)\s"
    rf"|(?:{_FULL_MONTHS.casefold()})\b)"
    r"|\d{4}|[年月今昨]"
)


def _may_hold_dates(text: str) -> bool:
    """Whether there is a word, or a number of four digits, without which a text holds no date."""
    return _HINT.search(half_width(text).casefold()) is not None


# ── English ─────────────────────────────────────────────────────────────────────

_NUMBER_WORDS = tuple([word for word, value in ENGLISH_NUMBERS.items() if 1 <= value <= 12])
_NO_NUMBER_BEFORE = r"(?<![\d.,$€£¥#№-])(?<!\w)"
_ENGLISH_DATE = pattern_of(
    rf"{_NO_NUMBER_BEFORE}(?:"
    rf"(?P<whole>\d{{4}}-(?:0?[1-9]|1[0-2])(?:-\d{{1,2}})?(?!\d)|\d{{4}}/\d{{1,2}}/\d{{1,2}}"
    rf"|(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?)?{ENGLISH_MONTHS},?\s+(?:of\s+)?\d{{4}}"
    rf"|{ENGLISH_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}|ad\s+\d{{1,4}}|\d{{1,4}}\s+(?:ad|ce))"
    r"|(?P<decade>\d{3})0s|(?P<span>(?:1[0-9]|20)\d{2})[-–/](?P<short_end>\d{2})"
    r"|(?P<year>(?:1[0-9]|20|21)\d{2})"
    rf"|(?P<turn>last|this|next)\s+(?P<unit>year|month|(?P<turn_month>{_FULL_MONTHS}))"
    rf"|(?P<count>\d{{1,3}}|an?|{'|'.join(_NUMBER_WORDS)})\s+(?P<counted>day|month|year)s?\s+ago"
    rf"|(?P<word>today|yesterday)|(?P<lone_month>{_FULL_MONTHS})(?!\s+\d)"
    r")(?!\w)",
    re.IGNORECASE,
)


def _english_date(match: re.Match[str], written: str) -> tuple[str, str]:
    """The first and the last date in English words, or ""."""
    if match["whole"]:
        return (iso_date(match["whole"]),) * 2
    if match["decade"]:
        return match["decade"] + "0", match["decade"] + "9"
    if match["span"]:
        end = match["span"][:2] + match["short_end"]
        return (match["span"], end) if end > match["span"] else ("", "")
    if match["year"]:
        return match["year"], match["year"]
    return (_relative_english(match, written) if written else "",) * 2


def _relative_english(match: re.Match[str], written: str) -> str:
    turn = (match["turn"] or "").casefold()
    steps = {"last": -1, "this": 0, "next": 1}.get(turn, 0)
    if match["turn_month"]:
        return _month_beside(match["turn_month"], written, turn)
    if match["unit"]:
        is_year = match["unit"].casefold() == "year"
        return months_later(written, steps * (12 if is_year else 1), parts=1 if is_year else 2)
    if match["count"]:
        return _date_ago(match["count"].casefold(), match["counted"].casefold(), written)
    if match["word"]:
        return days_later(written, -1 if match["word"].casefold() == "yesterday" else 0)
    before = match.string[max(0, match.start() - 12) : match.start()]
    is_end = re.search(r"\b(?:until|till|to|through|by)\s+$", before, re.IGNORECASE)
    is_begin = re.search(r"\b(?:since|from)\s+$", before, re.IGNORECASE)
    if match["lone_month"][:1].islower() or not (is_end or is_begin):
        return ""
    return _month_beside(match["lone_month"], written, "" if is_end else "since")


def _month_beside(name: str, written: str, turn: str) -> str:
    """The named month before the date of a text ("last"), in or before the month of the text ("since"),
    in the year of the text ("this"), or in or after the month of the text; "" after the year 9999.
    """
    own_month = months_later(written, 0)
    year = int(written[:4])
    years = (year - 1, year, year + 1)
    candidates = [iso_date(f"{name} {candidate:04}") for candidate in years]
    match turn:
        case "last":
            return max([month for month in candidates if month < own_month])
        case "since":
            return max([month for month in candidates if month <= own_month])
        case "this":
            return candidates[1]
        case "next":
            return min([month for month in candidates if month > own_month], default="")
    return min([month for month in candidates if month >= own_month], default="")


def _date_ago(count: str, unit: str, written: str) -> str:
    if count in ("a", "an"):
        number = 1
    else:
        number = _NUMBER_WORDS.index(count) + 1 if count in _NUMBER_WORDS else int(count)
    match unit:
        case "day":
            return days_later(written, -number)
        case "month":
            return months_later(written, -number)
    return months_later(written, -12 * number, parts=1)


_ENGLISH = _Rules(
    dates=_ENGLISH_DATE,
    resolve=_english_date,
    no_date=re.compile(
        r"[.,]\d|\s?(?:%|°|percent|per\s|euros?\b|dollars?\b|pounds?\b|yuan\b|people\b|km\b|m\b|kg\b|miles?\b"
        r"|meters?\b|metres?\b|pages?\b|times\b|copies\b|items?\b|points?\b|tons?\b|years?\b|days\b|hours\b)",
        re.IGNORECASE,
    ),
)

# ── Chinese ─────────────────────────────────────────────────────────────────────

_TIME_STEPS = {  # from the date of a text, in years or months
    **dict.fromkeys(("去", "上", "上个"), -1),
    **dict.fromkeys(("今", "本", "当", "这个"), 0),
    **dict.fromkeys(("明", "下", "下个"), 1),
    "前": -2,
}
_DAY = rf"(?:(?P<day>{CHINESE_NUMBER}{{1,3}})[日号])?"
_RANGE_SIGN = r"[至到—－\-–~～]"
_CHINESE_DATE = pattern_of(
    rf"(?<![\d.,$¥])(?:(?P<whole>\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{4}}-\d{{2}}(?!\d)"
    rf"|(?:{ERAS})(?:元|{CHINESE_NUMBER}{{1,4}})年(?:\w{{1,3}}月)?|公元{CHINESE_NUMBER}{{1,4}}年"
    rf"|[12一二][\d〇零一二三四五六七八九]{{3}}年(?:{CHINESE_NUMBER}{{1,3}}月(?:{CHINESE_NUMBER}{{1,3}}[日号])?)?"
    rf"|(?:1[0-9]|20|21)\d{{2}}(?=\s*{_RANGE_SIGN})|(?<={_RANGE_SIGN})(?:1[0-9]|20|21)\d{{2}}(?!\d))"
    rf"|(?P<turn_year>[去今明前当]年)(?:(?P<month>{CHINESE_NUMBER}{{1,3}})月{_DAY})?"
    rf"|(?P<turn_month>[本上下]个?|这个)月(?P<turn_day>{CHINESE_NUMBER}{{1,3}}[日号])?"
    rf"|(?P<word>今天|今日|昨天|昨日)|(?P<next_month>{CHINESE_NUMBER}{{1,3}})月(?P<next_day>{CHINESE_NUMBER}{{1,3}}[日号])?)"
)
_YEAR_BEFORE = pattern_of(rf"({CHINESE_NUMBER}{{4}})年")


def _chinese_date(match: re.Match[str], written: str) -> tuple[str, str]:
    """The first and the last date in Chinese words, or ""."""
    iso = ""
    if match["whole"]:
        iso = iso_date(match["whole"])
    elif match["next_month"]:
        iso = _month_of_same_year(match, written)
    elif written:
        iso = _relative_chinese(match, written)
    return iso, iso


def _relative_chinese(match: re.Match[str], written: str) -> str:
    if match["turn_year"]:
        year = months_later(written, 12 * _TIME_STEPS[match["turn_year"][0]], parts=1)
        return written_date(year, match["month"] or "", match["day"] or "") if year else ""
    if match["turn_month"]:
        month = months_later(written, _TIME_STEPS[match["turn_month"]])
        day = (match["turn_day"] or "").rstrip("日号")
        return written_date(month[:4], month[5:], day) if month else ""
    return days_later(written, -1 if match["word"].startswith("昨") else 0)


def _month_of_same_year(match: re.Match[str], written: str) -> str:
    """A month without a year, of the year that stands right before a range, as in 2021年3月至5月."""
    before = match.string[max(0, match.start() - 14) : match.start()]
    years = _YEAR_BEFORE.findall(before)
    if not years or not before.endswith(tuple("至到—－-–~～")):
        return ""
    return written_date(years[-1], match["next_month"], (match["next_day"] or "").rstrip("日号"))


_CHINESE = _Rules(
    dates=_CHINESE_DATE,
    resolve=_chinese_date,
    no_date=re.compile(r"间隔|之久|的历史|历史|来的"),
)
