"""Takes names apart for comparison: core, words, initials, numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from lightrag_jsonl.text import has_cjk, name_key, search_terms

SPELLED = range(5, 41)  # letters of names in which one differing letter may be a misspelling
ACRONYM = range(2, 8)  # letters of an acronym
CJK_ACRONYM = range(2, 5)

_LEGAL_FORMS = (
    "inc incorporated ltd limited llc llp plc corp corporation co company gmbh ag sa spa bv nv "
    "oy ab kg pte pty group holdings"
)
_TITLES = "mr mrs ms miss dr prof professor sir dame lady lord st saint the"
_HIS = frozenset(["mr", "sir", "lord"])
_HERS = frozenset(["mrs", "ms", "miss", "dame", "lady"])
_CJK_HIS, _CJK_HERS = ("先生",), ("女士", "夫人", "太太", "小姐")
_SMALL_WORDS = "a an and at by de del der des di du for in la le of on the to van von"
_PASSED_OVER = frozenset(f"{_LEGAL_FORMS} {_TITLES}".split())
_SMALL = frozenset(_SMALL_WORDS.split())
_CJK_ENDINGS = re.compile(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
_ROMAN = re.compile(r"[ivxlc]+")
_NUMBER = re.compile(r"\d+[a-z]*")
_CJK_NUMBER = re.compile(r"[一二三四五六七八九十百千零〇甲乙丙丁]|\d+")
_TURNED = re.compile(r"^([^,]+),\s*([^,]+)$")  # "Smith, John"
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, its words in lower case, its core without legal forms and titles, its numbers."""

    text: str
    words: tuple[str, ...]
    core: str
    numbers: tuple[str, ...]
    cjk: bool


def read_name(text: str) -> Name:
    """A name taken apart; an addition in brackets at its end does not belong to the core."""
    cjk = has_cjk(text)
    plain = _ASIDE.sub("", text) or text
    words = tuple(_words(text, cjk))
    numbers = (
        *_NUMBER.findall(text.casefold()),
        *(word for word in words[1:] if _ROMAN.fullmatch(word)),
    )
    return Name(text, words or (name_key(text),), _core(plain, cjk), tuple(sorted(numbers)), cjk)


def is_acronym(name: Name) -> bool:
    """Whether a name may abbreviate a longer one by its initials or (in Chinese) some characters."""
    if name.cjk:
        return len(name.core) in CJK_ACRONYM
    letters = name.text.replace(".", "")
    return len(letters) in ACRONYM and letters.isalpha() and letters.isupper()


def initials(name: Name) -> Iterator[str]:
    """The possible abbreviations of a longer name, in the form of a short name's core."""
    if name.cjk:
        yield from _cjk_initials(name.core)
    elif len(name.words) > 1:
        yield "".join(word[0] for word in name.words)
        yield "".join(word[0] for word in name.words if word not in _SMALL)


def abbreviates(short: Name, long: Name) -> bool:
    """Whether `short` may abbreviate `long`; a Chinese name never abbreviates one that begins with it."""
    return short.cjk == long.cjk and not (
        short.cjk and (short.core in long.core or long.core in short.core)
    )


def deletions(name: Name) -> Iterator[str]:
    """The name with each of its letters left out in turn: names that differ by a letter share one
    of these.
    """
    letters = name.core
    if not name.cjk and len(letters) in SPELLED:
        yield letters
        for place in range(len(letters)):
            yield letters[:place] + letters[place + 1 :]


def differ_by_a_letter(one: Name, other: Name) -> bool:
    """Whether one letter was changed, left out, added or swapped with its neighbour; never the
    first one.
    """
    short, long = sorted((one.core, other.core), key=len)
    if short == long or len(long) - len(short) > 1 or short[0] != long[0]:
        return False
    at = next(
        (i for i, pair in enumerate(zip(short, long, strict=False)) if len(set(pair)) > 1),
        len(short),
    )
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1]
    return short[at + 1 :] == long[at + 1 :] or (swapped and short[at + 2 :] == long[at + 2 :])


def numbers_agree(one: Name, other: Name) -> bool:
    """Whether two names hold the same numbers; "Henry IV" and "Henry V" do not."""
    if one.cjk and other.cjk and one.core != other.core:
        return _CJK_NUMBER.findall(one.core) == _CJK_NUMBER.findall(other.core)
    return one.numbers == other.numbers


def titles_agree(one: Name, other: Name) -> bool:
    """Whether no title tells two names apart; "Mr. Smith" and "Mrs. Smith" are two people."""
    return {_title(one), _title(other)} != {"his", "hers"}


# ── helpers ─────────────────────────────────────────────────────────────────────


def _title(name: Name) -> str:
    """Whose title the name begins with, or in Chinese ends with: "his", "hers", or "" for none."""
    for whose, words, endings in (("his", _HIS, _CJK_HIS), ("hers", _HERS, _CJK_HERS)):
        if name.text.endswith(endings) if name.cjk else words.intersection(name.words[:2]):
            return whose
    return ""


def _words(text: str, cjk: bool) -> list[str]:
    return [text] if cjk else search_terms(_unaccented(text))


def _core(text: str, cjk: bool) -> str:
    if cjk:
        folded = "".join(char for char in name_key(text) if char.isalnum())
        return _CJK_ENDINGS.sub("", folded) or folded
    words = search_terms(_unaccented(_TURNED.sub(r"\2 \1", text)))
    kept = [word for word in words if word not in _PASSED_OVER]
    return "".join(kept or words)


def _unaccented(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))


def _cjk_initials(core: str) -> Iterator[str]:
    """First character with one or two later ones: 北京大学 → 北大, 中国科学院 → 中科院."""
    if 4 <= len(core) <= 12:
        rest = core[1:]
        for first, char in enumerate(rest):
            yield core[0] + char
            for other in rest[first + 1 :]:
                yield core[0] + char + other
