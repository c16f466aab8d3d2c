"""The cost of indexing without model and embedder: python -m benchmarks.index --sizes 200 1000

Prints one JSON object with, for each size, what `benchmarks.instant` measures: the CPU
and wall time per chunk (without the time of the fake model and embedder), bytes written and on disk,
peak memory, the cost of one more document, of deleting one, and of a first retrieval in a fresh
process (the median of several). `growth` is the CPU time per chunk of the largest size divided by
that of the smallest. The time of a fixed Python loop before and after shows how fast the machine was.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.instant.material import write
from benchmarks.instant.worker import run_part

SIZES = (200, 1_000, 5_000)
COLD = 5  # fresh processes that ask a first question; a single one may be slow by chance

Figures = dict[str, Any]


def main() -> None:
    """Run the sizes asked for and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    parser.add_argument("--cold", type=int, default=COLD, help="fresh processes that ask")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        sizes = {str(size): _size(size, root, given.cold) for size in given.sizes}
    per_chunk = [sizes[str(size)]["cpu_ms_per_chunk"] for size in sorted(given.sizes)]
    growth = round(per_chunk[-1] / per_chunk[0], 3)
    figures = {"benchmark": "index", "cores": os.cpu_count(), "sizes": sizes, "growth": growth}
    print(json.dumps(figures, indent=2))


def built(size: int, root: Path) -> tuple[Path, Path, Figures]:
    """The index of `size` chunks in `root`, its corpus, and what building it took: nothing if it
    was there.
    """
    folder, corpus = root / f"kb-{size}", root / f"corpus-{size}.json"
    if folder.exists():
        return folder, corpus, {}
    root.mkdir(parents=True, exist_ok=True)
    write(corpus, size)
    return folder, corpus, run("build", folder, corpus)


def run(part: str, folder: Path, corpus: Path) -> Figures:
    """The figures of one part, measured in a fresh process."""
    figures = run_part(part, folder, corpus)
    if "error" in figures:
        raise SystemExit(figures["error"])
    return figures


def _size(size: int, root: Path, cold_starts: int) -> Figures:
    folder, corpus, figures = built(size, root)
    if not figures:
        raise SystemExit(f"{folder} exists already")
    figures |= run("change", folder, corpus)
    opened = [run("cold", folder, corpus) for _ in range(cold_starts)]
    seconds = [one["cold_first_context_s"] for one in opened]
    return {**figures, **opened[0], "cold_first_context_s": median(seconds)}


if __name__ == "__main__":
    main()
