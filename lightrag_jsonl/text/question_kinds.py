"""What a question is about, by its words: a subject, a collection as a whole, or nothing (small talk).

And whether it asks for a complete list or a number ("How many …?", "List all …", 有哪些, 多少个).
"""

import re
from collections.abc import Iterable

from lightrag_jsonl.text.cjk import CJK, FUNCTION_CHARACTERS, has_cjk
from lightrag_jsonl.text.names import folded_text
from lightrag_jsonl.text.numbers import numbered_parts
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words
from lightrag_jsonl.text.terms import FUNCTION_WORDS, GRAMMAR_WORDS, search_terms, stem

YEAR = pattern_of(r"(?<![\d.,．，])(?:[1１]\d{3}|[2２][0０]\d{2})(?![.,．]?\d)")  # in any text


def content_words(question: str) -> list[str]:
    """The words that carry the subject of a question: words of scripts with spaces, and the runs of
    characters that remain of Chinese text without function words.
    """
    text = folded_text(question)
    pieces: list[str] = []
    if has_cjk(text):
        text, pieces = _without_chinese(text)
    words_with_subject = [word for word in search_terms(text) if word not in EMPTY_WORDS]
    return [*dict.fromkeys([*words_with_subject, *pieces])]


def _without_chinese(text: str) -> tuple[str, list[str]]:
    """A folded text without the Chinese in it, and the runs of characters that function words leave of that."""
    text = _CHINESE_FUNCTION_WORDS.sub(lambda word: word[0] if word["text"] else " ", text)
    return _CJK_RUN.sub(" ", text), _CJK_RUN.findall(text)


# "How do I book a room?" is about no book; a number, and who wrote something, is told in one place.
_OF_A_DETAIL = pattern_of(
    r"\b(?:to|i|we|you|they|he|she|can|could|may|must|should)\s+(?:book|text|page|file)\b"
    r"|\bhow (?:many|much|long|old|often)\b|\bwho (?:wrote|writes|has written)\b|多少|有几|谁写",
    re.IGNORECASE,
)

_WHEN_OR_WHERE = pattern_of(
    r"\b(?:when|where)\b|什么时[候间]|何时|几时|哪一?[年月天日]|哪里|哪儿|何处|何地|(?:什么|哪个)地方",
    re.IGNORECASE,
)


def asks_about_everything(question: str) -> bool:
    """Whether a question asks about a collection as a whole ("Summarize the book.", "主要人物有哪些？").

    All content words of such a question name a text, a part of every text, or a use of texts; "these minutes" are
    the collection. What happened in a year is told in some places only, so is what section 12 says.
    """
    if YEAR.search(question) or _OF_A_DETAIL.search(question) or numbered_parts(question):
        return False
    text = _THESE_TEXTS.sub(" ", folded_text(question))
    content = [word for word in content_words(text) if not word.isdigit()]
    return bool(content) and all(map(is_of_any_text, content))


def may_ask_about_a_title(question: str) -> bool:
    """Whether a question has words for a text or its parts, so that its other words may be a title; when and where
    something happened is told in one place.
    """
    if _WHEN_OR_WHERE.search(question):
        return False
    content = content_words(question)
    return (
        not TEXT_WORDS.isdisjoint(content)
        or any(_CHINESE_TEXT_WORDS.search(word) for word in content if has_cjk(word))
        or _PART_PLAYED.search(folded_text(question)) is not None
    )


def without_titles(question: str, titles: Iterable[str]) -> str:
    """A question without the titles in it, whole words, whether in quotation marks or not; as it is if it
    asks for the author or names a part of any text only by a title.
    """
    folded_question = folded_text(question)
    untitled = folded_question
    for title in sorted(map(folded_text, titles), key=len, reverse=True):
        if len(title) < SHORTEST_TITLE or title not in untitled:
            continue
        untitled = re.sub(rf"(?<![a-z0-9]){re.escape(title)}(?![a-z0-9])", " ", untitled)
    if untitled == folded_question or not AUTHOR_WORDS.isdisjoint(content_words(untitled)):
        return question
    return untitled


def asks_about_course(question: str) -> bool:
    """Whether a question asks how something changes in the course of a text, or which part it plays in the
    whole; in doubt it does not. What changed from one date to another is told at these dates.
    """
    has_two_years = len({*YEAR.findall(question)}) > 1
    return not has_two_years and _COURSE.search(folded_text(question)) is not None


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


