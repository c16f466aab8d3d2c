"""Reads LaTeX by pylatexenc as a text with headings as in Markdown."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Json
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading, without_blank_runs
from lightrag_jsonl.readers.xml_elements import whole_number
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import single_spaced

SECTION_LEVELS = {
    "part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5,
    "subparagraph": 6,
}  # fmt: skip
LOGOS = {
    **{name: name for name in ("TeX", "LaTeX", "BibTeX", "XeLaTeX")},
    "LaTeXe": "LaTeX2e",
}
CODE_ENVIRONMENT = pattern_of(r"\\(begin|end)\{(?:lstlisting|minted)\}")
DEFINITIONS = ("newcommand", "renewcommand", "providecommand")
TITLE_FIELDS = ("title", "author", "date")
WRITTEN_HERE = (*SECTION_LEVELS, *TITLE_FIELDS, "item", "href", "url", "footnote")
PLACE = pattern_of(r"#([1-9])")
BEGIN_OF_DOCUMENT = pattern_of(r"^[^%\n]*?\\begin\s*\{document\}", re.MULTILINE)
END_OF_DOCUMENT = pattern_of(r"^(?P<last_words>[^%\n]*?)\\end\s*\{document\}", re.MULTILINE)
UNOPENED = pattern_of(r"\\end\s*\{[^{}\n]*\}|[\]}]")
CODE_OPTIONS = pattern_of(r"\A(?:\[[^\]\n]*\]|\{[^}\n]*\})*[ \t]*\n?")
LONGEST_DEFINITION = 1_000  # characters of a command of the document's own
NOTED_COMMANDS = 10
DEFINED = "defined in the document"  # the category of these commands: each category is asked for each command


def read_tex(data: bytes, meter: FileMeter) -> Document:
    """A text of LaTeX: what stands between `\\begin{document}` and its end, without commands.

    Sections become headings, formulas are unchanged, and the preamble gives title, author, date and
    the document's own commands. Commands without a definition in the file are noted.
    """
    try:
        reader = _Reader(meter.decode(data).replace("\r\n", "\n"))
    except RecursionError as error:
        raise ConfigError("is nested too deeply") from error
    meter.add_characters(len(reader.text))
    if reader.unknown:
        commands = ", ".join(sorted(reader.unknown)[:NOTED_COMMANDS])
        meter.add_note(f"unknown commands left out: {commands}")
    fields = reader.fields
    metadata: dict[str, Json] = {}
    if author := fields.get("author"):
        metadata["author"] = author
    return Document(
        reader.text,
        title=fields.get("title") or None,
        date=fields.get("date") or None,
        metadata=metadata,
    )


class _Reader:
    """The text of a document, the fields, and the undefined commands."""

    def __init__(self, source: str) -> None:
        from pylatexenc import latex2text, latexwalker

        self.fields: dict[str, str] = {}
        self.unknown: set[str] = set()
        self._commands = _commands_by_kind()
        body = CODE_ENVIRONMENT.sub(r"\\\1{verbatim}", source)
        preamble = ""
        if begin := BEGIN_OF_DOCUMENT.search(body):
            preamble = body[: begin.start()]
            body = body[begin.end() :]
        if end := END_OF_DOCUMENT.search(body):
            body = body[: end.end("last_words")]
        self._parse_context = latexwalker.get_default_latex_context_db()
        self._text_context = latex2text.get_default_latex_context_db()
        self._write_as_markdown()
        preamble_nodes = self._parsed_with_definitions(preamble)
        body_nodes = self._parsed_with_definitions(body)
        for node in chain(preamble_nodes, body_nodes):
            name = _macro_name(node)
            if name in TITLE_FIELDS:
                self.fields[name] = single_spaced(self._text(_macro_arguments(node)))
        self.unknown.clear()  # those of the preamble are no words
        self.text = without_blank_runs(self._text(body_nodes)).strip()

    def _parsed_with_definitions(self, source: str) -> list[Any]:
        """The nodes of a source, in which the own commands defined there are known."""
        nodes = self._parsed(source)
        if definitions := list(_macro_definitions(nodes)):
            self._define(definitions)
            nodes = self._parsed(source)
        return nodes

    def _parsed(self, source: str) -> list[Any]:
        """The nodes of a source; a sign that closes what was never opened is passed over."""
        from pylatexenc.latexwalker import LatexWalker

        walker = LatexWalker(source, latex_context=self._parse_context, tolerant_parsing=True)
        nodes: list[Any] = []
        position = 0
        while position < len(source):
            next_nodes, start, length = walker.get_latex_nodes(position)
            nodes += [node for node in next_nodes if node is not None]
            position = start + length
            if closing := UNOPENED.match(source, position):
                position = closing.end()
            elif not length:
                position += 1
        return nodes

    def _text(self, nodes: list[Any]) -> str:
        from pylatexenc.latex2text import LatexNodes2Text

        converter = LatexNodes2Text(latex_context=self._text_context, math_mode="verbatim")
        return str(converter.nodelist_to_text(nodes))

    def _write_as_markdown(self) -> None:
        """How commands are parsed, and written as Markdown."""
        from pylatexenc.latex2text import EnvironmentTextSpec, MacroTextSpec, SpecialsTextSpec
        from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

        silent = self._commands["silent"]
        text_last = {"href": "{{", **self._commands["text"]}
        arguments = {**text_last, **silent}
        environments = self._commands["environment"]
        self._parse_context.add_context_category(
            "arguments",
            macros=[MacroSpec(*item) for item in arguments.items()],
            environments=[EnvironmentSpec(*item) for item in environments.items()],
            prepend=True,
        )
        unwritten = (*silent, *TITLE_FIELDS, *DEFINITIONS, "maketitle", "today")
        written_as: dict[str, Any] = {
            **dict.fromkeys(unwritten, ""),
            **dict.fromkeys(SECTION_LEVELS, _section_heading),
            "item": _item,
            **dict.fromkeys(text_last, _last_words),
            **LOGOS,
            "url": "%s",
            "footnote": " (%(2)s)",
            "\\": "\n",
        }
        self._text_context.add_context_category(
            "markdown",
            macros=[MacroTextSpec(name, simplify_repl=form) for name, form in written_as.items()],
            environments=[EnvironmentTextSpec("verbatim", simplify_repl=_code_text)],
            specials=[SpecialsTextSpec("&", " | "), SpecialsTextSpec("~", " ")],
            prepend=True,
        )
        unknown_spec = MacroTextSpec("", simplify_repl=self._note_unknown)
        self._text_context.set_unknown_macro_spec(unknown_spec)

    def _note_unknown(self, node: Any, l2tobj: Any) -> str:
        """The arguments of an undefined command, and a note."""
        arguments = _macro_arguments(node)
        name = node.macroname
        if not arguments and name.isalpha() and name not in self._commands["switch"]:
            self.unknown.add(f"\\{name}")
        return str(l2tobj.nodelist_to_text(arguments))

    def _define(self, definitions: list[tuple[str, int, Any]]) -> None:
        """Have the document's own commands written by definition."""
        from pylatexenc.latex2text import MacroTextSpec
        from pylatexenc.macrospec import MacroSpec

        for context in (self._parse_context, self._text_context):
            if DEFINED not in context.categories():
                context.add_context_category(DEFINED, prepend=True)
        parsed_as = self._parse_context.d[DEFINED]["macros"]
        written_as = self._text_context.d[DEFINED]["macros"]
        for name, argument_count, body in definitions:
            text = self._text([body])
            is_own = name in WRITTEN_HERE or name in self._commands["silent"]
            if len(text) <= LONGEST_DEFINITION and not is_own:
                parsed_as[name] = MacroSpec(name, "{" * argument_count)
                written_as[name] = MacroTextSpec(name, simplify_repl=_filled(text))


