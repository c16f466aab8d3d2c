"""Questions for a complete list or a number ("How many …?", "List all …", 有哪些, 多少个)."""

import re

from lightrag_jsonl.core.cjk import CJK, has_cjk
from lightrag_jsonl.core.names import folded_text
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.stop_words import GRAMMAR_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.text import words

_PLURAL = r"(?:\w{2,}(?<![aisu])s|people|men|women|children)"
_ENGLISH_LIST = pattern_of(
    r"\bhow many\b(?! (?:times|years|days|hours|minutes|months|weeks|miles|people know)\b)"
    r"|\b(?:list|enumerate)\b|\b(?:name|show|give me|tell me) (?:me )?(?:all|every|each)\b"
    rf"|\b(?:which|what) (?:(?!(?:of|is|was|does|did|do|are)\b)[\w-]+ ){{0,4}}{_PLURAL}(?: of(?: [\w-]+){{1,4}})?"
    r" (?:are|exist|do|did|have|were)\b"
    rf"|\bwhich (?:other )?(?!(?:is|was|does|this)\b){_PLURAL}\b"
    r"|\bwhat are (?:all )?the\b|\b(?:complete|full) list\b"
    r"|\b(?:who|what|which \w+) (?:all )?(?:is|are|was|were) (?:all )?(?:related|connected|linked) (?:to|with)\b"
)
_MEASURE_WORDS = "个位名家种本篇项部份条座门支款起次"
_CHINESE_LIST = pattern_of(
    f"哪些|哪几[{_MEASURE_WORDS}]|多少[{_MEASURE_WORDS}人]|有多少|几[{_MEASURE_WORDS}]|列出|列举|清单|名单"
    r"|谁[与和跟同]?.{1,40}(?:有关|相关|有[^。？?]{0,8}关系)"
)
_CHINESE_FILLERS = pattern_of(
    rf"(?:有|共有|总共有|一共有)?(?:多少|哪几|几)[{_MEASURE_WORDS}]?|"
    + "|".join(
        sorted(
            words(
                """有哪些 哪些 一共 总共 共有 列出 列举 列一下 所有 全部 全都 分别 清单 名单 请问 请给出 请 给出 告诉我
                图谱 知识库 文中 书中 库中 其中 出现过 出现 提到 提及 涉及 包括 包含 存在 有关 相关 关系 数量 数目 个数 过 了 的 是 在 都
                和 与 被 谁 吗 呢 啊 这 那 我"""
            ),
            key=lambda filler: (-len(filler), filler),
        )
    )
)
_FILLERS = GRAMMAR_WORDS | words(
    """list name all many much exist exists mentioned mention mentions different give show tell enumerate
    every each total number count complete full known appear appears occur occurs contain contains
    graph index collection please entities entity items belong belongs
    related relation relations connected connection connections linked associated"""
)
_AGENT_ENDING = pattern_of(r"(?<=[a-z]{3})(?:ers?|ors?|ees?)$")  # founders found, employees employ


def asks_for_list(question: str) -> bool:
    """Whether the shape of a question asks for all of something, or for how many there are."""
    text = folded_text(question)
    return bool(_ENGLISH_LIST.search(text) or (has_cjk(text) and _CHINESE_LIST.search(text)))


def listed_words(text: str) -> list[str]:
    """The English words for the items to be listed, without fillers, in order."""
    spaced = _CHINESE_RUN.sub(" ", _YEAR.sub(" ", folded_text(text)))
    return [word for word in search_terms(spaced) if word not in _FILLERS and not word.isdigit()]


def listed_characters(text: str) -> list[str]:
    """The Chinese pieces for the items to be listed, without fillers, in order."""
    return _CHINESE_RUN.findall(_CHINESE_FILLERS.sub(" ", _YEAR.sub(" ", folded_text(text))))


def asked_years(text: str) -> tuple[str, ...]:
    """The years in a question, as a limit of the list."""
    return tuple([year["year"] for year in _YEAR.finditer(folded_text(text))])


def has_other_numbers(text: str) -> bool:
    """Whether there is a number beside years: a name perhaps, or a number of items."""
    return re.search(r"\d", _YEAR.sub(" ", folded_text(text))) is not None


def asks_for_people(question: str) -> bool:
    """Whether a question asks who."""
    return _WHO.search(folded_text(question)) is not None


def word_forms(word: str) -> frozenset[str]:
    """The stems shared by the forms of a word: by "founders", "founded" and "founder"."""
    return frozenset((stem(word), stem(_AGENT_ENDING.sub("", word))))


def singular_forms(word: str) -> tuple[str, ...]:
    """An English word, and its possible singular forms."""
    if word in SAME_TYPES:
        return (word, *SAME_TYPES[word])
    forms = [word]
    if word.endswith("ies"):
        forms.append(word[:-3] + "y")
    if word.endswith("es"):
        forms.append(word[:-2])
    if word.endswith("s"):
        forms.append(word[:-1])
    forms += [name for form in forms for name in SAME_TYPES.get(form, ())]
    return tuple(dict.fromkeys(forms))


_YEAR = pattern_of(r"(?<![\d.-])(?P<year>1[0-9]{3}|20[0-9]{2})(?![\d.%-])\s?年?")
_WHO = pattern_of(r"^\W*who\b|^\W*谁")
_CHINESE_RUN = pattern_of(f"[{CJK}]+")
# Types that are one, in indexes by different prompts and in two languages, and words of questions.
_SAME_TYPES = """
    person human character people persons 人物 人 角色
    place location geo 地点 地方
    organization organisation 组织 机构
    company firm business 公司 企业
    event 事件
    work 作品
    book 书籍 书
    film movie 电影
    product 产品
    concept 概念
    method 方法
    technology 技术
    country 国家
    city 城市
    school 学校
    university 大学
    disease 疾病
    symptom symptoms 症状
    drug medication medicine 药物 药品
    treatment 治疗
    law regulation 法律 法规
    animal 动物
    plant 植物
    food 食物 食品
    dish 菜品 菜肴
    ingredient 食材 原料
    weapon 武器 兵器
    project 项目
    date 日期
"""
_FAMILIES = [tuple(line.split()) for line in _SAME_TYPES.strip().split("\n")]
SAME_TYPES = {type: family for family in _FAMILIES for type in family}
DOCUMENT_WORDS = words("document documents file files text texts 文档 文件 文献 资料 文章")
