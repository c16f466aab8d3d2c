"""Facts of a text that words can decide: numbers with units, dates, names, quotations; negated words.

The word lists are closed classes of a language (numerals, units, negations, hedges), no lists of nouns.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from lightrag_jsonl.text.cjk import CJK, has_cjk
from lightrag_jsonl.text.dates import ENGLISH_MONTHS, MONTH_BEGINNINGS, MONTHS, half_width
from lightrag_jsonl.text.numbers import (
    CHINESE_MULTIPLIERS,
    ENGLISH_NUMBERS,
    ENGLISH_ORDINALS,
    chinese_number,
)
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.segmentation import segmented
from lightrag_jsonl.text.strings import words
from lightrag_jsonl.text.terms import STOP_WORDS, stem
from lightrag_jsonl.tracing.claim_words import (
    ENGLISH_MULTIPLIERS,
    FRACTIONS,
    NEGATIONS,
    SHORT_MULTIPLIERS,
    UNITS,
)

FactKind: TypeAlias = Literal["number", "date", "name", "quotation"]


class ClaimFact(Struct, frozen=True, kw_only=True):
    """Characters `start` to `end` of a text that state a fact.

    `number` is a number in the base unit of its `measure` ("" is unknown; then `number` is as written);
    `plain` is the number without its unit. `date` has year, month and day, 0 for a missing part.
    """

    kind: FactKind
    start: int
    end: int
    text: str
    number: float = 0.0
    plain: float = 0.0
    measure: str = ""
    counted: str = ""
    is_rounded: bool = False
    date: tuple[int, int, int] = (0, 0, 0)


def overlaps(start: int, end: int, facts: Iterable[ClaimFact]) -> bool:
    """Whether a fact shares a character with a span."""
    return any(start < fact.end and fact.start < end for fact in facts)


# ── numbers ─────────────────────────────────────────────────────────────────────

_UNIT_PATTERN = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
_WORD_NUMBER = "|".join([*ENGLISH_NUMBERS, *ENGLISH_MULTIPLIERS])
_CHINESE_NUMERAL = "零〇一二两三四五六七八九十百千万亿"
_COUNTING_CHARACTERS = "个名人位只条件天日号年月岁次倍种项家台辆座间所部本份张支股句元吨克米公点分秒小周级层届章节度成万亿余多"
_CLOCK = pattern_of(
    r"(?<![\d:.])(?P<hour>\d{1,2})(?:[:.：](?P<minute>\d{2}))?\s*(?P<half>[ap])\.?m\b\.?"
    r"|(?<![\d:.])(?P<hour24>[01]?\d|2[0-4])[:：](?P<minute24>[0-5]\d)(?![\d:])",
    re.IGNORECASE,
)
_FRACTION = pattern_of(
    r"\b(?P<count>an?|one|two|three|four)[\s-]+(?P<part>half|thirds?|quarters?|fifths?)\b"
    r"|(?P<bare>\bhalf\b)(?!-)"
    r"|(?P<below>[一二三四五六七八九十百])分之(?P<above>[一二三四五六七八九十百零]+(?:点[零〇一二三四五六七八九]+)?)|(?P<cjk_half>一半|过半)"
    r"|(?P<tenths>[一两二三四五六七八九])成(?P<and_half>半)?(?![为立功长员果就本人品分])",
    re.IGNORECASE,
)
_WRITTEN_NUMBER = pattern_of(
    rf"(?P<currency>US\$|[$€£¥])?\s?(?:"
    rf"(?P<digits>(?<![A-Za-z\d_.,/-])\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|(?<![A-Za-z\d.,_])\d+(?:\.\d+)?)"
    rf"(?:(?P<cjk_multiplier>[十百千万亿]+)(?P<cjk_rest>\d+(?:\.\d+)?[千万])?"
    r"|[\s-]?(?P<multiplier>(?:hundred|thousand|million|billion|trillion|bn|mn|k|(?-i:[MB]))(?![A-Za-z])))?"
    rf"|\b(?P<words>(?:{_WORD_NUMBER})(?:(?:[\s-]+(?:and\s+)?)(?:{_WORD_NUMBER}))*)\b"
    rf"|(?P<cjk>[{_CHINESE_NUMERAL}]+(?:点[零一二三四五六七八九]+)?)"
    rf")(?P<unit>[)）]?\s?(?:-|–)?\s?(?:{_UNIT_PATTERN})(?![A-Za-z]))?",
    re.IGNORECASE,
)
_NUMERAL = pattern_of(r"[\d零〇一二两三四五六七八九十百千万亿半月]")
_WORD_LETTERS = pattern_of("[a-z]+")
_VALUE_WORDS = frozenset(
    [
        *(*ENGLISH_NUMBERS, *ENGLISH_MULTIPLIERS, *FRACTIONS),
        *[month.lower() for month in MONTHS],
    ]
)
_PIECE_BORDER = pattern_of(r"\n|(?<=[.!?][\s])(?=[A-Z])|(?<=[。！？])")
_ORDINAL_WORD = "|".join(ENGLISH_ORDINALS)
_ORDINAL_AFTER = pattern_of(rf"\s?(?:st|nd|rd|th)\b|[\s-](?:{_ORDINAL_WORD})\b", re.IGNORECASE)
_WORD_BEHIND = pattern_of(rf"[\s-]*(?P<word>[A-Za-z]+|[{CJK}])")
_ROUNDED = pattern_of(
    r"(?:\b(?:about|around|approximately|roughly|some|circa|nearly|almost|close to|approx\.?)|约|大约|近|将近|接近)\s*$",
    re.IGNORECASE,
)
_TITLE_MARKS = frozenset('“"‘《「”’》」')


def _english_number(text: str) -> float:
    """A number in English words: twenty-three, two hundred and fifty thousand."""
    total = section = 0.0
    for word in re.split(r"[\s-]+", text.lower()):
        if word in ENGLISH_NUMBERS:
            section += ENGLISH_NUMBERS[word]
        elif word == "hundred":
            section = (section or 1) * 100
        elif word in ENGLISH_MULTIPLIERS:
            total += (section or 1) * ENGLISH_MULTIPLIERS[word]
            section = 0
    return total + section


def _number_value(match: re.Match[str]) -> float:
    if match["digits"]:
        value = float(match["digits"].replace(",", ""))
        for char in match["cjk_multiplier"] or "":
            value *= CHINESE_MULTIPLIERS[char]
        if match["cjk_rest"]:
            value += float(match["cjk_rest"][:-1]) * CHINESE_MULTIPLIERS[match["cjk_rest"][-1]]
        multiplier = (match["multiplier"] or "").lower()
        return value * (ENGLISH_MULTIPLIERS | SHORT_MULTIPLIERS).get(multiplier, 1.0)
    if match["words"]:
        return _english_number(match["words"])
    return chinese_number(match["cjk"])


def _clock_facts(text: str) -> Iterator[ClaimFact]:
    """Times of day, as minutes."""
    for match in _CLOCK.finditer(text):
        if match["half"]:
            hour = int(match["hour"]) % 12 + (12 if match["half"] in "pP" else 0)
            minute = int(match["minute"] or 0)
        else:
            hour = int(match["hour24"])
            minute = int(match["minute24"])
        minutes = 60.0 * hour + minute
        yield _number_fact(match, minutes, "clock")


def _fraction_facts(text: str) -> Iterator[ClaimFact]:
    for match in _FRACTION.finditer(text):
        if match["part"]:
            count = match["count"].lower()
            above = 1 if count in ("a", "an") else ENGLISH_NUMBERS[count]
            value = above / FRACTIONS[match["part"].lower()]
        elif match["tenths"]:
            value = chinese_number(match["tenths"]) / 10 + (0.05 if match["and_half"] else 0)
        elif match["below"]:
            value = chinese_number(match["above"]) / max(chinese_number(match["below"]), 1)
        else:
            value = 0.5
        yield _number_fact(match, value, "share", is_rounded=_is_rounded(text, match.start()))


def _number_fact(
    match: re.Match[str], number: float, measure: str, *, is_rounded: bool = False
) -> ClaimFact:
    return ClaimFact(
        kind="number",
        start=match.start(),
        end=match.end(),
        text=match[0].strip(),
        number=number,
        plain=number,
        measure=measure,
        is_rounded=is_rounded,
    )


def _is_rounded(text: str, start: int) -> bool:
    return _ROUNDED.search(text, max(0, start - 16), start) is not None


def _plain_number_facts(text: str, special: Collection[ClaimFact]) -> Iterator[ClaimFact]:
    """Numbers with their units, but for dates, times and shares, the `special` ones."""
    for match in _WRITTEN_NUMBER.finditer(text):
        group = "digits" if match["digits"] else "words" if match["words"] else "cjk"
        start = match.start(group)
        end = match.end()
        if overlaps(start, end, special) or _is_no_number(text, match):
            continue
        unit = (match["unit"] or "").strip(" -–)）").lower() or (match["currency"] or "").lower()
        measure, factor = UNITS.get(unit, ("", 1.0))
        plain = _number_value(match)
        following = _WORD_BEHIND.match(text, end)
        counted = stem(following["word"].lower()) if following and not unit else ""
        start = match.start() if match["currency"] else start
        yield ClaimFact(
            kind="number",
            start=start,
            end=end,
            text=text[start:end].strip(),
            number=plain * factor,
            plain=plain,
            measure=measure,
            counted=counted,
            is_rounded=_is_rounded(text, match.start()),
        )


def _is_no_number(text: str, match: re.Match[str]) -> bool:
    """Whether a match is an ordinal, a title in quotation marks, or a numeral that is a part of a word."""
    start, end = match.span()
    if text[start - 1 : start] in _TITLE_MARKS and text[end : end + 1] in _TITLE_MARKS:
        return True
    if text[start - 1 : start] == "第" or _ORDINAL_AFTER.match(text, end):
        return True
    if match["cjk"] is not None:
        numeral = match["cjk"]
        if len(numeral) == 1 and (
            numeral in "一十百千万亿零" or text[end : end + 1] not in _COUNTING_CHARACTERS
        ):
            return match["unit"] is None or numeral == "一"
        return len(numeral) > 1 and set(numeral) <= set("十百千万亿")
    number_words = (match["words"] or "").lower()
    return number_words in ("one", "zero", *ENGLISH_MULTIPLIERS) and not match["unit"]


# ── dates ───────────────────────────────────────────────────────────────────────

_DAY_WORDS = rf"(?:(?:twenty|thirty)[\s-])?(?:{_ORDINAL_WORD})"
_DATES = tuple(
    pattern_of(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d.-])(?P<year>\d{4})[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?"
        rf"(?!\d|[.-]\d| ?(?:{_UNIT_PATTERN})(?![A-Za-z]))",  # 1250.5 m is no date
        rf"\b(?P<month>{ENGLISH_MONTHS})\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s?[-–]\s?\d{{1,2}})?(?:,?\s+(?P<year>\d{{4}}))?(?!\d)",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{ENGLISH_MONTHS})(?:,?\s+(?P<year>\d{{4}}))?(?!\w)",
        rf"\b(?P<day>{_DAY_WORDS})\s+(?:day\s+)?of\s+(?P<month>{ENGLISH_MONTHS})(?:,?\s+(?P<year>\d{{4}}))?(?!\w)",
        rf"\b(?P<month>{ENGLISH_MONTHS})\s+the\s+(?P<day>{_DAY_WORDS})(?:,?\s+(?P<year>\d{{4}}))?(?!\w)",
        rf"\b(?P<month>{ENGLISH_MONTHS}),?\s+(?:of\s+)?(?P<year>\d{{4}})\b",
        r"(?P<year>[\d零〇一二三四五六七八九]{4}) ?年(?: ?(?P<month>[\d一二三四五六七八九十]{1,3}) ?月(?:份| ?(?P<day>[\d一二三四五六七八九十]{1,3}) ?[日号])?)?",
        r"(?P<month>[\d一二三四五六七八九十]{1,2}) ?月 ?(?P<day>[\d一二三四五六七八九十]{1,3}) ?[日号]",
        r"(?<![\d个])(?P<month>1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九]) ?月(?!\d)",
        rf"(?<![\w$€£¥.,-])(?P<year>(?:1[0-9]|20)\d{{2}})(?![\w%]|[.,]\d| (?:{_UNIT_PATTERN})(?![A-Za-z]))",
    )
)
_LONE_MONTH = pattern_of(rf"\b(?P<month>{'|'.join(MONTHS)})\b")


def _part_of_quantity(text: str | None) -> int:
    if not text:
        return 0
    if text.isdecimal():
        return int(text)
    if text[:3].lower() in MONTH_BEGINNINGS:
        return MONTH_BEGINNINGS.index(text[:3].lower()) + 1
    if text.isascii():
        *tens, ordinal = re.split(r"[\s-]", text.lower())
        return int(_english_number(" ".join(tens))) + ENGLISH_ORDINALS[ordinal]
    return int(chinese_number(text))


def _date_facts(text: str) -> list[ClaimFact]:
    """Dates; of overlapping ones the first form."""
    facts: list[ClaimFact] = []
    for pattern in (*_DATES, _LONE_MONTH):
        for match in pattern.finditer(text):
            if overlaps(*match.span(), facts):
                continue
            groups = match.groupdict()
            date = (
                _part_of_quantity(groups.get("year")),
                _part_of_quantity(groups.get("month")),
                _part_of_quantity(groups.get("day")),
            )
            if date[1] > 12 or date[2] > 31:
                continue
            facts.append(
                ClaimFact(
                    kind="date", start=match.start(), end=match.end(), text=match[0], date=date
                )
            )
    return sorted(facts, key=lambda fact: fact.start)


# ── quotations ──────────────────────────────────────────────────────────────────

_QUOTED = pattern_of(
    r"“([^“”\n]{2,400})”|「([^「」\n]{2,400})」|(?<!\w)\"([^\"\n]{2,400})\"(?!\w)|《([^《》\n]{1,80})》"
)


def quotation_facts(text: str) -> Iterator[ClaimFact]:
    """What stands in quotation marks, without a single English word: that may only be a term."""
    for match in _QUOTED.finditer(text):
        group = match.lastindex or 1
        quoted = match[group]
        if has_cjk(quoted) or len(quoted.split()) > 1 or group == 4:
            yield ClaimFact(
                kind="quotation", start=match.start(group), end=match.end(group), text=quoted
            )


# ── names ───────────────────────────────────────────────────────────────────────

_WORD_LIKE_A_NAME = pattern_of(
    r"(?<![\w'’])(?:[A-Z]\.(?:\s?[A-Z]\.)*|[^\W\d_a-zß-öø-ÿ][\w'’&.-]*[\w]|[A-Z])"
)
_BEFORE_SENTENCES = '.!?:;…"“‘([*•#>-\n'
_NEAR_START = 4  # characters before a name, with white space
_TAGS_OF_NAMES = ("nr", "ns", "nt", "nrt", "nrfg", "nz")
_LONGEST_DOUBTFUL = 2  # characters of a Chinese name
_TITLES_OF_PEOPLE = "mr mrs ms miss dr prof professor sir lady lord st"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_NO_NAMES = words(f"{_TITLES_OF_PEOPLE} {_WEEKDAYS} i no the a an ok am pm")
_CJK_CHARACTER = pattern_of(f"[{CJK}]")
_CAPITAL_INSIDE = pattern_of(r"(?<=[a-z,] )[A-Z][\w'-]+")


def capitalized_words(text: str) -> frozenset[str]:
    """The words that stand with a capital inside the sentences of a text, in lower case."""
    return frozenset([match[0].lower() for match in _CAPITAL_INSIDE.finditer(text)])


def _english_name_facts(text: str, is_known: Callable[[str], bool]) -> Iterator[ClaimFact]:
    """Runs of capitalized words; the first word of a sentence if it is known as a name's or a name
    goes on.
    """
    latin_text = _CJK_CHARACTER.sub("|", text)  # Chinese stands beside a name without a space
    matches = [match for match in _WORD_LIKE_A_NAME.finditer(latin_text) if match[0][:1].isupper()]
    runs: list[list[re.Match[str]]] = []
    for match in matches:
        if runs and text[runs[-1][-1].end() : match.start()] in (" ", "-", ". "):
            runs[-1].append(match)
        else:
            runs.append([match])
    for run in runs:
        while run and _begins_no_name(text, run, is_known):
            run.pop(0)
        if run:
            start = run[0].start()
            end = run[-1].end()
            yield ClaimFact(
                kind="name",
                start=start,
                end=end,
                text=text[start:end].removesuffix("'s").removesuffix("’s"),
            )


def is_no_name(word: str) -> bool:
    """Whether a capitalized word is one of grammar, a title, a weekday or a number."""
    plain = word.lower().rstrip(".").removesuffix("'s").removesuffix("’s")
    return plain in _NO_NAMES or plain in STOP_WORDS or plain in ENGLISH_NUMBERS


def _begins_sentence(text: str, start: int) -> bool:
    """Whether a word begins a sentence, a line or a quotation."""
    before = text[max(0, start - _NEAR_START) : start].rstrip(" \t\xa0\u3000")
    return before[-1] in _BEFORE_SENTENCES if before else start <= _NEAR_START


def _begins_no_name(text: str, run: list[re.Match[str]], is_known: Callable[[str], bool]) -> bool:
    """Whether the first word of a run is no name, or only begins a sentence."""
    if is_no_name(run[0][0]):
        return True
    is_in_chinese = has_cjk(text[run[-1].end() : run[-1].end() + 2])  # which knows no capitals
    if is_in_chinese or not _begins_sentence(text, run[0].start()):
        return False
    return not is_known(run[0][0].lower().rstrip(".").removesuffix("'s").removesuffix("’s"))


def _chinese_name_facts(text: str, is_known: Callable[[str], bool]) -> Iterator[ClaimFact]:
    """Names by the tags of a segmenter, which calls many words of two characters a name (美丽, 和平): these
    are only names if they are known.
    """
    for word in segmented(text):
        if word.tag not in _TAGS_OF_NAMES or not has_cjk(word.text):
            continue
        if len(word.text) > _LONGEST_DOUBTFUL or is_known(word.text):
            yield ClaimFact(kind="name", start=word.start, end=word.end, text=word.text)


# ── all facts ───────────────────────────────────────────────────────────────────


@lru_cache(4_000)  # sentences are near several claims
def value_facts(text: str) -> tuple[ClaimFact, ...]:
    """The numbers and dates of a text, in order."""
    if not _may_have_values(text):
        return ()
    plain = half_width(text)
    dates = _date_facts(plain)
    special = [*_clock_facts(plain), *_fraction_facts(plain)]
    special = [fact for fact in special if not overlaps(fact.start, fact.end, dates)]
    numbers = _plain_number_facts(plain, [*dates, *special])
    facts = sorted([*dates, *special, *numbers], key=lambda fact: fact.start)
    if plain == text:
        return tuple(facts)
    return tuple([structs.replace(fact, text=text[fact.start : fact.end]) for fact in facts])


def _may_have_values(text: str) -> bool:
    """Whether a text has a numeral, or a word of a number or a month: most sentences have none."""
    if _NUMERAL.search(text):
        return True
    return not _VALUE_WORDS.isdisjoint(_WORD_LETTERS.findall(text.lower()))


def values_in_passage(text: str) -> list[ClaimFact]:
    """The numbers and dates of a long text; their places are not those of the text."""
    return [value for piece in _PIECE_BORDER.split(text) for value in value_facts(piece)]


def name_facts(text: str, is_known: Callable[[str], bool]) -> list[ClaimFact]:
    """The names of a text; `is_known` tells of a word in lower case whether it belongs to a name. An English
    name in brackets in a Chinese text is a translation.
    """
    facts = list(_english_name_facts(text, is_known))
    if has_cjk(text):
        facts = [fact for fact in facts if text[fact.start - 1 : fact.start] not in ("(", "（")]
        facts += _chinese_name_facts(text, is_known)
    return facts


# ── words that turn a statement round, or make it weaker or stronger ────────────

_LIMITS = words(  # "not only", "not until", "not beyond": it is, with a limit
    "only just merely necessarily least until unless beyond except more less 只 仅 除非 除了 超过 才"
)
_ENGLISH_TOKEN = pattern_of(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+(?:[.,]\d+)*|[.,;:!?()—–]")
_SCOPE_ENDS = frozenset(".,;:!?()—–，。；：！？、（）")
_SCOPE = 2  # words of content after a negation that it is said of
_FARTHEST = 8  # words after it


class Operator(Struct, frozen=True, kw_only=True):
    """A word that changes what is said of the words of content right after it: "not", "may"."""

    start: int
    end: int
    text: str
    words: frozenset[str]


class Polarity(Struct, frozen=True, kw_only=True):
    """The operators of a text, and the words of content that none of them is said of."""

    operators: tuple[Operator, ...]
    affirmed: frozenset[str]


@lru_cache(4_000)
def _tokens(text: str) -> tuple[tuple[int, int, str], ...]:
    """The words and marks of a text with their places, in lower case."""
    if has_cjk(text):
        segments = segmented(half_width(text))
        return tuple([(word.start, word.end, word.text.lower()) for word in segments])
    return tuple(
        [
            (match.start(), match.end(), match[0].lower().replace("’", "").replace("'", ""))
            for match in _ENGLISH_TOKEN.finditer(text)
        ]
    )


@lru_cache(4_000)
def polarity(text: str, operators: frozenset[str] = NEGATIONS) -> Polarity:
    """What a text says "not" of; or what it says with other `operators`, such as "may"."""
    tokens = _tokens(text)
    found_operators: list[Operator] = []
    changed_places: set[int] = set()
    for place, (start, end, word) in enumerate(tokens):
        is_month = word == "may" and text[start] != "m"
        scope = _scope(tokens, place) if word in operators and not is_month else None
        if scope is None:
            continue
        operator = Operator(
            start=start,
            end=end,
            text=text[start:end],
            words=frozenset([_content(tokens[changed][2]) for changed in scope]),
        )
        found_operators.append(operator)
        changed_places |= {place, *scope}
    affirmed = [
        _content(word)
        for place, (_, _, word) in enumerate(tokens)
        if place not in changed_places and _is_content_word(word)
    ]
    return Polarity(operators=tuple(found_operators), affirmed=frozenset(affirmed))


def _scope(tokens: Sequence[tuple[int, int, str]], place: int) -> list[int] | None:
    """The places of the words of content right after an operator; None if it only sets a limit."""
    scope: list[int] = []
    for following in range(place + 1, min(place + _FARTHEST, len(tokens))):
        word = tokens[following][2]
        if word in _LIMITS:
            return None
        if word in _SCOPE_ENDS or word in NEGATIONS:
            break
        if _is_content_word(word) and len(scope) < _SCOPE:
            scope.append(following)
    return scope


def _is_content_word(word: str) -> bool:
    return word[0].isalnum() and word not in STOP_WORDS


def _content(word: str) -> str:
    return stem(word) if word.isascii() else word


def words_of(text: str, searched_words: Collection[str]) -> list[tuple[int, int, str]]:
    """The places of these words in a text."""
    return [token for token in _tokens(text) if token[2] in searched_words]