def _commands_by_kind() -> defaultdict[str, dict[str, str]]:
    """The arguments of commands and environments by name, from the table beside this module."""
    table = Path(__file__).with_name("tex_commands.txt").read_text(encoding="utf-8")
    commands: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in table.split("\n"):
        if line and not line.startswith("#"):
            kind, arguments, *names = line.split()
            commands[kind] |= dict.fromkeys(names, arguments)
    return commands


def _macro_definitions(nodes: list[Any]) -> Iterator[tuple[str, int, Any]]:
    """Name, number of arguments and body of each command defined in the document."""
    for node in nodes:
        if _macro_name(node) not in DEFINITIONS or node.nodeargd is None:
            continue
        _, name_node, count_node, *_, body = node.nodeargd.argnlist
        if not name_node or body is None:
            continue
        name = name_node.latex_verbatim().strip("{}\\ ")
        count = count_node.latex_verbatim().strip("[]{} ") if count_node else ""
        if name:
            yield name, whole_number(count), body


def _filled(text: str) -> Callable[[Any, Any], str]:
    """A writer of a command: the definition, with the arguments in place of #1, #2 and so on."""

    def write(node: Any, l2tobj: Any) -> str:
        texts_by_number = {
            str(number): str(l2tobj.nodelist_to_text([argument]))
            for number, argument in enumerate(_macro_arguments(node), 1)
        }
        return PLACE.sub(lambda match: texts_by_number.get(match[1], ""), text)

    return write


def _macro_name(node: Any) -> str:
    return str(getattr(node, "macroname", ""))


def _macro_arguments(node: Any) -> list[Any]:
    """The arguments given to a command."""
    if node.nodeargd is None:
        return []
    return [argument for argument in node.nodeargd.argnlist or () if argument is not None]


def _section_heading(node: Any, l2tobj: Any) -> str:
    words = single_spaced(_last_words(node, l2tobj))
    heading = markdown_heading(words, SECTION_LEVELS[node.macroname])
    return f"\n\n{heading}\n\n"


def _item(node: Any, l2tobj: Any) -> str:
    label = str(l2tobj.nodelist_to_text(_macro_arguments(node)))
    if label:
        return f"\n- {label}: "
    return "\n- "


def _last_words(node: Any, l2tobj: Any) -> str:
    return str(l2tobj.nodelist_to_text(_macro_arguments(node)[-1:]))


def _code_text(node: Any, l2tobj: Any) -> str:
    """Unchanged code in a fence, without the options before."""
    verbatim = getattr(node.nodeargd, "verbatim_text", None)  # absent without an end
    source = verbatim or node.latex_verbatim()
    code = CODE_OPTIONS.sub("", source, count=1).rstrip()
    return f"\n```\n{code}\n```\n"
