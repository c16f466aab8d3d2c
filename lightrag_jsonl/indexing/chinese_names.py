"""Finds statements about names in Chinese texts: two names of one bearer.

"刘备，字玄德", "姓张，名飞，字翼德", "又称…", "自号…". English patterns found nothing; a model's records do.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from lightrag_jsonl.text.cjk import CJK, has_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words

REACH = 24  # characters between a name and another name of the bearer
LONGEST = 8  # characters of a Chinese name
GIVEN = 2  # the most characters of a given name, and those of a courtesy name
_COMPOUND = (
    "诸葛 司马 夏侯 公孙 皇甫 欧阳 上官 太史 令狐 慕容 尉迟 长孙 东方 南宫 独孤 宇文 端木 澹台 "
    "諸葛 司馬 公孫 歐陽 尉遲 長孫 東方 南宮 獨孤 澹臺"
)
COMPOUND_SURNAMES = frozenset(_COMPOUND.split())
# Titles and offices that stand after a surname or a given name, in simplified characters: of the court and
# the army from Han to Qing, of families and religious orders, and of today's offices and professions.
CHINESE_TITLES = words(
    """公 侯 氏 某 总 皇帝 太子 公主 郡主 驸马 国舅 国丈 皇叔 皇后 太后 贵妃 王爷 贝勒 丞相 相国 宰相 太师 太傅 太保 太尉
    司徒 司空 尚书 侍郎 侍中 中郎 御史 大夫 学士 翰林 太守 刺史 使君 府君 总督 巡抚 知府 知州 知县 县令 县尉 主簿
    都督 将军 元帅 统领 提督 总兵 提辖 校尉 都尉 都头 参军 先锋 教头 员外 举人 秀才 大人 老爷 少爷 公子 相公 娘子 姑娘 奶奶
    太公 大娘 大嫂 姨娘 道长 道人 真人 法师 禅师 大师 长老 和尚 师太 先生 女士 夫人 太太 小姐 同志 师傅 教授 老师 博士 医生
    律师 法官 记者 导演 教练 警官 经理 总经理 董事长 董事 主任 会长 校长 院长 所长 馆长 处长 科长 局长 厅长 部长 行长
    省长 市长 县长 镇长 乡长 村长 书记 委员 议员 大使 总理 总统 主席 司令 政委 军长 师长 旅长 团长 营长 连长 排长 班长 队长
    上将 中将 少将 上校 中校 少校 上尉 中尉 少尉"""
)
_CALLED = pattern_of(
    r"(?P<style>[表小]?字)|(?<=[，,])一名(?!叫)|(?:又|亦|别|別|原|本|乳|诨|渾|后改|後改|更|改)[名称稱叫作]"
    r"|[后後]改|绰号|綽號|[又自别別道][号號]|(?<=[，,、（(])[号號]|[又人世自亦俗尊简簡][称稱呼](?!之)"
    r"|[称稱](?=[“「『\"])"
)
_FULL = pattern_of(rf"(?:姓([{CJK}]{{1,2}}?)[，,、\s]*)?[名讳諱]([{CJK}]{{1,2}}?)$")
_LEAD = pattern_of(r"[为為曰是叫作做之：:\s“「『‘\"]*")
_ORIGIN = "人也者子孙孫侄弟兄女"  # ends what may stand between: "诸葛亮，琅琊人，字孔明"
_STATEMENT_END = pattern_of(r"[。！？!?；;\n]|(?<=[a-z])\.\s")
_PUNCTUATION = "，,、（( \n"


class NameStatement(Struct, frozen=True):
    """The name keys of a bearer and of another name, and the words of the text that say so; `is_open` if the
    words may also be of somebody else.
    """

    bearer: str
    alias: str
    words: str
    is_open: bool = False


def surname(name: str) -> str:
    """The surname of a Chinese name with the length of a full name; else ""."""
    size = 2 if name[:2] in COMPOUND_SURNAMES else 1
    return name[:size] if size < len(name) <= size + GIVEN else ""


def name_statements(
    sentence: str, name_keys: Collection[str], full_names: Mapping[str, Sequence[str]]
) -> Iterator[NameStatement]:
    """The statements in a folded sentence about two of the name keys.

    `full_names` holds the keys of full Chinese names, by the given name.
    """
    if not has_cjk(sentence):
        return
    bearers: list[str] = []
    is_subject = False
    end = -REACH  # of the last statement
    for verb in _CALLED.finditer(sentence):
        beginning = sentence[max(0, verb.start() - REACH) : verb.start()]
        clause = _STATEMENT_END.split(beginning)[-1]
        if verb.start() - end > 1 or not bearers:
            if verb[0] == "一名":  # else it also counts people: "one X, one Y"
                continue
            subject = clause.rstrip(_PUNCTUATION)
            bearers = _bearers(subject, name_keys, full_names if verb["style"] else {})
            is_subject = _is_sole_subject(subject, bearers, is_person=verb["style"] is not None)
        start = _end_of_lead(sentence, verb.end())
        alias = _name_at(sentence, start, name_keys) or sentence[start : start + GIVEN]
        with_surname: dict[str, str] = {}
        if len(alias) == GIVEN:
            for bearer in bearers:
                with_surname[bearer] = surname(bearer) + alias
        if len(bearers) > 1:  # several have this given name
            bearers = [bearer for bearer in bearers if with_surname.get(bearer) in name_keys]
        if len(bearers) == 1 and (not verb["style"] or _ends_name(clause, bearers[0])):
            end = start + len(alias)
            is_whole = not sentence[end : end + 1].isalnum()
            statement = sentence[verb.start() - len(clause) : end]
            names = [*bearers, *with_surname.values(), alias]
            is_open = not (is_subject and is_whole)
            yield from _statements(names, name_keys, statement, is_open=is_open)


def _is_sole_subject(words: str, bearers: Sequence[str], *, is_person: bool) -> bool:
    """Whether the words before a statement leave one bearer: they are the name and nothing else, or, of a
    person, end with the full name. In 俄罗斯联邦共和国，简称 … the name may be longer than 共和国.
    """
    full_name = _FULL.search(words)
    if full_name is not None:
        return full_name[1] is not None
    return any(words.endswith(bearer) if is_person else words == bearer for bearer in bearers)


def _end_of_lead(text: str, start: int) -> int:
    """Where an alias begins after a verb: behind "is", a colon and an opening quotation mark."""
    lead = _LEAD.match(text, start)
    return lead.end() if lead else start


def _ends_name(clause: str, bearer: str) -> bool:
    """Whether a clause ends with the bearer or with punctuation, so that 字 means a courtesy name."""
    return clause.endswith((*_PUNCTUATION, bearer[-1]))


def _bearers(
    clause: str, name_keys: Collection[str], full_names: Mapping[str, Sequence[str]]
) -> list[str]:
    """The possible bearers of another name that follows the clause."""
    full_name = _FULL.search(clause)
    if full_name is not None:
        family, given_name = full_name.groups()
        return [family + given_name] if family else list(full_names.get(given_name, ()))
    for end in range(len(clause), 0, -1):
        for start in range(max(0, end - LONGEST), end - 1):
            if clause[start:end] in name_keys:
                return [clause[start:end]]
        if end == len(clause) and clause[-1] not in _ORIGIN:
            return list(full_names.get(clause[-1], ()))
    return []


def _name_at(text: str, start: int, name_keys: Collection[str]) -> str:
    """The longest of the name keys at a place in the text, of at least two characters; else ""."""
    longest_end = min(len(text), start + LONGEST)
    for end in range(longest_end, start + 1, -1):
        if text[start:end] in name_keys:
            return text[start:end]
    return ""


def _statements(
    names: Sequence[str], name_keys: Collection[str], statement: str, *, is_open: bool
) -> Iterator[NameStatement]:
    bearer, *aliases = [name for name in dict.fromkeys(names) if name in name_keys] or [""]
    for alias in aliases:
        yield NameStatement(bearer, alias, statement, is_open)
