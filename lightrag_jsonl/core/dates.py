"""Dates as people write them, in the form "2021", "2021-06" or "2021-06-15": precise to a year, a month or a day.

Dates are compared as stretches of days: "2021-06" lies within "2021". Years before 1 have no form.
"""

import calendar
import re
from datetime import date
from functools import lru_cache

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.eras import FIRST_YEARS
from lightrag_jsonl.core.patterns import pattern_of

ENGLISH_MONTHS = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}\.?"
CHINESE_NUMBER = "[〇零一二三四五六七八九十廿卅百\\d]"
ERAS = "|".join(sorted(FIRST_YEARS, key=len, reverse=True))

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
MONTH_BEGINNINGS = [month[:3].casefold() for month in MONTHS]
_MONTH_NAMES = frozenset([*map(str.casefold, MONTHS), *MONTH_BEGINNINGS, "sept"])
CHINESE_DIGITS = "〇一二三四五六七八九"
_ASCII_DIGITS = {ord("０") + digit: str(digit) for digit in range(10)} | {ord("零"): "〇"}
_ORDINAL_ENDING = r"(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:mon|tues?|wed|thu|thurs|fri|sat|sun)[a-z]{0,6}\.?,?\s+)?"
_TIME_OF_DAY = r"(?:,?\s+(?:at\s+)?\d{1,2}:.*)?"
_FORMS = tuple(
    pattern_of(form, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})",
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})",
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:\D.*)?",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
        rf"(?P<month>{ENGLISH_MONTHS}),?\s+(?:of\s+)?(?P<year>\d{{4}})",
        rf"{_WEEKDAY}(?P<month>{ENGLISH_MONTHS})\s+(?P<day>\d{{1,2}}){_ORDINAL_ENDING},?\s+(?P<year>\d{{4}})"
        rf"{_TIME_OF_DAY}",
        rf"{_WEEKDAY}(?P<day>\d{{1,2}})(?:{_ORDINAL_ENDING}|\.)\s+(?:of\s+)?(?P<month>{ENGLISH_MONTHS}),?"
        rf"\s+(?P<year>\d{{4}}){_TIME_OF_DAY}",
        r"(?:ad|ce)\s*(?P<year>\d{1,4})|(?P<late_year>\d{1,4})\s*(?:ad|ce)",
        rf"(?:公元(?P<year>{CHINESE_NUMBER}{{1,4}})|(?P<late_year>{CHINESE_NUMBER}{{4}}))年"
        rf"(?:(?P<month>{CHINESE_NUMBER}{{1,3}})月(?:(?P<day>{CHINESE_NUMBER}{{1,3}})[日号]?)?)?",
        rf"(?P<era>{ERAS})(?P<year>元|{CHINESE_NUMBER}{{1,4}})年.{{0,8}}",
    )
)
_PART_OF_DATE = pattern_of(r"[\d年]")  # of every form
YEAR_LAST = pattern_of(
    r"(?P<day>\d{1,2})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<year>\d{4})(?:\s+\d{1,2}:.*)?"
)


@lru_cache(10_000)  # the dates of documents come again and again
def iso_date(text: str) -> str:
    """A whole text as a date in our form, or "". A time of day after the date is left out."""
    plain = half_width(text).strip()
    if not _PART_OF_DATE.search(plain):  # quickly, since most titles are no dates
        return ""
    for form in _FORMS:
        match = form.fullmatch(plain)
        if match is not None:
            groups = match.groupdict()
            year = groups.get("year") or groups.get("late_year") or ""
            if groups.get("era"):
                return era_year(groups["era"], year)
            return written_date(year, groups.get("month") or "", groups.get("day") or "")
    match = YEAR_LAST.fullmatch(plain)
    return _with_year_last(match) if match else ""


def _with_year_last(match: re.Match[str]) -> str:
    """A date such as 13/04/2023. Of 03/04/2023 nobody can tell the month, so it is a date in 2023."""
    day = match["day"]
    month = match["month"]
    year = match["year"]
    if match["sign"] == "." or int(day) > 12 or day == month:
        return written_date(year, month, day)
    if int(month) > 12:  # as Americans write it
        return written_date(year, day, month)
    return written_date(year)


