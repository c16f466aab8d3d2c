"""Finds data written as text: data URIs, blocks of base64, hexadecimal, uuencode and SVG."""

import re
from collections import Counter

from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

SHORTEST_BLOCK = 256  # characters; digests and tokens are shorter
SHORTEST_PICTURE = 1_000  # characters of SVG
BYTE_WIDTH = 2  # digits
WORD_WIDTHS = (2, 4, 8)  # digits
COLUMN_SHARE = 0.7  # of the numbers in a dump; the others are addresses, and letters beside
FEWEST_HEX_SIGNS = 0.1  # letters, and digits: data have 37 % and 63 %
SHORTEST_LINE = 40  # of a block; lines of 64 or 76 characters are usual
# Base64 of compressed data has 41 % capitals, 41 % small letters, 16 % digits and 1.6 % slashes.
FEWEST_LETTERS = 0.10
FEWEST_DIGITS = 0.03
MOST_SLASHES = 0.08

_LINE_END = r"(?:\r?\n[ \t]*+|\\n)"  # the latter in JSON
_DATA_URI = pattern_of(
    r"data:[\w.+-]*+(?:/[\w.+-]++)?(?:;[\w.+=-]++)*?"
    rf"(?:;base64,[\w+/=%-]*+(?:{_LINE_END}[\w+/=]{{{SHORTEST_LINE},}}+)*+"
    r"|(?<=\w),(?:%[0-9A-Fa-f]{2}[^\s\"')]*+|<svg(?:(?!data:)[^\n])*?</svg>))",
    re.IGNORECASE,
)
_BASE64 = pattern_of(
    rf"(?<![\w+/=%&.-])(?:[A-Za-z0-9+/]{{{SHORTEST_LINE},}}+(?:{_LINE_END})?+)++"
    r"(?:(?<=\n)[A-Za-z0-9+/]++={0,2}(?=\r?$)|(?<=\\n)[A-Za-z0-9+/]++={0,2}(?=[\\\"])|={0,2})",
    re.MULTILINE,
)


_UUENCODED = pattern_of(
    r"^begin [0-7]{3,4} [^\n]+\n(?:[ -`]{1,62}\r?\n)*?(?:[` ]?\r?\n)?end[ \t]*$", re.MULTILINE
)
# A line of a dump may have an offset before, and the characters behind: "0010: 41 64 61 20 … |Ada …|"
_HEX_LINE = (
    r"[ \t]*+(?:(?:0x)?[0-9A-Fa-f]{4,16}+(?::[ \t]*+|[ \t]++))?+(?:(?:0x|\\x)?[0-9A-Fa-f]{2,8}(?:[ \t]{1,3}|[,:][ \t]{0,2})){6,}+"
    r"(?:(?:0x|\\x)?[0-9A-Fa-f]{2,8})?(?:(?<=  )\|?[^\n]{1,20}|[ \t]{2}\|?[^\n]{1,20})??[ \t]*\r?"
)
_LAST_HEX_LINE = (  # which is shorter
    r"[ \t]*+(?:(?:0x|\\x)?[0-9A-Fa-f]{2,16}(?:[ \t]{1,3}|[,:][ \t]{0,2}|(?=\r?$))){1,9}+"
    r"(?:[ \t]{0,50}\|?[^\s][^\n]{0,19})??[ \t]*\r?(?:\n|\Z)"
)
_HEXADECIMAL = pattern_of(rf"^(?:{_HEX_LINE}(?:\n|\Z))++(?:{_LAST_HEX_LINE})?", re.MULTILINE)
_HEX_RECORDS = pattern_of(
    r"(?<![\w+/=%&?.-])(?:[:S]?[0-9A-Fa-f]{32,}+(?:\r?\n)?+)++(?:[:S]?[0-9A-Fa-f]{4,31}$)?+(?!\w)",
    re.MULTILINE,
)
_OCTAL_DUMP = pattern_of(  # of `od`: an offset of seven digits before bytes or words
    r"^(?:[0-7]{7}(?:[ \t]+(?:[0-7]{3}|[0-7]{6}))++[ \t]*\r?(?:\n|\Z)){3,}+(?:[0-7]{7}[ \t]*\r?$)?+",
    re.MULTILINE,
)
_LINE_ADDRESS = pattern_of(
    r"\A[ \t]*+(?:0x)?(?:[0-9A-Fa-f]{4,16}:[ \t]|0[0-9A-Fa-f]{3,15}(?:[ \t]{2}|(?<=[0-9A-Fa-f]{7})[ \t]))"
)
_HEX_NUMBER = pattern_of(r"[0-9A-Fa-f]{2,}")
_SVG = pattern_of(r"<svg\b(?:(?!<svg\b).)*?</svg\s*>", re.DOTALL | re.IGNORECASE)
_SVG_WORDS = pattern_of(r"<(?:text|tspan|title|desc)\b[^<>]*>([^<]*)", re.IGNORECASE)


