"""Reads texts of Org as texts with headings as in Markdown."""

import re

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading, without_blank_runs
from lightrag_jsonl.readers.titles import heading_title
from lightrag_jsonl.text.patterns import pattern_of

_ORG_KEYWORD = pattern_of(r"^#\+(?P<name>\w+):[ \t]*(?P<text>.*)\n?", re.MULTILINE)
_ORG_HEADING = pattern_of(
    r"^(?P<stars>\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#\w\][ \t]+)?"
    r"(?P<title>.*?)(?:(?<![ \t])[ \t]+(?::[\w@:]+:[ \t]*)?)?$",
    re.MULTILINE,
)
_ORG_DRAWER = pattern_of(
    r"^[ \t]*:(?:PROPERTIES|LOGBOOK):[ \t]*\n(?:(?![ \t]*:END:).*\n)*?.*:END:.*\n?", re.MULTILINE
)
_ORG_BLOCK = pattern_of(
    r"^[ \t]*#\+(?P<edge>begin|end)_(?P<kind>\w+)[ \t]*(?P<language>\S*).*$",
    re.MULTILINE | re.IGNORECASE,
)
_ORG_PLANNING = pattern_of(r"^[ \t]*(?:SCHEDULED|DEADLINE|CLOSED):.*\n?", re.MULTILINE)
_ORG_COMMENT = pattern_of(r"^[ \t]*#(?:[ \t].*)?$\n?", re.MULTILINE)
_ORG_LINK = pattern_of(r"\[\[(?:[^\[\]\n]*)\]\[([^\]\n]+)\]\]|\[\[([^\[\]\n]+)\]\]")
_ORG_RULE = pattern_of(r"^[ \t]*\|[-+|]+\|?[ \t]*$\n?", re.MULTILINE)


def read_org(data: bytes, meter: FileMeter) -> Document:
    """A text of Org: headings by their stars, without drawers; keywords give title and metadata."""
    text = meter.decode(data).replace("\r\n", "\n")
    fields: dict[str, str] = {}
    for keyword in _ORG_KEYWORD.finditer(text):
        name = keyword["name"].lower()
        fields[name] = keyword["text"].strip()
    for pattern in (_ORG_KEYWORD, _ORG_DRAWER, _ORG_PLANNING, _ORG_COMMENT, _ORG_RULE):
        text = pattern.sub("", text)
    text = _ORG_BLOCK.sub(_org_fence, text)
    text = _ORG_HEADING.sub(_org_heading, text)
    text = _ORG_LINK.sub(lambda match: match[1] or match[2], text)
    title = fields.pop("title", None)
    date = fields.pop("date", "").strip("<>[]")[:10]
    names = ("author", "filetags", "email", "language", "description")
    metadata = {name: fields[name] for name in names if fields.get(name)}
    text = without_blank_runs(text)
    return Document(text, title=title or heading_title(text), date=date or None, metadata=metadata)


def _org_heading(match: re.Match[str]) -> str:
    level = len(match["stars"])
    heading = markdown_heading(match["title"], level)
    return f"\n{heading}\n"


def _org_fence(match: re.Match[str]) -> str:
    """A fence of Markdown for code; nothing for quotations and the like."""
    if match["kind"].lower() not in ("src", "example"):
        return ""
    if match["edge"].lower() == "begin":
        return f"```{match['language']}"
    return "```"
