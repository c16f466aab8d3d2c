"""Finds JSON in a model's text: an object, perhaps cut or broken, or the single value of a reply.

Commands of LaTeX and paths of Windows keep their backslashes: a tab and "heta" are `\\theta`, a line end in
"C:", "ew" is `C:\\new`, and a backspace always a `\\b`.
"""

import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple, cast

from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.core.types import Json, Record, RejectionReason
from lightrag_jsonl.llm.schemas import Schema
from lightrag_jsonl.llm.thinking import without_prompted_thinking, without_thinking
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import cut, sanitize

# What follows the first letter of a command, by the letter: the endings that begin no line and no cell of
# ordinary text, and those that might ("to", "not") and count in formulas. A backspace and a form feed mean
# nothing in a text: they always begin a command.
_ENDINGS = {
    "n": "abla|eq|eqq|otin|leq|geq|gtr|prec|succ|sim|cong|subseteq|supseteq|earrow|warrow|leftarrow|rightarrow"
    "|Leftarrow|Rightarrow|leftrightarrow|vdash|vDash|onumber|olimits|ewcommand|ewline",
    "r": "ho|ight|ightarrow|ightleftharpoons|angle|brace|brack|floor|ceil|moustache|vert|Vert|aisebox"
    "|ightharpoonup|isingdotseq",
    "t": "heta|au|imes|ilde|herefore|riangle|riangleq|riangleleft|riangleright|frac|binom|extbf|extit|extrm|extsf"
    "|exttt|extstyle|extsc|extsuperscript|extsubscript|wohead\\w+|hickapprox|hicksim|hetasym|anh|ext(?=\\{)"
    "|extcolor(?=\\{)",
}
_ENDINGS_IN_FORMULAS = {
    "n": "u|e|i|ot|eg|abla|eq|mid|less|exists|parallel|subset|supset|atural",
    "r": "m|[A-Za-z]{2,}",
    "t": "o|an|op|ext|ag|iny|t|able|hinspace",
}
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_ESCAPED_COMMAND = pattern_of(r"\\(?:[bf]|[nrt][A-Za-z])")
# A path of Windows in one word, all of whose backslashes JSON took for escapes; a line of text seldom
# begins with a small letter, a folder often.
_PATH = pattern_of(
    r"(?<![A-Za-z0-9])[A-Za-z]:(?:[\b\f\r\t\\][\w.$~@()+-]+|\n(?=[a-z_0-9])[\w.$~@()+-]+)+"
)
# The same with spaces in names of folders, if one backslash is left.
_PATH_WITH_SPACES = pattern_of(
    r"(?<![A-Za-z0-9])[A-Za-z]:\\(?:[\w.$~@()+ -]{0,80}(?:[\b\f\r\t\\]|\n(?=[a-z_0-9])))+[\w.$~@()+-]+"
)
_LOST_BACKSLASH = pattern_of(r"[\b\f\n\r\t]")
# A formula as pandoc knows it: no space inside its dollars, no digit after them.
_FORMULA = pattern_of(
    r"\$\$(?:[^$\\]|\\.)+\$\$|\$(?![ \d])(?:[^$\\]|\\.)*?(?<![\s])\$(?!\d)"
    r"|\\\((?:[^\\]|\\[^)]){1,1000}\\\)|\\\[(?:[^\\]|\\[^\]]){1,1000}\\\]",
    re.DOTALL,
)


def _commands(endings_by_letter: Mapping[str, str]) -> re.Pattern[str]:
    """The control characters that begin a command, if its rest follows."""
    controls = {letter: control for control, letter in _LETTERS.items()}
    parts = [
        f"{re.escape(controls[letter])}(?=(?:{endings})(?![A-Za-z]))"
        for letter, endings in endings_by_letter.items()
    ]
    return pattern_of("|".join(parts))


_COMMON = _commands(_ENDINGS)
_IN_FORMULAS = _commands(_ENDINGS_IN_FORMULAS)
_IN_SCRIPTS = pattern_of(rf"(?<=[{{^_])(?:{_IN_FORMULAS.pattern})")  # as in `x_{\nu}`


def may_hold_commands(source: str) -> bool:
    """Whether JSON text has an escape of a control character directly before a letter."""
    return bool(_ESCAPED_COMMAND.search(source))


