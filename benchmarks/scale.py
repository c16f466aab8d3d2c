"""What 10 thousand, 1 million and 100 million chunks cost: python -m benchmarks.scale [--markdown]

Builds two small indexes from bench-2wiki-corpus (several passages make a chunk of about a thousand
tokens), without a model: language rules extract, the hashing embedder embeds. Measures each, and
computes the large sizes by one formula for every figure: value(n) = value(N) + (n - N) · slope, where
N is the size of the larger index and slope the growth between the two, divided by the chunks between
them. Calls and tokens come from the real prompts (see `tools.estimate`), with gleaning and
summaries; hours on GPUs = (tokens read / READ + tokens written / WRITE) / 3600 / GPUS, where READ and
WRITE are tokens a second of one GPU: they are given, not measured here. Prints one JSON object, or
the same as a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.datasets import Passage, load
from benchmarks.usage import Usage, plain_loop_ms, spread
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.testing import HashEmbedder, ScriptedLLM
from lightrag_jsonl.tools.estimate import estimate

SIZES = (100, 200)
TARGETS = (10_000, 1_000_000, 100_000_000)
PASSAGES = 10  # in a chunk
DIM = 384
QUESTIONS = 30
READ, WRITE = 20_000, 2_500  # tokens a second of one GPU, a model of 8 billion weights in a batch
OPTIONS = IndexOptions(chunk_tokens=1_000_000, chunk_overlap=0)  # one document, one chunk
TABLES = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"
GIGA = 1e9

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
    print(markdown({**measured, **computed}) if given.markdown else json.dumps(figures, indent=2))


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
    reader = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
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
    """In a process of its own: what the index takes in memory, the first question and warm ones."""
    with _opened(folder) as rag:
        titles = [one.text.partition("\n")[0] for one in (rag.pages("d0") + rag.pages("d1"))]
        before, times = _resident(), []
        for number in range(QUESTIONS + 1):
            started = time.perf_counter()
            rag.retrieve(f"Who is the father of {titles[number % len(titles)]}?")
            times.append(time.perf_counter() - started)
        memory = _resident() - before
    return {
        "reader_bytes": max(0, memory),
        "first_ms": round(1000 * times[0], 1),
        "p50_ms": spread(times[1:])["p50_ms"],
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


def markdown(columns: dict[str, Figures]) -> str:
    """A table with a column for each size; tables of less than a hundredth of the bytes are left out."""
    largest = list(columns.values())[-1]
    rows = ["| " + " | ".join(["chunks", *(f"{int(name):,}" for name in columns)]) + " |"]
    rows.append("|---" + "|---:" * len(columns) + "|")
    for name, last in largest.items():
        if name == "chunks" or (name.startswith("bytes ") and last < largest["bytes"] / 100):
            continue
        cells = [_cell(name, one[name]) if name in one else "" for one in columns.values()]
        rows.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(name: str, value: float) -> str:
    if "bytes" in name:
        return f"{value / GIGA:,.3g} GB" if value < GIGA else f"{value / GIGA:,.0f} GB"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


if __name__ == "__main__":
    main()
