"""How a chunk's cost grows with the index: python -m benchmarks.growth --small 1000 --large 20000

Builds the large index of `benchmarks.index`, and every few seconds stops it to build the small one
meanwhile. Two builds one after the other would compare a machine's moments, which may differ by
half; two at the same time take each other's caches. Prints one JSON object: the CPU time a chunk of
either (of the small builds on average), and the ratio.
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

SLICE_SECONDS = 5.0  # of the large build between two small ones


def main() -> None:
    """Run the builds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=20_000)
    given = parser.parse_args()
    print(json.dumps(growth(given.small, given.large), indent=2))


def growth(small: int, large: int) -> dict[str, Any]:
    """CPU time a chunk of two sizes, and how many times that of the small one the large one takes."""
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
    usual = mean(small_ms)  # the large one went through the slow moments, too
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
    """Let it run for a while; tells whether it came to its end."""
    try:
        building.wait(SLICE_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _cpu(building: subprocess.Popen[str]) -> float:
    """CPU time a chunk, in milliseconds, once the build is done."""
    printed, _ = building.communicate()
    if building.returncode:
        raise SystemExit(f"a build failed with the status {building.returncode}")
    return float(json.loads(printed)["cpu_ms_per_chunk"])


if __name__ == "__main__":
    main()
