"""The end of a program that left something open: it comes, and quietly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import run_python

BEGIN = """
import sys
from lightrag_jsonl import LightRAG
rag = LightRAG(sys.argv[1])
rag.insert("Marie Curie discovered radium in Paris. Pierre Curie helped her.")
question = "What did Marie Curie discover?"
"""
KEPT = 'open = rag.stream(question)\nprint("radium" in next(open))\n'
EVENTS = "open = rag.events(question)\nprint(next(open).stage)\n"
ENDED = "open = rag.stream(question)\nfor piece in open:\n    sys.exit(3)\n"
FINALIZED = """
class App:
    def __del__(self, rag=rag):
        try:
            rag.query("Who?")
        except Exception as error:
            print(type(error).__name__)
        rag.close()
app = App()
"""
CLOSE = """
import atexit, sqlite3, weakref
def close():
    rag.close()
    try:
        rag.status()
    except Exception as error:
        print(type(error).__name__, end=" ")
    with sqlite3.connect(sys.argv[1] + "/index.sqlite") as connection:
        print(connection.execute("SELECT count(*) FROM documents").fetchone()[0])
class App: pass
app = App()
"""
AT_EXIT = CLOSE + "atexit.register(close)\n"
WITH_ITS_OWNER = CLOSE + "weakref.finalize(app, close)\n"
HALF_READ = AT_EXIT + "open = rag.stream(question)\nnext(open)\n"


def run(script: str, folder: Path) -> tuple[int, str, str]:
    """How a script ends, given the folder, and what it prints; where it never ends, this fails."""
    done = run_python(BEGIN + script, folder)
    return done.returncode, done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    ("script", "status", "told"),
    [(KEPT, 0, "True"), (EVENTS, 0, "session"), (ENDED, 3, ""), (FINALIZED, 0, "StorageError")],
    ids=["stream", "events", "exit", "finalizer"],
)
def test_what_was_left_half_read_keeps_no_program_from_ending(
    script: str, status: int, told: str, tmp_path: Path
) -> None:
    """The thread is gone by then: nothing is asked of it, and nothing waits for it."""
    assert run(script, tmp_path) == (status, told, "")


@pytest.mark.parametrize(
    "script", [AT_EXIT, WITH_ITS_OWNER, HALF_READ], ids=["atexit", "weakref", "half read"]
)
def test_it_can_be_closed_when_the_program_ends(script: str, tmp_path: Path) -> None:
    """Where no pool lends a thread any more."""
    assert run(script, tmp_path) == (0, "StorageError 1", "")
