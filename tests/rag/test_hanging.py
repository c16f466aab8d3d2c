"""A model that hangs: nobody waits for it, neither `close` nor Ctrl-C nor the end of the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import run_python

START = """
import asyncio, os, signal, sys, threading, time
from lightrag_jsonl import AsyncLightRAG, LightRAG

began = threading.Event()

def sync(prompt):
    began.set()
    time.sleep(1000)

async def deaf(prompt):
    began.set()
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass

folder, model = sys.argv[1], globals()[sys.argv[2]]

def insert():
    try:
        rag.insert("Ann met Bob.")
    except BaseException as error:
        print(type(error).__name__)
"""
CLOSE = """
rag = LightRAG(folder, llm=model)
inserting = threading.Thread(target=insert)
inserting.start()
began.wait()
rag.close()
inserting.join()
"""
INTERRUPT = """
def interrupt():
    began.wait()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
with LightRAG(folder, llm=model) as rag:
    insert()
"""
EXIT = """
rag = LightRAG(folder, llm=model)
threading.Thread(target=insert, daemon=True).start()
began.wait()
print("end")
"""
CANCEL = """
async def main():
    async with AsyncLightRAG(folder, llm=model) as rag:
        task = asyncio.create_task(rag.insert("Ann met Bob."))
        await asyncio.to_thread(began.wait)
        task.cancel()
        print(type((await asyncio.gather(task, return_exceptions=True))[0]).__name__)

asyncio.run(main())
"""


@pytest.mark.parametrize("model", ["sync", "deaf"])
@pytest.mark.parametrize(
    ("end", "printed"),
    [
        (CLOSE, "StorageError"),
        (INTERRUPT, "KeyboardInterrupt"),
        (EXIT, "end"),
        (CANCEL, "CancelledError"),
    ],
    ids=["close", "interrupt", "exit", "cancel"],
)
def test_nobody_waits_for_a_model_that_hangs(
    tmp_path: Path, model: str, end: str, printed: str
) -> None:
    """A thread that sleeps for minutes, or a coroutine that ignores its cancellation, is left behind."""
    ended = run_python(START + end, tmp_path, model)
    assert (ended.returncode, ended.stdout.split()[:1]) == (0, [printed]), ended.stderr
