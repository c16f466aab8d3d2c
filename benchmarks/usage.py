"""What a process has used so far: time, bytes written, memory."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LOOPS, LOOP_LENGTH = 5, 1_000_000


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds on the clock, seconds of CPU (all threads), bytes sent to the disk."""

    wall: float
    cpu: float
    written: int


class Usage:
    """Wall and CPU seconds and bytes written since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu, self._written = time.perf_counter(), time.process_time(), _written()

    def until_now(self) -> Used:
        """What was used since this was made."""
        return Used(
            wall=time.perf_counter() - self._wall,
            cpu=time.process_time() - self._cpu,
            written=_written() - self._written,
        )


def plain_loop_ms() -> float:
    """Milliseconds of a fixed loop of plain Python, the median of a few: how quick this moment is.

    The same machine may take half as long again a minute later, and all its times with it.
    """
    times = []
    for _ in range(LOOPS):
        started, total = time.perf_counter(), 0
        for number in range(LOOP_LENGTH):
            total += number
        times.append(1000 * (time.perf_counter() - started))
    return round(median(times), 1)


def on_disk(folder: Path) -> int:
    """Bytes of all files in a folder and below it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def peak_mb() -> int:
    """The most memory this process has held, in MB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _written() -> int:
    """Bytes this process has sent to the disk (Linux); 0 where that is not told."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="utf-8").split("\n")
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in lines if line)["write_bytes"])