# A change in the course of time: something changes by itself, up to the end of the clause. Who changes
# something ("How do I change the password?", "How did the king change the law?") asks for a single act.
_WITHOUT_OBJECT = (
    r"(?=\s*(?:$|[?.!,;]|(?:over|during|throughout|through|from|since|across|between)\b"
    r"|by the end\b|in the (?:course|story|book|novel|text|film|play)\b))"
)
_ENGLISH_CHANGE = (
    r"\b(?:how|in what ways?) (?:do|does) (?!(?:i|we|you|one|users?|customers?|people)\b)[^?.!;]{1,80}"
    r"\b(?:change|develop|evolve|transform)\b" + _WITHOUT_OBJECT,
    r"\b(?:how|in what ways?) (?:did|has|have|had|is|are|was|were) (?!(?:i|you)\b)[^?.!;]{1,80}"
    r"\b(?:chang(?:e|ed|ing)|develop(?:ed|ing)?|evolv(?:e|ed|ing)|transform(?:ed|ing)?"
    r"|grow(?:n|ing)?|progress(?:ed|ing)?)\b" + _WITHOUT_OBJECT,
    r"\bwhat changes (?:do|does|did|has|have)\b.{1,60}\b(?:undergo(?:ne)?|go(?:ne)? through)\b",
    r"\b(?:over|in|throughout) the course of the (?:story|book|novel|text|film|play)\b",
    r"\bthroughout the (?:story|book|novel|text|film|play)\b",
    r"\bfrom (?:the )?(?:beginning|start) to (?:the )?end\b",
)
_CHINESE_CHANGE = (
    r"[^，。;!?我你您们该要能想](?:是|又)?(?:如何|怎样|怎么样?)(?:一步步|逐步|逐渐|慢慢)?地?(?:发生|产生)?"
    r"(?:变化|转变|演变|变|发展壮大|发展|壮大|衰落|兴起|成长)(?:起来)?(?:的|了)?[呢啊]?\s*(?:$|[，。;!?])",
    r"(?:一步步|逐步|逐渐)地?(?:变化|转变|改变|演变|发展|壮大|衰落|兴起|成长)",
    r"(?:变化|转变|演变|发展)(?:过程|历程|经过)|从头到尾",
)
_PART_PLAYED = pattern_of(  # "What part does friendship play in the book?"
    r"\bwhat (?:kind of |sort of )?(?:part|role) (?:do|does|did) .{1,60}\bplay in"
    r"(?: (?:the|this|these|your) (?:book|story|novel|text|play|film|document|report|collection)s?)?"
    r"(?: as a whole)?\W*$"
    r"|(?:书|小说|故事|文章|全文|文|剧|片|[《》\s])[里中]?(?:起|扮演|充当)(?:着|到|了|过)?"
    r"(?:什么样?|怎样|何种|哪些)的?(?:作用|角色)\W*$"
)
_COURSE = pattern_of("|".join([*_ENGLISH_CHANGE, *_CHINESE_CHANGE, _PART_PLAYED.pattern]))


def _longest_first(listed: str, characters: str = "") -> re.Pattern[str]:
    """A pattern of the words of a table and of single characters, the longest before the others."""
    alternatives = sorted({*words(listed), *characters}, key=lambda word: (-len(word), word))
    return pattern_of("|".join(alternatives))


