"""Readers and a writer on one index, for a while: python -m benchmarks.load

Each reader and the writer is a process with the index open; the writer inserts a document and deletes it again,
without a pause. In a folder (SQLite), then in PostgreSQL (a server is started, unless `--url` names one), over the
same rows. It ends in any case, if need be with a
`BrokenBarrierError` or a `TimeoutError` on a machine that is too busy. Prints one JSON object: questions a second, their times, errors, and what no reader may ever see:

- `missed`: a document that was there before the question and after it is not found,
- `revived`: a document that was deleted before the question is found,
- `torn`: a passage, an entity or a relation that does not belong to its document,
- `backwards`: the state that a reader sees is older than one that it has seen before,
- `problems`: of the index afterwards, by `admin.check(full=True)`, and documents that are left.

Exit 1 if there is any of these.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.managers import SyncManager
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.corpora import WHOLE, make_embedder, opened
from benchmarks.datasets import load
from benchmarks.postgres import INDEX, drop_index, started
from lightrag_jsonl import Context, Document, IndexOptions, LightRAG
from lightrag_jsonl.tools.copying import copy_index

STORES = ("sqlite", "postgres")
PREFIX = "Zephyrine"  # of the names that only the writer's documents have
WARM_UP = 1  # questions of each reader before the clock starts
START_SECONDS = 600.0  # until all processes have opened the index; then the machine is too busy
END_SECONDS = 300.0  # for the last questions
INSERTED = "inserted"
DELETED = "deleted"

Commits: TypeAlias = list[tuple[int, float]]  # generations, and when (seconds since 1970)


@dataclass(slots=True)
class ReaderLog:
    """What one reader has seen: milliseconds of each question, faults, and generations."""

    milliseconds: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    generations: Commits = field(default_factory=list)


def main() -> None:
    """Run the load on the stores, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", default="musique-a", metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "hash"), default="hash")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--url", help="a database; its schema `benchmark` is made and dropped")
    parser.add_argument("--readers", type=int, default=8, metavar="N")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    dataset = load(options.data)
    questions = [question.text for question in dataset.questions]
    figures: dict[str, Any] = {"benchmark": "load", "cores": os.cpu_count()}
    figures |= {"readers": options.readers, "seconds": options.seconds}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as servers:
        folder = Path(scratch, "kb")
        with opened(dataset, make_embedder(options.embedder), folder) as rag:
            figures["chunks"] = rag.status().chunks
        processes = multiprocessing.get_context("spawn")
        manager = servers.enter_context(processes.Manager())
        pool = servers.enter_context(processes.Pool(options.readers + 1))
        if "postgres" in options.stores:
            server = options.url or servers.enter_context(started(Path(scratch, "postgres")))
            url = f"{server}{'&' if '?' in server else '?'}index={INDEX}"
            copy_index(folder, url)
            servers.callback(drop_index, url)
            figures["postgres"] = run_load(url, options, questions, manager, pool)
        if "sqlite" in options.stores:
            figures["sqlite"] = run_load(str(folder), options, questions, manager, pool)
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if any(figures[store]["faults"] or figures[store]["problems"] for store in options.stores):
        sys.exit(1)


def reopened(location: str, embedder: str) -> LightRAG:
    """An index that `benchmarks.corpora.opened` has made."""
    options = IndexOptions(chunk_tokens=WHOLE, chunk_overlap=0)
    return LightRAG(location, embedder=make_embedder(embedder), options=options)


def run_load(
    location: str,
    options: argparse.Namespace,
    questions: Sequence[str],
    manager: SyncManager,
    pool: Pool,
) -> dict[str, Any]:
    """The figures of one store, by the processes of the pool, one for the writer and one for each reader.

    The lag of a commit in a reader is the time until it sees that. `BrokenBarrierError` or
    `TimeoutError` on a machine that is too busy for so many processes.
    """
    states = manager.dict()  # of the writer's documents, by number
    common = (location, options.embedder, options.seconds)
    ready = manager.Barrier(options.readers + 1, None, START_SECONDS)
    writing = pool.apply_async(write, (*common, ready, states))
    reading = [
        pool.apply_async(ask, (*common, ready, states, questions)) for _ in range(options.readers)
    ]
    end = time.monotonic() + START_SECONDS + options.seconds + END_SECONDS
    logs = [log.get(timeout=max(0.0, end - time.monotonic())) for log in reading]
    commits = writing.get(timeout=END_SECONDS)
    with reopened(location, options.embedder) as rag:
        problems = list(rag.admin.check(full=True))
        problems += [
            f"{document.id} is left" for document in rag.documents() if PREFIX in document.id
        ]
    return {**summary(logs, commits, options.seconds), "problems": problems}


