"""Texts of any length, ordinary and hostile: each kind makes a text of about so many characters."""

import random
from collections.abc import Callable, Mapping
from functools import partial

from tests.conftest import CHECKOUT

TextMaker = Callable[[int], str]

README = """# Ginkgo — a small job runner

[![build](https://img.example.org/b.svg)](https://ci.example.org/g) ![logo](docs/logo.png)

Ginkgo runs jobs beside each other. It was written by Maren Toft in 2019 ("fast enough", v. 2.1).

## Install

```bash
pip install ginkgo   # or: pipx install ginkgo
```

| option | default | meaning      |
|--------|---------|--------------|
| `-n`   | 4       | jobs at once |

```python
>>> from ginkgo import Runner
>>> Runner(jobs=4).run(["a", "b"])
[0, 0]
```

* See [the guide](https://docs.example.org/guide#start) and <https://example.org>.
* 中文说明：李岚于2021年3月加入项目，负责文档。“谁能用？”——任何人。

<details><summary>More</summary>Nothing, see [1], [2, 3] and [^4].</details>
"""
NOVEL = """The train left Harwick at dusk. "Who is that?" asked Mr. Elias Boon, who had been a clerk in
Port Merrin since 1871; nobody knew, but Anna Lisle (his niece) said: "It is Dr. Vane's brother."
From March 1874 to 2 May 1876 they lived at No. 14, Quay Street, with 1,200 books and a dog.

"""
CHINESE = """林知远，字子静，浙江绍兴人。光绪三十年（1904年）三月，他任江南机器局总办，时年二十八岁。
“你是谁？”王大娘问道。张明、李华等三人于一九一二年五月初八来到上海，创办了《晨钟报》社有限公司。
"""
CODE = """def spread(items: list[str], *, size=10) -> Iterator[list[str]]:
    \"\"\"Items in groups.\"\"\"
    for start in range(0, len(items), size):  # 10, 20, 30
        yield [item.strip("\\n") for item in items[start : start + size] if item != "x"]

"""
RECORDS = """{"kind": "entity", "name": "Anna Lisle", "type": "person", "description": "A \\"niece\\"."}
{"kind": "relation", "source": "Anna Lisle", "target": "Elias Boon", "predicate": "niece of"}
"""
THOUGHT = "<think>The passage [1] says so. 好的。</think>\nAnswer: Anna Lisle [1], [2, 3]【4】 (1874-76).\n\n"
MAIL = "From: a@b.example\nSubject: =?utf-8?q?x?=\nDate: Mon, 1 May 2023 10:00:00 +0000\n\nHi, [1] > x\n> y\n"

# A text of one of these, again and again. A blank, a break, a letter and a mark each, since looping is what small
# models do; and whatever begins something that a pattern may wait for the end of.
_LOOPS = (
    *"aA1中一年的é ",
    *("\t", "\n", "\r\n", "\f", "\u2028", "\u3000", "\u200b", "\u0301", "😀", "ا", "０", "1 ", "a "),
    *"-_=~*#+.,:;!?'`|/\\<>()[]{}&%@$^\"",
    *"，、。；：！？…—“”‘’《》「」【】（）·",
    *(" \n", "\n\n", "-\n", "- ", "--- ", "a-", "a_", "_a", "*a", "a*", "**a", "# ", "#\n", "# a\n", "> "),
    *("a.", "A.", "A. ", "a. ", "1.", "1,", "1. ", "1-", "1/", "1:", "1e", "0x1", "a'", "A'", "a’s ", "Mr. "),
    *("A", "A ", "Aa ", "Aa of ", "Aa of the ", "Aa, ", "Aa and ", "the ", "of ", "is ", "was the ", "and "),
    *("who ", "what is ", "how many ", "in 1871 ", "1871", "1871-", "1 May ", "May ", "from 1871 to ", "until "),
    *("1904年", "三月", "十", "一九", "第一", "光绪", "自", "至今", "张明", "张明、", "的人", "任", "公司", "是谁", "《甲》"),
    *("```", "```\n", "```a\n", "```a\nb\n", "\n```a ", "` ", "``a", "~~~\n", "    a\n", ">>> a\n", "$ a\n", "$$a"),
    *("<a", "<a>", "<a ", "</", "</a>", "<!--", "<!-- ", "-->", "<a b='", "<p>a", "<![CDATA[", "<?a ", "<td>"),
    *("&a", "&#1", "&amp;", "&#x41;", "%41", "\\u0041", "\\n", "\\a{", "{a}", "\\begin{a}\n", "%a\n", "$a$"),
    *("[1]", "[1], ", "[1", "[1,", "[1, ", "[1-", "【1】", "【1", "[^1]", "[source ", "[[", "]]", "[a](", "[a]: b\n"),
    *("![", "![a](b)", "[![a](b)](", "[a][", "](a", "(a", "(1)", "（一）", "“甲”", "“甲", "\"a\"", "\"a", "'a' "),
    *("http://", "http://a.b/", "a@", "a@b.", "a.b/", "www.", "a:b", "://", "data:a;base64,", "QUJD"),
    *("| a ", "|a|\n", "|-", "|---|\n", "| a | b |\n", "a\tb\n", "a,b\n", "\"\"", "a\n---\n", "a\n===\n", "= a\n"),
    *(".. a::\n", ".. |a| b\n", ":a: b\n", "a::\n", "* a\n", "** a\n", "#+a: b\n", ":a:\n", "1. a\n", "- a\n  "),
    *("{", "}", "[", "{\"a\":", "{\"a\": 1}\n", "{\"a\": \"", "[1,", "\"a\",", "\\\"", "{'a': '", "//a\n", "null,"),
    *("<think>", "</think>", "<|a|>", "Answer: ", "Question: ", "答案：", "N/A ", "USER: ", "\n\n---\n- [1] a\n"),
)  # fmt: skip
# What comes after, so that a pattern that has taken all of it fails at the end.
_ENDS = ("", "\n", "\x01x.")