def with_latex_commands(value: Json) -> Json:
    """The value with the backslashes of commands in its texts; ordinary tabs and lines stay."""
    if isinstance(value, str):
        return _text_with_commands(value)
    if isinstance(value, list):
        return [with_latex_commands(item) for item in value]
    if isinstance(value, dict):
        return {key: with_latex_commands(item) for key, item in value.items()}
    return value


def _text_with_commands(text: str) -> str:
    if not any(control in text for control in _LETTERS):
        return text
    for path in (_PATH, _PATH_WITH_SPACES):
        text = path.sub(lambda match: _LOST_BACKSLASH.sub(_command_start, match[0]), text)
    text = text.replace("\b", "\\b").replace("\f", "\\f")
    text = _IN_SCRIPTS.sub(_command_start, _COMMON.sub(_command_start, text))
    text = _FORMULA.sub(lambda formula: _IN_FORMULAS.sub(_command_start, formula[0]), text)
    return text


def _command_start(control: re.Match[str]) -> str:
    return "\\" + _LETTERS[control[0]]


# ── values ────────────────────────────────────────────────────────────────────

MAX_DEPTH = 200  # levels of nesting in a record
SPACES = pattern_of("[^\\S\n\r\u2028\u2029\x85]*")  # within a line, whatever ends it
FENCE = "`{3,}|~{3,}"
BULLET = r"(?:[-*+•·–—①-⑳]|[(（]?\d{1,6}[.)、:．）：]?)\s*(?=[{\[])"
_QUOTED_CHARACTERS = 300  # of a bad reply in an error
_ZERO_WIDTH = "[\ufeff\u200b-\u200d\u2060]"  # zero-width characters mean nothing outside strings
_STRING_OR_INVISIBLE = pattern_of(rf'("[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?)|{_ZERO_WIDTH}')
_VALUE = pattern_of(  # a bracket that begins JSON or ends the text, unlike those in prose
    r"\{\s*(?:[\"}]|\Z)|\[\s*(?:[\]\[{\"\d-]|true\b|false\b|null\b|\Z)"
)
_NEW_LINE = pattern_of(rf"(?P<indent>[^\S\n]*)(?:(?P<fence>{FENCE})|(?:{BULLET})?\{{)")
# A closing quote is followed by one of these; any other quote is inside a string. The repetition
# in `_STRING` is not possessive, since Python before 3.11.5 has a bug there.
_CLOSED = r"(?=[ \t\r]*(?:[,:}\]\n]|\Z))"
_STRING = pattern_of(
    rf'"([^"\\]*+(?:(?:\\.|"(?!{_CLOSED}))[^"\\]*+)*)(?:"{_CLOSED}(\s*:)?|(\Z))', re.DOTALL
)
# A string where JSON allows one, to the end of its line if its closing quote is missing; or a brace
_STRING_OR_BRACE = pattern_of(
    r'(?:[{\[,:]|^)[ \t\r]*"[^"\\\n]*+'
    rf'(?:(?:\\.|"(?!{_CLOSED}))[^"\\\n]*+)*(?:"|\\?(?=\n|\Z))|[{{}}]',
    re.MULTILINE,
)
# A string in double quotes, or one in single quotes where JSON allows a string
_STRING_IN_EITHER_QUOTES = pattern_of(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    r"|(?P<before>[{\[,:]\s*+)'(?P<single>(?:[^'\\]|\\.|'(?!\s*+[,:}\]]))*)(?:'|(?P<unclosed>\Z))",
    re.DOTALL,
)
_KEY_IN_SINGLE_QUOTES = pattern_of(r"[{,]\s*+'[^'\"\n]{1,100}'\s*+:")
_STRING_OR_LAST_COMMA = pattern_of(r'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)|,(?=\s*+[}\]])', re.DOTALL)
_STRICT_STRING_OR_BRACKET = pattern_of(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{}\]]', re.DOTALL)
_ESCAPE = pattern_of(r'\\(?P<valid>["\\/bfnrt]|u[0-9a-fA-F]{4})?(?P<letters>[a-z]{2})?')
_ESCAPED_WORD = pattern_of(r"(?:\\[!-~]|[!#-\[\]-~])+")  # without quotes and spaces
_IN_WORD = pattern_of(r"\\(?:[bfrt]|n(?![A-Z]))|\\.", re.DOTALL)
_LATEX_LETTERS = frozenset("bfrt")  # of escapes, also of LaTeX's commands beta, frac …
_ESCAPE_OR_QUOTE = pattern_of(r'\\.|"', re.DOTALL)


