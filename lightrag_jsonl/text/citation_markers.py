"""Citations in the text of an answer: [1], [2, 5], 【3-4】; found, and numbered for readers.

Some models write [^1], [Source 1], [citation:1], （来源：1）, <sup>1</sup> or 【1†source】 whatever the
prompt says; readers see [1].
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from lightrag_jsonl.text.patterns import pattern_of

_NUMBER = r"\d{1,18}"  # at most 64 bits
_NUMBERS = rf"{_NUMBER}(?:\s*[-‐-―−~～－]\s*{_NUMBER})?"
_NO_LINK = r"(?!\((?:https?:|#))"  # a link's text is no citation
CITATION_MARKER = pattern_of(  # [1], [2, 5], 【3-4】; not \[1], which is escaped
    rf"(?<!\\)[\[［【]\s*(?P<numbers>{_NUMBERS}(?:\s*[,，、;；]\s*{_NUMBERS})*)\s*[\]］】]{_NO_LINK}"
)
_SOURCE_LABELS = (  # of a citation also in round brackets
    *(
        "sources",
        "source",
        "citations",
        "citation",
        "cite",
        "references",
        "reference",
        "refs",
        "ref",
    ),
    *("documents", "document", "docs", "doc", "passages", "passage", "chunks", "chunk"),
    *(
        "来源",
        "资料",
        "文档",
        "文献",
        "段落",
        "片段",
        "引用",
        "引文",
        "参考资料",
        "参考文献",
        "参考",
    ),
)
_LABELS = (
    *_SOURCE_LABELS,
    *("entities", "entity", "relations", "relation", "items", "item", "notes", "note", "id", "^"),
    *("实体", "关系", "编号", "注"),
)


def _any_of(labels: Sequence[str]) -> str:
    longest_first = sorted(labels, key=len, reverse=True)
    return f"(?i:{'|'.join(map(re.escape, longest_first))})"


CITATION_LABEL = _any_of(_LABELS)
SOURCE_LABEL = _any_of(_SOURCE_LABELS)
_AFTER_LABEL = r"[\s:：#_.]{0,3}"  # [citation:1], [Doc. 1], [ref_1], [Source #1]
_LABELED = rf"(?:{CITATION_LABEL}{_AFTER_LABEL})?{_NUMBERS}\^?"
_SOURCE_NUMBERS = rf"(?:{SOURCE_LABEL}{_AFTER_LABEL})?{_NUMBERS}"
_BETWEEN_NUMBERS = r"\s*[,，、;；]\s*"
_LOCATION = r"(?:†[^\[\]［］【】\n]{0,40})?"  # 【1†source】, [1†L3-L5]
_NO_POWER = "".join(  # 10<sup>6</sup>, km<sup>2</sup>: after a digit, a bracket or so short a word
    [r"(?<![\\0-9)）])", *(rf"(?<!\b[A-Za-z]{{{length}}})" for length in (1, 2, 3))]
)
_ANSWER_MARKER = (  # also with labels: [^1], [Source 1, Source 3], [资料 2], (Source 1), <sup>1</sup>
    rf"(?:(?<!\\)[\[［【]\s*(?P<numbers>{_LABELED}(?:{_BETWEEN_NUMBERS}{_LABELED})*)\s*{_LOCATION}[\]］】]{_NO_LINK}"
    rf"|(?<!\\)[(（]\s*(?P<sources>{SOURCE_LABEL}{_AFTER_LABEL}{_NUMBERS}(?:{_BETWEEN_NUMBERS}{_SOURCE_NUMBERS})*)\s*[)）]"
    rf"|{_NO_POWER}<sup>\s*(?:[\[［【]\s*)?(?P<superscript>{_NUMBERS}(?:{_BETWEEN_NUMBERS}{_NUMBERS})*)\s*(?:[\]］】]\s*)?</sup>)"
)
_RANGE = pattern_of(r"(\d+)(?:\s*[-‐-―−~～－]\s*(\d+))?")
_LONGEST_RANGE = 100  # longer ranges count as their two ends: no prompt has so many items
_BEFORE_SUPERSCRIPT = pattern_of(r"[0-9A-Za-z)）]{0,4}\Z")  # that tells a superscript from a power
_CODE_OR_MARKER = pattern_of(rf"(?P<code>```|`|\n)|{_ANSWER_MARKER}")
_LONGEST_MARKER = 400  # characters; a longer one is not waited for
_LIST_CHARACTERS = r"[\s\d,，、;；:：#_.^‐-―−~～－-]"
_LABEL_BEGINNINGS = "|".join(
    [re.escape(label[:length]) for label in _LABELS for length in range(len(label), 0, -1)]
)
_UNFINISHED = pattern_of(  # the beginning of a marker, or a whole one that may be a link's text
    rf"(?:(?:(?<!`)`+)?\\?[\[［【]|\\?[(（]){_LIST_CHARACTERS}*(?:{CITATION_LABEL}{_LIST_CHARACTERS}+)*"
    rf"(?i:{_LABEL_BEGINNINGS})?{_LOCATION}"
    r"(?:[\]］】](?:\((?:#|h(?:t(?:t(?:p(?:s?:?)?)?)?)?)?)?)?\Z"
    rf"|\\?<(?:s(?:u(?:p(?:>(?:{_LIST_CHARACTERS}|[\[\]［］【】])*(?:<(?:/(?:s(?:u(?:p)?)?)?)?)?)?)?)?)?\Z"
    r"|\\\Z|(?<!`)`+\Z"
)


class CitationMarker(Struct, frozen=True):
    """A bracket in an answer, at characters `start` to `end`, and the cited numbers, each once."""

    start: int
    end: int
    text: str
    numbers: tuple[int, ...]


def split_citations(text: str, code: str = "") -> tuple[list[str | CitationMarker], str]:
    """The text of an answer, cut at the citations; and the Markdown code ("", "`" or "```") that is
    open at the end, as `code` is at the beginning.

    `rows[1]` in code is no citation, but a number alone in backticks is.
    """
    pieces: list[str | CitationMarker] = []
    end = 0
    for match in _CODE_OR_MARKER.finditer(text):
        start = match.start()
        mark = match["code"]
        if mark:
            if code != "```" or mark == code:  # only "```" closes a block
                code = "" if mark in ("\n", code) else mark
        elif not code or (code == "`" and text.endswith("`", 0, start)):
            marker = CitationMarker(
                start=start, end=match.end(), text=match[0], numbers=marked_numbers(match)
            )
            pieces += [text[end:start], marker]
            end = marker.end
    return [*pieces, text[end:]], code


def find_citations(text: str) -> list[CitationMarker]:
    """The citations of a whole answer, in order."""
    pieces, _ = split_citations(text)
    return [piece for piece in pieces if isinstance(piece, CitationMarker)]


def without_citations(text: str) -> str:
    """The text with a space in place of each marker."""
    return CITATION_MARKER.sub(" ", text)


def with_prompt_numbers(text: str, prompt_numbers: Sequence[int]) -> str:
    """An answer for readers with the numbers of its prompt: citation n is of item `prompt_numbers[n - 1]`."""

    def numbered(marker: re.Match[str]) -> str:
        numbers = [
            str(prompt_numbers[number - 1] if 0 < number <= len(prompt_numbers) else number)
            for number in marked_numbers(marker)
        ]
        return f"[{', '.join(numbers)}]"

    return CITATION_MARKER.sub(numbered, text)


def marked_numbers(match: re.Match[str]) -> tuple[int, ...]:
    """The numbers in a match of `CITATION_MARKER`, each once: (2, 5) of [2, 5], (3, 4, 5) of [3-5]. A marker of
    another form has its numbers in another group.
    """
    numbers: dict[int, None] = {}
    listed = next(filter(None, match.groupdict().values()), "")
    for first, last in _RANGE.findall(listed):
        start = int(first)
        end = int(last or first)
        if 0 <= end - start < _LONGEST_RANGE:
            numbers.update(dict.fromkeys(range(start, end + 1)))
        else:
            numbers.update(dict.fromkeys((start, end)))
    return tuple(numbers)


class CitationNumbering:
    """Changes the numbers of items in the prompt into the numbers for readers.

    `items` is the number of items in the prompt. `numbers` maps the prompt's number of each cited
    item to the number for readers, in ascending order. A number above `items` stays unchanged.
    """

    def __init__(self, items: int) -> None:
        self._items = items
        self._word_end = ""  # of what was handed on
        self._held_back = ""  # the end of the answer so far, which may begin a marker
        self._code = ""  # the mark of Markdown code that is open
        self.numbers: dict[int, int] = {}

    def feed(self, piece: str, *, last: bool = False) -> str:
        """The next piece of the answer, renumbered; the beginning of a marker is held back, except at
        the end of the `last` piece.
        """
        text = self._word_end + self._held_back + piece
        known_words = len(self._word_end)
        unfinished = _UNFINISHED.search(text, max(len(text) - _LONGEST_MARKER, 0))
        end = unfinished.start() if unfinished and not last else len(text)
        self._held_back = text[end:]
        parts, self._code = split_citations(text[:end], self._code)
        self._word_end = _BEFORE_SUPERSCRIPT.findall(text[:end])[0]
        numbered = "".join(
            [part if isinstance(part, str) else self._renumbered(part) for part in parts]
        )
        return numbered[known_words:]

    def _renumbered(self, marker: CitationMarker) -> str:
        """The marker with the numbers for readers, without labels."""
        item_numbers = [number for number in marker.numbers if 0 < number <= self._items]
        if not item_numbers:
            return marker.text
        for number in item_numbers:
            self.numbers.setdefault(number, len(self.numbers) + 1)
        numbers = [
            self.numbers[number] if number in item_numbers else number for number in marker.numbers
        ]
        is_bracket = marker.text[0] in "[［【"
        opening, closing = (marker.text[0], marker.text[-1]) if is_bracket else ("[", "]")
        return f"{opening}{', '.join(map(str, sorted(numbers)))}{closing}"
