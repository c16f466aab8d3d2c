"""Measures what a process uses: time, bytes written, memory."""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

LOOPS, LOOP_LENGTH = 5, 1_000_000


@dataclass(frozen=True, slots=True)
class Used:
    """Wall seconds, CPU seconds of all threads, and bytes sent to the disk."""

    wall: float
    cpu: float
    written: int


class Usage:
    """Measures wall and CPU seconds and bytes written from its creation on."""

    def __init__(self) -> None:
        self._wall, self._cpu, self._written = time.perf_counter(), time.process_time(), _written()

    def until_now(self) -> Used:
        """What was used since this object was created."""
        return Used(
            wall=time.perf_counter() - self._wall,
            cpu=time.process_time() - self._cpu,
            written=_written() - self._written,
        )


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """The median, the 95th percentile and the slowest of some times, in milliseconds."""
    times = 1000 * np.asarray(seconds)
    return {
        "p50_ms": round(float(np.percentile(times, 50)), 2),
        "p95_ms": round(float(np.percentile(times, 95)), 2),
        "slowest_ms": round(float(times.max()), 2),
    }


def plain_loop_ms() -> float:
    """Milliseconds that a fixed Python loop takes, the median of a few: a measure of the machine's
    speed at the moment, which may be half as much a minute later.
    """
    times = []
    for _ in range(LOOPS):
        started, total = time.perf_counter(), 0
        for number in range(LOOP_LENGTH):
            total += number
        times.append(1000 * (time.perf_counter() - started))
    return round(median(times), 1)


def on_disk(folder: Path) -> int:
    """The bytes of all files in and below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak_mb() -> int:
    """The peak memory of this process, in MB (on Linux).

    The peak that `getrusage` knows is at least that of the process which started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        if "VmHWM" in fields:
            return int(fields["VmHWM"].split()[0]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _written() -> int:
    """The bytes this process has sent to the disk (on Linux); 0 if that is not known."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="utf-8").split("\n")
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in lines if line)["write_bytes"])
