"""Promises of the progress bars."""

import io
import sys

import pytest

from lightrag_jsonl.indexing.progress import Progress, progress_bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STAGES = [
    Progress(3, 4, 0),
    Progress(4, 4, 0, {"embedding": (7, 7)}),
    Progress(4, 4, 1, {"embedding": (2, 5)}),
]


def test_each_stage_has_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later round of a stage begins anew, so that no bar stands at 100 % while work goes on."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bars(None) as show:
        assert callable(show)
        for one in STAGES:
            show(one)
    shown = sys.stderr.getvalue()
    at = [shown.index(words) for words in ("3/4", "4/4", "7/7", "2/5")]
    assert at == sorted(at) and "embedding" in shown


@pytest.mark.parametrize(("given", "terminal"), [(False, True), (None, False)])
def test_there_are_none_in_a_pipe_or_if_turned_off(
    given: bool | None, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs are not filled with bars."""
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of a test of notebooks
    with progress_bars(given) as show:
        assert show is None
    assert sys.stderr.getvalue() == ""


def test_a_function_is_called_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback replaces the bars."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    seen: list[Progress] = []
    with progress_bars(seen.append) as show:
        assert show == seen.append