def without_embedded_data(text: str) -> tuple[str, int]:
    """The text without encoded data, and the number of characters left out. The words of pictures stay."""
    shorter = text
    if "data:" in text or "DATA:" in text:
        shorter = _DATA_URI.sub("", shorter)
    if "begin " in text:
        shorter = _UUENCODED.sub(_text_of_encoded, shorter)
    shorter = _OCTAL_DUMP.sub(_text_of_encoded, shorter)
    shorter = _BASE64.sub(_text_of_block, shorter)
    shorter = _HEXADECIMAL.sub(_text_of_columns, shorter)
    shorter = _HEX_RECORDS.sub(_text_of_hexadecimal, shorter)
    if "<svg" in text or "<SVG" in text:
        shorter = _SVG.sub(_words_of_picture, shorter)
    return shorter, len(text) - len(shorter)


def _text_of_encoded(match: re.Match[str]) -> str:
    return "" if len(match[0]) >= SHORTEST_BLOCK else match[0]


def _text_of_hexadecimal(match: re.Match[str]) -> str:
    """Empty for hexadecimal data; a short block, or a block of decimal numbers, is unchanged."""
    digits = "".join(_HEX_NUMBER.findall(match[0]))
    if len(digits) < SHORTEST_BLOCK:
        return match[0]
    return "" if _is_mixed(digits) else match[0]


def _text_of_columns(match: re.Match[str]) -> str:
    """Empty for bytes or words in columns. Codes are unchanged: most differ in length or end with a number, and
    words of data without a prefix have an address before.
    """
    text = match[0]
    numbers: list[str] = _HEX_NUMBER.findall(text)
    ((width, count),) = Counter(map(len, numbers)).most_common(1)
    is_in_columns = width in WORD_WIDTHS and count >= COLUMN_SHARE * len(numbers)
    is_marked = width == BYTE_WIDTH or "0x" in text or bool(_LINE_ADDRESS.match(text))
    last_digits = "".join(number[-1] for number in numbers if len(number) == width)
    if is_in_columns and is_marked and _is_mixed(last_digits):
        return _text_of_hexadecimal(match)
    return text


def _is_mixed(digits: str) -> bool:
    """Whether digits have letters and numbers among them as data have."""
    letters = sum(map(str.isalpha, digits))
    return FEWEST_HEX_SIGNS * len(digits) <= letters <= (1 - FEWEST_HEX_SIGNS) * len(digits)


def _words_of_picture(match: re.Match[str]) -> str:
    """The words in a long picture; a short picture, as in a manual, is unchanged."""
    if len(match[0]) < SHORTEST_PICTURE:
        return match[0]
    return single_spaced(" ".join(_SVG_WORDS.findall(match[0])))


def _text_of_block(match: re.Match[str]) -> str:
    """Empty for a block with the length, the lines and the mixture of letters of base64; any other is unchanged."""
    lines = [line for line in re.split(_LINE_END, match[0]) if line]
    data = "".join(lines)
    widths = {len(line) for line in lines[:-1]}
    if len(data) < SHORTEST_BLOCK or len(widths) > 1:
        return match[0]
    capitals = sum(map(str.isupper, data))
    small_letters = sum(map(str.islower, data))
    digits = sum(map(str.isdigit, data))
    is_mixed = (
        min(capitals, small_letters) >= FEWEST_LETTERS * len(data)
        and digits >= FEWEST_DIGITS * len(data)
        and data.count("/") <= MOST_SLASHES * len(data)
    )
    return "" if is_mixed else match[0]
