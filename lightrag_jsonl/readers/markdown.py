"""Reads Markdown, and writes tables and characters as in Markdown."""

import html
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time

from lightrag_jsonl.core.types import Document, Json
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.titles import heading_title
from lightrag_jsonl.text.markup import TAG
from lightrag_jsonl.text.names import LINKED_NAMES
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

LONGEST_FRONT_MATTER = 1 << 16  # characters
MOST_BRACKETS = 500  # in YAML, which takes a time that grows with the square of their depth
INDENT = "  "  # of a list inside another

_WHOLE_NUMBERS = range(-(2**63), 2**64)  # of msgpack, and of most programs
_ERRORS_OF_YAML = (  # what PyYAML raises for values that have not the form of their tags
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    RecursionError,
)
_FRONT_MATTER = pattern_of(r"(---|\+\+\+)[ \t]*\n(.*?\n)?\1[ \t]*(?:\n|\Z)", re.DOTALL)
_CODE = pattern_of(
    r"^[ \t]*(?P<fence>`{3,}(?!`)|~{3,}(?!~))[^\n]*\n.*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]+`",
    re.DOTALL | re.MULTILINE,
)
_UNDERLINED = pattern_of(
    r"(?<=\n\n)[ ]{0,3}(?![-=#>*+|\s])(?P<title>[^\n|]*[^\s|])[ \t]*\n"
    r"[ ]{0,3}(?P<line>=+|-{2,})[ \t]*(?=\n|\Z)"
)
_HTML_COMMENT = pattern_of(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)
_EMPTY_IMAGE = pattern_of(r"!\[([^\]\n]*)\]\(\s*(?:(?:<>?|>)\s*)?(?:\"[^\"\n]*\")?\)|<img\b[^<>]*>")
_EMPTY_REFERENCE = pattern_of(r"^[ \t]*\[[^\]\n]+\]:[ \t]*(?:(?:<>?|>)[ \t]*)?$\n?", re.MULTILINE)
_SCRIPT = pattern_of(r"<(sub|sup)\b[^<>]*>([^<]*)</\1\s*>|</?(?:sub|sup)\b[^<>]*>", re.IGNORECASE)
_HIGH_AND_LOW = {  # characters of Unicode for those that are raised or lowered
    "sup": str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ"),
    "sub": str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎"),
}
# What Obsidian writes
_NOTE_COMMENT = pattern_of(r"(?<![\w%])%%(?!%)(?:(?!%%).)*?%%(?!%)", re.DOTALL)
_NOTE_LINK = pattern_of(
    r"(?P<embed>!?)\[\[(?P<file>[^\[\]|#\n\\]*)(?P<place>#[^\[\]|\n\\]*)?(?:\\?\|(?P<words>[^\[\]\n]*))?\]\]"
)
_LINK_TO_NOTE = pattern_of(  # as in Markdown, to a file beside this one
    r"(?<!!)\[(?P<words>[^\[\]\n]+)\]\((?!\w+:)<?[^()<>\n]+\.(?:md|markdown)>?\)"
)
_PICTURE_NAME = pattern_of(
    r"(?i)\.(?:png|jpe?g|gif|svg|webp|bmp|avif|mp3|mp4|wav|webm|m4a|mov|mkv|ogg)\s*$"
)
_CALLOUT = pattern_of(
    r"^((?:[ \t]*>)+)[ \t]*\[!([\w-]+)[^\]\n]*\][+-]?[ \t]*([^\n]*)$", re.MULTILINE
)
_BLOCK_ID = pattern_of(r"(?<![ \t])[ \t]+\^(?:[A-Za-z][\w-]*|[0-9a-z]{6})[ \t]*$", re.MULTILINE)
_BLANK_RUN = pattern_of(r"\n[ \t]*\n(?:[ \t]*\n)+")
# Characters as Markdown takes them from HTML; a tag written with them is no tag, but words about it.
_ENTITY = pattern_of(
    r"(?P<tags>(?:&lt;/?[A-Za-z][^&<>`\n]{0,80}(?:&gt;|>))+)"
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_WRITTEN_TAG = pattern_of(TAG, re.IGNORECASE)
_STRUCTURAL = frozenset("\\`*_#|[]")  # what is written as an entity is no mark of Markdown
_TAG_BEHIND_BRACKET = pattern_of(r"[A-Za-z/!?]")
_MOST_CODE_POINTS = 2  # of one entity
_NUMERIC = pattern_of(r"[0-9+\-−=()n\s]+")


def read_markdown(data: bytes, meter: FileMeter) -> Document:
    """A text of Markdown; the front matter gives title, date and metadata, or a heading the title.

    Underlined headings are marked with "#", comments and images without an address are left out.
    Entities of HTML become their characters. Links between notes become the words shown by Obsidian; the metadata
    keep these words as names.
    The chunking finds the headings.
    """
    text = meter.decode(data).replace("\r\n", "\n")
    fields, body = _divided(text)
    title = fields.pop("title", None)
    written = fields.pop("date", None)
    names: dict[str, None] = {}
    outside_code(body, lambda text: _with_linked_names(text, names))
    plain_text = outside_code(f"\n\n{body}", _plain).removeprefix("\n\n")
    if names:
        fields[LINKED_NAMES] = [plain_entities(name) for name in names]
    return Document(
        plain_text,
        title=heading_title(plain_text) if title is None else str(title),
        date=None if written is None else str(written)[:10],
        metadata=fields,
    )


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with a change to everything but code."""
    pieces = []
    end = 0
    for match in _CODE.finditer(text):
        pieces.append(change(text[end : match.start()]))
        pieces.append(match[0])
        end = match.end()
    pieces.append(change(text[end:]))
    return "".join(pieces)


def plain_scripts(text: str) -> str:
    """The text without tags for raised and lowered characters: "10⁶", "H₂O", "1st"."""
    return _SCRIPT.sub(_script, text)


def plain_entities(text: str) -> str:
    """The text with characters for entities of HTML, such as &nbsp;: "A & B"; a tag becomes code, or else it would be
    one, and what would be a mark of Markdown stays.
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    if match["tags"]:
        tags = html.unescape(match["tags"])
        return f"`{tags}`" if _WRITTEN_TAG.search(tags) else tags
    character = html.unescape(match[0])
    line_before = match.string[: match.start()].rpartition("\n")[2]
    begins_tag = character == "<" and _TAG_BEHIND_BRACKET.match(match.string, match.end())
    begins_quote = character == ">" and not line_before.strip()
    is_mark = begins_tag or begins_quote or character in _STRUCTURAL
    if is_mark or len(character) > _MOST_CODE_POINTS:
        return match[0]
    return " " if character < " " else character


def without_blank_runs(text: str) -> str:
    """The text with at most one blank line at a place, and no blank lines at the ends."""
    return _BLANK_RUN.sub("\n\n", text).strip("\n")


def list_mark(depth: int, number: str = "-") -> str:
    """What stands before a point of a list: indented for each list around it, then the number or a bullet."""
    return f"{INDENT * depth}{number} "


def markdown_heading(text: str, level: int) -> str:
    """A heading, of the nearest level that there is."""
    marks = "#" * min(max(level, 1), 6)
    return f"{marks} {text}"


def comment_line(words: str, *, author: str | None) -> str:
    """A comment on a text, with the author, if known."""
    name = single_spaced(author)
    if name:
        return f"Comment by {name}: {words}"
    return f"Comment: {words}"


def markdown_table(rows: Iterable[Iterable[str]]) -> str:
    """The rows of a table, each on a line."""
    lines: list[str] = []
    for row in rows:
        line = " | ".join(map(single_spaced, row))
        lines.append(f"| {line} |")
    return "\n".join(lines)


def _script(match: re.Match[str]) -> str:
    text = match[2] or ""
    if match[1] and _NUMERIC.fullmatch(text):
        return text.replace("−", "-").translate(_HIGH_AND_LOW[match[1].lower()])
    return text


def _plain(text: str) -> str:
    text = _NOTE_LINK.sub(_words_of_link, _without_comments(text))
    text = _CALLOUT.sub(_callout, text)
    text = _BLOCK_ID.sub("", text)
    text = _EMPTY_IMAGE.sub(lambda match: match[1] or "", text)
    text = _EMPTY_REFERENCE.sub("", text)
    text = _UNDERLINED.sub(_underlined_heading, text)
    return plain_entities(plain_scripts(text))


def _without_comments(text: str) -> str:
    return _NOTE_COMMENT.sub("", _HTML_COMMENT.sub("", text))


def _callout(match: re.Match[str]) -> str:
    """The title of a callout, or else its kind."""
    marks, kind, title = match.groups()
    return f"{marks} {title or kind.capitalize()}"


def _underlined_heading(match: re.Match[str]) -> str:
    level = 1 if match["line"].startswith("=") else 2
    return markdown_heading(match["title"], level)


def _with_linked_names(text: str, names: dict[str, None]) -> str:
    """The text unchanged; the words of links to other notes are added to the `names`."""
    for link in _NOTE_LINK.finditer(_without_comments(text)):
        words = _words_of_link(link)
        if not link["embed"] and not link["place"] and words != link[0]:
            names[words] = None
    for link in _LINK_TO_NOTE.finditer(text):
        names[link["words"].strip()] = None
    return text


def _words_of_link(match: re.Match[str]) -> str:
    """The visible words of [[file#place|words]]; "" for an embedded picture."""
    file = match["file"].strip()
    words = match["words"]
    if match["embed"] and _PICTURE_NAME.search(file):
        return ""
    if words and words.strip():
        return words.strip()
    place = match["place"] or ""
    headings = [part.strip() for part in place.split("#") if not part.startswith("^")]
    text = " > ".join(filter(None, [file.removesuffix(".md"), *headings]))
    has_letters = any(map(str.isalpha, text))
    return text if has_letters else match[0]


def _divided(text: str) -> tuple[dict[str, Json], str]:
    """The fields of the front matter, and the text below; no fields without front matter."""
    match = _FRONT_MATTER.match(text)
    if match is None or match.end() > LONGEST_FRONT_MATTER:
        return {}, text
    block = match[2] or ""
    fields = _yaml_fields(block) if match[1] == "---" else _toml_fields(block)
    if fields is None:
        return {}, text
    return fields, text[match.end() :].lstrip("\n")


def _yaml_fields(block: str) -> dict[str, Json] | None:
    """The fields of YAML; None for other text, and for aliases, since aliases can grow without bound."""
    import yaml

    if block.count("[") + block.count("{") > MOST_BRACKETS:
        return None
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(block)):
            return None
        return _plain_fields(yaml.safe_load(block))
    except (yaml.YAMLError, *_ERRORS_OF_YAML):
        return None


def _toml_fields(block: str) -> dict[str, Json] | None:
    try:
        return _plain_fields(tomllib.loads(block))
    except (ValueError, RecursionError):
        return None


def _plain_fields(value: object) -> dict[str, Json] | None:
    """The fields as plain JSON, without null values; None for anything but fields."""
    if not isinstance(value, Mapping):
        return None
    fields = {_field_name(name): metadata_json(content) for name, content in value.items()}
    return {name: content for name, content in fields.items() if content is not None}


def metadata_json(value: object) -> Json:
    """A value of YAML, TOML or Python as plain JSON: dates, numbers too large for readers of JSON,
    and values of other types become texts; sets become sorted lists.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if value in _WHOLE_NUMBERS else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_field_name(name): metadata_json(content) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [metadata_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return [metadata_json(item) for item in sorted(value, key=str)]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def _field_name(name: object) -> str:
    """The name of a field as text, where JSON allows nothing else."""
    plain_name = metadata_json(name)
    return plain_name if isinstance(plain_name, str) else json.dumps(plain_name)
