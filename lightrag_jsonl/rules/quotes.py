"""The sentences of a context as quotes: each on a line, with the place in the text."""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.types import HEADING_SEPARATOR, Chunk
from lightrag_jsonl.rules.words import VERB_BASES
from lightrag_jsonl.text.citation_markers import CITATION_MARKER
from lightrag_jsonl.text.cjk import has_cjk, is_cjk
from lightrag_jsonl.text.markup import (
    HEADING,
    TABLE_RULE,
    cells_of,
    colon_of,
    is_table_header,
    quoted_line,
    row_with_columns,
    without_markup,
)
from lightrag_jsonl.text.names import folded_text, without_accents
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import BULLETS, LIST_ITEM, TABLE_ROW, sentence_spans
from lightrag_jsonl.text.terms import FUNCTION_WORDS, search_terms, stem

LONGEST_QUOTE = 800  # characters of one sentence; of a longer one the beginning
_POINT_NUMBER = pattern_of(r"\A\d{1,2}[.)．]\s+")
# Boxes, circles, ticks and crosses stay: they may say whether something is so.
_ITEM_MARK = pattern_of(rf"\A\s*(?:[-*·]\s+|(?![□■○☐-☒✓-✘✅❌❏-❒])[{BULLETS}]\s*)")
_LINK_WITHIN_PAGE = pattern_of(
    r"(?:[-*+]|\d{1,3}[.)])\s+\[[^\n]+\]\(#[^()\s]*\)"
)  # of a list of contents
_SPACE_OF_TAG = pattern_of(r" (?=[.,;:!?](?:\s|\Z))")  # "<b>now</b>." without its tags
_QUOTE_MARKS = pattern_of(r"^[^\S\n]*>[> \t]*", re.MULTILINE)
_STATES_NOTHING = ("?", "？")
_BOLD_LINE = pattern_of(r"\A(?:\*\*[^*\n]+\*\*|__[^_\n]+__)\Z")
_NUMERALS = "一二三四五六七八九十"
_NUMBER_OF_POINT = pattern_of(rf"\d+|[{_NUMERALS}]+")
_NUMBERED_HEADING = pattern_of(
    r"\A(?:(?P<number>\d{1,3})(?P<mark>[.)、．])(?!\d)"
    rf"|(?P<opening>[（(]?)(?P<numeral>[{_NUMERALS}]{{1,3}})(?P<closing>[）)、．.]))\s*+\S"
)
_RULE = pattern_of(  # a line between two parts
    r"(?:\A|\n[ \t]*\n)[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*(?:\n|\Z)"
)
_HEAD_OF_MAIL = pattern_of(
    r"^(?:From|发件人)[ \t]*[:：][ \t]*(?P<sender><[^\n]+|[^\n<]+?)[ \t]*(?:<[^\n]*)?\n"
    r"(?:(?:To|Cc|Date|Sent|Subject|收件人|抄送|日期|发送时间|主题)[ \t]*[:：][^\n]*(?:\n|\Z)){1,5}",
    re.MULTILINE,
)
_SIGNATURE = pattern_of(r"(?:--[ \t]*\n|_{10,}[ \t]*\n|-{2,}\s?(?:Original Message|原始邮件))")
QUOTED_WEIGHT = 0.5  # of what a mail repeats of another one, and of a signature
_LEADS_IN = (":", "：")
_BETWEEN_LINES = pattern_of(r"[^\S\n]*\n\s*")
_SENTENCE_END = pattern_of(r"[.!?。！？…;；][\"'”’」』）)\]*_]*$")
_NOTE_MARK = pattern_of(rf" ?{CITATION_MARKER.pattern}")
_WORD_JOINER = "\u2060"  # an invisible character, which keeps a bracket from being a citation
_ASKING = "谁哪吗呢的了是"  # two of them ask (是谁), or join what is asked (的是)


class Quote(Struct, frozen=True, kw_only=True):
    """A sentence of the passage `number`, at characters `start` to `end` of the page.

    `rank` is the rank of the passage, from 0. `lead` introduces a point of a list, a row of a table,
    an answer or words in a mail: the sentence before the list, the question, the heading or the sender.
    `setting` are the title, the headings above and the sender. `weight` is less than 1 for what a mail
    only repeats, and for a signature.
    """

    number: int
    rank: int
    chunk_id: str
    start: int
    end: int
    text: str
    terms: frozenset[str]
    lead: str
    setting: str
    setting_terms: frozenset[str]
    weight: float = 1.0

    @property
    def line(self) -> str:
        """The quote for readers, after the lead."""
        return led_line(self.lead, self.text) if self.lead else self.text

    @property
    def title(self) -> str:
        """The title of the text."""
        return self.setting.partition("\n")[0]

    def has_name(self, name: str) -> bool:
        """Whether the sentence holds a name, or stands below a heading or a title of mostly the
        name, unlike a chapter's title with many names.
        """
        folded_name = folded_text(name)
        # The title is one of all sentences, and so of none.
        led_text = self.text if self.lead == self.title else f"{self.lead}\n{self.text}"
        if folded_name in folded_text(led_text):
            return True
        headings = self.setting.replace(HEADING_SEPARATOR, "\n").split("\n")
        return any(
            folded_name in heading and len(heading) <= 2 * len(folded_name)
            for heading in map(folded_text, headings)
        )


