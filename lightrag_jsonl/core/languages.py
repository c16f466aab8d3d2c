"""The languages with prompts and rules, and the fixed words of each."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from lightrag_jsonl.text.cjk import CJK, has_cjk, is_cjk
from lightrag_jsonl.text.patterns import pattern_of

Language: TypeAlias = Literal["en", "zh"]
_OTHER_WORD = pattern_of(rf"[^\W\d_{CJK}]+")  # in letters that are not CJK
LANGUAGE_TAG = pattern_of(r"(en|zh)(?:-[a-z0-9]{1,8})*")  # RFC 5646
LANGUAGES_BY_NAME: Mapping[str, Language] = {
    "english": "en",
    "英文": "en",
    "英语": "en",
    "英語": "en",
    "chinese": "zh",
    "cn": "zh",  # the country, and no other language
    "mandarin": "zh",
    "中文": "zh",
    "汉语": "zh",
    "漢語": "zh",
    "简体中文": "zh",
    "繁体中文": "zh",
    "繁體中文": "zh",
}


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for every other name."""
    return "zh" if name.casefold().startswith("zh") else "en"


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # the name is too long
        return False


def usual_language(name: str, recorded: str = "") -> str:
    """The code of Chinese or English for its tags (zh-CN, en_GB) and its usual names, as a user may write them; any
    other name, that of a folder with prompts, and the name that an index has `recorded` stay.
    """
    if name == recorded or _is_folder(name):
        return name
    folded = name.strip().casefold().replace("_", "-")
    if tag := LANGUAGE_TAG.fullmatch(folded):
        return tag[1]
    return LANGUAGES_BY_NAME.get(folded, name)


@lru_cache(400)
def written_in(text: str, default: Language) -> Language:
    """Chinese if there are at least as many CJK characters as words in other letters, else English; the default
    without letters.
    """
    if not has_cjk(text):
        return "en" if any(map(str.isalpha, text)) else default
    character_count = sum(map(is_cjk, text))
    return "zh" if character_count >= len(_OTHER_WORD.findall(text)) else "en"


# The keyword of a relation between names of one sentence that states nothing about them.
MENTIONED_TOGETHER: Mapping[Language, str] = {"en": "mentioned together", "zh": "共同出现"}
STATING_NOTHING = frozenset(
    MENTIONED_TOGETHER.values()
)  # keywords of a relation without a predicate


class FixedWords(Struct, frozen=True, kw_only=True):
    """The fixed words and the punctuation of contexts and of lists of sources in one language."""

    headings: tuple[str, str, str, str]
    communities: str
    listing: str
    listing_of_documents: str
    listing_of_some_documents: str
    listing_unread: str
    lists_need_records: str
    listed_documents: str
    listed_type: str
    listed_relations: str
    listed_related: str
    listed_filtered: str
    listed_as_of: str
    not_listed: str
    excerpts: str
    first_line: str
    page: str
    related: str
    comma: str
    list_comma: str
    keyword_comma: str
    semicolon: str
    full_stop: str
    also_called: str
    colon: str
    brackets: str
    quote: str
    dash: str
    marked_claim: str
    compare: str
    unsupported: str
    nearest: str
    nearest_number: str
    cites_nothing: str
    selected: str
    nearest_sentences: str
    nearest_by_meaning: str
    beginnings: str
    parts: str
    names_mentioned_most: str
    unread: str
    unread_whole: str
    unread_slow: str
    unread_locked: str
    unread_limit: str
    no_words: str
    over_budget: str
    nothing_found: str
    nothing_with: str
    filtered_nothing_found: str
    filtered_nothing_with: str
    conflicts: str
    conflict: str
    as_of: str
    as_of_documents: str
    undated_sources: str
    words_not_quoted: str
    since: str
    until: str
    period: str
    written: str


