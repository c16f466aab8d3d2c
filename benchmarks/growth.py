"""How a chunk's cost grows with the index: python -m benchmarks.growth --small 1000 --large 20000

Builds the large index of `benchmarks.index`, and pauses that every few seconds to build the small
one. If one were built after the other, changes in the machine's speed, which may be by half, would
count as growth; if both were built at the same time, they would compete for caches. Prints one JSON
object: the CPU time per chunk of both (of the small builds on average), and the ratio.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

SLICE_SECONDS = 5.0  # how long the large build runs between two small ones


def main() -> None:
    """Run the builds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=20_000)
    given = parser.parse_args()
    print(json.dumps(growth(given.small, given.large), indent=2))


def growth(small: int, large: int) -> dict[str, Any]:
    """CPU milliseconds per chunk for both sizes, and the ratio of the large to the small."""
    if not hasattr(signal, "SIGSTOP"):
        raise SystemExit("a build cannot be stopped for a while on this system")
    with tempfile.TemporaryDirectory() as scratch:
        building = _build(Path(scratch) / "large", large)
        try:
            small_ms = []
            while not _has_ended(building):
                building.send_signal(signal.SIGSTOP)
                small_ms.append(_cpu(_build(Path(scratch) / "small", small)))
                shutil.rmtree(Path(scratch) / "small")
                building.send_signal(signal.SIGCONT)
            large_ms = _cpu(building)
        finally:
            building.kill()
    if not small_ms:
        raise SystemExit(f"{large} chunks are too few to be compared with {small}")
    usual = mean(small_ms)  # not the least: the large build went through slow moments, too
    return {
        "benchmark": "growth",
        "sizes": [small, large],
        "small_ms": round(usual, 3),
        "small_builds": small_ms,
        "large_ms": large_ms,
        "ratio": round(large_ms / usual, 3),
    }


def _build(folder: Path, size: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.index", "--part", "build"]
    command += ["--sizes", str(size), "--folder", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _has_ended(building: subprocess.Popen[str]) -> bool:
    """Let the build run for a while; returns whether it has ended."""
    try:
        building.wait(SLICE_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _cpu(building: subprocess.Popen[str]) -> float:
    """Wait for a build; returns its CPU milliseconds per chunk."""
    printed, _ = building.communicate()
    if building.returncode:
        raise SystemExit(f"a build failed with the status {building.returncode}")
    return float(json.loads(printed)["cpu_ms_per_chunk"])


if __name__ == "__main__":
    main()
