"""Kills writers of every kind at random moments, and checks the index after each kill.

    python -m benchmarks.kill [--kills N] [--seed N]

Prints one JSON object: how often each operation was killed, and every problem that was found, by
SQL, by `admin.check(full=True)`, and by comparing a store that was just opened with one that has
seen all earlier states. Exit 1 if there is one.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import random
import sqlite3
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lightrag_jsonl import AsyncLightRAG, QueryParam
from lightrag_jsonl.core.errors import LLMError, NotFoundError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.testing import HashEmbedder, Request, ScriptedLLM
from tests.kit import index, problems, read_names
from tests.laws.killed import OPTIONS, text

LIVES = 10  # of one folder
LONGEST = 0.5  # seconds from a writer's first operation to its end
DOCUMENTS = 12
ASKED = QueryParam(hl_keywords=("walks",), ll_keywords=("Ann",))
INVARIANTS = {  # queries that find nothing
    "documents without chunks": "SELECT name FROM documents WHERE id NOT IN "
    "(SELECT document FROM chunks)",
    "entities without mentions": "SELECT name FROM entities WHERE id NOT IN "
    "(SELECT entity FROM entity_mentions)",
    "relations without mentions": "SELECT id FROM relations WHERE id NOT IN "
    "(SELECT relation FROM relation_mentions WHERE relation IS NOT NULL)",
    "entities without vectors": "SELECT name FROM entities WHERE id NOT IN "
    "(SELECT id FROM entity_vectors) AND mentions > quoted",
    "chunks without vectors": "SELECT name FROM chunks WHERE id NOT IN "
    "(SELECT id FROM chunk_vectors)",
    "vectors of other lengths": "SELECT id FROM entity_vectors WHERE length(data) / 2 <> "
    "(SELECT value FROM settings WHERE name = 'dim')",
    "traces without events": "SELECT name FROM traces WHERE id NOT IN "
    "(SELECT trace FROM trace_events)",
    "done documents that are pending with the same text": "SELECT d.name FROM documents d "
    "JOIN pending p USING (name) JOIN pages g ON g.document = d.id "
    "WHERE d.state = 'done' AND unpacked(g.text) = p.document ->> '$.text'",
}

processes = multiprocessing.get_context("forkserver")
Operation = Callable[[AsyncLightRAG, random.Random], Awaitable[object]]


def broken_invariants(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """The rows that each of the `INVARIANTS` finds, by its name."""
    connection.create_function("unpacked", 1, lambda data: zlib.decompress(data).decode())
    return {name: connection.execute(query).fetchall() for name, query in INVARIANTS.items()}


def document(chance: random.Random) -> Document:
    """One of a few documents, in one of two versions."""
    number = chance.randrange(DOCUMENTS)
    edited = text(number).replace("a cold day", chance.choice(["a cold day", "a warm day"]), 1)
    return Document(edited, id=f"d{number}")


async def delete(rag: AsyncLightRAG, chance: random.Random, *, purge: bool = False) -> None:
    """Delete some documents."""
    ids = [one.id for one in await rag.documents()]
    await rag.delete(*chance.sample(ids, min(2, len(ids))), purge=purge)


async def merge(rag: AsyncLightRAG, chance: random.Random) -> None:
    """Merge two names, and undo it every other time."""
    names = sorted(rag.graph)
    if len(names) > 1:
        one, into = chance.sample(names, 2)
        await rag.entities.merge([one], into=into)
        if chance.random() < 0.5:
            await rag.entities.unmerge(one)


OPERATIONS: dict[str, Operation] = {
    "insert": lambda rag, chance: rag.insert(
        [document(chance) for _ in range(3)], restore_purged=True
    ),
    "delete": delete,
    "purge": lambda rag, chance: delete(rag, chance, purge=True),
    "retry": lambda rag, chance: rag.retry(),
    "merge": merge,
    "rebuild": lambda rag, chance: rag.admin.rebuild(),
    "vacuum": lambda rag, chance: rag.admin.vacuum(),
    "query": lambda rag, chance: rag.query("Who met Ann?", ASKED),
    "reembed": lambda rag, chance: rag.admin.reembed(HashEmbedder(dim=chance.choice([32, 64]))),
}


def write(folder: Path, log: Path, seed: int) -> None:
    """Write until killed, noting each operation before it begins."""
    asyncio.run(_write(folder, log, random.Random(seed)))


async def _write(folder: Path, log: Path, chance: random.Random) -> None:
    def answer(request: Request) -> str | Exception:
        return LLMError("out of order") if chance.random() < 0.1 else read_names(request)

    with contextlib.closing(SQLiteStore(folder)) as store, store.view() as view:
        embedder = HashEmbedder(dim=int(view.settings().get("dim", 64)))
    llm = ScriptedLLM(answer, seconds=0.002)
    async with index(folder, llm, options=OPTIONS, embedder=embedder) as rag:
        while True:
            name = chance.choice(list(OPERATIONS))
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
            with contextlib.suppress(NotFoundError, LLMError):
                await OPERATIONS[name](rag, chance)


async def check(folder: Path, seen: SQLiteStore) -> list[str]:
    """Everything that is wrong."""
    with contextlib.closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        wrong = broken_invariants(connection)
    with seen.view() as view:
        embedder = HashEmbedder(dim=int(view.settings().get("dim", 64)))
    async with index(folder, embedder=embedder) as rag:
        found = await rag.admin.check(full=True)
    return [
        *found,
        *problems(folder, seen),
        *(f"{name}: {rows}" for name, rows in wrong.items() if rows),
    ]


def main() -> None:
    """Kill, check, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, started = random.Random(given.seed), time.monotonic()
    killed, found = Counter[str](), list[str]()
    processes.set_forkserver_preload(["tests.laws.killed"])
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stores:
        for number in range(given.kills):
            folder, log = Path(scratch, str(number // LIVES)), Path(scratch, f"{number}.log")
            if number % LIVES == 0:
                seen = stores.enter_context(contextlib.closing(SQLiteStore(folder)))
            log.touch()
            process = processes.Process(target=write, args=(folder, log, chance.randrange(1 << 30)))
            process.start()
            while not log.stat().st_size and process.is_alive():
                process.join(0.001)
            process.join(chance.uniform(0, LONGEST))
            if not process.is_alive():
                found.append(f"kill {number}: the writer ended with {process.exitcode}")
            process.kill()
            process.join()
            operation = log.read_text(encoding="utf-8").split()[-1]
            killed[operation] += 1
            wrong = asyncio.run(check(folder, seen))
            found += [f"kill {number}, {operation}: {one}" for one in wrong]
    figures = {
        "benchmark": "kill",
        "kills": given.kills,
        "operations": dict(sorted(killed.items())),
        "problems": found,
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if found:
        sys.exit(1)


if __name__ == "__main__":
    main()
