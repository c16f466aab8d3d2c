"""Decides whether an index may hold anything about a question; in doubt it does."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lightrag_jsonl.core.cjk import CJK, FUNCTION_CHARACTERS, has_cjk, is_lone
from lightrag_jsonl.core.modes import ModePlan
from lightrag_jsonl.core.names import folded_text, name_key
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Embedder, Vectors
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.text import words
from lightrag_jsonl.core.types import Keywords
from lightrag_jsonl.core.user_code import embed_texts
from lightrag_jsonl.retrieval.question_names import names_an_entity
from lightrag_jsonl.retrieval.task import SearchTask, Seeds
from lightrag_jsonl.storage.tables.full_text import ANY_END

_CHANGE = re.compile(  # a question about the course of time, not about a single change
    r"\bhow (?:do|does|did|has|have)\b.{0,80}\b(?:chang|develop|evolv|transform|grow|progress)"
    r"|\b(?:throughout|in the course of|over the course of|from (?:the )?(?:beginning|start) to (?:the )?end)\b"
    r"|(?:如何|怎样|怎么|怎么样|是如何|逐步|一步步)[^，。？]{0,12}(?:变化|转变|改变|演变|发展|壮大|衰落|灭亡|成长|兴起)"
    r"|(?:变化|转变|演变|发展)(?:过程|历程|经过)|从头到尾|自始至终|先后"
)
LANGUAGES = ("en", "zh")  # the languages of the word tables below
MOST_WORDS = 64  # content words of a question that are looked up; bounds the time

# Judged by tests/retrieval/test_scope.py: small talk and questions about other subjects find nothing,
# questions about the indexed texts in other words find something.
LEAST_OCCURRING = 0.5  # share of words and characters, where vectors only count words
STEM_LENGTH = 4  # letters; longer words also occur in another form: "ghosts" in "ghost"
ENDING = 2  # letters that another form may have in place of others

UNRELATED_ENGLISH = (  # sentences of subjects that have nothing in common
    "Fold the beaten eggs into the flour and the sugar.",
    "The goalkeeper saved two penalties in the cup final.",
    "Install the driver and restart the computer.",
    "Heavy rain is expected in the mountains tonight.",
    "The patient was given antibiotics and rested for a week.",
    "The court ruled that the contract was void.",
    "Astronomers measured the light of a distant galaxy.",
    "The train to the airport leaves every twenty minutes.",
    "The guitarist tuned the strings before the concert began.",
    "Water the roses early in the morning and cut the dead leaves.",
    "Interest rates rose, so the bank asked for a larger deposit.",
    "Paint the wall twice and let it dry overnight.",
    "A right triangle has one angle of ninety degrees.",
    "Mix acid and base slowly; the solution warms.",
    "The soldiers crossed the river before dawn.",
    "She took her coat to the cleaner's.",
)
UNRELATED_CHINESE = (
    "把打好的鸡蛋拌进面粉和糖里。",
    "守门员在杯赛决赛中扑出了两个点球。",
    "安装驱动程序，然后重启电脑。",
    "今晚山区预计有大雨。",
    "病人服用了抗生素，休息了一周。",
    "法院裁定合同无效。",
    "天文学家测量了遥远星系的光。",
    "开往机场的列车每二十分钟一班。",
    "演唱会开始之前，吉他手把弦调好了。",
    "清早给玫瑰浇水，剪掉枯叶。",
    "利率上升，银行要求更多的首付。",
    "把墙刷两遍，晾一个晚上。",
    "直角三角形有一个角是九十度。",
    "酸和碱慢慢混合，溶液会变热。",
    "士兵们在天亮以前过了河。",
    "她把外套送去洗衣店了。",
)


def _longest_first(listed: str, characters: str = "") -> re.Pattern[str]:
    """A pattern of the words of a table and of single characters, the longest before the others."""
    alternatives = sorted({*words(listed), *characters}, key=lambda word: (-len(word), word))
    return re.compile("|".join(alternatives))


class LikenessScale:
    """How much unrelated texts resemble each other by an embedder's vectors, measured at first use.

    Cosines mean different things for different embedders: of one, those of unrelated texts lie
    around 0.05, of another around 0.75.
    """

    def __init__(self, embedder: Embedder, language: str) -> None:
        self._embedder = embedder
        self._language = language
        self._samples: dict[bool, Vectors] = {}

    def applies(self, param: QueryParam) -> bool:
        """Whether questions may be out of scope; if not, whatever is asked is searched for."""
        if not param.least_likeness or not self._language.casefold().startswith(LANGUAGES):
            return False
        return param.lexical or not self._is_lexical

    async def floor(self, question: str, vector: Vectors, param: QueryParam) -> float | None:
        """The cosine that a passage must reach to be more like the question than unrelated texts are.

        Infinity where vectors only count words; None if whatever is asked is searched for. `vector` is
        the question's, shape (dim,).
        """
        if not self.applies(param):
            return None
        if self._is_lexical:
            return math.inf
        sample = await self._sample(is_chinese=has_cjk(question))
        # einsum and not @: the threads of BLAS keep a processor busy while they wait.
        cosines = np.einsum("ij,kj->ik", sample, sample)
        deviation = cosines[~np.eye(len(sample), dtype=np.bool_)].std()
        usual = np.einsum("ij,j->i", sample, vector).mean()
        return float(usual + param.least_likeness * deviation)

    @property
    def _is_lexical(self) -> bool:
        """Whether the embedder's vectors only count words."""
        return bool(getattr(self._embedder, "lexical", False))

    async def _sample(self, *, is_chinese: bool) -> Vectors:
        """The vectors of the unrelated texts of one language."""
        if is_chinese not in self._samples:
            texts = UNRELATED_CHINESE if is_chinese else UNRELATED_ENGLISH
            self._samples[is_chinese] = await embed_texts(self._embedder, texts, "passage")
        return self._samples[is_chinese]


