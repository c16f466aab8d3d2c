"""The child process of a server: reads the setup and jobs from stdin, and reports on stdout.

The process ends with stdin, even in the middle of a job: when the server has had no jobs for a
while, or was killed.
"""

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import msgspec

from lightrag_jsonl import AsyncLightRAG, LightRAGError
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.errors import ConfigError, LockedError, UnavailableError
from lightrag_jsonl.core.index_reports import DeleteReport
from lightrag_jsonl.indexing.progress import Progress
from lightrag_jsonl.providers.addresses import remember_addresses
from lightrag_jsonl.providers.settings import Setup
from lightrag_jsonl.rag.opening import given_addresses, open_async
from lightrag_jsonl.server.graph_edits import GraphEdit, edit_graph
from lightrag_jsonl.server.jobs import Job, WorkerMessage
from lightrag_jsonl.storage.store import read, write
from lightrag_jsonl.text.strings import counted

PROGRESS_SECONDS: Final = 0.2  # between two reports on progress
BLOCKED_JOB_SECONDS: Final = 5.0  # between two attempts while another process writes
LIST_BYTES: Final = 50_000  # of JSON, of each list in a report
NOT_INDEXED: Final = "not indexed of this job: {documents}; a retry goes on"

SendMessage: TypeAlias = Callable[[WorkerMessage], None]

log = logging.getLogger(__name__)


def run_worker() -> None:
    """Do jobs until stdin ends."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    if hasattr(os, "nice"):  # not on Windows
        os.nice(5)  # questions come first
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that the prints of a library are no reports

    def send(message: WorkerMessage) -> None:
        reports.write(msgspec.json.encode(message, enc_hook=str) + b"\n")
        reports.flush()

    asyncio.run(_work(send))


async def _work(send: SendMessage) -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.Queue[bytes]()

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        os._exit(0)  # processes that read files end with their pipes

    threading.Thread(target=read, daemon=True).start()
    values = msgspec.json.decode(await lines.get())  # the addresses may hold passwords
    values["working_dir"] = as_address(values["working_dir"])
    setup = Setup(**values)
    rag: AsyncLightRAG | None = None
    while True:
        job = msgspec.json.decode(await lines.get(), type=Job)
        try:
            if rag is None:
                rag = open_async(setup.working_dir, setup)
                # An insert records the names of the models: with these, their addresses are needed. An
                # address with a key of its own came from the page, and is remembered no longer than the key.
                if setup.api_key is None:
                    remember_addresses(setup.working_dir, given_addresses(setup))
            send(await _result(job, rag, send))
        except LightRAGError as error:
            send(stopped_message(job, error))
        except OSError as error:
            send(WorkerMessage(error=error.strerror or str(error)))
        except Exception as error:
            log.exception("job %s failed", job.id)
            send(WorkerMessage(error=f"{type(error).__name__}: see the server's log"))


async def _result(job: Job, rag: AsyncLightRAG, send: SendMessage) -> WorkerMessage:
    """The message at the end of a job; the job waits while another process writes to the index, or
    the database cannot be reached.
    """
    while True:
        try:
            report = await do_job(job, rag, _progress(send))
        except (LockedError, UnavailableError) as error:
            send(WorkerMessage(locked=str(error)))
            await asyncio.sleep(BLOCKED_JOB_SECONDS)
        else:
            return _ending(job, report, error=str(report.get("stopped", "")))


def stopped_message(job: Job, error: LightRAGError) -> WorkerMessage:
    """The error at the end of a job, with the report on the work so far, if any."""
    if error.report is None:
        return WorkerMessage(error=str(error))
    report = msgspec.to_builtins(error.report, enc_hook=str)
    return _ending(job, report, error=error.report.stopped)


def _ending(job: Job, report: Mapping[str, Any], *, error: str) -> WorkerMessage:
    return WorkerMessage(report={"kind": job.kind, **shortened_report(report)}, error=error)


def shortened_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report with the beginnings of long lists; `left_out` counts the further items of each list."""
    shortened = dict(report)
    left_out: dict[str, int] = {}
    for name, value in report.items():
        if isinstance(value, list | tuple):
            beginning = _beginning(value)
            shortened[name] = beginning
            if len(beginning) < len(value):
                left_out[name] = len(value) - len(beginning)
    if left_out:
        shortened["left_out"] = left_out
    return shortened


