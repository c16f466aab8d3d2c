"""A model or embedder that hangs: nobody waits for it, neither `close` nor Ctrl-C nor the end of the process."""

from pathlib import Path

import pytest

from tests.processes import run_python

SCRIPT = """
import asyncio, os, signal, sys, threading, time
from lightrag_jsonl import AsyncLightRAG, LightRAG
from lightrag_jsonl.core import aio

aio.GRACE = 0.2  # seconds for a cancelled coroutine to end
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

class DeafEmbedder:
    name, dim = "deaf", 4

    async def embed(self, texts, *, kind):
        await deaf("")

folder, *kinds = sys.argv[1:]
for kind in kinds:  # each in a process of its own; the package is imported once
    print("==", kind, flush=True)
    child = os.fork()
    if not child:
        break
    os.waitpid(child, 0)
else:
    sys.exit()
signal.alarm(200)  # a process that waits nevertheless
folder = f"{folder}/{kind}"
part = {"embedder": DeafEmbedder()} if kind == "embedder" else {"llm": globals()[kind]}

def insert(rag):
    try:
        rag.insert("Ann met Bob.")
    except BaseException as error:
        print(type(error).__name__)

def close():
    rag = LightRAG(folder + "/close", **part)
    inserting = threading.Thread(target=insert, args=[rag])
    inserting.start()
    began.wait()
    rag.close()
    inserting.join()

async def cancel():
    async with AsyncLightRAG(folder + "/cancel", **part) as rag:
        task = asyncio.create_task(rag.insert("Ann met Bob."))
        await asyncio.to_thread(began.wait)
        task.cancel()
        print(type((await asyncio.gather(task, return_exceptions=True))[0]).__name__)

def interrupt():
    began.wait()
    os.kill(os.getpid(), signal.SIGINT)

close()
began.clear()
asyncio.run(cancel())
began.clear()
threading.Thread(target=interrupt).start()
with LightRAG(folder + "/interrupt", **part) as rag:
    insert(rag)
began.clear()
rag = LightRAG(folder + "/exit", **part)
threading.Thread(target=insert, args=[rag], daemon=True).start()
began.wait()
print("end")
"""
ENDS = ["StorageError", "CancelledError", "KeyboardInterrupt", "end"]


@pytest.mark.slow
def test_nobody_waits_for_a_part_that_hangs(tmp_path: Path) -> None:
    """A thread that sleeps for minutes, or a coroutine that ignores its cancellation, is left behind
    by `close`, a cancelled task, Ctrl-C and the end of the process.
    """
    parts = ["sync", "deaf", "embedder"]
    ended = run_python(SCRIPT, tmp_path, *parts)
    outputs = [output.split() for output in ended.stdout.split("== ")[1:]]
    assert [output[:5] for output in outputs] == [[part, *ENDS] for part in parts], ended.stderr
    assert ended.returncode == 0, ended.stderr
