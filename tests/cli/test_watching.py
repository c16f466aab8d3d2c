"""Promises of `insert --watch`."""

import signal
import subprocess
from pathlib import Path
from threading import Timer

import pytest

from lightrag_jsonl import FileLimits, LightRAG
from lightrag_jsonl.cli.watching import FileChanges, file_stamps, watched_changes
from tests.cli.conftest import process, run
from tests.processes import heed_interrupts

SECONDS = 60


@pytest.mark.slow
def test_changes_of_a_folder_are_inserted_until_ctrl_c(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """A new file is inserted, a changed one replaced, with --sync one that is gone removed; Ctrl-C ends
    with status 0.
    """
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ada.md").write_text("Ada Brook built a pump.")
    (notes / "old.md").write_text("Bob Crane sold the mill.")
    command = process(("insert", "-w", tmp_path / "kb", "--watch", "--sync", notes))
    child = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        preexec_fn=heed_interrupts,
    )  # fmt: skip
    stopper = Timer(SECONDS, child.kill)
    stopper.start()
    try:
        assert child.stderr is not None
        lines = iter(child.stderr.readline, "")
        assert any("watching" in line for line in lines)
        (notes / "ada.md").write_text("Ada Brook built a pump and a lock.")
        (notes / "new.md").write_text("Dora Finch keeps the lock.")
        (notes / "picture.xyz").write_text("no text")
        (notes / "old.md").unlink()
        inserted = [next(line for line in lines if "inserted:" in line) for _ in range(2)]
        removed = next(line for line in lines if "removed:" in line)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=SECONDS)
    finally:
        stopper.cancel()
        child.kill()
    with LightRAG(tmp_path / "kb") as rag:
        texts = [rag.pages(document.id)[0].text for document in rag.documents()]

    assert child.returncode == 0
    assert "ada.md" in inserted[0]
    assert "new.md" in inserted[1]
    assert "old.md" in removed
    assert sorted(texts) == ["Ada Brook built a pump and a lock.", "Dora Finch keeps the lock."]


def test_a_file_is_read_when_it_is_written(tmp_path: Path) -> None:
    """A file that grows from look to look is not reported before it stays the same."""
    path = tmp_path / "log.txt"
    sizes = [1, 5, 9, 9, 9, 12, 12]
    looked: list[int] = []

    def look() -> dict[Path, tuple[int, int]]:
        looked.append(sizes[len(looked)])
        return {path: (looked[-1], looked[-1])}

    changes = watched_changes(look, {}, pause=lambda seconds: None)

    assert next(changes) == FileChanges((path,), ())
    assert looked == [1, 5, 9, 9]
    assert next(changes) == FileChanges((path,), ())
    assert looked == sizes


def test_only_files_that_an_insert_reads_are_watched(tmp_path: Path) -> None:
    """Hidden, excluded and unknown files of a folder do not count; pictures count for a vision model."""
    for name in ("a.md", ".b.md", "c.xyz", "draft.md", "d.png"):
        (tmp_path / name).write_text("x")
    limits = FileLimits(exclude=("draft*",))

    def names(*, sees: bool) -> list[str]:
        return [path.name for path in file_stamps([tmp_path], limits, sees=sees)]

    assert names(sees=False) == ["a.md"]
    assert names(sees=True) == ["a.md", "d.png"]
    assert file_stamps([tmp_path / "gone.md"], limits, sees=False) == {}


def test_a_text_cannot_be_watched(tmp_path: Path) -> None:
    """--watch of stdin is a wrong usage."""
    arguments = ["insert", "-w", str(tmp_path / "kb"), "--watch", "-"]
    result = run(*arguments, stdin="a text")

    assert result.exit_code == 2
    assert "--watch needs files or folders" in result.output