def led_line(lead: str, text: str) -> str:
    """A text behind what introduces it: a heading, a question, the beginning of a list."""
    if lead.endswith(_STATES_NOTHING):
        return lead + ("" if has_cjk(lead) else " ") + text
    lead = _POINT_NUMBER.sub("", lead).rstrip(":：.。")
    return lead + colon_of(lead) + _POINT_NUMBER.sub("", text)


def context_quotes(context: Context) -> list[Quote]:
    """The distinct sentences of the passages of a context."""
    quotes: dict[str, Quote] = {}
    for rank, chunk in enumerate(context.chunks):
        for quote in _chunk_quotes(chunk, rank, context.documents.get(chunk.document_id, "")):
            quotes.setdefault(quote.line.casefold(), quote)
    return list(quotes.values())


def _chunk_quotes(chunk: Chunk, rank: int, title: str) -> Iterator[Quote]:
    """The sentences of a passage; headings, questions and the beginnings of lists become leads."""
    text = without_markup(chunk.text)
    setting = _Setting(title, chunk.heading, chunk.text, text)
    spans = sentence_spans(text)
    end_before = 0
    for place, (start, end) in enumerate(spans, start=1):
        sentence = chunk.text[start:end]
        if any(map(_RULE.search, (chunk.text[end_before:start], sentence))):
            setting.end_subheading()
        end_before = end
        line = "" if _LINK_WITHIN_PAGE.fullmatch(sentence) else citable_line(sentence)
        is_last = place == len(spans)
        if not line or (setting.takes(text, start, end, line, is_last=is_last) and len(spans) > 1):
            continue
        lead = setting.lead_of(text, start, end, line)
        lead = "" if lead == line else lead
        if TABLE_ROW.match(text, _line_start(text, start)):
            line = setting.row(line)
        is_of_lead = _only_asks(lead) or setting.stands_below_point(lead)
        above = setting.words
        yield Quote(
            number=rank + 1,
            rank=rank,
            chunk_id=chunk.id,
            start=chunk.start + start,
            end=chunk.start + end,
            text=line,
            terms=terms_with_characters(f"{lead}\n{line}" if is_of_lead else line),
            lead=lead,
            setting=above,
            setting_terms=terms_with_characters(f"{above}\n{lead}"),
            weight=setting.weight_of(text, start),
        )


class _Lead(Struct, frozen=True):
    """A question, or the beginning of a list, with the indent of the line and the mark of a point."""

    line: str
    indent: int = 0
    mark: str = ""


