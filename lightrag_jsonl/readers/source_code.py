"""Reads source code as code blocks of Markdown, in Python below a heading for each class and function, the
documentation strings as prose.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import markdown_heading
from lightrag_jsonl.text.patterns import pattern_of

_FENCE_SIGNS = pattern_of(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_MARKUP_IN_PROSE = pattern_of(r"^[ \t]*(?:#{1,6}\s|`{3,}|~{3,})", re.MULTILINE)
_FIELD = pattern_of(
    r"^[ \t]*:\w+(?:[ \t][^:\n]{1,60})?:(?=\s)", re.MULTILINE
)  # such as ":param name:"
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class _Definition(NamedTuple):
    """A class, a function, a method, or the module itself, which has no name: the first line, and the lines
    from `prose_start` to `prose_end` of the documentation string, counted from 0.
    """

    line: int
    level: int
    name: str
    prose_start: int
    prose_end: int
    prose: str


def read_source(data: bytes, meter: FileMeter) -> Document:
    """The unchanged code, in a block."""
    lines = meter.decode(data).split("\n")
    return Document("".join(_code_blocks(lines)))


def read_python(data: bytes, meter: FileMeter) -> Document:
    """The unchanged code, each class and function below a heading; a single block if unparsable.

    A documentation string stands as prose where it stood in the code.
    """
    text = meter.decode(data).replace("\r\n", "\n").replace("\f", "").removeprefix("\ufeff")
    lines = text.split("\n")
    try:
        definitions = list(_definitions(ast.parse(text), lines))
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ):  # other versions, and what is no code
        definitions = [_Definition(0, 0, "", 0, 0, "")]
    blocks: list[str] = []
    for definition, following in zip_longest(definitions, definitions[1:]):
        end = len(lines) if following is None else following.line
        if definition.name:
            blocks.append(markdown_heading(definition.name, definition.level))
        blocks += _code_blocks(lines[definition.line : definition.prose_start], "python")
        if definition.prose:
            blocks.append(definition.prose)
        blocks += _code_blocks(lines[definition.prose_end : end], "python")
    text = "\n\n".join(blocks)
    meter.add_characters(len(text))
    return Document(text)


def _definitions(module: ast.Module, lines: Sequence[str]) -> Iterator[_Definition]:
    """The module, and its classes, functions and methods, each with the first line."""
    yield _definition(module, lines, 0, 0, "")
    for node in module.body:
        if not isinstance(node, _DEFINITIONS):
            continue
        yield _definition(node, lines, _first_line(node), 2, node.name)
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, _DEFINITIONS):
                    name = f"{node.name}.{method.name}"
                    yield _definition(method, lines, _first_line(method), 3, name)


def _definition(
    node: _Documented, lines: Sequence[str], line: int, level: int, name: str
) -> _Definition:
    """A definition with the prose of its documentation string, if that has lines of its own and nothing that
    would be read as a heading or a block.
    """
    prose = (ast.get_docstring(node) or "").strip()
    if not prose:
        return _Definition(line, level, name, line, line, "")
    string = node.body[0]
    start = string.lineno - 1
    end = string.end_lineno or string.lineno
    before = lines[start].encode()[: string.col_offset]  # offsets are counted in bytes
    after = lines[end - 1].encode()[string.end_col_offset :]
    if before.strip() or after.strip() or _MARKUP_IN_PROSE.search(prose):
        return _Definition(line, level, name, line, line, "")
    return _Definition(line, level, name, start, end, _FIELD.sub(r"- \g<0>", prose))


def _first_line(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line of a definition, or of the first decorator."""
    lines = [decorator.lineno for decorator in node.decorator_list]
    return min([node.lineno, *lines]) - 1


def _code_blocks(lines: Sequence[str], language: str = "") -> list[str]:
    """A block of the lines, between fences absent from the code; none without code."""
    code = "\n".join(lines).strip("\n")
    if not code.strip():
        return []
    longest = max(map(len, _FENCE_SIGNS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{language}\n{code}\n{fence}"]
