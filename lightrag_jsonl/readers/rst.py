"""Reads reStructuredText as a text with headings as in Markdown."""

import re

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import without_blank_runs
from lightrag_jsonl.readers.titles import heading_title

_RST_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}[ \t]*")
_RST_FIELD = re.compile(r"^:(?P<name>[A-Za-z][\w -]*): +(?P<text>\S.*)$", re.MULTILINE)
_RST_DIRECTIVE = re.compile(r"^(?P<indent>[ \t]*)\.\. +(?P<name>[\w:-]+)::[ \t]*(?P<argument>.*)$")
_RST_COMMENT = re.compile(r"^[ \t]*\.\.(?: .*)?$")
_RST_OPTION = re.compile(r"^[ \t]+:[\w-]+:(?: .*)?$")
_RST_ROLE = re.compile(r"(?<![\w:+.-]):[\w:+.-]+:`(?:~?([^`<]+?)(?:\s*<[^`>]*>)?)`")
_RST_REFERENCE = re.compile(r"`([^`<\n]+?)\s*<[^`>]+>`__?|`([^`\n]+)`__?|\|([\w ]+)\|_?")
_RST_LITERAL = re.compile(r"``([^`]+)``")
CODE_DIRECTIVES = ("code", "code-block", "sourcecode", "literalinclude", "parsed-literal", "math")
PICTURES = ("image", "figure", "raw", "include", "toctree", "contents", "highlight")


def read_rst(data: bytes, meter: FileMeter) -> Document:
    """A text of reStructuredText: underlined titles are headings, roles and directives their texts.

    Fields above the first title give date and metadata.
    """
    text = meter.decode(data).replace("\r\n", "\n").expandtabs(8)
    lines = _with_rst_headings(text.split("\n"))
    body = "\n".join(_without_directives(lines))
    body = _RST_ROLE.sub(r"\1", body)
    body = _RST_REFERENCE.sub(lambda match: match[1] or match[2] or match[3], body)
    body = _RST_LITERAL.sub(r"`\1`", body)
    fields = {
        match["name"].lower(): match["text"].strip() for match in _RST_FIELD.finditer(body[:4_000])
    }
    date = fields.pop("date", None)
    text = without_blank_runs(body)
    return Document(text, title=heading_title(text), date=date, metadata=fields)


def _with_rst_headings(lines: list[str]) -> list[str]:
    """The lines with headings marked; a new kind of line is a level below those before it."""
    styles: list[tuple[str, bool]] = []
    marked: list[str] = []
    index = 0
    while index < len(lines):
        overline = index + 2 < len(lines) and _is_overline(lines[index], lines[index + 2])
        title_index = index + 1 if overline else index
        title = lines[title_index] if title_index < len(lines) else ""
        underline = lines[title_index + 1] if title_index + 1 < len(lines) else ""
        starts_block = index == 0 or not lines[index - 1].strip()
        if starts_block and _is_underlined(title, underline, indented=overline):
            style = (underline[0], overline)
            if style not in styles:
                styles.append(style)
            level = min(6, styles.index(style) + 1)
            marked += [f"{'#' * level} {title.strip()}", ""]
            index = title_index + 2
        else:
            marked.append(lines[index])
            index += 1
    return marked


def _is_overline(line: str, underline: str) -> bool:
    return bool(_RST_ADORNMENT.fullmatch(line)) and line.rstrip() == underline.rstrip()


def _is_underlined(title: str, underline: str, *, indented: bool) -> bool:
    """Whether a line is a title: as wide as the line below it, or nearly so."""
    if (
        not title.strip()
        or (title[0].isspace() and not indented)
        or _RST_ADORNMENT.fullmatch(title)
    ):
        return False
    return bool(_RST_ADORNMENT.fullmatch(underline)) and len(underline.rstrip()) >= min(
        len(title.rstrip()), 4
    )


def _without_directives(lines: list[str]) -> list[str]:
    """The lines without comments, targets, pictures and options; the content of others stays."""
    content: list[str] = []
    skipped_indent = -1  # of a comment or picture, whose content is indented further
    is_head = False  # of a directive, where its options stand
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if skipped_indent >= 0 and (not line.strip() or indent > skipped_indent):
            continue
        skipped_indent = -1
        if is_head and _RST_OPTION.match(line):
            continue
        is_head = False
        directive = _RST_DIRECTIVE.match(line)
        if directive and directive["name"] not in PICTURES:
            is_head = True
            is_code = directive["name"] in CODE_DIRECTIVES
            content.append("" if is_code else directive["indent"] + directive["argument"])
        elif directive or _RST_COMMENT.match(line):
            skipped_indent = indent
        else:
            content.append(line)
    return content
