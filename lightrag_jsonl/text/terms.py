"""Terms of the full-text search: words, and bigrams in scripts without spaces; and the one table of stop words."""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from operator import add

from lightrag_jsonl.text.cjk import CJK, FUNCTION_CHARACTERS, is_cjk
from lightrag_jsonl.text.names import nfkc_casefold, with_plain_marks
from lightrag_jsonl.text.numbers import chinese_parts
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words

# Stop words are words without a subject of their own, in three groups, each word in the first group where it belongs:
# words of grammar, other words of any text, and words of questions. Rules of a language choose the groups that fit.

# Articles, pronouns, prepositions, auxiliary verbs, conjunctions: in nearly every English passage.
GRAMMAR_WORDS = words(
    """a an and are as at be been but by can could did do does for from had has have he her his how
    i if in into is it its me my of on or our she so such than that the their them then there these
    they this those to us was we were what when where which who whom whose why will with would you
    your"""
)
_COMMON_WORDS = words(
    """about above across after again against all almost along already also although always am among
    another any aren't around away back became because become before began being below between both
    came can't cannot come couldn't didn't doesn't doing don't done down during each either else
    enough even ever every few first further get give go goes going gone got hadn't hasn't haven't
    having here hers herself him himself however indeed instead isn't itself just keep kept know
    known last later least less let like made make many may might mine more most much must myself
    near nearly neither never next no nor not nothing now off often once one only onto other others
    ought ours ourselves out over own part per perhaps put quite rather really said same saw say says
    see seem seemed seen several shall should since some something soon still take taken theirs
    themselves therefore thing things though through thus till together too took toward towards two
    under until up upon use used very wasn't way well went weren't whatever whence whether while
    within without won't yet yours yourself yourselves alas hereby thereby therein thereupon unless
    whereas whereat whereby wherein whereupon"""
    " 的 了 和 是 在 有 我 你 他 她 它 们 这 那 之 与 及 或 而 但 也 都 就 还 又 被 把 为 对 从 到 于 以 其 此 何"
    " 什么 怎么 怎样 如何 哪 哪里 哪个 哪些 哪位 谁 吗 呢 吧 多少 几 几个 为何 为什么 是否 是什么 有什么 请问 什么样"
    " 一个 一种 一些 这个 那个 这些 那些 我们 你们 他们 它们 自己 可以 没有 不是 就是 所以 因为 因此 如果 但是 而且"
    " 以及 并且 或者 由于 关于 对于 根据 通过 之间 之后 之前 其中 其他 主要 属于 位于 叫 做 叫做 名叫 称为 成为 作为"
    " 使用 进行 开始 认为 包括 不 没 很 最 更 只 才 曾 将 会 能 要 可 所 由 等 上 下 中 里 内 外 前 后 时 者 个 位 名"
)
_QUESTION_WORDS = words(
    """name named called tell describe explain list year kind type sort person following"""
    " 什么是 何时 何地 何人 何处 哪年 哪一年 哪种 哪两个 哪国 哪一 介绍 说明 解释 告诉 列举 描述 全称 时候 东西 名称 名字 意思"
)

STOP_WORDS = GRAMMAR_WORDS | _COMMON_WORDS
FUNCTION_WORDS = STOP_WORDS | _QUESTION_WORDS


def is_grammatical(term: str) -> bool:
    """Whether a search term only joins others: a stop word, or function characters of Chinese."""
    return term in STOP_WORDS or all(map(FUNCTION_CHARACTERS.__contains__, term))


def search_terms(text: str, *, endings: bool = False) -> list[str]:
    """Search terms in order: casefolded words, or overlapping bigrams in scripts without spaces; with `endings`
    also the last character of CJK runs.

    Chinese characters are simplified. A possessive 's is dropped; words with an inner apostrophe are
    closed up. A Chinese number of a part is one term: 第二十二条 is "第22条", and has nothing of 第十二条.
    """
    if text.isascii():  # a quarter of the time; most English text is
        return _closed_up(_ASCII_WORD.findall(text.lower()))
    plain = with_plain_marks(nfkc_casefold(text))
    if _UNSPACED_RUN.search(plain) is None:  # English text with typographic marks
        return _closed_up(_WORD.findall(plain.replace("_", " ")))
    return _unspaced_terms(plain, endings=endings)


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


@lru_cache(5_000)  # the statements about a hub are looked at for many questions
def content_stems(text: str, *, without: frozenset[str] = FUNCTION_WORDS) -> frozenset[str]:
    """The different words of a text without their endings, and without function words or some of them."""
    return frozenset([stem(term) for term in search_terms(text) if term not in without])


@lru_cache(10_000)
def terms_of_name(name: str) -> frozenset[str]:
    """The different search terms of a name."""
    return frozenset(search_terms(name))


def _singular(noun: str) -> str:
    if noun[:-1] in _NOUNS_IN_IE:
        return noun[:-1]
    if len(noun) > 4 and noun.endswith("ies"):
        return f"{noun[:-3]}y"
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    return noun[:-1] if is_plural and len(noun) > 3 else noun


# ── terms ─────────────────────────────────────────────────────────────────────

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


def _unspaced_terms(plain: str, *, endings: bool) -> list[str]:
    """The terms of folded text with scripts without spaces, where a Chinese number of a part is one term."""
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
