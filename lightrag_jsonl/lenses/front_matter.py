"""Front matter and boilerplate, known by their own words and shape: licences, imprints, lists of contents."""

import re
from collections.abc import Sequence

from msgspec import Struct

from lightrag_jsonl.text.cjk import CJK, has_cjk
from lightrag_jsonl.text.names import nfkc_casefold
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words

# Shares and bounds by reason; tests/retrieval/test_front_matter.py holds texts on both sides. The first two
# are of words: a contract has fewer about copies and rights, a biography fewer about editions.
LICENCE_SHARE = 0.05
IMPRINT_SHARE = 0.08
DISTINCT_WORDS = 4  # of an imprint: one word said often is a subject
LICENCE_WORDS = 6  # different ones of both kinds together, at least two of each
MOST_OF_A_TEXT = 0.6  # of the characters that belong to such paragraphs
LONGEST_ENTRY = 160  # characters of a paragraph of a list of contents, or of a line of an imprint
ENTRIES = 6  # of a list of contents, at least
PAGES = range(1, 1000)  # greater numbers at the end of a line are years or amounts
HINTS = words("licen copyright isbn publish edition rights 版权 著作权 许可 出版 免责 授权 保留")


def _word_pattern(english: str, chinese: str) -> re.Pattern[str]:
    """A pattern of whole English words, and of Chinese words wherever they stand."""
    english_words = english.split()
    chinese_words = sorted(chinese.split(), key=len, reverse=True)
    initials = "".join(sorted({word[0] for word in [*english_words, *chinese_words]}))
    words_of_both = rf"\b(?:{'|'.join(english_words)})\b|{'|'.join(chinese_words)}"
    return pattern_of(f"(?=[{initials}])(?:{words_of_both})")  # so in half the time


class _WordTable(Struct, frozen=True):
    """Words to be counted in a text: English ones as whole words, Chinese ones wherever they stand."""

    english: frozenset[str]
    chinese: re.Pattern[str]

    @classmethod
    def of(cls, english: str, chinese: str) -> "_WordTable":
        """The table of words with spaces between them."""
        chinese_words = sorted(chinese.split(), key=len, reverse=True)
        return cls(frozenset(english.split()), pattern_of("|".join(chinese_words)))

    def words_in(self, folded: str, words_of_text: Sequence[str]) -> list[str]:
        """The words of the table in a folded text, each as often as the text has it."""
        chinese_words = self.chinese.findall(folded) if has_cjk(folded) else []
        return [word for word in words_of_text if word in self.english] + chinese_words


_COPYING = _WordTable.of(
    """copy copies copied copying copyright copyrighted distribute distributed distributing
    distribution redistribute redistribution reproduce reproduced reproduction license licensed
    licensee licensor licence licenced sublicense ebook ebooks software trademark trademarks modify
    modified modification derivative permission permissions download donations refund royalties
    royalty""",
    "许可 许可证 许可协议 版权 著作权 复制 转载 传播 分发 发行 演绎 署名 商标 修改 软件 下载 镜像 摘编 引用",
)
_RIGHTS = _WordTable.of(
    """rights reserved warranty warranties liability liable damages disclaim disclaimer disclaimers
    terms conditions agreement agree hereby herein notwithstanding provisions law laws legal
    comply compliance indemnify permitted prohibited provided restrictions restriction applicable
    merchantability fitness consequential incidental""",
    "条款 协议 免责 声明 担保 保证 责任 赔偿 侵权 违反 法律 法规 不得 禁止 授权 同意 保留 权利 追究 依法 约定",
)
_MAKING_WORDS = (
    """publisher publishers published publication edition editions editor editors illustrator
    translator transcriber transcribed proofread proofreading proofreaders isbn issn printed printing
    printer ebook credits foreword dedication frontispiece title author language release digitized
    scanned copyright imprint colophon updated produced""",
    "出版社 出版 印刷 印张 印次 版次 开本 字数 书号 定价 责任编辑 编辑 校对 封面设计 装帧 发行 经销 译者 作者 著者 版权",
)
_MAKING = _WordTable.of(*_MAKING_WORDS)
_MAKING_WORD = _word_pattern(*_MAKING_WORDS)
_FOLDED_WORD = pattern_of(r"\w+")
_COUNTED_WORD = pattern_of(rf"[{CJK}]{{2}}|[^\W_{CJK}]+")
_ENTRY = pattern_of(r"(?:^|\D[\s.…·_-])(?P<page>\d{1,4})$")
_CAPTION = pattern_of(
    r"(?i)\[\s*(?:illustration|figure|fig|image|picture|photo|插图|配图|图)[^\]]*\]"
)
_LAST_PAGE = pattern_of(r"(?:\d{1,4}(?:-\d{1,4})?|[ivxlc]{1,6}|_?Frontispiece_?)$")
_CHAPTER = pattern_of(
    r"(?:第[〇零一二三四五六七八九十百千两\d]+[卷部篇集编章回幕节]"
    r"|(?i:chapter|stave|canto|act|book|part|section|appendix)\s+(?:\d+|[ivxlc]+|[a-z]+)\b)"
)


