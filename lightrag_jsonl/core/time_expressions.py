"""When statements hold, by the words of a text: "since 1931", "from May 2019 to March 2021", 1937年至1945年.

Rules for English and Chinese. A date after "in", "on" or 于 begins something: an event is true
from then on. Relative dates ("last March", 去年) are counted from the date of the text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.dates import (
    CHINESE_NUMBER,
    ENGLISH_MONTHS,
    ERAS,
    date_before,
    days_later,
    era_year,
    first_day,
    half_width,
    iso_date,
    last_day,
    months_later,
    written_date,
)
from lightrag_jsonl.core.names import nfkc_casefold
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.types import EntityMention, RelationMention


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """Words at characters `start` to `end` of a text, on the beginning and the end of a
    statement's time.

    `valid_from` and `valid_to` are dates as in `core/dates.py`; "" is open.
    """

    start: int
    end: int
    valid_from: str = ""
    valid_to: str = ""


def claim_dates(text: str, names: Iterable[str], written: str = "") -> tuple[str, str]:
    """The dates from and until when a text's statement about names holds; "" is open.

    Only the sentences with all names count, or else with a single name, or else all; and in a
    sentence the clauses with the names, or the date right before or after these clauses.
    """
    if not _may_hold_dates(text):
        return "", ""
    folded_names = [nfkc_casefold(name) for name in names]
    expressions: list[TimeExpression] = []
    for sentence in _sentences_about(text, folded_names):
        expressions += _of_clauses(sentence, folded_names, written)
    return _combined(expressions)


def stated_dates(
    mention: EntityMention | RelationMention, text: str, written: str = ""
) -> tuple[str, str]:
    """The dates in the description of a mention, or, without a description, in the sentences of the
    chunk's text with all names of the mention.
    """
    if isinstance(mention, RelationMention):
        names: Sequence[str] = (mention.source, mention.target)
    else:
        names = (mention.name, *[value for _, value in mention.attributes])
    if mention.description:
        return claim_dates(mention.description, names, written)
    if len(names) < 2 or not _may_hold_dates(text):
        return "", ""
    folded_names = [nfkc_casefold(name) for name in names]
    sentences = _sentences_about(text, folded_names)
    if not sentences or _count_names(sentences[0], folded_names) < len(names):
        return "", ""
    return claim_dates("\n\n".join(sentences), names, written)


def resolved_date(text: str, written: str = "") -> str:
    """The date in some words, in our form; "" for "now" and for anything else."""
    iso = iso_date(text)
    if iso:
        return iso
    plain = half_width(text)
    rules = _CHINESE if has_cjk(plain) else _ENGLISH
    dates = _find_dates(plain, iso_date(written) if written else "", rules)
    return next((date.first for date in dates), "")


def holds_at(text: str, moment: str, written: str = "") -> bool:
    """Whether a sentence may hold at a moment, by its words."""
    valid_from, valid_to = _combined(find_time_expressions(text, written))
    return may_hold(valid_from, valid_to, moment)


def holding_text(text: str, moment: str, written: str = "") -> str:
    """A text with spaces in place of the sentences out of date at a moment, by their words; or only of
    clauses, where a sentence has several dates. Characters keep their places.
    """
    if not _may_hold_dates(text):
        return text
    pieces = list(text)
    for start, end in sentence_spans(text):
        for part_start, part_end in _outdated_parts(text[start:end], moment, written):
            pieces[start + part_start : start + part_end] = " " * (part_end - part_start)
    return "".join(pieces)


def _outdated_parts(sentence: str, moment: str, written: str) -> Iterator[tuple[int, int]]:
    """The spans of a sentence out of date at a moment."""
    expressions = find_time_expressions(sentence, written)
    if len(expressions) < 2:
        if not may_hold(*_combined(expressions), moment):
            yield 0, len(sentence)
        return
    holds = True
    for start, end in _clauses(sentence, expressions):
        own = [time for time in expressions if start <= time.start < end]
        if own:
            holds = may_hold(*_combined(own), moment)
        if not holds:
            yield start, end


def may_hold(valid_from: str, valid_to: str, moment: str) -> bool:
    """Whether a moment may lie between two dates; "" is open."""
    if valid_from and first_day(valid_from) > last_day(moment):
        return False
    return not (valid_to and last_day(valid_to) < first_day(moment))


@lru_cache(1_000)  # the sentences of a passage describe several names
def find_time_expressions(text: str, written: str = "") -> tuple[TimeExpression, ...]:
    """The expressions of a text in order; `written` is the date of the text, for relative dates."""
    plain = half_width(text)
    if not _may_hold_dates(plain):
        return ()
    written = iso_date(written) if written else ""
    rules = _CHINESE if has_cjk(plain) else _ENGLISH
    expressions: list[TimeExpression] = []
    dates = list(_find_dates(plain, written, rules))
    position = 0
    while position < len(dates):
        expression, used = _expression(plain, dates[position : position + 2], rules)
        if expression is not None:
            expressions.append(expression)
        position += used
    expressions += _words_without_date(plain, rules, expressions)
    return tuple(sorted(expressions, key=lambda expression: expression.start))


# ── clauses ─────────────────────────────────────────────────────────────────────

_CLAUSE_END = re.compile(
    r"[,;:，；：]|\s[–—]\s|——|\s(?:and|but|while|whereas|then)\s", re.IGNORECASE
)
_LIFE_DATES = re.compile(r"[(（][^()（）]{0,12}$")


def _sentences_about(text: str, names: Sequence[str]) -> list[str]:
    """The sentences with all names, or else with a single name, or else all sentences."""
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    counts = [_count_names(sentence, names) for sentence in sentences]
    highest = max(counts, default=0)
    return [sentence for sentence, count in zip(sentences, counts, strict=True) if count == highest]


def _count_names(sentence: str, names: Sequence[str]) -> int:
    folded = nfkc_casefold(sentence)
    return sum(name in folded for name in names)


def _of_clauses(sentence: str, names: Sequence[str], written: str) -> list[TimeExpression]:
    """The expressions in the clauses with the names; or else of the clause before,
    or else of the clause after.
    """
    expressions = [
        expression
        for expression in find_time_expressions(sentence, written)
        if not (expression.valid_to and _LIFE_DATES.search(sentence, 0, expression.start))
    ]
    if len(expressions) < 2:
        return expressions
    clauses = _clauses(sentence, expressions)
    in_clause = [
        [expression for expression in expressions if start <= expression.start < end]
        for start, end in clauses
    ]
    numbers = [
        number
        for number, (start, end) in enumerate(clauses)
        if _count_names(sentence[start:end], names)
    ]
    first = min(numbers, default=0)
    last = max(numbers, default=len(clauses) - 1)
    for number in numbers:
        if _count_names(sentence[slice(*clauses[number])], names) == len(names):
            first = number
            last = number
            break
    own = [expression for number in range(first, last + 1) for expression in in_clause[number]]
    before = [clause for clause in in_clause[:first] if clause]
    after = [clause for clause in in_clause[last + 1 :] if clause]
    return own or [*before[-1:], *after[:1]][0]


def _clauses(sentence: str, expressions: Sequence[TimeExpression]) -> list[tuple[int, int]]:
    """The spans of the clauses of a sentence; no expression is cut in two."""
    starts = [0]
    for border in _CLAUSE_END.finditer(sentence):
        is_inside = any(
            expression.start <= border.start() and border.end() <= expression.end
            for expression in expressions
        )
        if not is_inside:
            starts.append(border.end())
    return list(zip(starts, [*starts[1:], len(sentence)], strict=True))


def _combined(expressions: Sequence[TimeExpression]) -> tuple[str, str]:
    """The dates of a statement with several expressions: from the last beginning on, and with an end if
    every expression has an end.
    """
    begins = [expression.valid_from for expression in expressions if expression.valid_from]
    ends = [expression.valid_to for expression in expressions if expression.valid_to]
    latest_begin = max(begins, key=first_day, default="")
    latest_end = max(ends, key=last_day, default="")
    if len(ends) == len(expressions):
        return min(begins, key=first_day, default=""), latest_end
    is_pair = len(expressions) == 2 and len(begins) == len(ends) == 1
    if is_pair and first_day(latest_begin) <= last_day(latest_end):
        return latest_begin, latest_end
    return latest_begin, ""


# ── the rules of a language ─────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Date:
    """The first and the last date in some words: different only for a decade."""

    start: int
    end: int
    first: str
    last: str
    is_bare: bool = False  # a plain year, which may also be a number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The words of a language around a date: patterns before it end there, patterns after it begin there."""

    dates: re.Pattern[str]
    resolve: Callable[[re.Match[str], str], tuple[str, str]]
    no_date: re.Pattern[str]
    joint: re.Pattern[str]
    to_now: re.Pattern[str]
    opening: re.Pattern[str]
    until_before: re.Pattern[str]
    until_after: re.Pattern[str]
    before_before: re.Pattern[str]
    before_after: re.Pattern[str]
    during_before: re.Pattern[str]
    during_after: re.Pattern[str]
    from_before: re.Pattern[str]
    from_after: re.Pattern[str]
    now: re.Pattern[str]
    since_then: re.Pattern[str]


