"""Reads notebooks of Jupyter."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import outside_code, plain_entities, plain_scripts
from lightrag_jsonl.readers.titles import heading_title
from lightrag_jsonl.text.patterns import pattern_of

_TERMINAL_COLORS = pattern_of(r"\x1b\[[0-9;]*[A-Za-z]|\[(?:\d+;)*\d*m")  # the escape may be gone
_ATTACHED_IMAGE = pattern_of(r"!\[([^\]\n]*)\]\((?:attachment:[^)\n]*)?\)")
_PICTURE = pattern_of(r"<Figure size [^>]*>")


def read_notebook(data: bytes, meter: FileMeter) -> Document:
    """The cells of a notebook as Markdown: texts, code, and the outputs of code as text.

    Pictures, widgets and pages of HTML among the outputs are left out; so are the lines of code in
    the reports of errors, which are noted.
    """
    try:
        notebook = json.loads(meter.decode(data))
    except RecursionError as error:
        raise ConfigError("is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"is not a valid notebook: {error}") from error
    if not isinstance(notebook, dict):
        raise ConfigError("is not a valid notebook: it is no JSON object")
    blocks = []
    for cell in _notebook_cells(notebook):
        for block in _cell_blocks(cell, _language(notebook)):
            meter.add_characters(len(block))
            blocks.append(block)
    if any(map(_has_traceback, _notebook_cells(notebook))):
        meter.add_note("the lines of code in reports of errors are left out")
    text = "\n\n".join(blocks)
    title = _mapping(notebook.get("metadata")).get("title")
    if not isinstance(title, str):
        title = heading_title(text)
    return Document(text, title=title)


def _has_traceback(cell: Mapping[str, Any]) -> bool:
    """Whether an output reports an error with lines of code."""
    tracebacks = [_notebook_list(output.get("traceback")) for output in _outputs(cell)]
    return any(len(lines) > 1 for lines in tracebacks)


def _notebook_cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The cells in order; those of format 3 and older stand in worksheets."""
    for sheet in (notebook, *_checked_list(notebook, "worksheets")):
        yield from map(_mapping, _checked_list(_mapping(sheet), "cells"))


def _checked_list(part: Mapping[str, Any], name: str) -> list[Any]:
    """A list with texts that must not get lost; `ConfigError` for anything else."""
    value = part.get(name) or []
    if not isinstance(value, list):
        raise ConfigError(f"is not a valid notebook: its {name} are no list")
    return value


def _outputs(cell: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return map(_mapping, _notebook_list(cell.get("outputs")))


def _language(notebook: Mapping[str, Any]) -> str:
    metadata = _mapping(notebook.get("metadata"))
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        language = _mapping(metadata.get(name)).get(key)
        if isinstance(language, str):
            return language
    return ""


def _cell_blocks(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    """The text of a cell, and of its outputs."""
    source = _source_text(cell.get("source", cell.get("input"))).strip()
    kind = cell.get("cell_type")
    if kind == "code":
        if source:
            yield f"```{language}\n{source}\n```"
        for output in _outputs(cell):
            text = _output_text(output).strip()
            if text:
                yield f"```output\n{text}\n```"
    elif kind == "heading":
        yield f"{'#' * int(cell.get('level', 1))} {source}"
    elif source:
        yield outside_code(source, _plain_markdown)


def _plain_markdown(text: str) -> str:
    return plain_entities(plain_scripts(_ATTACHED_IMAGE.sub(r"\1", text)))


def _output_text(output: Mapping[str, Any]) -> str:
    """The text of an output: printed, media or raised; nothing for a picture."""
    if output.get("output_type") in ("error", "pyerr"):
        name = _source_text(output.get("ename"))
        reason = _source_text(output.get("evalue"))
        return f"{name}: {reason}"
    media = _mapping(output.get("data"))
    source = output.get("text") or media.get("text/markdown") or media.get("text/plain")
    text = _TERMINAL_COLORS.sub("", _source_text(source))
    return _PICTURE.sub("", text)


def _source_text(value: object) -> str:
    """A text that may be stored as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _notebook_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
