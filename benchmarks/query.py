"""The cost of a question without the model: python -m benchmarks.query --sizes 1000

Builds the synthetic index of `benchmarks.index` (or uses a kept one). Prints one JSON object with,
for each size and mode, the median, the 95th percentile and the slowest of warm retrievals, in
milliseconds (without the fake embedder's time; each mode is asked other questions before), and how
many questions a second are answered for 1, 4 and 16 threads, by an instant model. The time of a
fixed Python loop before and after shows how fast the machine was.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.index import index_folder, run_part
from benchmarks.synthetic import Corpus, FastEmbedder, InstantLLM, name_of
from benchmarks.usage import plain_loop_ms, spread
from lightrag_jsonl import LightRAG, QueryParam

MODES = ("naive", "local", "global", "hybrid", "mix", "walk")
QUESTIONS = 40
THREADS = (1, 4, 16)
ANSWERS = 240  # questions answered for each number of threads


def main() -> None:
    """Time each mode on each size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(1_000,))
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="for each mode")
    parser.add_argument("--answers", type=int, default=ANSWERS, help="for each number of threads")
    parser.add_argument("--keep", type=Path, help="where benchmarks.index kept its indexes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        figures = {
            str(size): _size(size, root, given.questions, given.answers) for size in given.sizes
        }
    print(json.dumps({"benchmark": "query", "cores": os.cpu_count(), "sizes": figures}, indent=2))


def _size(size: int, root: Path, questions: int, answers: int) -> dict[str, Any]:
    folder = index_folder(root, size)
    if not folder.exists():
        run_part("build", size, folder)
    embedder = FastEmbedder()
    with LightRAG(folder, llm=InstantLLM(Corpus(0)), embedder=embedder) as rag:
        status, loop_before = rag.status(), plain_loop_ms()
        for mode in MODES:
            _mode(rag, embedder, mode, _names(questions, seed=4))
        names = _names(questions, seed=3)
        modes = {mode: _mode(rag, embedder, mode, names) for mode in MODES}
        rates = {str(threads): _rate(rag, threads, answers) for threads in THREADS}
    return {
        "entities": status.entities,
        "relations": status.relations,
        "plain_loop_ms": [loop_before, plain_loop_ms()],
        "modes": modes,
        "answers_per_second": rates,
    }


def _names(count: int, *, seed: int) -> list[tuple[str, str]]:
    """Pairs of names, by Zipf's law."""
    ranks = np.random.default_rng(seed).zipf(1.35, (count, 2)) % 5_000
    return [(name_of(int(one)), name_of(int(other))) for one, other in ranks]


def _mode(
    rag: LightRAG, embedder: FastEmbedder, mode: Any, names: Sequence[tuple[str, str]]
) -> dict[str, float]:
    times = []
    for pair in names:
        before, started = embedder.seconds, time.perf_counter()
        rag.retrieve(*_question(pair, mode))
        times.append(time.perf_counter() - started - (embedder.seconds - before))
    return spread(times)


def _rate(rag: LightRAG, threads: int, answers: int) -> float:
    """Answers a second, in the mode mix."""
    pairs, started = _names(answers, seed=100 + threads), time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: rag.query(*_question(pair, "mix")), pairs))
    return round(answers / (time.perf_counter() - started), 1)


def _question(pair: tuple[str, str], mode: Any) -> tuple[str, QueryParam]:
    param = QueryParam(mode=mode, ll_keywords=pair, hl_keywords=("took part together",))
    return f"Where did {pair[0]} meet {pair[1]}?", param


if __name__ == "__main__":
    main()
