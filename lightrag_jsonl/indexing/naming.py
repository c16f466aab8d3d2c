"""Finds what Chinese texts say about names: that two of them are one bearer's.

"刘备，字玄德", "姓张，名飞，字翼德", "又称…", "自号…". English patterns found nothing; a model's records do.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from lightrag_jsonl.core.cjk import CJK
from lightrag_jsonl.core.names import folded_text

REACH = 24  # characters between a name and what it is also called
LONGEST = 8  # characters of a Chinese name
GIVEN = 2  # the most characters of a given name, and those of a courtesy name
_COMPOUND = (
    "诸葛 司马 夏侯 公孙 皇甫 欧阳 上官 太史 令狐 慕容 尉迟 长孙 东方 南宫 独孤 宇文 端木 澹台 "
    "諸葛 司馬 公孫 歐陽 尉遲 長孫 東方 南宮 獨孤 澹臺"
)
COMPOUND = frozenset(_COMPOUND.split())
_CALLED = re.compile(
    r"(?P<style>[表小]?字)|(?<=[，,])一名(?!叫)|(?:又|亦|别|別|原|本|乳|诨|渾|后改|後改|更|改)[名称稱叫作]"
    r"|[后後]改|绰号|綽號|[又自别別道][号號]|(?<=[，,、（(])[号號]|[又人世自亦俗尊简簡][称稱呼]"
    r"|[称稱](?=[“「『\"])"
)
_FULL = re.compile(rf"(?:姓([{CJK}]{{1,2}}?)[，,、\s]*)?[名讳諱]([{CJK}]{{1,2}}?)$")
_LEAD = re.compile(r"[为為曰是叫作做之：:\s“「『‘\"]*")
_ORIGIN = "人也者子孙孫侄弟兄女"  # ends what may stand between: "诸葛亮，琅琊人，字孔明"
_STOP = re.compile(r"[。！？!?；;\n]|(?<=[a-z])\.\s")
_PUNCTUATION = "，,、（( \n"

Statement = tuple[str, str, str]  # the bearer's name key, the other one, and the words that say so


def surname(name: str) -> str:
    """The surname of a Chinese name, if it has the length of a full one; else ""."""
    size = 2 if name[:2] in COMPOUND else 1
    return name[:size] if size < len(name) <= size + GIVEN else ""


def stated_names(
    text: str, known: Collection[str], people: dict[str, list[str]]
) -> Iterator[Statement]:
    """Pairs of `known` name keys that a text says are one bearer's.

    `people` holds those that are full Chinese names, by the given name.
    """
    bearers, until, text = list[str](), -REACH, folded_text(text)
    for found in _CALLED.finditer(text):
        left = _STOP.split(text[max(0, found.start() - REACH) : found.start()])[-1]
        if found.start() - until > 1 or not bearers:
            if found[0] == "一名":  # else it also counts people: "one X, one Y"
                continue
            bearers = _bearers(left.rstrip(_PUNCTUATION), known, people)
        lead = _LEAD.match(text, found.end())
        start = lead.end() if lead else found.end()
        alias = _name_at(text, start, known) or text[start : start + GIVEN]
        whole = {one: surname(one) + alias for one in bearers if len(alias) == GIVEN}
        if len(bearers) > 1:  # several have this given name
            bearers = [one for one in bearers if whole.get(one) in known]
        ends = (*_PUNCTUATION, *(one[-1] for one in bearers))
        if len(bearers) == 1 and (not found["style"] or left.endswith(ends)):
            until = start + len(alias)
            words = text[found.start() - len(left) : until]
            yield from _pairs([*bearers, *whole.values(), alias], known, words)


def _bearers(left: str, known: Collection[str], people: dict[str, list[str]]) -> list[str]:
    """Of whom a text may speak that goes on with another name."""
    if full := _FULL.search(left):
        family, given = full.groups()
        return [family + given] if family else people.get(given, [])
    for end in range(len(left), 0, -1):
        for start in range(max(0, end - LONGEST), end - 1):
            if left[start:end] in known:
                return [left[start:end]]
        if end == len(left) and left[-1] not in _ORIGIN:
            return people.get(left[-1], [])
    return []


def _name_at(text: str, start: int, known: Collection[str]) -> str:
    ends = range(min(len(text), start + LONGEST), start + 1, -1)
    return next((text[start:end] for end in ends if text[start:end] in known), "")


def _pairs(names: Sequence[str], known: Collection[str], words: str) -> Iterator[Statement]:
    kept = [name for name in dict.fromkeys(names) if name in known]
    yield from [(kept[0], other, words) for other in kept[1:]]
