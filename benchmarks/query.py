"""The cost of a question without the model: python -m benchmarks.query --sizes 1000

Builds the index of `benchmarks.index` (or uses a kept one). Prints one JSON object with, for each
size and mode, the median, the 95th percentile and the slowest of warm retrievals, in milliseconds
(without the fake embedder's time), and how many questions a second are answered for 1, 4 and 16
threads, by an instant model: searched in this process, and in `--search-processes` further ones. The time of a fixed Python loop before and after shows how fast the
machine was.
"""

import argparse
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.index import built
from benchmarks.instant.material import Material, read
from benchmarks.instant.ours import Ours
from benchmarks.instant.worker import time_mode
from benchmarks.usage import plain_loop_ms

THREADS = (1, 4, 16)
ANSWERS = 240  # questions answered for each number of threads


def main() -> None:
    """Time each mode on each size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(1_000,))
    parser.add_argument("--answers", type=int, default=ANSWERS, help="for each number of threads")
    parser.add_argument("--search-processes", type=int, default=2, help="none with 0")
    parser.add_argument("--keep", type=Path, help="where benchmarks.index kept its indexes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        figures = {
            str(size): _size(size, root, given.answers, given.search_processes)
            for size in given.sizes
        }
    print(json.dumps({"benchmark": "query", "cores": os.cpu_count(), "sizes": figures}, indent=2))


def _size(size: int, root: Path, answers: int, search_processes: int) -> dict[str, Any]:
    folder, corpus, _ = built(size, root)
    material = read(corpus)
    system, loop_before = Ours(folder, material), plain_loop_ms()
    entities, relations = system.counts()
    for mode in system.modes:
        time_mode(system, mode, material)
    modes = {mode: time_mode(system, mode, material) for mode in system.modes}
    rates = {str(threads): _rate(system, material, threads, answers) for threads in THREADS}
    system.close()
    more_rates = {}
    if search_processes:
        system = Ours(folder, material, search_processes=search_processes)
        for _ in range(search_processes):  # each process starts with its first questions
            _rate(system, material, max(THREADS), 2 * max(THREADS))
        more_rates = {
            str(threads): _rate(system, material, threads, answers) for threads in THREADS
        }
        system.close()
    return {
        "entities": entities,
        "relations": relations,
        "plain_loop_ms": [loop_before, plain_loop_ms()],
        "modes": modes,
        "answers_per_second": rates,
        "answers_per_second_with_processes": more_rates,
    }


def _rate(system: Ours, material: Material, threads: int, answers: int) -> float:
    """Answers a second, in the mode mix."""
    questions, started = islice(cycle(material.questions), answers), time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(system.answer, questions))
    return round(answers / (time.perf_counter() - started), 1)


if __name__ == "__main__":
    main()
