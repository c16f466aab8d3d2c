"""Reads reStructuredText by docutils as a text with headings as in Markdown."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading, markdown_table
from lightrag_jsonl.readers.titles import heading_title
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced
from lightrag_jsonl.text.strings import words as word_set

DOCUTILS_SETTINGS = {  # nothing is read or run but the text itself, and faults of form are no reason to stop
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "smart_quotes": False,
    "input_encoding": "unicode",
    "_disable_config": True,
}
NODES_WITHOUT_TEXT = word_set(
    "comment substitution_definition target image raw system_message pending meta"
)
BEFORE_FIELDS = NODES_WITHOUT_TEXT | {"title", "subtitle"}
MARKUP_ONLY = word_set("contents highlight include index currentmodule")
CODE_ROLES = word_set("code code-block sourcecode literalinclude prompt parsed-literal")
LONGEST_RST_LINE = (
    10_000  # characters; docutils refuses longer ones, on which its patterns take hours
)
VERSIONS = {  # Sphinx's words before a version
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}
DIRECTIVE = pattern_of(r"^[ \t]*\.\. +([\w:+.-]+)::", re.MULTILINE)
ROLE = pattern_of(r"(?<![\w:]):([\w:+.-]+):`")
TOC_ENTRY = pattern_of(r"^(\S.*?)\s*<[^<>]*>$")  # a title before the name of a page
ROLE_TARGET = pattern_of(r"(?<!\s)\s*<[^<>]*>$")


def read_rst(data: bytes, meter: FileMeter) -> Document:
    """A text of reStructuredText: sections become headings, roles and directives plain texts.

    Fields above the first paragraph give date and metadata. Of directives and roles of other
    programs, such as Sphinx's, the content is read.
    """
    from docutils.core import publish_doctree

    source = meter.decode(data).replace("\r\n", "\n")
    longest_line = max(map(len, source.split("\n")))
    if longest_line > LONGEST_RST_LINE:
        meter.add_note(f"has a line of {longest_line:,} characters, so its markup is not read")
        return Document(source, title=heading_title(source))
    _register_unknown(source)
    tree = publish_doctree(source, settings_overrides=DOCUTILS_SETTINGS)
    fields: dict[str, str] = {}
    for field in tree.findall(_named_element("field")):
        if _is_near_the_beginning(field):
            name, body = field.children
            fields[name.astext().lower()] = single_spaced(body.astext())
    date = fields.pop("date", None)
    text = "\n\n".join(_blocks(tree, level=0))
    meter.add_characters(len(text))
    return Document(text, title=heading_title(text), date=date, metadata=fields)


def _named_element(name: str) -> Callable[[Any], bool]:
    return lambda node: bool(node.tagname == name)


def _is_near_the_beginning(field: Any) -> bool:
    """Whether a field belongs to the document: only titles and comments precede the list of fields."""
    field_list = field.parent
    outer = field_list.parent
    whole = outer.parent if outer.tagname == "section" else outer
    if whole.tagname != "document":
        return False
    before = outer.children[: outer.index(field_list)]
    return all(node.tagname in BEFORE_FIELDS for node in before)


def _blocks(node: Any, level: int) -> Iterator[str]:
    """The blocks of text in a node; `level` is the level of the headings around."""
    write = RST_BLOCKS.get(node.tagname)
    if write is not None:
        yield from filter(None, write(node, level))
    elif node.tagname not in NODES_WITHOUT_TEXT:
        inner_level = level + 1 if node.tagname == "section" else level
        for child in node.children:
            yield from _blocks(child, inner_level)


def _inline(node: Any) -> str:
    """The text of a paragraph, with code and formulas marked."""
    if node.tagname == "#text":
        bordered = single_spaced(f"|{node.astext()}|")  # a space at an end stays
        return bordered[1:-1]
    if node.tagname == "literal":
        return f"`{node.astext()}`"
    if node.tagname == "math":
        return f"${node.astext()}$"
    if node.tagname in ("footnote_reference", "citation_reference"):
        return f"[^{node.astext()}]"
    if node.tagname in NODES_WITHOUT_TEXT:
        return ""
    return "".join(map(_inline, node.children))


def _rst_paragraph(node: Any, level: int) -> Iterator[str]:
    yield _inline(node).strip()


def _title(node: Any, level: int) -> Iterator[str]:
    yield markdown_heading(_inline(node).strip(), level)


def _code_block(node: Any, level: int) -> Iterator[str]:
    yield f"```\n{node.astext()}\n```"


def _formula(node: Any, level: int) -> Iterator[str]:
    yield f"$$\n{node.astext()}\n$$"


def _list_points(node: Any, level: int) -> Iterator[str]:
    """The points of a list, each on a line; further blocks of a point are indented."""
    points: list[str] = []
    for number, item in enumerate(node.children, int(node.get("start", 1))):
        mark = f"{number}." if node.tagname == "enumerated_list" else "-"
        text = "\n".join(_blocks(item, level))
        indented = text.replace("\n", "\n  ")
        points.append(f"{mark} {indented}")
    yield "\n".join(points)


def _definition(node: Any, level: int) -> Iterator[str]:
    """A term and the definition: "pump: It lifts water."."""
    terms: list[str] = []
    texts: list[str] = []
    for child in node.children:
        if child.tagname in ("term", "field_name", "option_group"):
            terms.append(_inline(child))
        elif child.tagname in ("definition", "field_body", "description"):
            texts += _blocks(child, level)
    term = ", ".join(terms)
    if not texts:
        yield term
        return
    paragraphs = [f"{term}: {texts[0]}", *texts[1:]]
    yield "\n\n".join(paragraphs)


def _table_text(node: Any, level: int) -> Iterator[str]:
    """The title and the rows of a table."""
    for title in node.findall(_named_element("title")):
        yield _inline(title)
    rows: list[list[str]] = []
    for row in node.findall(_named_element("row")):
        rows.append([" ".join(_blocks(entry, level)) for entry in row.children])
    yield markdown_table(rows)


def _unread(node: Any, level: int) -> Iterator[str]:
    """The source of a directive unreadable by docutils, with options of another program."""
    for text in node.findall(_named_element("literal_block")):
        yield from _code_block(text, level)


def _text_lines(node: Any, level: int) -> Iterator[str]:
    yield "\n".join(_inline(line) for line in node.findall(_named_element("line")))


def _footnote(node: Any, level: int) -> Iterator[str]:
    label, *body = node.children
    texts = [text for child in body for text in _blocks(child, level)]
    yield f"[^{label.astext()}]: {' '.join(texts)}"


def _admonition(node: Any, level: int) -> Iterator[str]:
    """The blocks of a warning or the like, with its name before the first."""
    blocks = [text for child in node.children for text in _blocks(child, level)]
    if blocks:
        yield f"{node.tagname.capitalize()}: {blocks[0]}"
        yield from blocks[1:]


ADMONITIONS = word_set("attention caution danger error hint important note tip warning")
RST_BLOCKS: dict[str, Callable[[Any, int], Iterator[str]]] = {
    "paragraph": _rst_paragraph, "caption": _rst_paragraph, "attribution": _rst_paragraph, "rubric": _rst_paragraph,
    "title": _title, "subtitle": _title,
    "literal_block": _code_block, "doctest_block": _code_block, "math_block": _formula,
    "bullet_list": _list_points, "enumerated_list": _list_points,
    "definition_list_item": _definition, "field": _definition, "option_list_item": _definition,
    "system_message": _unread, "table": _table_text, "line_block": _text_lines, "footnote": _footnote, "citation": _footnote,
    **dict.fromkeys(ADMONITIONS, _admonition),
}  # fmt: skip


# ── directives and roles that docutils does not know ────────────────────────────


def _register_unknown(source: str) -> None:
    """Have the content read of directives and roles unknown to docutils."""
    from docutils.parsers.rst import directives, languages, roles

    english = languages.get_language("en", None)
    for name in set(DIRECTIVE.findall(source)):
        if name.lower() in CODE_ROLES or name.lower() not in english.directives:
            directives.register_directive(name.lower(), _directive_class())
    for name in set(ROLE.findall(source)):
        if name.lower() not in english.roles:
            roles.register_local_role(name.lower(), _role)


def _directive_class() -> Any:
    """A directive with any argument, options and content; made here, since docutils is an extra."""
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class ContentDirective(Directive):  # type: ignore[misc]
        """Gives the argument as a paragraph, and the content as blocks, or as code."""

        optional_arguments = 1
        final_argument_whitespace = True
        has_content = True
        option_spec = _AnyOption()

        def run(self) -> list[Any]:
            name = self.name.lower()
            if name in MARKUP_ONLY:
                return []
            if name == "toctree":
                items: list[Any] = []
                for line in self.content:
                    entry = TOC_ENTRY.sub(r"\1", line.strip())
                    if entry and entry != "self":
                        items.append(nodes.list_item("", nodes.paragraph(entry, entry)))
                return [nodes.bullet_list("", *items)] if items else []
            if name in CODE_ROLES:
                text = "\n".join(self.content)
                return [nodes.literal_block(text, text)] if text else []
            container = nodes.container()
            if self.arguments:
                words = " ".join(filter(None, [VERSIONS.get(name), self.arguments[0]]))
                texts, _ = self.state.inline_text(words, self.lineno)
                container += nodes.paragraph("", "", *texts)
            self.state.nested_parse(self.content, self.content_offset, container)
            return [container]

    return ContentDirective


class _AnyOption(dict[str, Any]):
    """Options of any name, unchanged."""

    def __missing__(self, name: str) -> Callable[[object], object]:
        return lambda value: value

    def __bool__(self) -> bool:
        return True


def _role(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Any = (),
) -> tuple[list[Any], list[Any]]:
    """The visible words of a role, as of "the log <log>" and "~fleet.Ship"."""
    from docutils import nodes

    words = ROLE_TARGET.sub("", text).lstrip("~!")
    return [nodes.inline(rawtext, words)], []
