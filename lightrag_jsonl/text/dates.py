"""Dates as people write them, in the form "2021", "2021-06" or "2021-06-15": precise to a year, a month or a day.

Dates are compared as stretches of days: "2021-06" lies within "2021". Years before 1 have no form. In the words
of a text stand also "last March" or 去年: these are told from the date of the text.
"""

import calendar
import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache

from msgspec import Struct

from lightrag_jsonl.text.cjk import has_cjk, simplified
from lightrag_jsonl.text.numbers import ENGLISH_NUMBERS
from lightrag_jsonl.text.patterns import pattern_of

# The first years of Chinese eras, to read dates such as 光绪三年 and 民国二十六年: eras of the Han and of the Three
# Kingdoms, the usual eras of the Sui and Tang, eras of the Song, Yuan, Ming and Qing, and the Republic. A name of
# several dynasties has the best known use. Years of an era are lunar; the year of ours with the largest part of a
# lunar year stands for the whole.
_ERAS = """
建武 25 永平 58 建初 76 永元 89
永初 107 永和 136 延熹 158 建宁 168 熹平 172 光和 178 中平 184 初平 190 兴平 194 建安 196 延康 220
黄初 220 太和 227 青龙 233 景初 237 正始 240 嘉平 249 正元 254 甘露 256 景元 260 咸熙 264
章武 221 建兴 223 延熙 238 景耀 258 炎兴 263 黄武 222 黄龙 229 嘉禾 232 赤乌 238 太元 251
五凤 254 太平 256 永安 258 元兴 264 宝鼎 266 凤凰 272 天纪 277 泰始 265 咸宁 275 太康 280 元康 291
开皇 581 仁寿 601 大业 605 武德 618 贞观 627 永徽 650 显庆 656 上元 674 仪凤 676 永隆 680 天授 690
神龙 705 景龙 707 开元 713 天宝 742 至德 756 乾元 758 大历 766 建中 780 贞元 785 元和 806 长庆 821
会昌 841 大中 847 咸通 860 乾符 874 广明 880 中和 881 光启 885 天祐 904
建隆 960 乾德 963 开宝 968 太平兴国 976 雍熙 984 端拱 988 淳化 990 至道 995 咸平 998 景德 1004
大中祥符 1008 天禧 1017 天圣 1023 明道 1032 景祐 1034 宝元 1038 康定 1040 庆历 1041 皇祐 1049 至和 1054
嘉祐 1056 治平 1064 熙宁 1068 元丰 1078 元祐 1086 绍圣 1094 元符 1098 崇宁 1102 大观 1107 政和 1111
宣和 1119 靖康 1126 建炎 1127 绍兴 1131 隆兴 1163 乾道 1165 淳熙 1174 绍熙 1190 庆元 1195 嘉泰 1201
开禧 1205 嘉定 1208 宝庆 1225 绍定 1228 端平 1234 淳祐 1241 宝祐 1253 景定 1260 咸淳 1265 德祐 1275 祥兴 1278
中统 1260 至元 1264 元贞 1295 大德 1297 至大 1308 皇庆 1312 延祐 1314 至治 1321 泰定 1324 至顺 1330 至正 1341
洪武 1368 建文 1399 永乐 1403 洪熙 1425 宣德 1426 正统 1436 景泰 1450 天顺 1457 成化 1465 弘治 1488
正德 1506 嘉靖 1522 隆庆 1567 万历 1573 泰昌 1620 天启 1621 崇祯 1628
顺治 1644 康熙 1662 雍正 1723 乾隆 1736 嘉庆 1796 道光 1821 咸丰 1851 同治 1862 光绪 1875 宣统 1909 民国 1912
"""


def _first_years() -> dict[str, int]:
    words = _ERAS.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


FIRST_YEARS = _first_years()

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
_FULL_WIDTH_DIGIT = "[０-９]"
_ASCII_FORMS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # of all full-width marks
_ASCII_LETTERS = {
    code: plain
    for code, plain in _ASCII_FORMS.items()
    if chr(plain).isalnum() or chr(plain) in "%$"
} | {ord("零"): ord("〇"), ord("￥"): ord("¥")}
_SIGN_IN_NUMBER = pattern_of(  # of ３，０００, which is also the comma of a sentence, ３．５ and １９９８－０６
    rf"(?<!{_FULL_WIDTH_DIGIT}){_FULL_WIDTH_DIGIT}{{1,3}}(?:，{_FULL_WIDTH_DIGIT}{{3}})+(?!{_FULL_WIDTH_DIGIT})"
    rf"|(?<={_FULL_WIDTH_DIGIT})[．－／：](?={_FULL_WIDTH_DIGIT})"
)
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
    """A text with simplified characters, and ASCII letters and digits, also the signs inside of numbers; characters
    keep their places.
    """
    if text.isascii():
        return text
    plain = _SIGN_IN_NUMBER.sub(lambda match: match[0].translate(_ASCII_FORMS), text)
    return (simplified(plain) if has_cjk(plain) else plain).translate(_ASCII_LETTERS)


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


# ── dates in the words of a text ────────────────────────────────────────────────


class WrittenDate(Struct, frozen=True):
    """A date at characters `start` to `end` of a text, in the form of `text/dates.py`: from the first to
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
