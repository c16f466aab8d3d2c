"""Terms of the full-text search: words, and bigrams in scripts without spaces."""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from operator import add

from lightrag_jsonl.core.cjk import CJK, is_cjk
from lightrag_jsonl.core.names import nfkc_casefold, with_plain_marks
from lightrag_jsonl.core.numbered_parts import chinese_parts, english_parts, numbered_lines
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS


def search_terms(text: str) -> list[str]:
    """Search terms in order: casefolded words, or overlapping bigrams in scripts without spaces.

    Chinese characters are simplified. A possessive 's is dropped; words with an inner apostrophe are
    closed up. A Chinese number of a part is one term: 第二十二条 is "第22条", and has nothing of 第十二条.
    """
    return _terms(text, endings=False)


def index_terms(text: str) -> list[str]:
    """The search terms of a text, and the last character of CJK runs: each then begins a term; also the
    English parts by number ("section12"), and the numbers at the beginnings of lines.
    """
    english = [part.term for part in english_parts(text)]
    lines = [line.term for line in numbered_lines(text)]
    return [*_terms(text, endings=True), *english, *lines]


@lru_cache(2**16)  # the same words come again and again
def stem(term: str) -> str:
    """An English search term without the ending: the same for the forms of most verbs and nouns.

    Endings of names, such as the y of "Mary", stay: "Mary" does not meet "Mars".
    """
    word = _singular(term)
    if len(word) == 4 and word.endswith("ied"):  # "died" meets "die"
        return word[:-1]
    if verb := _PAST_OR_GERUND.fullmatch(word):
        word = _DOUBLED_CONSONANT.sub(r"\1", verb["base"])
        if word.endswith("i"):  # "married" meets "marry"
            word = f"{word[:-1]}y"
    if len(word) > 6 and word.endswith("ery"):  # "discovery" meets "discover"
        return word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def claim_stems(text: str) -> frozenset[str]:
    """The words of a text without their endings, and without words of grammar."""
    return frozenset([stem(term) for term in search_terms(text) if term not in GRAMMAR_WORDS])


def _singular(noun: str) -> str:
    if noun[:-1] in _NOUNS_IN_IE:
        return noun[:-1]
    if len(noun) > 4 and noun.endswith("ies"):
        return f"{noun[:-3]}y"
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    return noun[:-1] if is_plural and len(noun) > 3 else noun


_NOUNS_IN_IE = frozenset(  # the plural of others has a singular with y; "Marie" is not "Mary"
    [
        "birdie",
        "brownie",
        "calorie",
        "cookie",
        "genie",
        "hoodie",
        "lie",
        "movie",
        "pie",
        "pixie",
        "prairie",
        "rookie",
        "selfie",
        "smoothie",
        "tie",
        "zombie",
    ]
)
_PAST_OR_GERUND = pattern_of(r"(?=[a-z]{3,}(?:ed|ing)$)(?P<base>[a-z]*[aeiouy][a-z]*)(?:ed|ing)")
_DOUBLED_CONSONANT = pattern_of(r"(?<=[a-z]{2})([bdgmnprt])\1$")  # "stopped" meets "stop"
_UNSPACED_CLASS = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_MARKS_CLASS = "".join(
    chr(code) for code in range(0x0300, 0x1E00) if unicodedata.category(chr(code))[0] == "M"
)
_ASCII_WORD = pattern_of(r"[a-z0-9]+(?:'[a-z0-9]+)*")
_UNSPACED_RUN = pattern_of(f"([{_UNSPACED_CLASS}]+)")
_WORD = pattern_of(rf"[\w{_MARKS_CLASS}]+(?:'[\w{_MARKS_CLASS}]+)*")


def _terms(text: str, *, endings: bool) -> list[str]:
    if text.isascii():  # a quarter of the time; most English text is
        return _closed_up(_ASCII_WORD.findall(text.lower()))
    plain = with_plain_marks(nfkc_casefold(text))
    if _UNSPACED_RUN.search(plain) is None:  # English text with typographic marks
        return _closed_up(_WORD.findall(plain.replace("_", " ")))
    terms: list[str] = []
    end = 0
    for part in chinese_parts(plain):
        terms += [*_terms_of_runs(plain[end : part.start], endings=endings), part.term]
        end = part.end
    return terms + _terms_of_runs(plain[end:], endings=endings)


def _terms_of_runs(plain: str, *, endings: bool) -> list[str]:
    """The terms of folded text: words, and bigrams in scripts without spaces."""
    terms: list[str] = []
    for number, run in enumerate(_UNSPACED_RUN.split(plain.replace("_", " "))):
        is_unspaced = number % 2 == 1
        if not is_unspaced:
            terms += _closed_up(_WORD.findall(run))
            continue
        terms += map(add, run, run[1:]) if len(run) > 1 else [run]
        if endings and len(run) > 1 and is_cjk(run[-1]):
            terms.append(run[-1])
    return terms


def _closed_up(words: Iterable[str]) -> list[str]:
    """The words without possessive endings and without apostrophes."""
    return [word.removesuffix("'s").replace("'", "") if "'" in word else word for word in words]