def may_answer(task: SearchTask, seeds: Seeds) -> bool:
    """Whether the index may hold anything about the question; small talk ("hello") is about nothing.

    It may if the question asks about the whole collection, if the nearest passage reaches the
    `likeness_floor`, or if the question names an entity or uses words that occur.
    """
    query = task.query
    if query.likeness_floor is None or task.param.ll_keywords or not len(seeds.dense):
        return True
    content = content_words(query.question)
    if not content:
        return not is_small_talk(query.question)
    if seeds.dense.scores[0] >= query.likeness_floor or asks_about_everything(query.question):
        return True
    if names_an_entity(task):
        return True
    if task.snapshot.entity_ids({name_key(keyword) for keyword in query.low}):
        return True
    return _words_occur(task, content)


# ── words ───────────────────────────────────────────────────────────────────────


def content_words(question: str) -> list[str]:
    """The words that carry the subject of a question: words of scripts with spaces, and the runs of
    characters that remain of Chinese text without function words.
    """
    text = _CHINESE_FUNCTION_WORDS.sub(" ", folded_text(question))
    pieces = _CJK_RUN.findall(text)
    spaced = search_terms(_CJK_RUN.sub(" ", text))
    return [*dict.fromkeys([*(word for word in spaced if word not in EMPTY_WORDS), *pieces])]


def asks_about_everything(question: str) -> bool:
    """Whether a question asks about a collection as a whole ("Summarize the book.", "主要人物有哪些？").

    All content words of such a question name a text, a part of every text, or a use of texts.
    """
    content = [word for word in content_words(question) if not word.isdigit()]
    return bool(content) and all(map(is_of_any_text, content))


def asks_for_overview(mode: ModePlan, param: QueryParam, question: str, keywords: Keywords) -> bool:
    """Whether a question is answered from the whole: in the mode for that, and in a mode that searches
    everything if the model or the words of the question say so.
    """
    if mode.communities:
        return True
    searches_all = mode.entities and mode.relations and mode.chunks and not mode.ranked_by_walk
    if not searches_all or param.ll_keywords or param.hl_keywords:
        return False
    return keywords.whole or asks_about_everything(question) or asks_about_change(question)


def asks_about_change(question: str) -> bool:
    """Whether a question asks how something changes in the course of a text."""
    return _CHANGE.search(folded_text(question)) is not None


def is_of_any_text(word: str) -> bool:
    """Whether a content word fits a text about any subject."""
    return word in TEXT_WORDS or (has_cjk(word) and not _CHINESE_TEXT_WORDS.sub("", word))