FIXED_WORDS: Mapping[Language, FixedWords] = {
    "en": FixedWords(
        headings=("Passages", "Entities", "Relations", "Sources"),
        communities="Communities (entities that belong together, and their passages)",
        listing="List from the graph ({}), {} as far as the graph knows",
        listing_of_documents="Documents, {} in all",
        listing_of_some_documents="Documents ({}), {} in all",
        listing_unread="; passages without records, which may hold more: {}",
        lists_need_records="Whether this is all is not known: complete lists and numbers need the records of a model "
        "(or `insert_records`), and this graph was read by rules.",
        listed_documents="documents",
        listed_type="type {}",
        listed_relations="{} of {}",
        listed_related="related to {}",
        listed_filtered="under the filter",
        listed_as_of="as of {}",
        not_listed="… and {} more",
        excerpts="Excerpts of passages, in the order of the text",
        first_line="Mark of this context: ",
        page="page {}",
        related="related to",
        comma=", ",
        list_comma="; ",
        keyword_comma=", ",
        semicolon="; ",
        full_stop=". ",
        also_called="also called {}",
        colon=": ",
        brackets=" ({})",
        quote="“{}”",
        dash=" – ",
        marked_claim="({}) {} {} – {}",
        compare="look yourself: {}",
        unsupported="the checker finds that the passage does not say so",
        nearest="nearest: {}",
        nearest_number="(≈{})",
        cites_nothing="(!) This answer cites no source.",
        selected="These sentences were selected from the sources; no model wrote them.",
        nearest_sentences="The sentences of the sources that are nearest to the question:",
        nearest_by_meaning="No sentence has words of the question; these are nearest by meaning:",
        beginnings="The passages found begin as follows:",
        parts="Parts: ",
        names_mentioned_most="Names mentioned most: ",
        unread="(!) Not all passages found could be read for this question: {}",
        unread_whole="none are for a question about the whole, and a model has read {} of all {}.",
        unread_slow="the model had not read them after {:g} seconds; answers that had come until then are kept",
        unread_locked="another insert or another question was writing to the index for {:g} seconds",
        unread_limit="{}",
        no_words="The model gave no answer in words.",
        over_budget="Nothing of what was found fits into the budget of tokens ({:,}).",
        nothing_found="No sentence with these words was found in the sources.",
        nothing_with="No sentence with “{}” was found in the sources.",
        filtered_nothing_found="No sentence with these words was found in the documents that pass the filter.",
        filtered_nothing_with="No sentence with “{}” was found in the documents that pass the filter.",
        conflicts="Contradictions",
        conflict="The sources differ on {}: {} / {}",
        as_of="As of {}: what did not hold then is left out, as far as the graph knows.",
        as_of_documents="As of {}: no document with a later date counts; what had ended by then is not known "
        "without the records of a model.",
        undated_sources="Sources found that have no date, and may be later: {} of {}.",
        words_not_quoted="Words of the question that none of these sentences has: {}.",
        since="since {}",
        until="until {}",
        period="{} to {}",
        written="says a text of {}",
    ),
    "zh": FixedWords(
        headings=("原文", "实体", "关系", "来源"),
        communities="社区（关系紧密的实体，及其原文）",
        listing="图谱列表（{}），据图谱所知共 {} 项",
        listing_of_documents="全部文档，共 {} 篇",
        listing_of_some_documents="文档（{}），共 {} 篇",
        listing_unread="；另有 {} 个段落没有记录，可能有遗漏",
        lists_need_records="以上未必是全部：本图谱仅由规则抽取，要得到完整的列表和数目，需要由模型抽取（或用 `insert_records` 提供）的记录。",
        listed_documents="文档",
        listed_type="类型：{}",
        listed_relations="{1}的关系：{0}",
        listed_related="与{}有关",
        listed_filtered="符合过滤条件",
        listed_as_of="截至 {}",
        not_listed="……另有 {} 项",
        excerpts="原文摘录（按原文顺序）",
        first_line="本资料的标记：",
        page="第 {} 页",
        related="有关",
        comma="，",
        list_comma="、",
        keyword_comma="、",
        semicolon="；",
        full_stop="。",
        also_called="又名{}",
        colon="：",
        brackets="（{}）",
        quote="“{}”",
        dash=" —— ",
        marked_claim="({}) {} {} —— {}",
        compare="请自行核对：{}",
        unsupported="核查器认为原文没有这样说",
        nearest="最接近的原文：{}",
        nearest_number="(≈{})",
        cites_nothing="(!) 本回答没有引用任何来源。",
        selected="以上句子选自资料原文，并非由模型撰写。",
        nearest_sentences="资料中与问题最接近的句子：",
        nearest_by_meaning="没有句子包含问题中的词语，以下是语义最接近的句子：",
        beginnings="检索到的段落开头如下：",
        parts="各部分：",
        names_mentioned_most="提到最多的名称：",
        unread="(!) 检索到的段落未能全部阅读：{}",
        unread_whole="针对整体的提问不会触发阅读，全部 {1} 个段落中，模型已读 {0} 个。",
        unread_slow="模型在 {:g} 秒内没有读完，此前的结果已保留",
        unread_locked="{:g} 秒内一直有其他插入或提问正在写入索引",
        unread_limit="已达到提问时阅读的用量上限，此前的结果已保留",
        no_words="模型没有给出文字回答。",
        over_budget="检索到的内容均超出 {:,} 个 token 的上限。",
        nothing_found="资料中没有找到含有这些词的句子。",
        nothing_with="资料中没有找到含有“{}”的句子。",
        filtered_nothing_found="符合过滤条件的文档中没有找到含有这些词的句子。",
        filtered_nothing_with="符合过滤条件的文档中没有找到含有“{}”的句子。",
        conflicts="矛盾之处",
        conflict="关于“{}”，各来源说法不一：{} / {}",
        as_of="截至 {} 的情况：据图谱所知，当时不成立的内容已略去。",
        as_of_documents="截至 {} 的情况：日期更晚的文档不计入；没有模型抽取的记录，无法判断哪些内容当时已经失效。",
        undated_sources="检索到的来源共 {1} 份，其中 {0} 份没有日期，可能晚于该时点。",
        words_not_quoted="以上句子中均未出现问题里的这些词：{}。",
        since="{} 起",
        until="至 {} 止",
        period="{} 至 {}",
        written="{} 的文档所述",
    ),
}
