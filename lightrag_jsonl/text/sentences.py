"""Sentences of English and Chinese texts."""

import re
from collections.abc import Iterator
from unicodedata import east_asian_width

from lightrag_jsonl.text.citation_markers import CITATION_MARKER
from lightrag_jsonl.text.cjk import CJK, is_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import clipped, words


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences as (start, end) in characters, for English and Chinese.

    The spans are in order and cover all but white space; closing quotes and footnote marks belong to
    the sentence. Blank lines end a sentence, single line breaks only beside a line that was not wrapped,
    a list item or a row of a table. In CJK text, where most lines are paragraphs, a line was wrapped if
    it ends with a comma, or is full and goes on in prose. A full-width point (．) ends a sentence only in
    a text without 。: otherwise the point separates names.
    """
    spans = []
    start = 0
    for end in _sentence_ends(text):
        if piece := text[start:end].strip():
            first = text.index(piece[0], start)
            spans.append((first, first + len(piece)))
        start = end
    return spans


def beginning_of_words(text: str, start: int, end: int) -> int:
    """Where the words of a sentence begin, behind the marks of a quotation, a heading, a list, a task or a table
    and the number or the letter of a point.
    """
    marks = OPENING_MARKS.match(text, start, end)
    return marks.end() if marks is not None and marks.end() < end else start


def first_words(text: str, limit: int) -> str:
    """The first sentence of a text, without a mark of Markdown, cut between words if too long."""
    text = text.lstrip("#> \n")[: 9 * limit]
    ends = [end for _, end in sentence_spans(text)]
    line = clipped(text[: min(ends, default=0)].rstrip("。."), limit)
    if not line.endswith("…"):
        return line
    return _CUT_WORD.sub("", line) + "…"


_CUT_WORD = pattern_of(r"(\s\S{0,15})?…$")
_STOPS = (
    r"(?P<blank>\n[^\S\n]*(?=\n)|[\f\x1c-\x1e\u2029])|(?P<line>\n)"
    r"|(?P<wide>[。！？｡]+%s)|(?P<narrow>[.!?…]+)"
)
_STOP = pattern_of(_STOPS % "")
_STOP_OR_POINT = pattern_of(
    _STOPS % rf"|(?<=[{CJK}”’）])(?<![〇零一二三四五六七八九十])．(?![0-9０-９])"
)
_TAG_OR_NOTE = rf"</?[A-Za-z][^<>]{{0,80}}>|{CITATION_MARKER.pattern}"
_FIRST_OF_STOP = pattern_of("[\n\f\x1c-\x1e\u2029。！？｡.!?…．]")
_CLOSERS = pattern_of(rf"(?:[”’」』）)\]】〕》〉»*_]|{_TAG_OR_NOTE})*")
_CLOSERS_STRAIGHT = pattern_of(rf"(?:[\"'”’」』）)\]】〕》〉»*_]|{_TAG_OR_NOTE})*")
# Behind a stop and what closes there: a mark, the target of a link, or prose behind the title of a work
_GOES_ON = pattern_of(r"[，、；：。！？｡]|(?<=\])\(|(?<=[》〉])[^\s。！？｡.!?…]")
_NEXT = pattern_of(r"\s*([\"'“‘«(\[「『《_*]*)(\w*)")
_HEADING = pattern_of(r"[^\S\n]*#{1,6}\s")
TABLE_ROW = pattern_of(r"[^\S\n]*\|")
# Characters, within brackets of a pattern, that begin a point of a list, also without a blank: bullets, shapes, dingbats,
# and the private use area, where the symbol fonts of word processors have theirs.
BULLETS = r"•‣⁃∙・･\u25a0-\u25ff\u2600-\u27bf\u2b00-\u2bff\ue000-\uf8ff"
LIST_ITEM = pattern_of(
    rf"[^\S\n]*(?:[-*·]\s|[{BULLETS}]|\d{{1,3}}[.)、]\s?|[（(]?[一二三四五六七八九十]+[)）、]|#{{1,6}}\s)"
)
OPENING_MARKS = pattern_of(  # a number with points, such as 2.3, only before a capital: not in "2.3 million"
    rf"(?:[^\S\n]*(?:[>|{BULLETS}]|\*\*(?=[\d(（])|#{{1,6}}(?:[^\S\n]+\d{{1,3}}(?=\s+[A-Z]))?(?=\s)|\\?[-+*·–—:](?=\s)"
    r"|\[[ xX]\](?=\s)"
    r"|\d{1,3}(?:\.\d{1,3}){0,4}(?:[.．](?=\s|[A-Z])|[)）、])|\d{1,3}(?:\.\d{1,3}){1,4}(?=\s+[A-Z])"
    r"|[(（]\d{1,3}[)）]|[(（]?(?:[A-Za-z]|[ivx]{2,4})[)）](?=\s)|(?:[a-z]|[ivx]{2,4})\.(?=\s)"
    rf"|[（(]?[一二三四五六七八九十]{{1,3}}[)）、]|\d{{1,3}}[.．](?=[{CJK}])|[①-⑳]))+[^\S\n]*"
)
# Characters. A break beside a line of `_USUAL_WRAPPED` or more keeps lines short only if the next word would not
# have fitted, and a break beside one of `_LONGEST_WRAPPED` never.
_USUAL_WRAPPED = 120
_LONGEST_WRAPPED = 200
_FIRST_WORD = pattern_of(r"[^\S\n]*\S+")
# In columns: what a wrapped line of CJK text has, and how ragged its edge may be.
_LEAST_COLUMNS = 40
_MOST_COLUMNS = 240
_RAGGED_COLUMNS = 6
_INSIDE_PROSE = pattern_of("[，。；]")
_WORD_BEFORE = pattern_of(rf"[^\W\d_{CJK}](?:[^\W{CJK}]|[.&'’-]){{0,24}}$|\d{{1,3}}$")
_ORDINAL = pattern_of(r"\d(?:st|nd|rd|th)$")  # "on the 21st." ends a sentence
_DOTTED = pattern_of(r"(?:[^\W\d_]\.)*[^\W\d_]")
_ENDS_WITH_UNIT = pattern_of(r"(?:[/°][^\W\d_]|\d[^\S\n]?[a-z])$")  # 32 km/h, 5 m, 30 °C
_TITLES = words(
    "mr mrs ms messrs mme mlle dr prof st ste sr fr gen col maj capt cpt cmdr adm lt lieut brig sgt cpl pvt"
    " rev hon gov sen rep pres supt insp cllr ald det atty asst assoc mt ft vs cf viz e.g i.e eg ie ca approx"
    " dept univ assn bros op ed eds trans"
)
_BEFORE_NUMBERS = words(  # words and names, too: "No. Paul stayed."
    "no fig sec art jan feb mar apr jun jul aug sep sept oct nov dec"
)
PERHAPS_LAST = words(  # abbreviations that may end a sentence
    "inc corp co cos ltd llc llp plc pte pty bhd sdn jr esq etc incl excl tel avg qty govt"
    " nos vol vols figs pp paras eq ch ave blvd rd hwy sq bldg apt"
)
_NUMBERED = pattern_of(  # what stands before the number at the beginning of a heading or a part
    r"[\s#>*_-]*(?:(?:section|chapter|article|clause|rule|part|step|appendix|lesson|lecture|§)\s+"
    rf"|[{CJK}]{{1,4}}\s?)?",
    re.IGNORECASE,
)
_STARTERS = words(
    "a an the this that these those i you he she it they we my your our his her its their there who what which"
    " in on at as but and or so after before when while where why how however for from during since although if"
    " all some both each no not yes then later also"
)


def _sentence_ends(text: str) -> Iterator[int]:
    start = 0
    quotes = 0
    counted = 0  # the characters whose quotes are counted
    pattern = _STOP if "。" in text or "．" not in text else _STOP_OR_POINT
    for stop in _stops(text, pattern):
        if stop.start() < start:
            continue
        quotes += text.count('"', counted, stop.start())
        counted = stop.start()
        if stop["blank"] or stop["line"]:
            end = stop.end() if stop["blank"] or _line_ends(text, stop) else None
            quotes = 0 if end else quotes
        elif stop["wide"]:
            closers = _CLOSERS_STRAIGHT if quotes % 2 else _CLOSERS
            after = _after(closers, text, stop.end())
            end = None if _GOES_ON.match(text, after) else after
        else:
            end = _narrow_end(text, start, stop)
        if end is not None and end > start:
            yield end
            start = end
    if start < len(text):
        yield len(text)


def _stops(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The matches of a pattern of stops; five times as fast as `finditer`, which tries each character."""
    position = 0
    while beginning := _FIRST_OF_STOP.search(text, position):
        stop = pattern.match(text, beginning.start())
        if stop is not None:
            yield stop
        position = beginning.end() if stop is None else stop.end()


