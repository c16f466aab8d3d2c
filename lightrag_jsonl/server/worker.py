"""The child process of a server: does the jobs it reads from stdin, and reports on stdout.

It ends when its stdin does, even in the middle of a job: when the server has nothing more to do, or
was killed.
"""

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias

import msgspec

from lightrag_jsonl import AsyncLightRAG, Document, LightRAGError
from lightrag_jsonl.core.types import Failure
from lightrag_jsonl.indexing.loading import JSONL_SUFFIX, document_from, documents_in
from lightrag_jsonl.indexing.progress import Progress
from lightrag_jsonl.rag.opening import open_async
from lightrag_jsonl.readers import file_suffix
from lightrag_jsonl.readers.process import ReadingProcess
from lightrag_jsonl.server.jobs import Job, Message

SECONDS_BETWEEN: Final = 0.2  # of reports on progress

Send: TypeAlias = Callable[[Message], None]

log = logging.getLogger(__name__)


def main() -> None:
    """Do jobs until stdin ends."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    if hasattr(os, "nice"):  # not on Windows
        os.nice(5)  # questions come first
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no report

    def send(message: Message) -> None:
        reports.write(msgspec.json.encode(message, enc_hook=str) + b"\n")
        reports.flush()

    asyncio.run(_work(Path(sys.argv[1]), send))


async def _work(folder: Path, send: Send) -> None:
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    rag: AsyncLightRAG | None = None
    while True:
        job = msgspec.json.decode(await lines.get(), type=Job)
        try:
            rag = rag or open_async(folder)
            report = await do(job, rag, folder / "jobs" / f"{job.id}.data", _progress(send))
            stopped = str(report.get("stopped", ""))
            send(Message(report={"kind": job.kind, **report}, error=stopped))
        except LightRAGError as error:
            send(stopped_message(job, error))
        except OSError as error:
            send(Message(error=str(error)))
        except Exception as error:
            log.exception("job %s failed", job.id)
            send(Message(error=f"{type(error).__name__}: see the server's log"))


def stopped_message(job: Job, error: LightRAGError) -> Message:
    """The error that ended a job, with the report of what was done until then, if there is one."""
    if error.report is None:
        return Message(error=str(error))
    report = msgspec.to_builtins(error.report, enc_hook=str)
    return Message(report={"kind": job.kind, **report}, error=error.report.stopped)


async def do(
    job: Job, rag: AsyncLightRAG, content: Path, progress: Callable[[Progress], None]
) -> dict[str, Any]:
    """Do one job, which may have been begun before; returns its report."""
    if job.kind == "delete":
        known = {document.id for document in await rag.documents()}  # fewer, if it was begun before
        report: object = await rag.delete(*[id for id in job.about["ids"] if id in known])
    elif job.kind == "retry":
        first = await rag.resume(progress=progress)
        again = first if first.stopped else await rag.retry(progress=progress)
        report = {**msgspec.to_builtins(again), "resumed": first.documents}
    elif job.kind == "insert":
        values = msgspec.json.decode(content.read_bytes())
        found = [document_from(value, where="document") for value in values]
        report = await rag.insert(found, progress=progress)
    else:
        loaded = list(uploaded(job.about, content.read_bytes()))
        documents = [item for item in loaded if isinstance(item, Document)]
        inserted = await rag.insert(documents, progress=progress)
        unread = tuple(item for item in loaded if isinstance(item, Failure))
        report = replace(inserted, failures=unread + inserted.failures)
    return dict(msgspec.to_builtins(report, enc_hook=str))


def uploaded(about: dict[str, Any], content: bytes) -> Iterator[Document | Failure]:
    """The documents in the bytes of a file; `ConfigError` if they cannot be read."""
    path = PurePath(about["name"])
    keys = ("title", "date") if file_suffix(path) == JSONL_SUFFIX else ("title", "date", "id")
    given = {key: about[key] for key in keys if about.get(key)}
    with ReadingProcess() as reading:
        for item in documents_in(content, path, reading):
            yield replace(item, **given) if isinstance(item, Document) else item


def _progress(send: Send) -> Callable[[Progress], None]:
    last = 0.0

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN:
            last = time.monotonic()
            send(Message(progress=msgspec.to_builtins(progress)))

    return show


if __name__ == "__main__":
    main()
