"""A process that indexes on a disk of `disk.c`, again and again: see `tests.forking`.

An order is {"folder", "notes", "fail": [operation, after, times, errno] or null}.
The child inserts document by document, changes one and deletes one. An error of the store is
marked and the step done again, up to `TRIES` times, the last on a disk that is well.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from lightrag_jsonl import AsyncLightRAG
from lightrag_jsonl.errors import NotFoundError, StorageError
from lightrag_jsonl.testing import ScriptedLLM
from tests.forking import serve
from tests.indexing.killed import DOCUMENTS, EDITED, OPTIONS, SECONDS
from tests.indexing.kit import index, prompts, read_names

TRIES = 3
GIVEN = DOCUMENTS[:4]


def mark(disk: Any, **facts: object) -> None:
    """Put facts among the notes of the disk."""
    line = json.dumps(facts).encode()
    disk.disk_mark(line, ctypes.c_longlong(len(line)))


def steps(rag: AsyncLightRAG) -> list[Callable[[], Awaitable[object]]]:
    """What is done, one call after another."""
    inserts = [partial(rag.insert, document) for document in (*GIVEN, EDITED)]
    return [*inserts, partial(drop, rag)]


async def drop(rag: AsyncLightRAG) -> None:
    """Delete a document; where SQLite could not say whether it is gone, it may be."""
    with contextlib.suppress(NotFoundError):
        await rag.delete("d1")


async def attempt(disk: Any, folder: Path, first: int, llm: ScriptedLLM) -> int:
    """Do the steps from `first` on; the number of the one that failed, or of all where none did."""
    done = first
    try:
        async with index(folder, llm, options=OPTIONS) as rag:
            for step in steps(rag)[first:]:
                for _ in range(TRIES):
                    try:
                        await step()
                        break
                    except StorageError as error:
                        mark(disk, error=str(error), step=done)
                else:
                    return done
                done += 1
                mark(disk, done=done)
    except StorageError as error:  # the folder could not be opened
        mark(disk, error=str(error), step=done)
    return done


def work(disk: Any, folder: Path, fail: list[Any] | None) -> None:
    """All steps; where the disk stays ill, again from the one that failed once it is well."""
    llm = ScriptedLLM(read_names, seconds=SECONDS)
    if fail is not None:
        operation, after, times, error = fail
        disk.disk_fail(
            ctypes.c_char(operation.encode()),
            ctypes.c_longlong(after),
            ctypes.c_longlong(times),
            ctypes.c_int(error),
        )
    total = len(GIVEN) + 2
    done = asyncio.run(attempt(disk, folder, 0, llm))
    if done < total:
        mark(disk, well=True)
        disk.disk_fail(
            ctypes.c_char(b" "), ctypes.c_longlong(0), ctypes.c_longlong(0), ctypes.c_int(0)
        )
        done = asyncio.run(attempt(disk, folder, done, llm))
    assert done == total
    mark(disk, calls=len(llm.requests))


def begin(disk: Any, order: dict[str, Any]) -> None:
    """The work, with the disk failing as it was asked for."""
    disk.disk_begin(order["notes"].encode())
    work(disk, Path(order["folder"]), order["fail"])


if __name__ == "__main__":
    prompts()
    disk: Any = ctypes.CDLL(None)
    disk.disk_left.restype = ctypes.c_longlong
    serve(partial(begin, disk))