def half_width(text: str) -> str:
    """A text with simplified characters and ASCII digits; characters keep their places."""
    if text.isascii():
        return text
    return (simplified(text) if has_cjk(text) else text).translate(_ASCII_DIGITS)


def written_date(year: str, month: str = "", day: str = "") -> str:
    """A date in our form from the words for year, month and day; "" for a date outside the calendar."""
    numbers = [_number(year), _month_number(month), _number(day)]
    parts = [number for number, text in zip(numbers, (year, month, day), strict=True) if text]
    try:
        date(*[*parts, 1, 1][:3])
    except ValueError:
        return ""
    written_year = f"{parts[0]:04}"
    return "-".join([written_year, *[f"{part:02}" for part in parts[1:]]])


def era_year(era: str, year: str) -> str:
    """The year of an era, such as 光绪三年; its months are no months of ours, and are left out."""
    number = 1 if year == "元" else _number(year)
    return written_date(str(FIRST_YEARS[era] + number - 1)) if number else ""


def _month_number(text: str) -> int:
    beginning = text[:3].casefold()
    if beginning not in MONTH_BEGINNINGS:
        return _number(text)
    return (
        MONTH_BEGINNINGS.index(beginning) + 1 if text.rstrip(".").casefold() in _MONTH_NAMES else 0
    )


def _number(text: str) -> int:
    """A number in digits (2021, 二〇二一) or in Chinese words (十三); 0 for anything else."""
    digits = "".join(
        [str(CHINESE_DIGITS.index(sign)) if sign in CHINESE_DIGITS else sign for sign in text]
    )
    if digits.isascii() and digits.isdigit():
        return int(digits)
    words = re.fullmatch(r"(?:(\d?)百〇?)?(?:(\d?)([十廿卅]))?(\d?)", digits)
    if not text or words is None:
        return 0
    hundreds, tens, ten, unit = words.groups()
    total = int(hundreds or 1) * 100 if hundreds is not None else 0
    if ten is not None:
        total += {"十": int(tens or 1), "廿": 2, "卅": 3}[ten] * 10
    return total + int(unit or 0)


# ── dates as days ───────────────────────────────────────────────────────────────


@lru_cache(10_000)
def first_day(iso: str) -> int:
    """The first day of a date in our form, counted as `date.toordinal`."""
    year, month, day = _year_month_day(iso)
    return date(year, month or 1, day or 1).toordinal()


@lru_cache(10_000)
def last_day(iso: str) -> int:
    """The last day of a date in our form, counted as `date.toordinal`."""
    year, month, day = _year_month_day(iso)
    month = month or 12
    return date(year, month, day or calendar.monthrange(year, month)[1]).toordinal()


def may_hold(valid_from: str, valid_to: str, moment: str) -> bool:
    """Whether a moment may lie between two dates; "" is open."""
    if valid_from and first_day(valid_from) > last_day(moment):
        return False
    return not (valid_to and last_day(valid_to) < first_day(moment))


def day_in_name(name: str) -> str:
    """The day that a name is, such as "2026-11-03" or "2026_11_03" of a daily note; "" of other names,
    also of years.
    """
    iso = iso_date(name.replace("_", "-"))
    return iso if iso.count("-") == 2 else ""


def months_later(iso: str, months: int, *, parts: int = 2) -> str:
    """The year (`parts` 1) or month (2) so many months after a date, or before it."""
    year, month, _ = _year_month_day(iso)
    count = year * 12 + (month or 1) - 1 + months
    names = [str(count // 12), str(count % 12 + 1)]
    return written_date(*names[:parts]) if count >= 12 else ""


def days_later(iso: str, days: int) -> str:
    """The day so many days after the first day of a date, or before it."""
    return _date_of_day(first_day(iso) + days, parts=3)


def _date_of_day(day: int, *, parts: int) -> str:
    if day < 1:
        return ""
    return "-".join(date.fromordinal(day).isoformat().split("-")[:parts])


def _year_month_day(iso: str) -> tuple[int, int, int]:
    """The numbers of year, month and day; 0 for a missing part."""
    year, month, day = (*map(int, iso.split("-")), 0, 0)[:3]
    return year, month, day