class FoundObject(NamedTuple):
    """An object in a text: the end, and the record or the fault."""

    end: int  # the end of the text if that ends inside the object
    record: Record | None
    fault: RejectionReason | None = None  # of a record, "repaired" at most


def line_end(text: str, at: int) -> int:
    """Where the line at a position ends."""
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def end_of(pattern: re.Pattern[str], text: str, at: int, end: int = sys.maxsize) -> int:
    """The end of a match at `at`; `at` without a match."""
    match = pattern.match(text, at, end)
    return match.end() if match else at


def find_object(text: str, start: int) -> FoundObject:
    """The object at `start`, repaired if only the quoting is wrong.

    Strings may hold raw line breaks. Of a repeated key the last value counts; a lone surrogate
    becomes U+FFFD. NaN, Infinity and numbers beyond the range of floats are malformed.
    """
    try:
        record, end = _JSON_DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
            return FoundObject(len(text), None, "truncated")
        return find_broken(text, start, error.pos)
    except RecursionError:
        return find_broken(text, start, fault="too_deep")
    except ValueError:
        return find_broken(text, start)
    source = text[start:end]
    if is_too_deep(source):
        return FoundObject(end, None, "too_deep")
    return FoundObject(end, _clean(record) if "\\u" in source else record)


def find_broken(
    text: str, start: int, position: int = -1, fault: RejectionReason = "malformed"
) -> FoundObject:
    """The object at `start` that is invalid from `position` on.

    The end is the closing brace, or before a fence, or before a line no further to the right that
    begins with a brace, except after a comma, a colon or a bracket where JSON allows one.
    """
    at = start
    depth = 0
    before = ""  # the last character of the lines read so far
    first = text.rfind("\n", 0, start) + 1
    margin = end_of(SPACES, text, first) - first
    while at < len(text):
        end = line_end(text, at)
        if before and (new_line := _NEW_LINE.match(text, at, end)):
            is_allowed = before in ",[:" and new_line.end("indent") != position
            if new_line["fence"] or (len(new_line["indent"]) <= margin and not is_allowed):
                return FoundObject(at, None, fault)
        closing, depth = closing_brace(text, at, end, depth)
        if closing >= 0:
            record = _repaired_record(text[start:closing]) if fault == "malformed" else None
            return FoundObject(closing, record, fault if record is None else "repaired")
        before = text[at:end].rstrip()[-1:] or before
        at = end + 1
    return FoundObject(len(text), None, "truncated" if fault == "malformed" else fault)


def closing_brace(text: str, start: int, end: int, depth: int = 0) -> tuple[int, int]:
    """Look for the end of a broken object up to `end`, with `depth` braces already open.

    Returns (the position after the closing brace, 0), or (-1, the number of braces still open).
    """
    for match in _STRING_OR_BRACE.finditer(text, start, end):
        mark = match[0][0]
        depth += (mark == "{") - (mark == "}")
        if mark == "}" and depth <= 0:
            return match.end(), 0
    return -1, depth


def _repaired_record(text: str) -> Record | None:
    """The record of a closed object, with repaired quotes, backslashes and last commas.

    Nothing is completed. The result is None if a quote can be read in two ways.
    """
    with contextlib.suppress(ValueError, RecursionError):
        if _KEY_IN_SINGLE_QUOTES.search(text):
            text = _STRING_IN_EITHER_QUOTES.sub(_in_double_quotes, text)
        text = _STRING.sub(_escaped_string, _with_backslashes(text))
        text = _STRING_OR_LAST_COMMA.sub(lambda match: match[1] or "", text)
        record: Record = _clean(_JSON_DECODER.decode(text))
        return None if is_too_deep(text) else record
    return None


def _in_double_quotes(string: re.Match[str]) -> str:
    """A string of JSON in place of a string in single quotes, as in Python."""
    content = string["single"]
    if content is None:
        return string[0]
    if string["unclosed"] is not None:
        raise ValueError("a string without an end")
    escaped = _ESCAPE_OR_QUOTE.sub(lambda mark: '\\"' if mark[0] == '"' else mark[0], content)
    return string["before"] + '"' + escaped.replace("\\'", "'") + '"'