class _Setting:
    """The lead of the next sentence of a passage: title, heading, question, beginning of a list, sender."""

    def __init__(self, title: str, heading: str, source: str, text: str) -> None:
        self._source = source  # whose lines are indented as they are: markup is no space
        self._title = title
        self._heading = heading
        self._headings: dict[int, str] = {}  # in the passage, those in force by level
        self._heads = list(_HEAD_OF_MAIL.finditer(text))
        self._subheading = ""
        self._next_number = ""  # after that of the subheading, whose part it ends
        self._heading_end = 0  # of the line of the last heading
        self._sender = ""
        self._is_signature = False
        self._leads: list[_Lead] = []  # those above the next sentence, the outermost first
        self._above_list = ""  # a line that is no sentence: what it says of the points is not known
        self._has_items = False  # whether a point of the list below it was read
        self._header: list[str] = []  # of a table

    @property
    def words(self) -> str:
        """The title, the headings, the sender, and the line above a list."""
        words = (self._title, self._heading, self._subheading, self._sender, self._above_list)
        return "\n".join(words).rstrip("\n")

    def takes(self, text: str, start: int, end: int, line: str, *, is_last: bool) -> bool:
        """Whether a sentence only introduces the next sentences; at the end of a passage it says nothing."""
        if self._takes_head(start):
            return True
        if self._takes_heading(text, start, end, line):
            return True
        if TABLE_ROW.match(text, _line_start(text, start)):
            if is_table_header(text, end):
                self._header = cells_of(line)
                return True
            return TABLE_RULE.fullmatch(line) is not None
        self._header = []
        if _only_asks(line):
            self._begin_list(start, line)
            return True
        ends_line = not text[end : _line_end(text, end)].strip()
        is_whole_line = (
            ends_line and not _QUOTE_MARKS.sub("", text[_line_start(text, start) : start]).strip()
        )
        next_point = _next_point(text, end)
        if line.endswith(_LEADS_IN) and not is_last and (is_whole_line or next_point is not None):
            self._begin_list(start, f"{self._above} {line}" if _only_asks(self._above) else line)
            return True
        is_sentence = _SENTENCE_END.search(line) is not None
        if next_point is None or is_sentence or not self._is_above(start, next_point):
            return False
        self._begin_list(start, line)
        return True

    def _is_above(self, start: int, next_point: int) -> bool:
        """Whether a line is a point of a list, and the next point stands further right."""
        is_point = _item_mark(self._source, start) != ""
        return is_point and _indent(self._source, next_point) > _indent(self._source, start)

    def stands_below_point(self, lead: str) -> bool:
        """Whether a lead is a point of a list itself: without it the points below say little."""
        return any(point.mark and point.line == lead for point in self._leads)

    @property
    def _above(self) -> str:
        """The innermost lead."""
        return self._leads[-1].line if self._leads else ""

    def _begin_list(self, start: int, line: str) -> None:
        """Note what leads the points below it: perhaps a point of another list."""
        self._end_lists(start)
        indent = _indent(self._source, start)
        self._leads.append(_Lead(line, indent, _item_mark(self._source, start)))
        self._has_items = False

    def _end_lists(self, start: int) -> None:
        """Forget all leads but those above a point: further left, or with another mark."""
        indent = _indent(self._source, start)
        mark = _item_mark(self._source, start)
        if not mark:
            self._leads.clear()
        while self._leads:
            lead = self._leads[-1]
            is_beside = indent == lead.indent and mark == lead.mark
            if not is_beside and indent >= lead.indent:
                return
            self._leads.pop()

    def _takes_heading(self, text: str, start: int, end: int, line: str) -> bool:
        """Whether a sentence is of a heading, which stands above what follows."""
        if start < self._heading_end:  # the second sentence of a heading
            return True
        mark = HEADING.match(text, start)
        is_heading = mark is not None or line == self._title
        whole_line = text[_line_start(text, start) : _line_end(text, end)].strip()
        if not is_heading and not self._is_subheading(text, end, line, whole_line):
            if self._next_number and whole_line.startswith(self._next_number):
                self.end_subheading()
            return False
        self._heading_end = _line_end(text, end)
        if is_heading:  # whole, also behind the point of "Motion 4."
            line = citable_line(text[start : self._heading_end])
        self._leads = [_Lead(line)] if _only_asks(line) else []
        self._subheading = "" if is_heading else line
        self._next_number = "" if is_heading else _next_number(whole_line)
        if is_heading:
            self._put_heading(line, 0 if mark is None else mark[0].count("#"))
        return True

    def _put_heading(self, line: str, level: int) -> None:
        """Note a heading, and that those of its level and of lower ones end there."""
        upper = {above: title for above, title in self._headings.items() if above < level}
        self._headings = {**upper, level: line}
        self._heading = HEADING_SEPARATOR.join(self._headings.values())

    def _is_subheading(self, text: str, end: int, line: str, whole_line: str) -> bool:
        """Whether a line is a heading without a mark: in bold, or numbered above a paragraph, and no point of
        a list.
        """
        if "\n" in whole_line or _SENTENCE_END.search(line) or line.endswith(_LEADS_IN):
            return False
        if _BOLD_LINE.match(whole_line):
            return True
        below = text[end : end + LONGEST_QUOTE].lstrip()
        is_point = (
            self._above or self._has_items or LIST_ITEM.match(below) or TABLE_ROW.match(below)
        )
        return not is_point and _NUMBERED_HEADING.match(whole_line) is not None

    def end_subheading(self) -> None:
        """Note that what follows no longer stands below the last heading without a mark."""
        self._subheading = ""

    def _takes_head(self, start: int) -> bool:
        """Whether a sentence stands in the head of a mail, whose sender says what follows."""
        for head in self._heads:
            if head.start() <= start < head.end():
                self._sender = head["sender"].strip("\"' ")
                self._is_signature = False
                return True
        return False

    def weight_of(self, text: str, start: int) -> float:
        """How much a sentence counts: less where a mail repeats another one, and in a signature."""
        if not self._sender:
            return 1.0
        self._is_signature = self._is_signature or _SIGNATURE.match(text, start) is not None
        is_repeated = _QUOTE_MARKS.match(text, _line_start(text, start)) is not None
        return QUOTED_WEIGHT if is_repeated or self._is_signature else 1.0

    def lead_of(self, text: str, start: int, end: int, line: str) -> str:
        """The context for a reader of the sentence alone: the subject of a list or an answer."""
        is_item = LIST_ITEM.match(text, _line_start(text, start)) is not None
        if is_item:
            self._end_lists(start)
        above = self._above
        is_answer = above.endswith(_STATES_NOTHING)
        is_led = above.endswith(_LEADS_IN) and not self._has_items  # else it follows the list
        if not is_item:
            self._leads.clear()
            self._above_list = ""
        self._has_items = is_item
        if not is_item and _next_point(text, end) is not None and not _SENTENCE_END.search(line):
            self._above_list = line
        if above and (is_item or is_answer or is_led):
            return above
        if self._sender and self.weight_of(text, start) == 1.0:
            return self._sender
        if is_item or not _SENTENCE_END.search(line):
            return self._subheading or citable_line(self._heading.rpartition(HEADING_SEPARATOR)[2])
        return ""

    def row(self, line: str) -> str:
        """A row of a table, each cell behind the name of the column, if it has the table's columns."""
        return row_with_columns(line, self._header) or " | ".join(cells_of(line))


