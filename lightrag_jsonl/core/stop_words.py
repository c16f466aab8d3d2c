"""The package's one table of stop words, English and Chinese: words without a subject of their own.

Three groups, each word in the first group where it belongs: words of grammar, other words of any text,
and words of questions. Rules of a language choose the groups that fit.
"""

from lightrag_jsonl.core.cjk import FUNCTION_CHARACTERS
from lightrag_jsonl.core.text import words

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