def _with_backslashes(text: str) -> str:
    """The text with backslashes escaped where no escape of JSON begins, as in LaTeX's `\\hat`.

    In a text with such a command `\\beta` is a command, too, and no backspace; in a word with one,
    such as `data\\new` or `\\d+\\b`, every backslash was meant.
    """
    if all(escape["valid"] for escape in _ESCAPE.finditer(text)):
        return text

    def escaped(escape: re.Match[str]) -> str:
        is_command = escape["valid"] in _LATEX_LETTERS and escape["letters"]
        return escape[0] if escape["valid"] and not is_command else f"\\{escape[0]}"

    return _ESCAPE.sub(escaped, _ESCAPED_WORD.sub(_word_with_backslashes, text))


def _word_with_backslashes(word: re.Match[str]) -> str:
    """A word with control characters as written by the model, if any backslash is bare."""
    if all(escape["valid"] for escape in _ESCAPE.finditer(word[0])):
        return word[0]
    return _IN_WORD.sub(lambda mark: f"\\{mark[0]}" if mark[0][1] in "bfnrt" else mark[0], word[0])


def _escaped_string(string: re.Match[str]) -> str:
    """A string with escaped inner quotes; `ValueError` for a quote that may be the string's end."""
    text = string[1]
    quotes = [mark.start() for mark in _ESCAPE_OR_QUOTE.finditer(text) if mark[0] == '"']
    if string[3] is not None:
        raise ValueError("a string without an end")
    if not quotes:
        return string[0]
    before = {text[max(0, at - 9) : at].rstrip(" \t")[-1:] for at in quotes}
    if string[2] or before & {"{", "["} or (before & {",", ":"} and len(quotes) % 2):
        raise ValueError("a quote that can be read in two ways")
    inner = _ESCAPE_OR_QUOTE.sub(lambda mark: '\\"' if mark[0] == '"' else mark[0], text)
    return f'"{inner}"'


def without_invisible(text: str) -> str:
    """The text without zero-width characters, except inside strings."""
    if text.isascii() or not re.search(_ZERO_WIDTH, text):
        return text
    return _STRING_OR_INVISIBLE.sub(lambda match: match[1] or "", text)


def read_json(
    text: str,
    *,
    schema: Schema | None = None,
    normalize: Callable[[Json], Json] | None = None,
) -> Json:
    """The JSON value in a reply: alone, in a code fence, after thinking or between words.

    Of several values the longest counts. A broken-off value is never completed. `normalize` is
    applied before the schema. `ResponseError` shows the text, or the path of the fault.
    """
    quoted = repr(cut(text, _QUOTED_CHARACTERS))
    try:
        value: Json = _clean(_value_of(text.replace("\0", "").strip()))
    except (ValueError, RecursionError) as error:
        raise ResponseError(f"the reply is not JSON ({error}): {quoted}", text=text) from error
    if may_hold_commands(text):
        value = with_latex_commands(value)
    if normalize is not None:
        value = normalize(value)
    if schema is not None and (fault := schema.error(value)):
        message = f"the reply does not fit its schema: {fault}: {quoted}"
        raise ResponseError(message, text=text)
    return value


def _value_of(text: str) -> Json:
    """The value of a text that is nothing but JSON, as most replies are, or else a value found in it."""
    try:
        return cast(Json, _JSON_DECODER.decode(text))
    except (ValueError, RecursionError):
        return _find_value(text)


def _find_value(text: str) -> Json:
    """The value of a text without zero-width characters, or else of the longest object or array in it."""
    text = without_invisible(text).strip()
    with contextlib.suppress(ValueError, RecursionError):
        return cast(Json, _JSON_DECODER.decode(text))
    text = without_thinking(without_prompted_thinking(text))
    longest_value: Json = None
    longest = 0
    position = 0
    while mark := _VALUE.search(text, position):
        value, position = _JSON_DECODER.raw_decode(text, mark.start())
        length = position - mark.start()
        if length > longest:
            longest_value = value
            longest = length
    if not longest:
        raise ValueError("no object and no array in it")
    return longest_value


def is_too_deep(text: str) -> bool:
    """Whether objects and arrays of a JSON text are nested in more than `MAX_DEPTH` levels."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    marks = _STRICT_STRING_OR_BRACKET.findall(text)
    return max(accumulate((mark in "[{") - (mark in "]}") for mark in marks)) > MAX_DEPTH


def _clean(value: Any) -> Any:
    """The value with lone surrogates replaced, so that UTF-8 can hold the text."""
    return json.loads(sanitize(json.dumps(value, ensure_ascii=False)))


def _finite(digits: str) -> float:
    """A number in the range of floats; NaN and Infinity are no JSON."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return number


_JSON_DECODER = json.JSONDecoder(strict=False, parse_constant=_finite, parse_float=_finite)
