"""Finds pictures and other data that are written as text: data URIs and blocks of base64."""

import re

SHORTEST_BLOCK = 256  # characters; digests and tokens are shorter
SHORTEST_LINE = 40  # of a block; lines of 64 or 76 characters are usual
# Base64 of compressed data has 41 % capitals, 41 % small letters, 16 % digits and 1.6 % slashes.
FEWEST_LETTERS = 0.10
FEWEST_DIGITS = 0.03
MOST_SLASHES = 0.08

_LINE_END = r"(?:\r?\n[ \t]*+|\\n)"  # the latter in JSON
_DATA_URI = re.compile(
    r"data:[\w.+-]*+(?:/[\w.+-]++)?(?:;[\w.+=-]++)*?"
    rf"(?:;base64,[\w+/=%-]*+(?:{_LINE_END}[\w+/=]{{{SHORTEST_LINE},}}+)*+"
    r"|(?<=\w),(?:%[0-9A-Fa-f]{2}[^\s\"')]*+|<svg(?:(?!data:)[^\n])*?</svg>))",
    re.IGNORECASE,
)
_BASE64 = re.compile(
    rf"(?<![\w+/=%&.-])(?:[A-Za-z0-9+/]{{{SHORTEST_LINE},}}+(?:{_LINE_END})?+)++"
    r"(?:(?<=\n)[A-Za-z0-9+/]++={0,2}(?=\r?$)|(?<=\\n)[A-Za-z0-9+/]++={0,2}(?=[\\\"])|={0,2})",
    re.MULTILINE,
)


def without_embedded_data(text: str) -> tuple[str, int]:
    """The text without data URIs and blocks of base64, and the number of characters left out."""
    shorter = text
    if "data:" in text or "DATA:" in text:
        shorter = _DATA_URI.sub("", shorter)
    shorter = _BASE64.sub(_text_of_block, shorter)
    return shorter, len(text) - len(shorter)


def _text_of_block(match: re.Match[str]) -> str:
    """Nothing for a block of base64; the block itself if it is anything else."""
    return "" if _is_encoded(match[0]) else match[0]


def _is_encoded(block: str) -> bool:
    """Whether a block has the length, the lines and the mixture of letters of base64."""
    lines = [line for line in re.split(_LINE_END, block) if line]
    data = "".join(lines)
    widths = {len(line) for line in lines[:-1]}
    if len(data) < SHORTEST_BLOCK or len(widths) > 1:
        return False
    capitals = sum(letter.isupper() for letter in data)
    small_letters = sum(letter.islower() for letter in data)
    digits = sum(letter.isdigit() for letter in data)
    return (
        min(capitals, small_letters) >= FEWEST_LETTERS * len(data)
        and digits >= FEWEST_DIGITS * len(data)
        and data.count("/") <= MOST_SLASHES * len(data)
    )
