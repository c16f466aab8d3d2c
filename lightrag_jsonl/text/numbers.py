"""Numbers in words, English and Chinese; and parts of texts by their numbers, however these are written.

第二十二条 is 第22条, "Sec. XII" is section 12.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from lightrag_jsonl.text.patterns import pattern_of

_UP_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ENGLISH_NUMBERS = {
    **{word: number for number, word in enumerate(_UP_TO_NINETEEN.split())},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), start=2)},
}
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
ENGLISH_ORDINALS = {
    _IRREGULAR_ORDINALS.get(word, word.removesuffix("y") + ("ieth" if word[-1] == "y" else "th")): n
    for word, n in ENGLISH_NUMBERS.items()
    if n
}
CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
}
CHINESE_MULTIPLIERS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}


def chinese_number(text: str) -> float:
    """A number in Chinese numerals: 二十三, 一九一一, 三点五."""
    whole, _, decimals = text.partition("点")
    total = section = digit = 0.0
    if not any(char in CHINESE_MULTIPLIERS for char in whole):
        total = float("".join(str(CHINESE_DIGITS[char]) for char in whole))
    else:
        for char in whole:
            if char in CHINESE_DIGITS:
                digit = CHINESE_DIGITS[char]
            elif char in "十百千":
                section += (digit or 1) * CHINESE_MULTIPLIERS[char]
                digit = 0
            else:
                total = (total + section + digit or 1) * CHINESE_MULTIPLIERS[char]
                section = digit = 0
        total += section + digit
    if decimals:
        total += float("0." + "".join(str(CHINESE_DIGITS[char]) for char in decimals))
    return total


# ── parts by their numbers ────────────────────────────────────────────────────

_CHINESE_UNITS = "条條款项項章节節编編篇卷回页頁号號集课課讲講期届屆"
_SIMPLE_UNITS = str.maketrans("條項節編頁號課講屆", "条项节编页号课讲届")
_CHINESE_NUMERALS = "".join([*CHINESE_DIGITS, "○十百千"])  # ○ as it is typed for 〇
_CHINESE_PART = pattern_of(
    rf"第\s?(?P<number>[0-9０-９]{{1,6}}|[{_CHINESE_NUMERALS}]{{1,12}})"
    rf"\s?(?P<unit>[{_CHINESE_UNITS}])"
)
_SHORT_UNITS = {"§": "section", "sec": "section", "art": "article", "ch": "chapter"}
_SHORT_UNITS |= {"para": "paragraph", "reg": "regulation"}
_NUMBER_WORDS = {word: value for word, value in ENGLISH_NUMBERS.items() if 1 <= value <= 20}
_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ENGLISH_PART = pattern_of(
    r"(?=[acprsACPRS§])"  # for speed: the first letters of all units
    r"(?:(?<![^\W_])(?i:(?P<unit>section|article|clause|chapter|paragraph|rule|regulation|part|amendment"
    r"|annex|appendix|schedule|stave|canto)\s|(?P<short>sec|art|ch|para|reg)\.\s?)|(?P<sign>§)§?\s?)"
    r"(?P<number>\d+(?:\.\d+)*(?!\.?\d)|[IVXLC]{2,}\b|[IVX](?=[.:;,?)\n]|\Z)"
    rf"|(?i:{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})\b)"
)
_NUMBERED_LINE = pattern_of(
    r"^[ \t]*(?:#{1,6}[ \t]+)?(?P<number>\d{1,4}(?:\.\d{1,3})*)[.)]?[ \t]+(?=[\"“(*A-Z])",
    re.MULTILINE,
)
_LONGEST_NUMBER = 12  # digits of a number that is more than a series of digits
_NUMBER_IN_NAME = pattern_of(  # of a file
    rf"(?<!\d)[0-9]{{1,{_LONGEST_NUMBER}}}(?!\d)"
    rf"|(?<=第)[{_CHINESE_NUMERALS}]{{1,12}}|^[{_CHINESE_NUMERALS}]{{1,12}}(?=[、.．\s_-])"
)
_LINE = "numbered"  # the unit of a line that begins with a number, as sections of contracts do


class NumberedPart(NamedTuple):
    """A part with its number: `term` is the same for every writing. At characters `start` to `end`."""

    unit: str
    number: str
    start: int
    end: int

    @property
    def term(self) -> str:
        """One word for all writings of the part: "第22条", which the full text has, "section12"."""
        is_english = self.unit.isascii()
        return f"{self.unit}{self.number}" if is_english else f"第{self.number}{self.unit}"

    @property
    def line_term(self) -> str:
        """The term of a line that begins with the same number."""
        return f"{_LINE}{self.number}"


def natural_order(path: PurePath) -> list[str]:
    """A key that sorts files as people number them: chapter 2 before chapter 10, 第二章 before 第十章."""
    return [*[_NUMBER_IN_NAME.sub(_padded, name) for name in path.parts], *path.parts]


def _padded(written: re.Match[str]) -> str:
    """A number with leading zeros, so that numbers sort as texts do."""
    return f"{_part_number(written[0]):0{_LONGEST_NUMBER}}"


def numbered_parts(text: str) -> list[NumberedPart]:
    """The parts that a text names by their numbers, in order."""
    parts = list(english_parts(text))
    if "第" in text:
        parts += chinese_parts(text)
    return sorted(parts, key=lambda part: part.start)


def chinese_parts(text: str) -> Iterator[NumberedPart]:
    """The parts with Chinese units, such as 第十二条."""
    for match in _CHINESE_PART.finditer(text):
        number = str(_part_number(match["number"]))
        yield NumberedPart(match["unit"].translate(_SIMPLE_UNITS), number, *match.span())


def numbered_lines(text: str) -> Iterator[NumberedPart]:
    """The lines that begin with a number and a title or a sentence."""
    for match in _NUMBERED_LINE.finditer(text):
        yield NumberedPart(_LINE, match["number"], *match.span())


def english_parts(text: str) -> Iterator[NumberedPart]:
    """The parts with English units or a section sign, such as "Sec. XII"."""
    for match in _ENGLISH_PART.finditer(text):
        written = match["unit"] or match["short"] or match["sign"]
        unit = _SHORT_UNITS.get(written.lower(), written.lower())
        yield NumberedPart(unit, _english_number(match["number"]), *match.span())


def _english_number(written: str) -> str:
    """A number in digits; of Roman ones a smaller digit before a larger one is taken away."""
    if written[0].isdigit():
        return ".".join([str(int(digits)) for digits in written.split(".")])
    if value := _NUMBER_WORDS.get(written.lower()):
        return str(value)
    values = [_ROMAN_DIGITS[digit] for digit in written]
    signed = [
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    ]
    return str(sum(signed))


def _part_number(written: str) -> int:
    """A number below ten thousand: 一百二十, 二三, or digits."""
    return int(written) if written[0].isdigit() else int(chinese_number(written.replace("○", "〇")))
