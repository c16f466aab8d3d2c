"""Reads source code as code blocks of Markdown; that of Python below headings for its classes and functions."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter

_FENCE = pattern_of(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class _Definition(NamedTuple):
    """A class, a function or a method, which begins at a line, counted from 0."""

    line: int
    level: int
    name: str


def read_source(data: bytes, meter: FileMeter) -> Document:
    """The code as it is, in a block."""
    text = meter.decode(data).strip("\n")
    return Document(_block(text) if text.strip() else "")


def read_python(data: bytes, meter: FileMeter) -> Document:
    """The code as it is, each class and function below its name; in one block if Python cannot parse it."""
    text = meter.decode(data).replace("\r\n", "\n").replace("\f", "").removeprefix("\ufeff")
    try:
        definitions = list(_definitions(ast.parse(text)))
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
    ):  # other versions, and what is no code
        definitions = []
    lines = text.split("\n")
    starts = [definition.line for definition in definitions]
    opening = "\n".join(lines[: starts[0] if starts else None]).strip("\n")
    blocks = [_block(opening)] if opening.strip() else []
    for definition, end in zip(definitions, [*starts[1:], None], strict=False):
        blocks.append(f"{'#' * definition.level} {definition.name}")
        blocks.append(_block("\n".join(lines[definition.line : end]).strip("\n")))
    text = "\n\n".join(blocks)
    meter.add_characters(len(text))
    return Document(text)


def _definitions(module: ast.Module) -> Iterator[_Definition]:
    """The classes and functions of a module and the methods of its classes, each from its own line on."""
    for node in module.body:
        if not isinstance(node, _DEFINITIONS):
            continue
        yield _Definition(_first_line(node), 2, node.name)
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, _DEFINITIONS):
                    yield _Definition(_first_line(method), 3, f"{node.name}.{method.name}")


def _first_line(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line of a definition, or of its first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1


def _block(code: str) -> str:
    """Code between fences that do not occur in it."""
    longest = max([len(fence) for fence in _FENCE.findall(code)], default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{code}\n{fence}"