_KIND_OF_TEXTS = _longest_first(
    """article articles blog blogs book books chat chats conversation conversations diaries diary document
    documents email emails essay essays file files guide guides handbook handbooks interview interviews journal
    journals letter letters log logs manual manuals memo memos message messages minutes newsletter newsletters
    note notes paper papers poem poems post posts recipes report reports review reviews sermon sermons slides
    speech speeches stories story text texts transcript transcripts tutorial tutorials wiki"""
)
_CHINESE_KIND_OF_TEXTS = _longest_first(
    """报告 报道 笔记 材料 对话 访谈 公告 故事 合同 备忘录 纪要 纪录 记录 家书 教程 教材 讲稿 讲义 论文 日记 日志 诗 手册
    书 书信 通知 文档 文件 文章 小说 信 信件 邮件 游记 指南 周报 资料 作品"""
)
# Texts that nothing but the question names are those that were indexed. Other things may be told of in one place.
_THESE_TEXTS = pattern_of(  # in a folded question
    rf"\b(?:this|these) (?:[a-z-]+ ){{0,2}}?(?:{_KIND_OF_TEXTS.pattern})\b"
    r"|(?<![的上里中])这(?:[些几份本篇部套批两三四五六七八九十]|\d)+"
    rf"[^\W\d_a-z里中对的]{{0,4}}?(?:{_CHINESE_KIND_OF_TEXTS.pattern})"
)
SHORTEST_TITLE = 2  # characters
AUTHOR_WORDS = words("author authors write writer written wrote 作者 谁写 写")
TEXT_WORDS = words(
    """about abstract act anything argument arguments article articles author authors background
    begin beginning begins book books brief briefly bullet bullets central chapter chapters
    character characters chronology collection common companies company conclude concluded
    conclusion conclusions connect connected connection connections contain contains content
    contents core corpus cover covered covers data deal dealt deals
    describes described detail details dialogue digest discuss discussed discusses document
    documents dr end ending ends entities entity entire essential essence event events everything example examples fact facts figure
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
_FUNCTION_PATTERN = _longest_first(
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
    讲述 讲解 讲 说明 说 写 谈论 谈到 谈 介绍 描述 描写 叙述 涉及 提到 提及 出现 包含 包括 发生 结论 寓意 道理 启示 主张 目录 章节 段落
    列出 列举 列 时间线 来龙去脉 简单 简要 简短 简述 简介 话题 议题 信息 记录 笔记 报告 新闻 消息 特点 背景 有关 相关 共同
    方面 概览 份 篇 册 卷 套 批 些
    名字 名称 书 里 文 篇 章 节 回 段 句 话 字 部 事 人 本 名 主 二 三 四 五 六 七 八 九 十 两 有 在 和"""
)
# And words for texts, though a part of one may be a function word (要点)
_CHINESE_FUNCTION_WORDS = pattern_of(
    f"(?P<text>{'|'.join(re.findall(r'[^|]{2,}', _CHINESE_TEXT_WORDS.pattern))})"
    f"|{_FUNCTION_PATTERN.pattern}"
)
_CJK_RUN = pattern_of(f"[{CJK}]+")

# ── lists and numbers ─────────────────────────────────────────────────────────

_PLURAL = r"(?:\w{2,}(?<![aisu])s|people|men|women|children)"
_MEASURE_WORDS = "个位名家种本篇项部份条座门支款起"
_UNITS_AFTER_A_MEASURE_WORD = (
    "个(?:多?月|小时|钟头|星期|礼拜|季度|世纪|工作日|百分点)|人(?:口|次|民币|均)"
)
_ASKS_FOR_LIST = pattern_of(  # an `amount` may be of things (ships) or of a measure (miles): the form does not tell
    r"\bhow many (?:people(?! know\b)|men|women|children|of|different)\b"
    r"|\bhow many\b(?! times\b)[^.?!]{1,60}\b(?:are|were|is|was) (?:listed|mentioned|named)\b"
    r"|(?P<amount>\bhow many\b(?! (?:times|years|days|hours|minutes|months|weeks|miles|people know)\b)"
    rf"|有多少(?![{_MEASURE_WORDS}人])|有多少(?={_UNITS_AFTER_A_MEASURE_WORD}))"
    r"|\b(?:list|enumerate)\b|\b(?:name|show|give me|tell me) (?:me )?(?:all|every|each)\b"
    rf"|\b(?:which|what) (?:(?!(?:of|is|was|does|did|do|are)\b)[\w-]+ ){{0,4}}{_PLURAL}(?: of(?: [\w-]+){{1,4}})?"
    r" (?:are|exist|do|did|have|were)\b"
    rf"|\bwhich (?:other )?(?!(?:is|was|does|this)\b){_PLURAL}\b"
    r"|\bwhat are (?:all )?the\b|\b(?:complete|full) list\b"
    r"|\b(?:who|what|which \w+) (?:all )?(?:is|are|was|were) (?:all )?(?:related|connected|linked) (?:to|with)\b"
    rf"|哪些|哪几[{_MEASURE_WORDS}]|列出|列举|(?:清单|名单)(?=[\s。？?！!]*$)"
    rf"|(?:多少|(?<![第十好这那前后每])几)(?!{_UNITS_AFTER_A_MEASURE_WORD})[{_MEASURE_WORDS}]"
    rf"|多少(?!{_UNITS_AFTER_A_MEASURE_WORD})人"
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


def asks_for_list(question: str, *, amounts: bool = True) -> bool:
    """Whether a question asks for all of something, or how many there are; without `amounts` not how many acres."""
    matches = _ASKS_FOR_LIST.finditer(folded_text(question))
    return any(amounts or match["amount"] is None for match in matches)


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