_HINT = re.compile(  # of casefolded texts: four times as fast as a pattern that ignores case
    r"\b(?:ad\b|since then\b|now\b|current|today|yesterday|ago\b|(?:last|this|next)\s"
    r"|(?:january|february|march|april|may|june|july|august|september|october|november|december)\b)"
    r"|\d{4}|[年月今昨]|此后|其后|从那|自此|现在|目前|如今"
)


def _may_hold_dates(text: str) -> bool:
    """Whether there is a word, or a number of four digits, without which a text holds no date."""
    return _HINT.search(half_width(text).casefold()) is not None


def _find_dates(text: str, written: str, rules: _Rules) -> Iterator[_Date]:
    """The dates of a text, in order; relative dates only for a text of a known date."""
    for match in rules.dates.finditer(text):
        if rules.no_date.match(text, match.end()):
            continue
        first, last = rules.resolve(match, written)
        if first:
            is_bare = match[0].isdigit()
            yield _Date(match.start(), match.end(), first, last, is_bare)


def _expression(
    text: str, dates: Sequence[_Date], rules: _Rules
) -> tuple[TimeExpression | None, int]:
    """The expression from the first of two dates on, and the number of dates in the expression."""
    date = dates[0]
    before = text[max(0, date.start - 40) : date.start]
    opening = rules.opening.search(before)
    start = date.start - len(before) + opening.start() if opening else date.start
    if len(dates) > 1 and rules.joint.fullmatch(text, date.end, dates[1].start):
        end_date = dates[1]
        if first_day(date.first) <= last_day(end_date.last):
            return TimeExpression(start, end_date.end, date.first, end_date.last), 2
    if to_now := rules.to_now.match(text, date.end):
        return TimeExpression(start, to_now.end(), date.first), 1
    return _single(text, date, before, rules), 1


