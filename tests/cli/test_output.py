"""Tables, cut lines and JSON: readable with wide characters, harmless for a terminal."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import InsertReport, Usage
from lightrag_jsonl.cli import output
from lightrag_jsonl.core.index_reports import SkippedFile
from lightrag_jsonl.core.types import ExtractionReport, Failure


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8")), st.integers(1, 40))
def test_text_keeps_to_its_limit_and_cannot_steer_a_terminal(text: str, limit: int) -> None:
    """A cut line is one line and never wider than it may be. No control character but line ends and
    tabs is left; the rest stays as it was.
    """
    cut, shown = output.one_line(text, limit), output.printable("\x1b[2J" + text)

    assert "\n" not in cut and output.width(cut) <= limit
    assert "\x1b" not in shown and "\x9b" not in shown and shown.startswith("\ufffd[2J")


def empty_files(count: int) -> list[Failure]:
    return [Failure(f"/a/{n}.docx", None, f"/a/{n}.docx is empty") for n in range(count)]


def test_the_line_of_a_failed_file_has_its_path_once() -> None:
    """A few files that failed for the same reason are all named; the reason does not repeat the path."""
    broken = Failure("/a/b.jsonl", None, "/a/b.jsonl, line 1: not JSON")

    assert list(output.failure_notes([*empty_files(2), broken], "kb")) == [
        "failed: /a/0.docx: empty",
        "failed: /a/1.docx: empty",
        "failed: /a/b.jsonl: line 1: not JSON",
    ]


def test_many_failures_are_few_lines_and_all_are_counted() -> None:
    """Many files that failed for one reason share a line; a line tells how many failures have none."""
    different = [Failure(f"/b/{n}.docx", None, f"reason {n}") for n in range(22)]

    lines = list(output.failure_notes([*empty_files(30), *different], "kb"))

    assert lines[0] == "failed: /a/0.docx (and 29 more): empty"
    assert lines[-1] == "failed: 3 more, in the report (--json)"
    assert len(lines) == 21


@given(st.lists(st.text(alphabet="ab 中，。\n👻", max_size=30)), st.integers(8, 30))
def test_lines_are_as_wide_as_the_terminal(pieces: list[str], columns: int) -> None:
    """Nothing but spaces at breaks is lost, in whatever pieces the text comes."""
    lines = output.LineWrap(columns)
    wrapped = "".join(map(lines.feed, pieces)) + lines.end()

    assert "".join(wrapped.split()) == "".join("".join(pieces).split())
    for line in wrapped.split("\n"):
        assert output.width(line.rstrip()) <= columns or not any(map(str.isspace, line.strip()))


def test_further_lines_are_indented_and_words_stay_whole() -> None:
    """Chinese breaks between characters, but no line begins with punctuation."""
    lines = output.LineWrap(12, indent="  ")
    assert (
        lines.feed("[1] Marie Curie discovered") + lines.end() == "[1] Marie\n  Curie\n  discovered"
    )
    lines = output.LineWrap(8)
    assert lines.feed("张骞出使，西域👻") + lines.end() == "张骞出\n使，西\n域👻"
    assert output.LineWrap(None).feed("as it is " * 50) == "as it is " * 50


def test_a_report_says_each_thing_once() -> None:
    """The usage of the extraction has a line of its own only where it is not the usage of the whole
    insert, and is called after the extraction then.
    """
    asked = Usage(input_tokens=7, output_tokens=5, calls=1)
    extraction = ExtractionReport(ok=1, usage=asked)
    report = InsertReport(documents=("a",), usage=asked, extraction=extraction)
    summarized = InsertReport(usage=asked + asked, extraction=extraction)

    lines = output.in_words(report).split("\n")
    assert [line for line in lines if "input_tokens" in line] == [
        "usage       input_tokens 7, output_tokens 5, calls 1"
    ]
    assert lines[-1] == "extraction  ok 1"
    assert "extraction usage  input_tokens 7" in output.in_words(summarized)
    assert "upgraded usage " in output.in_words({"inserted": report, "upgraded": summarized})


@pytest.mark.parametrize("columns", [40, 80])
def test_a_table_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """The first column stays whole, empty columns are left out, and long cells are cut; for a file or a
    pipe nothing is.
    """
    rows = [
        {"id": "papers/渡口.txt", "state": "done", "keywords": "", "title": "渡口" * 30, "n": 3},
        {"id": "b", "state": "failed", "keywords": "", "title": "ferries " * 20, "n": 1_000},
    ]
    whole = output.table(rows)
    monkeypatch.setattr(output, "terminal_columns", lambda: columns)
    shown = output.table(rows)
    assert max(map(output.width, whole.split("\n"))) > columns and "keywords" in whole
    assert max(map(output.width, shown.split("\n"))) <= columns and "keywords" not in shown
    assert "papers/渡口.txt" in shown and "渡口" in shown and "state" in shown


def test_a_first_column_wider_than_the_terminal_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id must be there to be copied."""
    monkeypatch.setattr(output, "terminal_columns", lambda: 20)
    assert output.table([{"id": "x" * 50, "state": "done"}]) == f"id\n{'x' * 50}"


def test_files_with_one_reason_are_one_line_of_short_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Paths below the current folder are relative, and only a few are named; others stay whole."""
    monkeypatch.chdir(tmp_path)
    skipped = [SkippedFile(str(tmp_path / f"in/{n}.txt"), "it is a link") for n in range(30)]
    skipped.append(SkippedFile("/elsewhere/a.txt", "it is a pipe"))
    assert list(output.skipped_notes(skipped)) == [
        f"skipped: {Path('in/0.txt')}, {Path('in/1.txt')}, {Path('in/2.txt')} (and 27 more): it is a link",
        "skipped: /elsewhere/a.txt: it is a pipe",
    ]


def test_fields_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long text goes on below itself, beside the labels."""
    monkeypatch.setattr(output, "terminal_columns", lambda: 40)
    lines = output.in_words({"total": "渡口 and ferries " * 6, "n": 3}).split("\n")
    assert len(lines) > 2 and all(output.width(line.rstrip()) <= 40 for line in lines)
    assert all(line.startswith("       ") for line in lines[1:-1]) and lines[-1] == "n      3"
