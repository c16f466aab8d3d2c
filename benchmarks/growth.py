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
import shutil
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
        try:
            small_ms = []
            while building.poll() is None:
                small_ms.append(_cpu(_build(Path(scratch) / "small", small, cores[1])))
                shutil.rmtree(Path(scratch) / "small")
            large_ms = _cpu(building)
        finally:
            building.kill()
    del small_ms[-1:]  # towards its end it had the machine to itself
    if not small_ms:
        raise SystemExit(f"{large} chunks are too few to be compared with {small}")
    usual = median(small_ms)
    print(f"{large}: {large_ms} ms of CPU a chunk, {small}: {usual:.3f}", file=sys.stderr)
    return {
        "small_ms": round(usual, 3),
        "small_builds": len(small_ms),
        "large_ms": large_ms,
        "ratio": round(large_ms / usual, 3),
    }


def _build(folder: Path, size: int, core: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.index", "--part", "build"]
    command += ["--sizes", str(size), "--folder", str(folder)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(os.sched_setaffinity, 0, {core}),
    )


def _cpu(building: subprocess.Popen[str]) -> float:
    """CPU time a chunk, in milliseconds, once the build is done."""
    printed, _ = building.communicate()
    if building.returncode:
        raise SystemExit(f"a build failed with the status {building.returncode}")
    return float(json.loads(printed)["cpu_ms_per_chunk"])


if __name__ == "__main__":
    main()
