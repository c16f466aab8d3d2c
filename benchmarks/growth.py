"""How a chunk's cost grows with the index: python -m benchmarks.growth --small 1000 --large 20000

Builds the large index of `benchmarks.index` on one core while the small one is built again and
again on another, then with the cores changed over, and compares: two builds one after the other
would compare a machine's moments, which may differ by half. Prints one JSON object: per round the
CPU time a chunk of either, and their ratio, to the median of the small builds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any


def main() -> None:
    """Run both rounds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=20_000)
    given = parser.parse_args()
    print(json.dumps(growth(given.small, given.large), indent=2))


def growth(small: int, large: int) -> dict[str, Any]:
    """CPU time a chunk of two sizes, and how many times that of the small one the large one takes."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("comparing two sizes at the same time needs Linux and two cores")
    one, other = sorted(os.sched_getaffinity(0))[:2]
    rounds = [_round(small, large, cores) for cores in ((one, other), (other, one))]
    ratio = round(sum(found["ratio"] for found in rounds) / len(rounds), 3)
    return {"benchmark": "growth", "sizes": [small, large], "rounds": rounds, "ratio": ratio}


def _round(small: int, large: int, cores: tuple[int, int]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        building = _build(Path(scratch) / "large", large, cores[0])
        some: list[float] = []
        while building.poll() is None:
            figures = _figures(_build(Path(scratch) / f"small-{len(some)}", small, cores[1]))
            if building.poll() is None:  # else it had the machine to itself towards its end
                some.append(figures["cpu_ms_per_chunk"])
        most = _figures(building)["cpu_ms_per_chunk"]
    if not some:
        raise SystemExit(f"{large} chunks are too few to be compared with {small}")
    few = round(median(some), 3)
    print(f"{large}: {most} ms of CPU a chunk, {small}: {few}", file=sys.stderr)
    return {"small_ms": few, "small_builds": len(some), "large_ms": most, "ratio": most / few}


def _build(folder: Path, size: int, core: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.index", "--part", "build"]
    command += ["--sizes", str(size), "--folder", str(folder)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(os.sched_setaffinity, 0, {core}),
    )


def _figures(building: subprocess.Popen[str]) -> dict[str, Any]:
    printed, _ = building.communicate()
    if building.returncode:
        raise SystemExit(f"a build failed with the status {building.returncode}")
    figures: dict[str, Any] = json.loads(printed)
    return figures


if __name__ == "__main__":
    main()
