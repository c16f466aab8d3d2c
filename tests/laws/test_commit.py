"""Law `commit`: kill the process anywhere; each document is whole or absent, and nothing paid is lost.

`LIGHTRAG_JSONL_KILLS` says how often a process is killed.
"""

import multiprocessing
import os
import random
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from lightrag_jsonl import Document
from tests.kit import View, problems, reading, view
from tests.laws.killed import DOCUMENTS, EDITED, SLOTS, run, run_questions

KILLS = int(os.environ.get("LIGHTRAG_JSONL_KILLS", "5"))
LIVES = 5  # of one folder: so many times its process is killed before the work may end
LINE = 65  # bytes of the log for one call
LONGEST = 0.15  # seconds within which a process is killed after it made its last call to be

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.laws.killed"])


def start(kb: Path | str, log: Path, work: Callable[[Path | str, Path], None] = run) -> BaseProcess:
    process = processes.Process(target=work, args=(kb, log), daemon=True)
    process.start()
    return process


def kill(process: BaseProcess, log: Path, size: int, seconds: float) -> None:
    """Kill a process so long after its log has a size in bytes, unless it ends before."""
    while log.stat().st_size < size and process.is_alive():
        process.join(0.001)
    process.join(seconds)
    process.kill()
    process.join()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[View, list[str]]:
    """What the work leaves where nobody kills it, and the calls that it takes."""
    folder = tmp_path_factory.mktemp("unbroken")
    process = start(folder / "kb", folder / "log")
    process.join()
    assert process.exitcode == 0 and problems(folder / "kb") == []
    return view(folder / "kb"), (folder / "log").read_text(encoding="utf-8").split()


def visible_texts(folder: Path) -> dict[str, str]:
    """The visible documents and the text of their chunks put together; all of these were read."""
    with reading(folder) as reader:
        found = {document.id: "" for document in reader.documents()}
        for row, chunk in reader.chunks(documents=found).items():
            assert reader.entity_mentions(chunks=[row])
            found[chunk.document_id] += chunk.text
        assert {report.state for report in reader.chunk_reports()} <= {"ok"}
    return found


def texts(*documents: Document) -> dict[str, str]:
    return {document.id or "": document.text for document in documents}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(-(-KILLS // LIVES)))
def test_a_killed_process_loses_nothing(
    unbroken: tuple[View, list[str]], tmp_path: Path, seed: int
) -> None:
    """After each kill all is sound, paid answers are not paid again, and in the end all is there."""
    chance = random.Random(seed)
    folder, log = tmp_path / "kb", tmp_path / "log"
    log.touch()
    begun = kept = 0
    for life in range(LIVES + 1):
        process = start(folder, log)
        if life == LIVES:
            process.join()
            assert process.exitcode == 0
        else:
            more = chance.randint(0, len(unbroken[1]) - min(begun, len(unbroken[1])))
            seconds = chance.uniform(0, LONGEST) ** 2 / LONGEST
            kill(process, log, (begun + more) * LINE, seconds)
        calls = log.read_text(encoding="utf-8").split()
        assert len(set(calls[begun:])) == len(calls) - begun, "a call is made twice in one life"
        if (folder / "index.sqlite").exists():
            assert problems(folder) == []
            old, new = texts(*DOCUMENTS), texts(EDITED)
            found = visible_texts(folder)
            assert all(text in (old[id], new.get(id)) for id, text in found.items())
            with reading(folder) as reader:
                before, (kept, _) = kept, reader.completion_stats()
            lost = len(calls) - begun - (kept - before)  # of the calls of this life
            assert lost <= SLOTS, "more is lost than was in flight"
        begun = len(calls)
    assert view(folder) == unbroken[0]
    assert set(calls) == set(unbroken[1])
    assert len(calls) - len(unbroken[1]) <= LIVES * SLOTS, "paid answers were paid again"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(-(-KILLS // LIVES)))
def test_a_question_that_is_killed_loses_nothing(tmp_path: Path, seed: int) -> None:
    """Amid the reading for questions, too: see `check_killed_questions`."""
    check_killed_questions(tmp_path / "kb", tmp_path, seed)


def check_killed_questions(kb: Path | str, tmp_path: Path, seed: int) -> None:
    """After each kill all is sound in the index at `kb`, what was paid for is not paid again, and in the end
    the index is the one that nobody killed.
    """
    whole, whole_log = tmp_path / "whole", tmp_path / "whole.log"
    unbroken = start(whole, whole_log, run_questions)
    unbroken.join()
    assert unbroken.exitcode == 0 and problems(whole) == []
    expected = whole_log.read_text(encoding="utf-8").split()
    chance = random.Random(seed)
    log = tmp_path / "log"
    log.touch()
    begun = kept = 0
    for life in range(LIVES + 1):
        process = start(kb, log, run_questions)
        if life == LIVES:
            process.join()
            assert process.exitcode == 0
        else:
            more = chance.randint(1, max(1, (len(expected) - begun) // (LIVES - life)))
            kill(process, log, (begun + more) * LINE, chance.uniform(0, LONGEST) ** 2 / LONGEST)
        calls = log.read_text(encoding="utf-8").split()
        assert len(set(calls[begun:])) == len(calls) - begun, "a call is made twice in one life"
        if Path(kb, "index.sqlite").exists():
            assert problems(kb) == []
            with reading(kb) as reader:
                before, (kept, _) = kept, reader.completion_stats()
            lost = len(calls) - begun - (kept - before)
            assert lost <= SLOTS, "more is lost than was in flight"
        begun = len(calls)
    assert view(kb) == view(whole)
    assert set(calls) >= set(expected)
    assert len(calls) - len(set(calls)) <= LIVES * SLOTS, "paid answers were paid again"
