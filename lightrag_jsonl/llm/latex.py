"""Restores backslashes taken for escapes of JSON: a tab and "heta" are `\\theta`, a line end in
"C:", "ew" is `C:\\new`, and a backspace always a `\\b`.
"""

import re
from collections.abc import Mapping

from lightrag_jsonl.core.types import Json
from lightrag_jsonl.text.patterns import pattern_of

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
