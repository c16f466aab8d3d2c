"""Markup in texts (Markdown, reStructuredText, HTML), and texts without it."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import clipped_at_word
from lightrag_jsonl.text.strings import words as word_set

TARGET_OF_LINK = (
    r"\s<[^<>\s]{1,400}>`_{0,2}"  # of reStructuredText, with the end of its link or role
)
LINK_TARGET = (  # of a link or a picture of Markdown, with its title
    r"\((?:[^()\s]|\([^()\s]*\))*(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?\)"
)
ATTRIBUTES = r"\{:[ .#\w^][^{}\n]*\}|\{#[\w-]{1,80}\}(?=\s*$)"  # of kramdown and of pandoc, at the end of a heading
# Of Markdown, on one line: its characters stand for themselves. A role of reStructuredText is none, nor is a link.
CODE_SPAN = r"(?<![`:\\])(?P<ticks>`{1,2})(?!`)(?P<code>[^`\n]+)(?P=ticks)(?![`_])"
# Of HTML. A bare `<name>` that is no element of text is a placeholder: it stays.
TAG = (
    r"</[A-Za-z][^<>]{0,400}>|<[A-Za-z][\w:.-]{0,80}(?:\s[^<>=]{1,100}=[^<>]{0,400}|\s*/)>"
    r"|<(?:a|abbr|address|article|aside|b|big|blockquote|br|caption|center|cite|code|dd|del|details|dfn|div|dl|dt|em"
    r"|figcaption|figure|font|footer|h[1-6]|header|hr|i|img|ins|kbd|li|main|mark|nav|ol|p|picture|pre|q|s|samp"
    r"|section|small|span|strike|strong|style|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|var|wbr)"
    r"(?:\s[^<>]{0,400})?>"
)
# of Markdown and HTML; single marks only around words: not in 2 * 3 or snake_case
_TEXT_MARKS = pattern_of(
    rf"{CODE_SPAN}|{TARGET_OF_LINK}|\[\[(?:[^\[\]|\n]*\|)?(?P<note>[^\[\]|\n]+)\]\]"  # a link between notes
    rf"|!?\[(?P<text>(?:[^\[\]\\]|\\.){{0,300}})\]{LINK_TARGET}|{ATTRIBUTES}"
    rf"|(?i:{TAG})|\*\*|__|`"
    r"|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])|(?<!\w)_(?=\w)|(?<=[\w.,!?])_(?!\w)"
    r"|^[^\S\n]*(?:#{1,6}|>)\s+",
    re.MULTILINE,
)


_MARK = pattern_of(r"[\[<>*_`#{]")  # each mark has one; found in a tenth of the time


_BULLET = pattern_of(r"^([^\S\n]*)[-*+•][^\S\n]+", re.MULTILINE)
_RULE_OF_TABLE = pattern_of(r"^[ \t]*\|(?=[ \t:|-]*--)[ \t:|-]*+(?:\n|\Z)", re.MULTILINE)
_BORDER = pattern_of(r"^\|[ \t]*+|(?<![ \t])[ \t]*+\|[ \t]*+$", re.MULTILINE)  # of a table's row
_BETWEEN_CELLS = pattern_of(r"(?<![ \t])[ \t]++\|[ \t]++")
# A link or an image whose address stands elsewhere; of numbers alone, they are citations.
_NAMED_LINK = pattern_of(r"!?\[(?=[^\[\]\n]*[^\W\d_])([^\[\]\n]+)\]\[[^\[\]\n]*\]")


def without_marks(text: str) -> str:
    """A text without the marks of Markdown and HTML, for people to read."""
    if _MARK.search(text) is None:
        return text
    return _TEXT_MARKS.sub(_text_of_mark, text)


def _text_of_mark(mark: re.Match[str]) -> str:
    """The text that a mark stands around, itself without marks, but for code."""
    return mark["code"] or without_marks(mark["text"] or mark["note"] or "")


def without_bullets(text: str) -> str:
    """A sentence of a document for people: without marks, bullets of a list, and bars of a table."""
    return _without_bars(_BULLET.sub("", without_marks(_NAMED_LINK.sub(r"\1", text))))


def without_markdown(text: str) -> str:
    """An answer, or a part of one, where no Markdown is drawn: with points as bullets, and cells in a line."""
    return _without_bars(_BULLET.sub(r"\1• ", without_marks(text)))


def _without_bars(text: str) -> str:
    if "|" not in text:
        return text
    return _BETWEEN_CELLS.sub(" · ", _BORDER.sub("", _RULE_OF_TABLE.sub("", text)))


HEADING = pattern_of(  # of Markdown and reStructuredText, at the beginning of a sentence
    r"#{1,6}\s|[^\n]{1,100}\n([=~^-])\1{2,}[ \t]*$", re.MULTILINE
)
MOST_CODE_LINES = 0.6  # share of the lines: prose with some lines of code has fewer
FEWEST_CODE_LINES = 5
_KEYWORDS = word_set(
    "def class return import async await raise assert yield elif except public private protected static const let var"
    " function package using"
)
_BEGINS_CODE = (
    *[f"{keyword} " for keyword in _KEYWORDS],
    *word_set("return; else: try: finally: @ #include // /* self. this. ) ] }"),
)
_ENDS_CODE = ("{", "}", ";", "(", "[", "()", "],", "),", "},", "):", "==", "&&", "||")
_FENCE_LINE = pattern_of(r"^[ \t]*```(?P<language>.*)$", re.MULTILINE)
_TARGET = rf"(?:{LINK_TARGET}|\[[^\[\]\n]*\])"  # of a link or a picture, in place or by name
_MARKUP = pattern_of(
    r"(?=[\s>.$|=~^`<!\[{-])(?:"  # first characters, for speed
    r"^[ \t]*(?:>>>|\.\.\.|\$)[ \t].*$"
    r"|^[ \t]*\.\. \S.*$(?:\n[ \t]+:.*$)*"  # directives, with their options
    r"|^(?:\|[\w-]+\| ?)+$|^([=~^-])\1{2,}[ \t]*$"
    rf"|{CODE_SPAN}|{TARGET_OF_LINK}|{ATTRIBUTES}"
    rf"|(?i:{TAG})"
    r"|<!--.{0,2000}?-->|\{%[^%\n]{1,300}%\}"  # comments; statements of a template
    rf"|\[!\[[^\[\]]*\]{_TARGET}\]{_TARGET}|!\[[^\[\]]*\]{_TARGET}?"
    r"|^[ \t]*\[[^\[\]\n]+\]:.*$)",
    re.MULTILINE,
)
_MARKS_OF_MARKUP = (  # every match of the pattern above but code has one of these; found much faster
    (">>>", "...", "$", ".. ", "|", "===", "~~~", "^^^", "---", "<", "![", "]:", "{:", "{#", "{%")
)
_ADDRESS = pattern_of(
    rf"(?<=\])(?:(?=\([^()\s]){LINK_TARGET}|\[[^\[\]\n]*\])"  # of a link
    r"|\b(?:https?|ftp)://[^\s<>\"'`）)\]，。；]+|[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{1,60}"
    r"|\b[\w-]{1,60}\.(?:[\w-]{1,60}\.){0,3}(?:com|org|net|io|dev|edu|gov|cn)\b(?:/[^\s<>\"'`）)\]]*)?"
)


_END_OF_LINK = pattern_of(rf"\]{LINK_TARGET}")  # of a link that begins in the sentence before
_MARKS_OF_ADDRESSES = word_set("]( ][ :// @ .com .org .net .io .dev .edu .gov .cn")


def without_markup(text: str) -> str:
    """The text with code, tags, images and the like replaced by spaces; offsets stay right."""
    text = _without_code(text)
    return _MARKUP.sub(_blank, text) if any(map(text.__contains__, _MARKS_OF_MARKUP)) else text


def without_addresses(text: str) -> str:
    """The text with addresses of the web and of mail replaced by spaces; offsets stay right."""
    return _ADDRESS.sub(_blank, text) if any(map(text.__contains__, _MARKS_OF_ADDRESSES)) else text


@lru_cache(400)  # a sentence is quoted for each of its names and pairs
def quoted_line(text: str, limit: int) -> str:
    """A sentence on one line, without markup, cut to `limit` characters."""
    plain = without_marks(_NAMED_LINK.sub(r"\1", without_markup(text)))
    return clipped_at_word(_END_OF_LINK.sub("", plain), limit)


def _without_code(text: str) -> str:
    """The text with fenced code replaced by spaces."""
    parts: list[str] = []
    end = 0
    for code_start, code_end in _code_spans(text):
        parts += [text[end:code_start], blanked(text[code_start:code_end])]
        end = code_end
    return "".join([*parts, text[end:]])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """The places of fenced code, including the fences.

    A fence with a language always begins code; a fence without a language ends open code. A text
    may be cut anywhere: unclosed code in a language goes on to the end, but a single fence without
    a language may be the end of code from before the text, and is only a line unless most lines before
    are code. A text without a fence, most lines of which are code, is cut from the middle of code.
    """
    opening: re.Match[str] | None = None
    fences = list(_FENCE_LINE.finditer(text)) if "```" in text else []
    is_closing = [not fence["language"].strip() for fence in fences]
    if (is_closing[:1] == [True] and is_closing[1:2] != [True]) or not fences:
        end = fences.pop(0).start() if fences else len(text)
        if _is_code(text[:end]):
            yield 0, end
    for fence in fences:
        language = fence["language"].strip()
        if opening is not None and not language:
            yield opening.start(), fence.end()
            opening = None
            continue
        if opening is not None:
            yield opening.span()
        opening = fence
    if opening is not None:
        is_cut_off = opening["language"].strip()[:1].isalnum()
        yield opening.start(), len(text) if is_cut_off else opening.end()


def _is_code(text: str) -> bool:
    """Whether most lines of a text look like code."""
    if text.count("\n") < MOST_CODE_LINES * FEWEST_CODE_LINES:  # quickly: these are too few
        return False
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return sum(map(_is_code_line, lines)) > MOST_CODE_LINES * max(len(lines), FEWEST_CODE_LINES)


def _is_code_line(line: str) -> bool:
    if line.startswith(_BEGINS_CODE) or line.endswith(_ENDS_CODE) or " = " in line:
        return True
    return line.endswith(",") and (" " not in line or "=" in line)


def _blank(match: re.Match[str]) -> str:
    """Spaces for markup; code inside of a line stays, since its `<name>` is no tag."""
    return match[0] if match.lastgroup == "code" else blanked(match[0])


def blanked(text: str) -> str:
    """A text of the same length with nothing but spaces and the line breaks."""
    return re.sub(r"[^\n]", " ", text)


# ── rows of tables ────────────────────────────────────────────────────────────

TABLE_RULE = pattern_of(r"[\s|:+-]+")
_RULE_BELOW = pattern_of(r"\s*\n[ \t|:+]*-[ \t|:+-]*(?:\n|\Z)")


def is_table_header(text: str, end: int) -> bool:
    """Whether the row that ends there is the header of a table."""
    return _RULE_BELOW.match(text, end) is not None


def cells_of(row: str) -> list[str]:
    """The cells of a row, also of empty ones."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def row_with_columns(row: str, columns: Sequence[str]) -> str:
    """A row, each cell behind the name of the column; "" for a row with other cells than the table has columns."""
    cells = cells_of(row)
    if len(cells) != len(columns):
        return ""
    colon = colon_of(row)
    named_cells = [
        f"{name}{colon}{cell}" if name else cell
        for name, cell in zip(columns, cells, strict=True)
        if cell
    ]
    return ("；" if has_cjk(row) else "; ").join(named_cells)


def colon_of(text: str) -> str:
    """A colon in the script of a text."""
    return "：" if has_cjk(text) else ": "