def looped(unit: str, end: str, size: int) -> str:
    """A unit again and again, and an end."""
    return (unit * (size // len(unit) + 1))[:size] + end


def nested(opening: str, middle: str, closing: str, size: int) -> str:
    """Openings, and as many closings."""
    depth = size // (len(opening) + len(closing)) + 1
    return opening * depth + middle + closing * depth


def framed(beginning: str, unit: str, end: str, size: int) -> str:
    """A unit again and again between a beginning and an end."""
    return beginning + unit * (size // len(unit) + 1) + end


def mixed(alphabet: str, size: int) -> str:
    """Characters of an alphabet, by chance, the same each time."""
    return "".join(random.Random(alphabet).choices(alphabet, k=size))


def lines_of(line: str, size: int) -> str:
    """Different lines: `line` with a number."""
    count = size // len(line) + 1
    return "".join(line.format(number) for number in range(count))


def cut_file(name: str, size: int) -> str:
    """A file of this project, again and again, cut anywhere."""
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    return (text * (size // len(text) + 1))[:size]


ORDINARY: Mapping[str, TextMaker] = {
    "README": partial(looped, README, ""),
    "README with an open fence": partial(framed, README, "word word\n", "\n```text\nmore\n"),
    "novel": partial(looped, NOVEL, ""),
    "novel, one line": partial(looped, NOVEL.replace("\n", " "), ""),
    "Chinese": partial(looped, CHINESE, ""),
    "Chinese, one line": partial(looped, CHINESE.replace("\n", ""), ""),
    "code": partial(looped, CODE, ""),
    "records": partial(looped, RECORDS, ""),
    "thought": partial(looped, THOUGHT, ""),
    "mail": partial(looped, MAIL, ""),
    "file README.md": partial(cut_file, "README.md"),
    "file README.zh.md": partial(cut_file, "README.zh.md"),
    "file CHANGELOG.md": partial(cut_file, "CHANGELOG.md"),
    "different names": partial(
        lines_of, "Anna Lisle{0} of Harwick{0} met Elias Boon{0} in 18{0}. "
    ),
    "different Chinese names": partial(lines_of, "张{0}于{0}年任江南第{0}公司总办。"),
    "different citations": partial(lines_of, "Anna Lisle {0} was a clerk [{0}]. "),
    "different links": partial(lines_of, "[a{0}](https://example.org/{0}) `b{0}` "),
    "different headings": partial(lines_of, "## Part {0}\n\nText.\n\n"),
    "different records": partial(lines_of, '{{"name": "Anna {0}"}}\n'),
}
HOSTILE: Mapping[str, TextMaker] = {
    **{
        f"looped {unit!r}, then {end!r}": partial(looped, unit, end)
        for unit in dict.fromkeys(_LOOPS)
        for end in _ENDS
    },
    **{
        f"nested {opening!r}": partial(nested, opening, "a", closing)
        for opening, closing in (
            *(("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("《", "》"), ("<a>", "</a>"), ("<div>", "</div>")),
            *(("[[", "]]"), ("**", "**"), ("> ", "\n"), ('{"a":', "}"), ("[![", "](b)"), ("<think>", "</think>")),
            *(("\\begin{a}", "\\end{a}"), ("\\a{", "}"), ("<table><tr><td>", "</td></tr></table>")),
        )
    },
    **{f"mixed {alphabet!r}": partial(mixed, alphabet) for alphabet in (
        "aA1 .\n", "[]()1,a ", "`~\na ", "<>/a \"'=", "*_-#|\n ", "中一年。，、“”", "{}[]\",:1a\\", "1-./:, May"
    )},
    "fence that never ends": partial(framed, "```python\n", "a", "\n```text\nmore\n"),
    "fence of lines that never ends": partial(framed, "```python\n", "a\n", "\n```text\nmore\n"),
    "comment that never ends": partial(framed, "<!--", "a ", ""),
    "list of JSON": partial(framed, '{"documents": [', '{"text": "a [1]"}, ', "null]}"),
    "string of JSON": partial(framed, '{"text": "', "\\\\\\\"", '"}'),
    "cells of a notebook": partial(framed, '{"cells": [', '{"cell_type": "markdown", "source": ["# a\\n"]}, ', "{}]}"),
    "rows of HTML": partial(framed, "<html><body><table>", "<tr><td>a<td colspan=2>b", "</table>"),
    "tags of XML": partial(framed, "<r>", "<a b='c'>d</a>\n", "</r>"),
}  # fmt: skip
# For the run between two changes: one of each sort.
FEW: Mapping[str, TextMaker] = {
    **{name: ORDINARY[name] for name in ("README", "README with an open fence", "novel", "Chinese", "code")},
    **{f"looped {unit!r}": partial(looped, unit, "\x01x.") for unit in "a1中A -\n[`<|.,“"},
    **{f"looped {unit!r}": partial(looped, unit, "\n") for unit in ("[1]", "【1】", "Aa of ", "```a\n")},
    "fence of lines that never ends": HOSTILE["fence of lines that never ends"],
}  # fmt: skip
