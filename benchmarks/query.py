"""The cost of a question without the model: python -m benchmarks.query --sizes 1000

Builds the synthetic index of `benchmarks.index` (or uses a kept one). Prints one JSON object with,
for each size and mode, the median and the 95th percentile of a warm retrieval, in milliseconds
(without the fake embedder's time; each mode is asked other questions before). The time of a fixed
Python loop before and after shows how fast the machine was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.synthetic import FastEmbedder, name_of
from benchmarks.usage import plain_loop_ms
from lightrag_jsonl import LightRAG, QueryParam
from lightrag_jsonl.options import MODES

QUESTIONS = 40


def main() -> None:
    """Time each mode on each size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(1_000,))
    parser.add_argument("--keep", type=Path, help="where benchmarks.index kept its indexes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        figures = {str(size): _size(size, root) for size in given.sizes}
    print(json.dumps({"benchmark": "query", "cores": os.cpu_count(), "sizes": figures}, indent=2))


def _size(size: int, root: Path) -> dict[str, Any]:
    folder = root / f"kb-{size}-10"
    if not folder.exists():
        command = [
            sys.executable,
            "-m",
            "benchmarks.index",
            "--part",
            "build",
            "--sizes",
            str(size),
        ]
        command += ["--folder", str(folder)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    embedder, searching = FastEmbedder(), [mode for mode in MODES if mode != "bypass"]
    with LightRAG(folder, embedder=embedder) as rag:
        status, loop_before = rag.status(), plain_loop_ms()
        for mode in searching:
            _mode(rag, embedder, mode, _names(seed=4))
        modes = {mode: _mode(rag, embedder, mode, _names(seed=3)) for mode in searching}
    return {
        "entities": status.entities,
        "relations": status.relations,
        "plain_loop_ms": [loop_before, plain_loop_ms()],
        "modes": modes,
    }


def _names(seed: int) -> list[str]:
    ranks = np.random.default_rng(seed).zipf(1.35, QUESTIONS * 2) % 5_000
    return [name_of(int(rank)) for rank in ranks]


def _mode(rag: LightRAG, embedder: FastEmbedder, mode: Any, names: list[str]) -> dict[str, float]:
    times = []
    for number in range(QUESTIONS):
        pair = tuple(names[2 * number : 2 * number + 2])
        param = QueryParam(mode=mode, ll_keywords=pair, hl_keywords=("took part together",))
        before, started = embedder.seconds, time.perf_counter()
        rag.retrieve(f"Where did {pair[0]} meet {pair[1]}?", param)
        fake = embedder.seconds - before
        times.append(1000 * (time.perf_counter() - started - fake))
    warm = np.array(times)
    return {
        "p50_ms": round(float(np.percentile(warm, 50)), 2),
        "p95_ms": round(float(np.percentile(warm, 95)), 2),
    }


if __name__ == "__main__":
    main()
