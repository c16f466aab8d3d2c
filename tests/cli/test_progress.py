"""What a terminal shows while a command runs."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from lightrag_jsonl.cli.progress import progress_bar
from lightrag_jsonl.indexing.runs import Progress


class Terminal(io.StringIO):
    """A terminal that notices when a text has been shown."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self._awaited = awaited
        self.shown = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._awaited in text:
            self.shown.set()
        return super().write(text)


@pytest.mark.parametrize(
    ("steps", "awaited"),
    [
        ({"merging": (0, 1)}, "merging: 100%"),
        ({"summarizing": (3, 80)}, "summarizing 3/80: 100%"),
        ({"embedding": (1_024, 22_178)}, "embedding 1,024/22,178: 100%"),
    ],
)
def test_a_full_bar_says_what_goes_on(
    monkeypatch: pytest.MonkeyPatch, steps: dict[str, tuple[int, int]], awaited: str
) -> None:
    """Once all chunks are read, what is left is named, also where nothing more is told for long."""
    terminal = Terminal(awaited)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar() as watch:
        assert watch
        watch(Progress(567, 567, 0))
        watch(Progress(567, 567, 0, steps))  # type: ignore[arg-type]
        assert terminal.shown.wait(30), terminal.getvalue()


def test_a_bar_that_still_moves_says_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """While chunks are read, their number is what there is to see."""
    terminal = Terminal("5/567")
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar() as watch:
        assert watch
        watch(Progress(5, 567, 1, {"embedding": (64, 128)}))
        assert terminal.shown.wait(30), terminal.getvalue()
    assert "embedding" not in terminal.getvalue() and "1 document]" in terminal.getvalue()


def test_no_terminal_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """A file or a pipe gets nothing."""
    with progress_bar() as watch:
        assert watch is None
    assert capsys.readouterr().err == ""