def _next_number(heading: str) -> str:
    """The number after that of a heading, with its marks: "7." after "6. Votes"; "" without a number."""
    beginning = _NUMBERED_HEADING.match(heading)
    if beginning is None:
        return ""
    if beginning["number"]:
        return f"{int(beginning['number']) + 1}{beginning['mark']}"
    _, _, following = _NUMERALS.partition(beginning["numeral"])
    return f"{beginning['opening']}{following[0]}{beginning['closing']}" if following else ""


def _next_point(text: str, end: int) -> int | None:
    """The place of a point of a list that begins on the next line."""
    gap = _BETWEEN_LINES.match(text, end)
    is_point = gap is not None and _item_mark(text, gap.end()).strip("# ")
    return gap.end() if gap is not None and is_point else None


def _only_asks(line: str) -> bool:
    return line.endswith(_STATES_NOTHING)


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _item_mark(text: str, place: int) -> str:
    """The mark of the list whose point a line begins, such as "-" or "1." for each number; "" for another line."""
    mark = LIST_ITEM.match(text, _line_start(text, place))
    return "" if mark is None else _NUMBER_OF_POINT.sub("1", mark[0].lstrip())


def _indent(text: str, place: int) -> int:
    line = text[_line_start(text, place) : place + 1]
    return len(line) - len(line.lstrip(" \t"))


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def citable_line(sentence: str) -> str:
    """A sentence on one line, without markup, footnote marks and whatever looks like a citation."""
    unquoted = _QUOTE_MARKS.sub("", sentence) if ">" in sentence else sentence
    line = _SPACE_OF_TAG.sub("", quoted_line(_ITEM_MARK.sub("", unquoted), LONGEST_QUOTE))
    return _NOTE_MARK.sub(_without_note, line).strip()


def safe_title(title: str) -> str:
    """A title or a name on one line, in which nothing looks like a citation."""
    return _NOTE_MARK.sub(_with_word_joiner, " ".join(title.split()))


def _without_note(mark: re.Match[str]) -> str:
    """Nothing for a footnote mark; years like 【2024】 and indices like [0] or a[1] stay."""
    numbers = [int(number) for number in re.findall(r"\d+", mark["numbers"])]
    before = mark.string[: mark.start()][-1:]
    is_index = mark[0][0] == "[" and before.isascii() and before.isalnum()
    if not is_index and all(0 < number < 1000 for number in numbers):
        return ""
    return _with_word_joiner(mark)


def _with_word_joiner(mark: re.Match[str]) -> str:
    return mark[0].replace(mark["numbers"], _WORD_JOINER + mark["numbers"])


def content_terms(text: str) -> frozenset[str]:
    """The terms of a text except function words, or all terms if only function words: verbs in the
    base form ("wrote" meets "write"), and without endings and accents.
    """
    terms = search_terms(without_accents(text))
    content = [term for term in terms if term not in _function_terms()]
    return frozenset(stem(VERB_BASES.get(term, term)) for term in content or terms)


def terms_with_characters(text: str) -> frozenset[str]:
    """The content terms and the Chinese characters of a text."""
    return content_terms(text).union(filter(is_cjk, folded_text(text)))


@cache
def _function_terms() -> frozenset[str]:
    terms = {term for word in FUNCTION_WORDS for term in search_terms(word)}
    return frozenset(terms | {first + second for first in _ASKING for second in _ASKING})