def _single(text: str, date: _Date, before: str, rules: _Rules) -> TimeExpression | None:
    """The expression of one date, by the words before and after it."""
    joint = rules.joint.match(text, date.end)
    if date.is_bare and joint and text[joint.end() : joint.end() + 1].isdigit():
        return None  # from 1500 to 2000 euros
    for before_rule, after_rule, valid_from, valid_to in (
        (rules.before_before, rules.before_after, "", date_before(date.first)),
        (rules.until_before, rules.until_after, "", date.last),
        (rules.during_before, rules.during_after, date.first, date.last),
        (rules.from_before, rules.from_after, date.first, ""),
    ):
        leading = before_rule.search(before)
        following = after_rule.match(text, date.end)
        if leading or following:
            start = date.start - len(before) + leading.start() if leading else date.start
            end = following.end() if following else date.end
            return TimeExpression(start, end, valid_from, valid_to)
    if date.is_bare:
        return None
    valid_to = date.last if date.last != date.first else ""
    return TimeExpression(date.start, date.end, date.first, valid_to)


def _words_without_date(
    text: str, rules: _Rules, expressions: Sequence[TimeExpression]
) -> Iterator[TimeExpression]:
    """ "Since then", which begins where the expression before it ends; and "now", which keeps a clause
    from taking the date of another clause.
    """
    for match in rules.since_then.finditer(text):
        earlier = [expression for expression in expressions if expression.end <= match.start()]
        if earlier:
            latest = max(earlier, key=lambda expression: expression.start)
            begin = latest.valid_to or latest.valid_from
            yield TimeExpression(match.start(), match.end(), begin)
    for match in rules.now.finditer(text):
        is_apart = all(
            match.end() <= expression.start or expression.end <= match.start()
            for expression in expressions
        )
        if is_apart:
            yield TimeExpression(match.start(), match.end())