def _after(closers: re.Pattern[str], text: str, position: int) -> int:
    closing = closers.match(text, position)
    return position if closing is None else closing.end()


def _line_ends(text: str, stop: re.Match[str]) -> bool:
    after = text[stop.end() : stop.end() + 1]
    line = text[max(0, stop.start() - _LONGEST_WRAPPED) : stop.start()].rpartition("\n")[2].rstrip()
    before = line[-1:]
    next_line = text[stop.end() : stop.end() + _LONGEST_WRAPPED].partition("\n")[0]
    if ">" in line or ">" in next_line:
        depth, next_depth = [  # of quotation, in mails and in Markdown
            part[: len(part) - len(part.lstrip("> \t"))].count(">") for part in (line, next_line)
        ]
        if depth != next_depth:
            return True
    is_wide = (
        is_cjk(before) or is_cjk(after) or before in ("，", "：", "；", "、", "”", "」", "』", "》")
    )
    if not (_is_wrapped_cjk(line, next_line) if is_wide else _is_wrapped(line, next_line)):
        return True
    if TABLE_ROW.match(line) and TABLE_ROW.match(next_line):
        return True
    return _HEADING.match(line) is not None or LIST_ITEM.match(next_line) is not None


def _is_wrapped(line: str, next_line: str) -> bool:
    """Whether the break between two lines may only keep them short."""
    longest = max(len(line), len(next_line))
    if longest < _USUAL_WRAPPED:
        return True
    if (line[-1:].isalnum() or line[-1:] in (",", "-", "‐")) and next_line[:1].islower():
        return True  # the lines of a page in columns, or of justified text, have all lengths
    first_word = _FIRST_WORD.match(next_line)
    is_full = first_word is not None and len(line) + 1 + first_word.end() > longest
    return is_full and longest < _LONGEST_WRAPPED