def is_front_matter(text: str) -> bool:
    """Whether a passage is mainly a licence, an imprint, a note on the edition or a list of contents."""
    plain = text.casefold()
    if text.count("\n") < ENTRIES and not any(hint in plain for hint in HINTS):
        return False  # quickly, since most passages are none
    folded = nfkc_casefold(text)
    words_of_text = _FOLDED_WORD.findall(folded)
    if _is_licence(folded, words_of_text) or _is_imprint(folded, words_of_text):
        return True
    entries = _entries_of_contents(folded)
    if not entries:
        return False
    paragraphs = _paragraphs(folded)
    imprints = [
        paragraph
        for paragraph in paragraphs
        if len(paragraph) <= LONGEST_ENTRY and _MAKING_WORD.match(paragraph)
    ]
    covered = sum(map(len, {*entries, *imprints}))
    return covered >= MOST_OF_A_TEXT * sum(map(len, paragraphs))


def is_label(sentence: str) -> bool:
    """Whether a sentence is a caption, a heading in capitals, a field of an imprint ("Language: English"), or
    mainly entries of a list with the numbers of pages.
    """
    plain = sentence.strip("_*# \n")
    if _CAPTION.fullmatch(plain) or (plain.isupper() and plain[-1] not in '.!?…"”'):
        return True
    if len(plain) <= LONGEST_ENTRY and ":" in plain and _MAKING_WORD.match(nfkc_casefold(plain)):
        return _MAKING_WORD.sub("", nfkc_casefold(plain), count=1).lstrip().startswith(":")
    lines = plain.split("\n")
    return 2 * sum(map(_ends_in_a_page, lines)) > len(lines)


def _ends_in_a_page(line: str) -> bool:
    """Whether a line ends in a page behind dots, a tab or at least three blanks: "Chapter I ..... 7"."""
    page = _LAST_PAGE.search(line)
    if page is None:
        return False
    before = line[: page.start()]
    return (
        before.endswith("\t")
        or (before[-3:].isspace() and len(before) >= 3)
        or before.rstrip().endswith(("...", "…"))
    )


def _is_licence(folded: str, words_of_text: Sequence[str]) -> bool:
    copying = _COPYING.words_in(folded, words_of_text)
    if len(set(copying)) < 2:
        return False
    rights = _RIGHTS.words_in(folded, words_of_text)
    is_varied = len(set(rights)) >= 2 and len({*copying, *rights}) >= LICENCE_WORDS
    return is_varied and len(copying) + len(rights) >= LICENCE_SHARE * _number_of_words(folded)


def _is_imprint(folded: str, words_of_text: Sequence[str]) -> bool:
    makers = _MAKING.words_in(folded, words_of_text)
    if len(set(makers)) < DISTINCT_WORDS:
        return False
    return len(makers) >= IMPRINT_SHARE * _number_of_words(folded)


def _entries_of_contents(folded: str) -> list[str]:
    """The paragraphs, or else the lines, that end in rising numbers of pages, or name a chapter each."""
    for pieces in (_paragraphs(folded), [line.strip() for line in folded.split("\n")]):
        short = [piece for piece in pieces if 0 < len(piece) <= LONGEST_ENTRY]
        chapters = [piece for piece in short if "\n" not in piece and _CHAPTER.match(piece)]
        paged: list[str] = []
        previous_page = 0
        for piece in short:
            entry = _ENTRY.search(piece) if piece[-1].isdecimal() else None
            if entry and int(entry["page"]) in PAGES:
                if int(entry["page"]) >= previous_page:
                    paged.append(piece)
                previous_page = int(entry["page"])
        entries = max(paged, chapters, key=len)
        if len(entries) >= ENTRIES:
            return entries
    return []


def _paragraphs(text: str) -> list[str]:
    return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def _number_of_words(folded: str) -> int:
    return max(len(_COUNTED_WORD.findall(folded)), 1)
