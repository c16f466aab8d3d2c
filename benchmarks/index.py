"""The cost of indexing without model and embedder: python -m benchmarks.index --sizes 200 1000 [--real] [--ask]

Prints one JSON object with, for each size, what `benchmarks.instant` measures: the CPU
and wall time per chunk (without the time of the fake model and embedder), bytes written and on disk,
peak memory, the cost of one more document, of deleting one, and of a first retrieval in a fresh
process (the median of several). `growth` is the CPU time per chunk of the largest size divided by
that of the smallest. With `--real` the corpus are passages and novels of the shared data, with line breaks, in English and
Chinese, in place of generated texts; with `--ask` questions in each mode are measured, too. The time of a fixed Python loop before and after shows how fast the machine was.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.instant.material import write, write_real
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
    parser.add_argument("--real", action="store_true", help="real texts in place of generated ones")
    parser.add_argument("--ask", action="store_true", help="measure questions, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = given.keep or Path(scratch)
        sizes = {str(size): _size(size, root, given) for size in given.sizes}
    per_chunk = [sizes[str(size)]["cpu_ms_per_chunk"] for size in sorted(given.sizes)]
    growth = round(per_chunk[-1] / per_chunk[0], 3)
    figures = {"benchmark": "index", "cores": os.cpu_count(), "sizes": sizes, "growth": growth}
    print(json.dumps(figures, indent=2))


def built(size: int, root: Path, *, real: bool = False) -> tuple[Path, Path, Figures]:
    """The index of `size` chunks in `root`, its corpus, and what building it took: nothing if it
    was there.
    """
    folder, corpus = root / f"kb-{size}", root / f"corpus-{size}.json"
    if folder.exists():
        return folder, corpus, {}
    root.mkdir(parents=True, exist_ok=True)
    if real:
        write_real(corpus, size)
    else:
        write(corpus, size)
    return folder, corpus, run("build", folder, corpus)


def run(part: str, folder: Path, corpus: Path) -> Figures:
    """The figures of one part, measured in a fresh process."""
    figures = run_part(part, folder, corpus)
    if "error" in figures:
        raise SystemExit(figures["error"])
    return figures


def _size(size: int, root: Path, given: argparse.Namespace) -> Figures:
    folder, corpus, figures = built(size, root, real=given.real)
    if not figures:
        raise SystemExit(f"{folder} exists already")
    figures |= run("change", folder, corpus)
    opened = [run("cold", folder, corpus) for _ in range(given.cold)]
    seconds = [one["cold_first_context_s"] for one in opened]
    asked = run("ask", folder, corpus) if given.ask else {}
    return {**figures, **opened[0], "cold_first_context_s": median(seconds), **asked}


if __name__ == "__main__":
    main()