def summary(logs: Sequence[ReaderLog], commits: Commits, seconds: float) -> dict[str, Any]:
    """The figures of all readers together."""
    lags = [1_000 * lag for log in logs for lag in seen_after(commits, log.generations)]
    milliseconds = [time for log in logs for time in log.milliseconds]
    faults = sum([log.faults for log in logs], Counter[str]())
    return {
        "commits": len(commits),
        "questions": len(milliseconds),
        "questions_a_second": round(len(milliseconds) / seconds, 1),
        "p50_ms": percentile(milliseconds, 50),
        "p95_ms": percentile(milliseconds, 95),
        "lag_p50_ms": percentile(lags, 50),
        "lag_max_ms": percentile(lags, 100),
        "faults": dict(faults),
        "messages": [message for log in logs for message in log.messages][:10],
    }


def percentile(milliseconds: Sequence[float], percent: int) -> float | None:
    """A percentile; None where nothing was measured, since the machine was too busy."""
    return round(float(np.percentile(milliseconds, percent)), 1) if milliseconds else None


def seen_after(commits: Commits, generations: Commits) -> Iterator[float]:
    """For each commit that a reader has seen, after how many seconds that was."""
    place = 0
    for generation, committed_at in commits:
        while place < len(generations) and generations[place][0] < generation:
            place += 1
        if place < len(generations):
            yield max(0.0, generations[place][1] - committed_at)


def document(number: int) -> Document:
    """One of the writer's documents; its name is in no other."""
    name = f"{PREFIX} {number}"
    return Document(f"{name} met Ann Lee. Ann Lee lives in Ulm.", id=name)


def write(location: str, embedder: str, seconds: float, ready: Any, states: Any) -> Commits:
    """Insert a document and delete it again, until the end; the commits made."""
    commits: Commits = []
    with reopened(location, embedder) as rag:
        ready.wait()
        end = time.time() + seconds
        for number in count(1):
            if time.time() >= end:
                break
            new_document = document(number)
            rag.insert(new_document)
            states[number] = INSERTED
            commits.append((generation_of(rag), time.time()))
            states[number] = ""  # from here on it may be there or not
            rag.delete(new_document.id or "")
            states[number] = DELETED
            commits.append((generation_of(rag), time.time()))
    return commits


def ask(
    location: str, embedder: str, seconds: float, ready: Any, states: Any, questions: Sequence[str]
) -> ReaderLog:
    """Ask until the end, by turns a question of the data set and one about the writer's documents."""
    log = ReaderLog()
    with reopened(location, embedder) as rag:
        for question in questions[:WARM_UP]:
            rag.retrieve(question)  # the index in memory is loaded
        ready.wait()
        end = time.time() + seconds
        for number in count():
            if time.time() >= end:
                break
            if number % 2:
                _ask_about_writer(rag, log, states)
            else:
                _timed(rag, log, questions[number // 2 % len(questions)])
            generation = generation_of(rag)
            if log.generations and generation < log.generations[-1][0]:
                log.faults["backwards"] += 1
            log.generations.append((generation, time.time()))
    return log


def _ask_about_writer(rag: LightRAG, log: ReaderLog, states: Any) -> None:
    """Ask about the newest of the writer's documents, and compare with what was there all the time."""
    states_before = dict(states)
    newest = max(states_before, default=1)
    context = _timed(rag, log, f"Who met {PREFIX} {newest}?")
    if context is None:
        return
    seen = {chunk.document_id for chunk in context.chunks}
    was_there = states_before.get(newest) == INSERTED and states.get(newest) == INSERTED
    if was_there and document(newest).id not in seen:
        log.faults["missed"] += 1
    for number, state in states_before.items():
        if state == DELETED and document(number).id in seen:
            log.faults["revived"] += 1


def _timed(rag: LightRAG, log: ReaderLog, question: str) -> Context | None:
    """The context of a question, whose time, error and torn parts are noted."""
    begun = time.perf_counter()
    context = None
    try:
        context = rag.retrieve(question)
    except Exception as error:  # noqa: BLE001 - all are counted
        log.faults["errors"] += 1
        log.messages.append(f"{type(error).__name__}: {error}")
    log.milliseconds.append(1_000 * (time.perf_counter() - begun))
    if context is not None and not is_whole(context):
        log.faults["torn"] += 1
    return context


def is_whole(context: Context) -> bool:
    """Whether the passages are those of their documents, and the ends of the relations are named."""
    for chunk in context.chunks:
        if chunk.document_id.startswith(PREFIX) and not chunk.text.startswith(chunk.document_id):
            return False
        if chunk.document_id not in context.documents:
            return False
    return all(relation.source and relation.target for relation in context.relations)


def generation_of(rag: LightRAG) -> int:
    """The number of the last visible commit."""
    with rag.engine.store.snapshot() as snapshot:
        return snapshot.generation


if __name__ == "__main__":
    main()
