"""Guesses about broken objects: where one ends, and how a closed one was meant to be quoted.

Nothing here completes anything: `requoted` changes how text is quoted, not what it says, and gives
up if a quote can be read in two ways.
"""

from __future__ import annotations

import re

# In JSON a closing quote is followed by one of these; any other quote is inside a string.
_GOES_ON = r"[ \t\r]*(?:[,:}\]\n]|\Z)"
# A string where JSON allows one: after an opening bracket, a comma, a colon or at a line's start.
# If its closing quote is missing, it extends to the end of its line. The outer repetition is not
# possessive, since Python before 3.11.5 has a bug there; it never backtracks anyway.
_STRING_OR_BRACE = re.compile(
    r'(?:[{\[,:]|^)[ \t\r]*"[^"\\\n]*+'
    rf'(?:(?:\\.|"(?!{_GOES_ON}))[^"\\\n]*+)*(?:"|\\?(?=\n|\Z))|[{{}}]',
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"\s*(?:(?P<quote>[\"'])|(?P<mark>[{}\[\]:,])|(?P<scalar>-?[0-9][0-9.eE+-]*|[A-Za-z]+)(?!\w))"
)
_BEFORE_BRACKET = re.compile(r"\s*[}\]]")
_ESCAPE_OR_QUOTE = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in "\"'"}
_CLOSING = re.compile(_GOES_ON)
_COLON = re.compile(r"\s*:")
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


def object_end(text: str, start: int = 0, depth: int = 0) -> tuple[int, int]:
    """Look for the end of a broken object from `start` on, with `depth` braces already open.

    Returns (the position after its closing brace, 0), or (-1, the number of braces still open).
    """
    for match in _STRING_OR_BRACE.finditer(text, start):
        mark = match.group()[0]
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth <= 0:
                return match.end(), 0
    return -1, depth


def requoted(text: str, *, dialect: bool = False) -> str | None:
    """JSON for a closed object with unescaped quotes inside its values, or None.

    With `dialect`, the syntax of other languages is translated, too: single quotes, `True`,
    `False`, `None` and a comma before a closing bracket. The result may still not be valid JSON.
    """
    parts: list[str] = []
    at = 0
    while token := _TOKEN.match(text, at):
        part, at = token[token.lastgroup or 0], token.end()
        if token["quote"]:
            string = _json_string(text, at, part) if part == '"' or dialect else None
            if string is None:
                return None
            part, at = string
        elif dialect and part == "," and _BEFORE_BRACKET.match(text, at):
            continue
        parts.append(_PYTHON_WORDS.get(part, part) if dialect else part)
    return None if text[at:].strip() else "".join(parts)


def _json_string(text: str, start: int, quote: str) -> tuple[str, int] | None:
    """The string that begins at `start` as JSON, and where it ends; None if that is ambiguous."""
    parts = ['"']
    at, inner, opening = start, 0, False
    for match in _ESCAPE_OR_QUOTE[quote].finditer(text, start):
        between = text[at : match.start()]
        parts.append(between if quote == '"' else between.replace('"', '\\"'))
        at = match.end()
        if match.group() != quote:
            parts.append("'" if match.group() == "\\'" else match.group())
        elif _CLOSING.match(text, at):
            doubtful = inner and (_COLON.match(text, at) or (opening and inner % 2))
            return None if doubtful else ("".join([*parts, '"']), at)
        else:
            before = text[start : match.start()].rstrip(" \t")[-1:] or " "
            if before in "{[":
                return None
            inner += 1
            opening = opening or before in ",:"
            parts.append('\\"' if quote == '"' else quote)
    return None