def _beginning(items: Sequence[object]) -> list[object]:
    """The first items, with `LIST_BYTES` of JSON at most."""
    beginning: list[object] = []
    room = LIST_BYTES
    for item in items:
        room -= len(msgspec.json.encode(item))
        if room < 0:
            break
        beginning.append(item)
    return beginning


async def do_job(
    job: Job, rag: AsyncLightRAG, progress: Callable[[Progress], None]
) -> dict[str, Any]:
    """Do a job, possibly begun before, and return the report."""
    report: object
    if job.kind == "delete":
        report = await _delete_documents(rag, job.details)
    elif job.kind == "retry":  # interrupted documents, then failed chunks
        resumed = await rag.resume(progress=progress)
        retried = resumed if resumed.stopped else await rag.retry(progress=progress)
        report = {**msgspec.to_builtins(retried), "resumed": resumed.documents}
    elif job.kind == "edit":
        report = await edit_graph(rag, msgspec.convert(job.details, GraphEdit))
    elif job.kind == "report":
        report = await _write_reports(rag, job.details["calls"])
    else:
        report = await _insert_waiting(rag, job, progress)
    return dict(msgspec.to_builtins(report, enc_hook=str))


async def _delete_documents(rag: AsyncLightRAG, details: Mapping[str, Any]) -> DeleteReport:
    """Delete documents; a job begun before may have deleted some already.

    The report of a purge names no documents.
    """
    ids: list[str] = details["ids"]
    purge = bool(details.get("purge"))
    known_ids = await rag.engine.indexing.deletable_ids(ids, purge=purge)
    present_ids = [id for id in ids if id in known_ids]
    if not present_ids:  # without ids, a purge would be one of all that was deleted earlier
        if purge:
            await write(rag.engine.store, lambda transaction: transaction.purge(()))
            await rag.admin.vacuum()
        return DeleteReport()
    report = await rag.delete(*present_ids, purge=purge)
    if purge:
        return replace(report, documents=())
    return report


async def _write_reports(rag: AsyncLightRAG, agreed_calls: int) -> dict[str, Any]:
    """Write the missing reports on communities, if no more than agreed to."""
    estimate = await rag.communities.estimate_report()
    if estimate.calls > agreed_calls:
        raise ConfigError(
            f"{estimate.calls} reports are missing by now, {agreed_calls} were agreed to: ask for a new estimate"
        )
    run = await rag.communities.report()
    titles = [community.report.title for community in run.communities if community.report]
    stopped = ""
    if run.failures and not titles:
        stopped = run.failures[0]
    return {"reports": titles, "failures": run.failures, "usage": run.usage, "stopped": stopped}


async def _insert_waiting(
    rag: AsyncLightRAG, job: Job, progress: Callable[[Progress], None]
) -> dict[str, Any]:
    """Index the waiting documents of a job; `stopped` is the reason for documents left waiting."""
    await rag.engine.check_new_models()
    await rag.engine.record_models()
    report = await rag.engine.indexing.resume(job=job.id, progress=progress)
    values = dict(msgspec.to_builtins(report, enc_hook=str))
    waiting = await read(rag.engine.store, lambda view: view.pending(job=job.id))
    if waiting and not report.stopped:
        reasons = [failure.reason for failure in report.failures if failure.chunk_id is None]
        if not reasons:
            documents = counted(len(waiting), "documents")
            reasons.append(NOT_INDEXED.format(documents=documents))
        values["stopped"] = reasons[0]
        if len(reasons) > 1:
            values["stopped"] += f" (and {len(reasons) - 1} more)"
    return values


def _progress(send: SendMessage) -> Callable[[Progress], None]:
    reported_at = 0.0

    def report(progress: Progress) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= PROGRESS_SECONDS:
            reported_at = time.monotonic()
            send(WorkerMessage(progress=msgspec.to_builtins(progress)))

    return report


if __name__ == "__main__":
    run_worker()
