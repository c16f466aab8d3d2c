"""Makes the moving pictures of the READMEs: python docs/pictures/terminal.py

Runs the commands on the samples in a scratch folder, without a model, and draws what they print as an
animated SVG: a terminal in which lines appear one after the other, and the same again.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.output import LineWrap
from lightrag_jsonl.cli.samples import sample_documents, sample_records
from lightrag_jsonl.core.languages import Language

HERE = Path(__file__).parent
PROGRAM = "lightrag-jsonl"
COLUMNS = 88
LINE_HEIGHT = 21  # pixels, as the other sizes
CHARACTER_WIDTH = 8.45
MARGIN = 18
SECONDS_PER_COMMAND = 1.6
SECONDS_PER_LINE = 0.25
PAUSE = 5.0  # seconds at the end
COMMANDS: dict[Language, tuple[tuple[str, ...], ...]] = {
    "en": (
        ("query", "-w", "kb", "Who helped Lise Meitner to flee from Germany?"),
        ("relations", "list", "-w", "kb", "--search", "Coster"),
        ("export", "-w", "kb", "wiki/"),
    ),
    "zh": (
        ("query", "-w", "kb", "《大唐西域记》的口述者与哪位国王结为兄弟？"),
        ("relations", "list", "-w", "kb", "--search", "辩机"),
        ("export", "-w", "kb", "wiki/"),
    ),
}
STYLE = """
  text { font: 14px ui-monospace, 'SF Mono', Menlo, Consolas, 'Noto Sans Mono CJK SC', monospace; fill: #d6deeb; white-space: pre }
  .command { fill: #7fdbca } .source { fill: #82aaff } .line { opacity: 0; animation-iteration-count: infinite }
"""


class Line(NamedTuple):
    """A line of the picture, and the second when it appears."""

    text: str
    kind: str
    second: float


def main() -> None:
    """Draw the terminal of each language."""
    for language, commands in COMMANDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            fill_index(Path(scratch) / "kb", language)
            lines = list(recorded(Path(scratch), commands))
        picture = HERE / f"terminal-{language}.svg"
        picture.write_text(drawn(lines), encoding="utf-8")


def fill_index(folder: Path, language: Language) -> None:
    """The index of the samples with their records."""
    records = sample_records(language)
    with LightRAG(folder, language=language, llm="none", embedder="hash") as rag:
        for document in sample_documents(language):
            rag.insert_records(document, records[document.id or ""])


def recorded(folder: Path, commands: tuple[tuple[str, ...], ...]) -> Iterator[Line]:
    """The commands and what they print, in lines of the terminal."""
    second = 0.5
    for command in commands:
        quoted = [f'"{part}"' if " " in part or not part.isascii() else part for part in command]
        yield Line(f"$ {PROGRAM} {' '.join(quoted)}", "command", second)
        second += SECONDS_PER_COMMAND
        output = subprocess.run(
            [sys.executable, "-m", "lightrag_jsonl", *command],
            cwd=folder,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for line in wrapped_lines(output.rstrip("\n")):
            kind = "source" if line.startswith("[") else "output"
            yield Line(line, kind, second)
            second += SECONDS_PER_LINE
        yield Line("", "output", second)


def wrapped_lines(output: str) -> list[str]:
    """The lines of an output, as wide as the picture."""
    lines: list[str] = []
    for line in output.split("\n"):
        wrap = LineWrap(COLUMNS, indent="    " if line.startswith("[") else "")
        lines += (wrap.feed(line) + wrap.end()).split("\n")
    return lines


def drawn(lines: list[Line]) -> str:
    """The animated SVG."""
    width = round(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    duration = lines[-1].second + PAUSE
    rules = [STYLE]
    texts: list[str] = []
    for number, line in enumerate(lines):
        begin = 100 * line.second / duration
        rules.append(
            f"  @keyframes l{number} {{ 0%, {begin:.2f}% {{ opacity: 0 }} "
            f"{begin + 0.01:.2f}%, 100% {{ opacity: 1 }} }}\n"
            f"  #l{number} {{ animation: l{number} {duration:.1f}s infinite }}\n"
        )
        y = MARGIN + (number + 0.7) * LINE_HEIGHT
        texts.append(
            f'<text id="l{number}" class="line {line.kind}" x="{MARGIN}" y="{y:.1f}" '
            f'xml:space="preserve">{escape(line.text)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n'
        f"<style>{''.join(rules)}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#011627"/>\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