def _is_wrapped_cjk(line: str, next_line: str) -> bool:
    """Whether the break between two lines, one of them of CJK text, only keeps them short."""
    width = _display_width(line)
    if not _LEAST_COLUMNS <= width <= _MOST_COLUMNS:
        return False
    if line.endswith(("，", "、")):
        return True
    is_prose = "，" in line and _INSIDE_PROSE.search(next_line) is not None
    is_full = width + _RAGGED_COLUMNS >= _display_width(next_line[:_LONGEST_WRAPPED])
    return is_prose and is_full and (is_cjk(line[-1]) or line[-1].isalnum())


def _display_width(text: str) -> int:
    """The width of a text in columns: two for each wide character."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _narrow_end(text: str, start: int, stop: re.Match[str]) -> int | None:
    """The end of a sentence in ". ! ? …", or None if the sentence goes on."""
    end = _after(_CLOSERS_STRAIGHT, text, stop.end())
    follows = text[end : end + 1]
    if not follows:
        return end
    if not follows.isspace():
        is_ascii = text[stop.start() - 1 : stop.start()].isascii()
        is_unspaced = is_cjk(follows) and not stop[0].startswith("…") and not is_ascii
        return end if is_unspaced else None
    next_word = _NEXT.match(text, end)
    word = "" if next_word is None else next_word[2]
    if word[:1].islower():
        return None
    if next_word and len(word) == 1 and text.startswith(".", next_word.end()):
        word += "."  # an initial, and no article
    if stop[0] == "." and _is_abbreviation(text, start, stop.start(), word):
        return None
    return end


def _is_abbreviation(text: str, start: int, dot: int, word: str) -> bool:
    """Whether the dot before `word` belongs to an abbreviation, an initial or a list number; in doubt it does: two
    sentences quoted as one say nothing false, the second half of one may.
    """
    earliest = max(start, dot - 26)
    before = _WORD_BEFORE.search(text, max(earliest, text.rfind(" ", earliest, dot) + 1), dot)
    if before is None:
        return False
    token = before[0].casefold()
    if token.isdigit():
        return _NUMBERED.fullmatch(text, start, before.start()) is not None
    if token in _TITLES:
        return _ORDINAL.search(text, max(start, dot - 4), dot) is None
    if token in _BEFORE_NUMBERS:
        return word[:1].isdigit()
    if word.casefold() in _STARTERS:
        return False
    if token in PERHAPS_LAST:
        return True
    if _DOTTED.fullmatch(token) is None:
        return False
    return _ENDS_WITH_UNIT.search(text, max(start, dot - 3), dot) is None
