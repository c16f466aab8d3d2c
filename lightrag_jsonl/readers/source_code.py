"""Reads source code as code blocks of Markdown, in Python below a heading for each class and function."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter

_FENCE_SIGNS = pattern_of(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class _Definition(NamedTuple):
    """A class, a function or a method, and the first line, counted from 0."""

    line: int
    level: int
    name: str


def read_source(data: bytes, meter: FileMeter) -> Document:
    """The unchanged code, in a block."""
    text = meter.decode(data).strip("\n")
    return Document(_block(text) if text.strip() else "")


def read_python(data: bytes, meter: FileMeter) -> Document:
    """The unchanged code, each class and function below a heading; a single block if unparsable."""
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
    """The classes, functions and methods of a module, each with the first line."""
    for node in module.body:
        if not isinstance(node, _DEFINITIONS):
            continue
        yield _Definition(_first_line(node), 2, node.name)
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, _DEFINITIONS):
                    yield _Definition(_first_line(method), 3, f"{node.name}.{method.name}")


def _first_line(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line of a definition, or of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1


def _block(code: str) -> str:
    """Code between fences absent from the code."""
    longest = max([len(fence) for fence in _FENCE_SIGNS.findall(code)], default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{code}\n{fence}"