# ── English ─────────────────────────────────────────────────────────────────────

_NUMBER_WORDS = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_FULL_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December"
)
_NO_NUMBER_BEFORE = r"(?<![\d.,$€£¥#№-])(?<!\w)"
_ENGLISH_DATE = re.compile(
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


def _before(words: str) -> re.Pattern[str]:
    """Words right before a date, with an article or "early" between."""
    between = (
        r"(?:(?:the\s+)?(?:year\s+|beginning\s+of\s+|end\s+of\s+|early\s+|late\s+|mid-?\s*)?)?"
    )
    return re.compile(rf"(?<!\w)(?:{words})\s+{between}$", re.IGNORECASE)


def _words_after(words: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{words})", re.IGNORECASE)


_NEVER = re.compile(r"(?!)")
_ENGLISH = _Rules(
    dates=_ENGLISH_DATE,
    resolve=_english_date,
    no_date=re.compile(
        r"[.,]\d|\s?(?:%|°|percent|per\s|euros?\b|dollars?\b|pounds?\b|yuan\b|people\b|km\b|m\b|kg\b|miles?\b"
        r"|meters?\b|metres?\b|pages?\b|times\b|copies\b|items?\b|points?\b|tons?\b|years?\b|days\b|hours\b)",
        re.IGNORECASE,
    ),
    joint=re.compile(
        r",?\s*(?:–|—|-|to|until|till|through|and|up to)\s*(?:the\s+)?(?:end\s+of\s+|early\s+|late\s+)?",
        re.IGNORECASE,
    ),
    to_now=re.compile(
        r"\s*(?:–|—|-|to|until|till|through)\s*(?:the\s+)?(?:present|now|today|date)\b",
        re.IGNORECASE,
    ),
    opening=_before("from|between|in|during|for"),
    until_before=_before(
        r"until|till|up\s+to|through|to|ends?(?:\s+(?:on|in))?|ended(?:\s+(?:on|in))?|expires?(?:\s+(?:on|in))?"
        r"|expired(?:\s+(?:on|in))?|expiring(?:\s+(?:on|in))?"
    ),
    until_after=_NEVER,
    before_before=_before("before|prior\\s+to"),
    before_after=_NEVER,
    during_before=_before("during|throughout"),
    during_after=_NEVER,
    from_before=_before(
        r"since|as\s+of|as\s+from|effective(?:\s+from)?|starting(?:\s+(?:in|on|from))?"
        r"|beginning(?:\s+(?:in|on))?|after|from|in|on|at|by|around|about"
    ),
    from_after=_words_after(r"onwards?\b"),
    now=re.compile(r"\b(?:now|currently|at present|presently)\b", re.IGNORECASE),
    since_then=re.compile(
        r"\b(?:since then|from then on|since that time|ever since|has\b[^,.;]{0,60}\bsince)(?=\W|$)(?!\s+\d)",
        re.IGNORECASE,
    ),
)

# ── Chinese ─────────────────────────────────────────────────────────────────────

_TIME_STEPS = {  # from the date of a text, in years or months
    "前": -2,
    "去": -1,
    "上": -1,
    "上个": -1,
    "今": 0,
    "本": 0,
    "当": 0,
    "这个": 0,
    "明": 1,
    "下": 1,
    "下个": 1,
}
_DAY = rf"(?:(?P<day>{CHINESE_NUMBER}{{1,3}})[日号])?"
_CHINESE_DATE = re.compile(
    rf"(?<![\d.,$¥])(?:(?P<whole>\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{4}}-\d{{2}}(?!\d))"
    rf"|(?P<era>{ERAS})(?P<era_year>元|{CHINESE_NUMBER}{{1,4}})年(?:\w{{1,3}}月)?"
    rf"|公元(?P<early_year>{CHINESE_NUMBER}{{1,4}})年"
    rf"|(?:(?P<year>[12一二][\d〇零一二三四五六七八九]{{3}})年|(?P<turn_year>[去今明前当]年))"
    rf"(?:(?P<month>{CHINESE_NUMBER}{{1,3}})月{_DAY})?"
    rf"|(?P<turn_month>[本上下]个?|这个)月(?P<turn_day>{CHINESE_NUMBER}{{1,3}}[日号])?"
    rf"|(?P<word>今天|今日|昨天|昨日)|(?P<next_month>{CHINESE_NUMBER}{{1,3}})月(?P<next_day>{CHINESE_NUMBER}{{1,3}}[日号])?"
    r"|(?P<plain>(?:1[0-9]|20|21)\d{2})(?=\s*[至到—－\-–~～])|(?<=[至到—－\-–~～])(?P<plain_end>(?:1[0-9]|20|21)\d{2})(?!\d))"
)
_YEAR_BEFORE = re.compile(rf"({CHINESE_NUMBER}{{4}})年")


def _chinese_date(match: re.Match[str], written: str) -> tuple[str, str]:
    """The first and the last date in Chinese words, or ""."""
    iso = ""
    if match["whole"]:
        iso = iso_date(match["whole"])
    elif match["era"]:
        iso = era_year(match["era"], match["era_year"])
    elif match["early_year"] or match["plain"] or match["plain_end"]:
        iso = written_date(match["early_year"] or match["plain"] or match["plain_end"])
    elif match["year"]:
        iso = written_date(match["year"], match["month"] or "", match["day"] or "")
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
    joint=re.compile(r"[初末底]?\s*(?:至|到|—|——|－|-|–|~|～|直到|直至)\s*"),
    to_now=re.compile(r"[初末底]?\s*(?:(?:起|以来)\s*)?(?:至今|到现在|到目前|[—－–~～-]\s*至?今)"),
    opening=re.compile(r"(?:自从|从|自|在|于)\s*$"),
    until_before=re.compile(
        r"(?:直到|直至|截止到|截止|延续到|持续到|任职?至|有效期?至|期至|一直到|(?<!截)至|到)\s*$"
    ),
    until_after=re.compile(r"[初末底]?(?:为止|止|到期|截止|期满|失效|结束)"),
    before_before=_NEVER,
    before_after=re.compile(r"[初末底]?(?:之前|以前|前)"),
    during_before=_NEVER,
    during_after=re.compile(r"(?:期间|间(?!隔))"),
    from_before=re.compile(r"(?:自从|截至|从|自|在|于|打)\s*$"),
    from_after=re.compile(r"[初末底]?(?:起|以来|开始|之后|以后|后)"),
    now=re.compile(r"现在|目前|如今|现任|现为"),
    since_then=re.compile(r"此后|其后|从那时起|从此|自此|自那时起|那之后"),
)
