"""Chinese, Japanese and Korean characters, and simplified Chinese."""

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize

if TYPE_CHECKING:
    from opencc import OpenCC

CJK = (  # for the class of a pattern
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
FUNCTION_CHARACTERS = (  # Chinese ones that mean little alone
    "的了是在有我你他她它们这那之与及或而但也都就还又被把为对从到于以其此何么吗呢吧谁哪几"
)
LEAST_SPACED = 10  # pairs of characters with a blank between them
MOSTLY_SPACED = 0.6  # share of all pairs; in a list of names of two characters it is a half
LONGEST_WORD = 8  # characters; longer texts are not remembered
_UNSPACED_SCRIPTS = (
    "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # without Hangul
)
_MARKS = "\u3001\u3002\u3008-\u3011\u3014\u3015\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f“”‘’…"
_BLANK = "[ \u00a0\u3000]"
_NEIGHBOURS = pattern_of(f"[{_UNSPACED_SCRIPTS}](?=[{_UNSPACED_SCRIPTS}])")
_SPACED_NEIGHBOURS = pattern_of(f"[{_UNSPACED_SCRIPTS}](?={_BLANK}[{_UNSPACED_SCRIPTS}])")
_BLANK_INSIDE = pattern_of(
    f"(?<=[{_UNSPACED_SCRIPTS}{_MARKS}]){_BLANK}(?=[{_UNSPACED_SCRIPTS}{_MARKS}])"
)
_CJK_CHARACTER = pattern_of(f"[{CJK}]")


@lru_cache(10_000)  # the same characters come again and again
def is_cjk(char: str) -> bool:
    """Whether a character is Han, kana or Hangul, the scripts with bigrams as search terms."""
    return _CJK_CHARACTER.match(char) is not None


def has_cjk(text: str) -> bool:
    """Whether any character of the text is Han, kana or Hangul."""
    return not text.isascii() and _CJK_CHARACTER.search(text) is not None


def is_lone(term: str) -> bool:
    """Whether a term is a single CJK character; an index mainly holds bigrams of CJK characters."""
    return len(term) == 1 and is_cjk(term)


def without_blanks_inside(text: str) -> str:
    """The text without the blanks that recognition of characters (OCR) writes between Chinese or Japanese
    characters: "红 隼 公 司" is 红隼公司.

    Texts where most neighbours stand together keep their blanks: these divide names or columns.
    """
    if text.isascii():
        return text
    spaced = len(_SPACED_NEIGHBOURS.findall(text))
    if spaced < LEAST_SPACED or spaced < MOSTLY_SPACED * (spaced + len(_NEIGHBOURS.findall(text))):
        return text
    return _BLANK_INSIDE.sub("", text)


def simplified(text: str) -> str:
    """The text in simplified Chinese characters, replaced one by one: offsets stay right.

    Words decide (乾隆, but 干燥), unlike in keys and search terms.
    """
    if not has_cjk(text):
        return text
    return _simplified_word(text) if len(text) <= LONGEST_WORD else _converted_to_simplified(text)


@lru_cache(2**16)  # the same words come again and again
def _simplified_word(word: str) -> str:
    return _converted_to_simplified(word)


def _converted_to_simplified(text: str) -> str:
    converted = _simplifier().convert(sanitize(text))
    return converted if len(converted) == len(text) else with_simple_characters(text)


def with_simple_characters(text: str) -> str:
    """The text with each traditional character replaced, whatever stands beside the character."""
    if _traditional_characters().isdisjoint(text):  # a third of the time; most texts have none
        return text
    return text.translate(_simple_characters())


@cache
def _traditional_characters() -> frozenset[str]:
    return frozenset(map(chr, _simple_characters()))


@cache
def _simple_characters() -> dict[int, int]:
    """The simplified characters by traditional ones, a table for `str.translate`: read, since asking OpenCC for
    each Chinese character takes 70 ms.
    """
    table = Path(__file__).with_name("simple_characters.txt").read_text(encoding="utf-8")
    _, traditional, simple, _ = table.split("\n")
    return str.maketrans(traditional, simple)


@cache
def _simplifier() -> "OpenCC":
    from opencc import OpenCC

    return OpenCC("t2s")
