"""Reads LaTeX as a text with headings as in Markdown."""

import re
import unicodedata

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.markdown import without_blank_runs

_TEX_COMMENT = re.compile(  # a per cent sign in code begins no comment
    r"(?P<code>\\begin\{(?P<listing>verbatim|lstlisting|minted)\}.*?\\end\{(?P=listing)\})"
    r"|(?<!\\)(?P<line_ends>(?:\\\\)*)%[^\n]*(?:\n[ \t]*)?",
    re.DOTALL,
)
_TEX_LEVELS = {
    "part": 1,
    "chapter": 1,
    "section": 2,
    "subsection": 3,
    "subsubsection": 4,
    "paragraph": 5,
    "subparagraph": 6,
}
_TEX_DROPPED = re.compile(  # commands whose arguments are no text
    r"\\(?:label|ref|eqref|pageref|autoref|[cC]ref|cite\w*|index|input|include|includegraphics|vspace|"
    r"hspace|bibliography|bibliographystyle|usepackage|documentclass|setlength|setcounter|newcommand|"
    r"renewcommand|thispagestyle|pagestyle|addcontentsline|begin|end)\*?(?:\[[^\]\n]*\])*(?:\{[^{}]*\})*"
)
_TEX_HEADING = re.compile(
    rf"\\({'|'.join(_TEX_LEVELS)})\*?(?:\[[^\]\n]*\])?\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}"
)
_TEX_FIELD = re.compile(r"\\(title|date|author)\{((?:[^{}]|\{[^{}]*\})*)\}")
_TEX_ITEM = re.compile(r"\\item(?:\[([^\]\n]*)\])?[ \t]*")
_TEX_LINK = re.compile(r"\\href\{[^{}]*\}\{([^{}]*)\}|\\url\{([^{}]*)\}")
_TEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\[[^\]\n]*\])?[ \t]?\{([^{}\\$]*)\}")
_TEX_SWITCH = re.compile(
    r"\\(?:maketitle|tableofcontents|centering|noindent|newpage|clearpage|appendix|bigskip|medskip|smallskip"
    r"|small|large|Large|huge|normalsize|bfseries|itshape|toprule|midrule|bottomrule|hline|par)\b[ \t]*"
)
_TEX_ACCENT = re.compile(
    r"\\([`'^\"~=.cvuHkr])\s*(?:\{\\?([A-Za-z])\}|\\?([A-Za-z])(?![A-Za-z]*\{))"
)
_TEX_PROTECTED = re.compile(  # formulas and code
    r"\$\$.*?\$\$|\$[^$\n]+\$|\\\[.*?\\\]|\\\(.*?\\\)"
    r"|\\begin\{(?P<formula>equation|align|gather|multline|eqnarray|math|displaymath)\*?\}.*?"
    r"\\end\{(?P=formula)\*?\}"
    r"|\\begin\{(?P<listing>verbatim|lstlisting|minted)\}(?P<code>.*?)\\end\{(?P=listing)\}",
    re.DOTALL,
)
_TEX_SIGNS = {
    r"\\": "\n",
    r"\%": "%",
    r"\&": "&",
    r"\_": "_",
    r"\#": "#",
    r"\$": "$",
    r"\{": "{",
    r"\}": "}",
    r"\,": " ",
    r"\ ": " ",
    r"\ldots": "…",
    r"\dots": "…",
    r"\ss": "ß",
    r"\o": "ø",
    r"\ae": "æ",
    "---": "—",
    "--": "–",
    "``": "“",
    "''": "”",
    "~": " ",
}
_TEX_SIGN = re.compile(
    "|".join(
        re.escape(sign) + (r"(?![A-Za-z])\s?" if sign[-1].isalpha() else "") for sign in _TEX_SIGNS
    )
)
_TEX_COMBINING = dict(
    zip(
        "`'^\"~=.cvuHkr",
        "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u0327\u030c\u0306\u030b\u0328\u030a",
        strict=True,
    )
)
MOST_NESTING = 8  # of commands in the arguments of others


def read_tex(data: bytes, meter: FileMeter) -> Document:
    """A text of LaTeX: what stands between `\\begin{document}` and its end, without commands.

    Sections are headings, formulas stay as they are written, and the preamble gives title and date.
    """
    text = meter.decode(data).replace("\r\n", "\n")
    text = _TEX_COMMENT.sub(lambda match: match["code"] or match["line_ends"], text)
    fields = {match[1]: _tex_words(match[2]) for match in _TEX_FIELD.finditer(text)}
    body = text.partition("\\begin{document}")[2].partition("\\end{document}")[0] or text
    pieces = []
    end = 0
    for match in _TEX_PROTECTED.finditer(body):
        code = match["code"]
        formula_or_code = match[0] if code is None else f"\n```\n{code.strip()}\n```\n"
        pieces += [_tex_words(body[end : match.start()]), formula_or_code]
        end = match.end()
    pieces.append(_tex_words(body[end:]))
    metadata = {"author": fields["author"]} if fields.get("author") else {}
    return Document(
        without_blank_runs("".join(pieces)).strip(),
        title=" ".join(fields.get("title", "").split()) or None,
        date=fields.get("date") or None,
        metadata=metadata,
    )


def _tex_words(text: str) -> str:
    """The text without commands: headings, items and links in words, accents as letters."""
    text = _TEX_HEADING.sub(lambda match: f"\n\n{'#' * _TEX_LEVELS[match[1]]} {match[2]}\n\n", text)
    text = _TEX_FIELD.sub("", text)
    text = _TEX_LINK.sub(lambda match: match[1] or match[2], text)
    text = _TEX_DROPPED.sub("", text)
    text = _TEX_ITEM.sub(lambda match: f"- {match[1]}: " if match[1] else "- ", text)
    text = _TEX_SWITCH.sub("", text)
    text = _TEX_ACCENT.sub(_accented, text)
    text = _TEX_SIGN.sub(
        lambda match: _TEX_SIGNS[match[0].rstrip()] if match[0].strip() else " ", text
    )
    for _ in range(MOST_NESTING):
        simpler = _TEX_COMMAND.sub(r"\1", text)
        if simpler == text:
            break
        text = simpler
    return text.replace("{", "").replace("}", "")


def _accented(match: re.Match[str]) -> str:
    letter = match[2] or match[3]
    return unicodedata.normalize("NFC", letter + _TEX_COMBINING[match[1]])
