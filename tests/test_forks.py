"""A LightRAG in a process that was forked from the one that opened it: told so, never waited for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.processes import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

BEGIN = """
import asyncio, json, os, sys
from lightrag_jsonl import AsyncLightRAG, LightRAG
rag = LightRAG(sys.argv[1])
rag.insert("Marie Curie discovered radium in Paris. Pierre Curie helped her.")
"""
USED = (
    BEGIN
    + 'rag.retrieve("Who discovered radium?")\npieces = rag.stream("Who discovered radium?")\n'
)

CALLS = """
async def look():
    return await asynchronous.status()

asynchronous = rag._rag
calls = {
    "retrieve": lambda: rag.retrieve("Who discovered radium?"),
    "query": lambda: rag.query("Who discovered radium?"),
    "insert": lambda: rag.insert("Lise Meitner worked in Berlin."),
    "delete": lambda: rag.delete("x"),
    "graph": lambda: rag.graph.number_of_nodes(),
    "status": lambda: rag.status(),
    "await": lambda: asyncio.run(look()),
}
"""
CHILD = """
child = os.fork()
if child == 0:
    told = {}
    for name, call in calls.items():
        try:
            call()
        except Exception as error:
            told[name] = f"{type(error).__name__}: {error}"
    rag.close()
    print(json.dumps(told), flush=True)
    with LightRAG(sys.argv[1]) as own:
        own.insert("Lise Meitner worked in Berlin.")
        print(len(own.retrieve("Who worked in Berlin?").entities) > 0, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
print(sorted(entity.name for entity in rag.retrieve("Who worked with Lise Meitner?").entities))
rag.close()
"""


def run(script: str, folder: Path) -> list[str]:
    """What a script prints, given the folder; none of it takes long, or it waits for ever."""
    done = run_python(script, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("before", [BEGIN, USED], ids=["written", "asked"])
def test_a_forked_process_is_told_to_open_the_folder_anew(before: str, tmp_path: Path) -> None:
    """Every call says so at once, `close` does nothing, a new one works, and the parent goes on."""
    told, fresh, status, seen = run(before + CALLS + CHILD, tmp_path)
    refused = json.loads(told)
    assert refused.keys() == {
        "retrieve",
        "query",
        "insert",
        "delete",
        "graph",
        "status",
        "await",
    }
    assert all(
        "StorageError" in text and "open the folder anew" in text for text in refused.values()
    )
    assert (fresh, status) == ("True", "0")
    assert "Lise Meitner" in seen
