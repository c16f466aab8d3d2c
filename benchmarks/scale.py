"""What 10 thousand, 1 million and 10 million chunks cost: python -m benchmarks.scale [--markdown]

Builds two small indexes from bench-2wiki-corpus (several passages make a chunk of about a thousand
tokens), without a model: language rules extract, the hashing embedder embeds. Measures each, and
computes the large sizes by one formula for every figure: value(n) = value(N) + (n - N) · slope, where
N is the size of the larger index and slope the growth between the two, divided by the chunks between
them. Calls and tokens come from the real prompts (see `tools.estimate`), with gleaning and
summaries; hours on GPUs = (tokens read / READ + tokens written / WRITE) / 3600 / GPUS, where READ and
WRITE are tokens a second of one GPU: they are given, not measured here. Prints one JSON object, or
the table of docs/scale.md.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.datasets import Passage, load
from benchmarks.usage import Usage, plain_loop_ms, spread
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from lightrag_jsonl.tools.estimate import estimate

SIZES = (200, 600)
TARGETS = (10_000, 1_000_000, 10_000_000)
PASSAGES = 10  # in a chunk
DIM = 384
QUESTIONS = 30
READERS = 3  # processes; the best of their figures counts
READ, WRITE = 20_000, 2_500  # tokens a second of one GPU, a model of 8 billion weights in a batch
OPTIONS = IndexOptions(chunk_tokens=1_000_000, chunk_overlap=0)  # one document, one chunk
TABLES = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"
TOO_LONG = 86_400.0  # seconds; that far nobody waits for an answer
WORDS = ((1e9, "billion"), (1e6, "million"), (1e3, "thousand"), (1.0, ""))
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
TIMES = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))

Figures = dict[str, float]


def main() -> None:
    """Measure, compute, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs=2, default=SIZES, help="chunks measured")
    parser.add_argument("--targets", type=int, nargs="+", default=TARGETS, help="chunks computed")
    parser.add_argument("--gpus", type=int, nargs="+", default=(1, 8, 64))
    parser.add_argument("--read", type=float, default=READ, help="tokens a GPU reads a second")
    parser.add_argument("--write", type=float, default=WRITE, help="tokens a GPU writes a second")
    parser.add_argument("--markdown", action="store_true", help="print a table instead of JSON")
    parser.add_argument("--reader", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        print(json.dumps(_reader(given.reader)))
        return
    documents = _documents(load("bench-2wiki-corpus").passages, given.sizes[1])
    with tempfile.TemporaryDirectory() as scratch:
        small, large = (_measured(documents[:size], Path(scratch)) for size in given.sizes)
    measured = {str(int(one["chunks"])): one for one in (small, large)}
    computed = {str(n): _computed(n, small, large, given) for n in given.targets}
    figures = {
        "benchmark": "scale",
        "plain_loop_ms": plain_loop_ms(),
        "gpu": {"read_tokens_s": given.read, "write_tokens_s": given.write},
        "measured": measured,
        "computed": computed,
    }
    print(
        markdown(large, computed, given.gpus) if given.markdown else json.dumps(figures, indent=2)
    )


def _documents(passages: Sequence[Passage], size: int) -> list[Document]:
    """So many documents of one chunk each; fewer if there are not enough passages."""
    per = max(1, min(PASSAGES, len(passages) // size))
    starts = range(0, min(size * per, len(passages)), per)
    texts = ["\n\n".join(one.content for one in passages[at : at + per]) for at in starts]
    return [Document(text, id=f"d{number}") for number, text in enumerate(texts)]


def _measured(documents: Sequence[Document], root: Path) -> Figures:
    """The figures of one index, made at once and merged from two."""
    count, half = len(documents), len(documents) // 2
    folder = root / f"kb-{count}"
    with _opened(folder) as rag:
        used = Usage()
        rag.insert(documents)
        index_cpu = used.until_now().cpu
        status = rag.status()
    for name, part in (("a", documents[:half]), ("b", documents[half:])):
        with _opened(root / f"{name}-{count}") as rag:
            rag.insert(part)
    with _opened(root / f"merged-{count}") as rag:
        used = Usage()
        rag.merge_from(root / f"a-{count}", root / f"b-{count}")
        merge_cpu = used.until_now().cpu
    with LightRAG(root / f"cost-{count}", llm=ScriptedLLM([]), options=OPTIONS) as rag:
        cost = rag.run(estimate, documents).usage
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        tables = {f"bytes {name}": float(size) for name, size in connection.execute(TABLES)}
    command = [sys.executable, "-m", "benchmarks.scale", "--reader", str(folder)]
    readers = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(READERS)
    ]
    reader = {name: min(one[name] for one in readers) for name in readers[0]}
    return {
        "chunks": count,
        "entities": status.entities,
        "relations": status.relations,
        "calls": cost.calls,
        "tokens_read": cost.input_tokens,
        "tokens_written": cost.output_tokens,
        "index_cpu_s": round(index_cpu, 2),
        "merge_cpu_s": round(merge_cpu, 2),
        "bytes": sum(tables.values()),
        **tables,
        **reader,
    }


def _opened(folder: Path) -> LightRAG:
    return LightRAG(folder, llm="none", embedder=HashEmbedder(dim=DIM), options=OPTIONS)


def _reader(folder: Path) -> Figures:
    """In a process of its own: memory of the index, and CPU of the first question and of warm ones."""
    with _opened(folder) as rag:
        titles = [one.text.partition("\n")[0] for one in (rag.pages("d0") + rag.pages("d1"))]
        before, times = _resident(), []
        for number in range(QUESTIONS + 1):
            started = time.process_time()
            rag.retrieve(f"Who is the father of {titles[number % len(titles)]}?")
            times.append(time.process_time() - started)
        memory = _resident() - before
    return {
        "reader_bytes": max(0, memory),
        "first_cpu_ms": round(1000 * times[0], 1),
        "p50_cpu_ms": spread(times[1:])["p50_ms"],
    }


def _resident() -> int:
    """The bytes that this process has in memory now (on Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096


def _computed(n: int, small: Figures, large: Figures, given: argparse.Namespace) -> Figures:
    """The figures of `n` chunks; one that did not grow stays as it is."""
    between = max(1, large["chunks"] - small["chunks"])
    found = {}
    for name, value in large.items():
        slope = max(0.0, (value - small.get(name, 0)) / between)
        found[name] = round(value + (n - large["chunks"]) * slope, 1)
    seconds = found["tokens_read"] / given.read + found["tokens_written"] / given.write
    return found | {f"hours_on_{gpus}_gpus": round(seconds / 3600 / gpus, 2) for gpus in given.gpus}


def markdown(measured: Figures, computed: dict[str, Figures], gpus: Sequence[int]) -> str:
    """The measured index and the computed ones, a column each."""
    columns = [measured, *computed.values()]
    names = [f"{measured['chunks']:.0f} chunks, measured", *(_number(float(n)) for n in computed)]
    lines = [
        f"| | {' | '.join(names)} |",
        "|---" + "|---:" * len(columns) + "|",
    ]
    for label, cell in _rows(gpus).items():
        lines.append(f"| {label} | {' | '.join(map(cell, columns))} |")
    return "\n".join(lines)


def _rows(gpus: Sequence[int]) -> dict[str, Callable[[Figures], str]]:
    """The rows of the table: how each is made of the figures of a column."""

    def hours(one: Figures) -> str:
        known = [one[name] for gpu in gpus if (name := f"hours_on_{gpu}_gpus") in one]
        return " / ".join(f"{value:,.2g}" if value < 10 else f"{value:,.0f}" for value in known)

    def waiting(seconds: float) -> str:
        return _words(seconds, TIMES) if seconds < TOO_LONG else ""

    return {
        "model calls, with gleaning and summaries": lambda one: _number(one["calls"]),
        "tokens read": lambda one: _number(one["tokens_read"]),
        "tokens written": lambda one: _number(one["tokens_written"]),
        f"hours on {' / '.join(map(str, gpus))} GPUs": hours,
        "CPU of indexing outside the model": lambda one: _words(one["index_cpu_s"], TIMES),
        "CPU of merging two halves": lambda one: _words(one["merge_cpu_s"], TIMES),
        "entities": lambda one: _number(one["entities"]),
        "relations": lambda one: _number(one["relations"]),
        "database": lambda one: _words(one["bytes"], BYTES),
        "– vectors (chunks, entities, relations)": lambda one: _size(one, "vectors"),
        "– mentions and their indexes": lambda one: _size(one, "mentions"),
        "– entities and relations, their indexes": lambda one: _size(one, "graph"),
        "– texts, full text, the rest": lambda one: _size(one, "rest"),
        "memory of a reader (SQLite)": lambda one: _words(one["reader_bytes"], BYTES),
        "CPU of the first context of a new process": lambda one: waiting(one["first_cpu_ms"] / 1e3),
        "CPU of a context in mode mix, p50": lambda one: waiting(one["p50_cpu_ms"] / 1e3),
    }


def _size(one: Figures, part: str) -> str:
    """The bytes of the tables that belong to a part of the database."""
    sizes = {name: size for name, size in one.items() if name.startswith("bytes ")}
    return _words(sum(size for name, size in sizes.items() if _part(name) == part), BYTES)


def _part(table: str) -> str:
    if "_vectors" in table and "cached" not in table:
        return "vectors"
    if "_mentions" in table:
        return "mentions"
    return "graph" if "entities" in table or "relations" in table else "rest"


def _number(value: float) -> str:
    return _words(value, WORDS)


def _words(value: float, units: Sequence[tuple[float, str]]) -> str:
    """A value in the largest unit of which it has one, with two digits."""
    size, unit = next((one for one in units if value >= one[0]), units[-1])
    digits = f"{value / size:,.2g}" if value < 9.95 * size else f"{value / size:,.0f}"
    return f"{digits} {unit}".rstrip()


if __name__ == "__main__":
    main()