def is_small_talk(question: str) -> bool:
    """Whether a question has no content words, and greets, thanks or addresses the assistant alone
    ("Can you tell what she did?" may be about a text).
    """
    if content_words(question):
        return False
    text = folded_text(question)
    terms = {*search_terms(text), *text}
    return not terms.isdisjoint(SMALL_TALK) and terms.isdisjoint(THIRD_PERSON)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word, or a character of a Chinese word.

    A unit occurs if one of the terms occurs, or else a term with one of the beginnings.
    """

    terms: Sequence[str]
    beginnings: Sequence[str]


def _words_occur(task: SearchTask, content: Sequence[str]) -> bool:
    """Whether the content words of a question occur in passages: all of them, or, where vectors only
    count words, one word or else half of the beginnings and characters.
    """
    is_lexical = task.query.lexical
    units: list[_Unit] = []
    for word in content[:MOST_WORDS]:
        units += _units(word, characters=is_lexical)
    counts = _part_counts(task, [term for unit in units for term in unit.terms])
    missing = [unit for unit in units if not any(counts[term] for term in unit.terms)]
    if is_lexical and len(missing) < len(units):
        return True
    counts = _part_counts(task, [term for unit in missing for term in unit.beginnings])
    absent = [unit for unit in missing if not any(counts[term] for term in unit.beginnings)]
    most_absent = (1 - LEAST_OCCURRING) * len(units) if is_lexical else 0
    return len(absent) <= most_absent


def _part_counts(task: SearchTask, terms: Sequence[str]) -> dict[str, int]:
    """In how many parts of chunks each term occurs."""
    return task.snapshot.term_counts(sorted({*terms}))[1] if terms else {}


def _units(word: str, *, characters: bool) -> list[_Unit]:
    """The units of a word. A long word may have another ending; a Chinese character occurs in a bigram
    of the word, or, if it is alone or with `characters`, at the beginning of any bigram.
    """
    if not has_cjk(word):
        stem = word[: max(STEM_LENGTH, len(word) - ENDING)]
        return [_Unit([word], [f"{stem}{ANY_END}"] if len(word) > STEM_LENGTH else [])]
    units = []
    for position, character in enumerate(word):
        surroundings = search_terms(word[max(position - 1, 0) : position + 2])
        bigrams = [term for term in surroundings if not is_lone(term)]
        is_enough = characters or len(word) == 1
        units.append(_Unit(bigrams, [f"{character}{ANY_END}"] if is_enough else []))
    return units


TEXT_WORDS = words(
    """about abstract act anything argument arguments article articles author authors background
    begin beginning begins book books brief briefly bullet bullets central chapter chapters
    character characters chronology collection common companies company conclude concluded
    conclusion conclusions connect connected connection connections contain contains content
    contents core corpus cover covered covers data describes described detail details dialogue
    digest discuss discussed discusses document documents dr end ending ends entities entity
    entire essential essence event events everything example examples fact facts figure
    figures file files final find finding findings general gist happen happened happens hero
    heroes heroine highlights idea ideas important information introduce introduction issue
    issues key lesson lessons line lines locations long main major material materials mention
    mentioned mentions message messages moral motif motifs names narrative narrator note notes
    novel occur occurs order organizations outline overall overview page pages paragraph
    paragraphs part parts passage passages people person persons place places play plot point
    points principal problem problems protagonist protagonists question questions recap record
    records relate related relation relations relationship relationships report reports result
    results say says scene scenes section sections sentence sentences set setting short
    significant source sources start starts stories story structure style subject subjects
    summaries summarise summarised summarising summarization summarize summarized summarizing
    summary sum synopsis table tale tales takeaway takeaways teach text texts theme themes
    timeline title titles tl tldr topic topics treat treated whole word words work works write
    writer written wrote one two three four five six seven eight nine ten"""
)
SMALL_TALK = words(
    """hello hi hey goodbye bye thank thanks welcome please ok okay help test tests today you your
    yours yourself 你 您 谢谢 再见 测试"""
)
THIRD_PERSON = words(
    "he she it they him her them his hers its their this that these those 他 她 它 这 那"
)
EMPTY_WORDS = (FUNCTION_WORDS - TEXT_WORDS) | SMALL_TALK
EMPTY_WORDS |= words("show find search define need want mean means type way use")
_CHINESE_FUNCTION_WORDS = _longest_first(
    """什么样 怎么样 是什么 有什么 为什么 什么 怎么 怎样 如何 多少 哪里 哪儿 哪个 哪些 哪位 哪一 为何 是否 何时 何地 何人
    何处 时候 请问 请 告诉 一下 一个 一种 一些 这个 那个 这些 那些 我们 你们 他们 你好 您好 您 谢谢 再见 测试 可以 没有 不是
    就是 因为 所以 如果 但是 而且 以及 关于 对于 之间 之后 之前 其中 其他 自己 应该 需要 想要 知道 一 叫 做 要 会 能
    不 没 很 最 更 只 才 可 所 由 等 让 给 用 请 帮 嘛 啊 呀 呢 几 多 都 去 来 过 着 得 地 个 位 些""",
    FUNCTION_CHARACTERS,
)
_CHINESE_TEXT_WORDS = _longest_first(
    """总结 概括 概述 概要 概况 摘要 综述 归纳 梗概 大意 全文 全书 全篇 全部 所有 整个 整体 整本 本书 书中 本文 文中 文章 文档
    文件 文本 文献 资料 材料 内容 故事 小说 情节 剧情 经过 结局 结尾 结果 开头 开始 开篇 开端 主题 主旨 主线 主要 中心 核心
    思想 重要 关键 要点 重点 观点 看点 人物 角色 主角 主人公 作者 公司 企业 机构 组织 地点 地方 事件 事情 大事 关系 联系
    讲述 讲解 讲 说明 说 写 介绍 描述 描写 叙述 涉及 提到 提及 出现 包含 包括 发生 结论 寓意 道理 启示 主张 目录 章节 段落
    列出 列举 列 时间线 来龙去脉 简单 简要 简短 简述 简介 话题 议题 信息 记录 笔记 报告 新闻 消息 特点 背景 有关 相关 共同
    名字 名称 书 文 篇 章 节 回 段 句 话 字 部 事 人 本 名 主 二 三 四 五 六 七 八 九 十 两 有 在 和"""
)
_CJK_RUN = re.compile(f"[{CJK}]+")
