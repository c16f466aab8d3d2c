"""The languages with prompts and rules, and the fixed words of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]


def known_language(name: str) -> Language:
    """Chinese for zh, zh-CN, zh-Hant and the like, English for every other name."""
    return "zh" if name.casefold().startswith("zh") else "en"


# The keyword of a relation between names of one sentence that states nothing about them.
MENTIONED_TOGETHER: Mapping[Language, str] = {"en": "mentioned together", "zh": "同时提到"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedWords:
    """The fixed words and the punctuation of contexts and of lists of sources in one language."""

    headings: tuple[str, str, str, str]
    communities: str
    listing: str
    listed_documents: str
    listed_type: str
    listed_relations: str
    not_listed: str
    excerpts: str
    first_line: str
    page: str
    weight: str
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
    no_sentence: str
    parts: str
    names_mentioned_most: str
    no_words: str
    nothing_found: str
    conflicts: str
    conflict: str
    as_of: str
    since: str
    until: str
    period: str
    written: str


FIXED_WORDS: Mapping[Language, FixedWords] = {
    "en": FixedWords(
        headings=("Passages", "Entities", "Relations", "Sources"),
        communities="Communities (entities that belong together, and their passages)",
        listing="Complete list from the graph ({}), {} in all",
        listed_documents="documents",
        listed_type="type {}",
        listed_relations="{} of {}",
        not_listed="… and {} more",
        excerpts="Excerpts of passages, in the order of the text",
        first_line="Mark of this context: ",
        page="page {}",
        weight="weight {:g}",
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
        marked_claim="(!) {} {} – {}",
        compare="look yourself: {}",
        unsupported="the checker finds that the passage does not say so",
        nearest="nearest: {}",
        nearest_number="(≈{})",
        cites_nothing="(!) This answer cites no source.",
        selected="These sentences were selected from the sources; no model wrote them.",
        no_sentence="No sentence clearly answers this question.",
        parts="Parts: ",
        names_mentioned_most="Names mentioned most: ",
        no_words="The model gave no answer in words.",
        nothing_found="Nothing about this was found in the sources.",
        conflicts="Contradictions",
        conflict="The sources contradict each other on {}: {} / {}",
        as_of="As of {}: what did not hold then is left out.",
        since="since {}",
        until="until {}",
        period="{} to {}",
        written="says a text of {}",
    ),
    "zh": FixedWords(
        headings=("原文", "实体", "关系", "来源"),
        communities="社区（关系紧密的实体，及其原文）",
        listing="图谱中的完整列表（{}），共 {} 项",
        listed_documents="文档",
        listed_type="类型：{}",
        listed_relations="{1}的关系：{0}",
        not_listed="……另有 {} 项",
        excerpts="原文摘录（按原文顺序）",
        first_line="本资料的标记：",
        page="第 {} 页",
        weight="权重 {:g}",
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
        marked_claim="(!) {} {} —— {}",
        compare="请自行核对：{}",
        unsupported="核查器认为原文没有这样说",
        nearest="最接近的原文：{}",
        nearest_number="(≈{})",
        cites_nothing="(!) 这个回答没有引用任何来源。",
        selected="以上句子选自资料原文，并非由模型撰写。",
        no_sentence="没有哪一句能明确回答这个问题。",
        parts="各部分：",
        names_mentioned_most="提到最多的名称：",
        no_words="模型没有写出答案。",
        nothing_found="资料中没有找到与此相关的内容。",
        conflicts="矛盾之处",
        conflict="关于“{}”，来源相互矛盾：{} / {}",
        as_of="截至 {} 的情况：当时不成立的内容已略去。",
        since="{} 起",
        until="至 {} 止",
        period="{} 至 {}",
        written="{} 的文档所述",
    ),
}
