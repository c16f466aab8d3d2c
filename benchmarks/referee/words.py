"""The words of the report in both languages."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of a table: its key, titles, unit and divisor; whether more of it is better."""

    key: str
    en: str
    zh: str
    unit: str = ""
    divisor: float = 1.0
    more_is_better: bool = False

    def title(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


COST_ROWS = (
    Row("cpu_ms_per_chunk", "indexing, CPU a chunk", "建索引：每块 CPU", "ms"),
    Row("model_calls_per_chunk", "model calls a chunk", "每块的模型调用"),
    Row("tokens_per_chunk", "tokens a chunk, read and written", "每块的 token（读与写）"),
    Row("texts_embedded_per_chunk", "texts embedded a chunk", "每块嵌入的文本"),
    Row("bytes_written", "written to disk", "写入磁盘", "MB", 1e6),
    Row("bytes_on_disk", "the index on disk", "索引大小", "MB", 1e6),
    Row("peak_mb", "peak memory", "内存峰值", "MB"),
    Row("one_more_cpu_ms", "one more document, CPU", "再加一篇：CPU", "ms"),
    Row("one_more_bytes_written", "one more document, written", "再加一篇：写入", "MB", 1e6),
    Row("one_more_calls", "one more document, model calls", "再加一篇：模型调用"),
    Row("delete_cpu_ms", "one document deleted, CPU", "删除一篇：CPU", "ms"),
    Row("delete_bytes_written", "one document deleted, written", "删除一篇：写入", "MB", 1e6),
    Row("delete_calls", "one document deleted, model calls", "删除一篇：模型调用"),
    Row("first_context_cpu_s", "first context, new process, CPU", "新进程到首个上下文：CPU", "s"),
    Row("context_cpu_ms", "a context, warm, CPU", "热检索：CPU", "ms"),
)
FAULT_TITLES: Mapping[str, tuple[str, str]] = {
    "deletion": (
        "deleted document: left in graph / contexts / files",
        "删除后残留：图／上下文／文件",
    ),
    "cut answers": (
        "answers cut in half: entities / relations lost",
        "回答被截一半：丢失的实体／关系",
    ),
    "copied example": ("example copied: entities of it in the graph", "照抄示例：进图的示例实体"),
    "equal file names": ("two files of one name: indexed", "两个同名文件：已索引"),
    "same insert": ("same insert again: model calls; graph", "重复插入：模型调用；图"),
    "kill": ("killed in the middle: calls repeated; graph", "中途 kill -9：重复的调用；图"),
}
WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "ours": "here",
        "vectors": "vectors alone",
        "none": "not offered",
        "failed": "failed",
        "default": "default",
        "ahead": "Where others are ahead",
        "nobody": "Nobody is ahead in what was measured.",
        "recall": "What is found",
        "way": "way",
        "against": "recall@5 against here",
        "answer": "answer in 4,000 tokens",
        "everything": "recall of a default context",
        "tokens": "its tokens",
        "published": "as published",
        "whole": "Whole-text questions: key points covered, %",
        "beginning": "the text",
        "tuned": "questions tuned on",
        "fresh": "fresh questions",
        "mean": "mean",
        "whole note": (
            "Key points at 4,000 / 8,000 / 16,000 tokens. Others index the chunks of the index made here, "
            "each as a document, and their model reads what was read here; contexts of their default "
            "shares are limited to the budget, then cut."
        ),
        "costs": "What it costs",
        "chunks": "{} documents",
        "budget": "{} tokens",
        "comma": ", ",
        "colon": ": ",
        "logarithmic": "logarithmic scale",
        "faults": "When something goes wrong",
        "same": "unchanged",
        "changed": "changed",
        "failures": "What failed",
        "unanswered": "What records cannot answer",
        "versions": "Versions and settings",
        "best": "best way",
        "scripted": "scripted",
        "scripted note": (
            "Reports and their points are put together from descriptions by rules, not written by a "
            "model: ways that rest on them are marked “scripted” and would gain from a real model."
        ),
    },
    "zh": {
        "ours": "本项目",
        "vectors": "仅向量",
        "none": "不提供",
        "failed": "失败",
        "default": "默认",
        "ahead": "其他项目领先之处",
        "nobody": "在所测项目中，没有其他项目领先。",
        "recall": "检索效果",
        "way": "方式",
        "against": "recall@5 与本项目之差",
        "answer": "4,000 token 内含答案",
        "everything": "默认上下文的召回率",
        "tokens": "其 token 数",
        "published": "公开发表值",
        "whole": "全文问题：覆盖的要点，%",
        "beginning": "原文",
        "tuned": "调参用的问题",
        "fresh": "新问题",
        "mean": "平均",
        "whole note": (
            "依次为 4,000 / 8,000 / 16,000 token 时的要点覆盖率。其他项目以本项目索引的各块为文档建索引，其模型读出的内容与此处相同；"
            "上下文按其默认比例限制在预算内，再截断。"
        ),
        "costs": "开销",
        "chunks": "{} 篇文档",
        "budget": "{} token",
        "comma": "，",
        "colon": "：",
        "logarithmic": "对数刻度",
        "faults": "出错时",
        "same": "不变",
        "changed": "有变",
        "failures": "失败项",
        "unanswered": "无法由记录回答的提示",
        "versions": "版本与设置",
        "best": "最佳方式",
        "scripted": "脚本生成",
        "scripted note": (
            "社区报告及其要点由规则从描述拼成，并非模型所写：依赖它们的方式标有“脚本生成”，换成真实模型会更好。"
        ),
    },
}
SCRIPTED_WAYS = frozenset({("nano", "global"), ("nano", "local"), ("graphrag", "local")})
