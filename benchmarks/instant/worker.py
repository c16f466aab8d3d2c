"""Measures one part of the work with an index; `run_part` starts it in a process of its own."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.instant.material import CHECKOUT, Material, System, read
from benchmarks.usage import Usage, on_disk, peak_mb, plain_loop_ms, spread

SYSTEMS = {
    "ours": ("benchmarks.instant.ours", "Ours"),
    "several": ("benchmarks.instant.ours", "Several"),
}

Open = Callable[[Path, Material], System]
Figures = dict[str, Any]


def main() -> None:
    """Measure one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--system", choices=list(SYSTEMS), default="ours")
    for name in ("folder", "corpus", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    opener = partial(open_system, given.system)
    figures = PARTS[given.part](opener, given.folder, read(given.corpus))
    given.out.write_text(json.dumps(figures), encoding="utf-8")


def open_system(name: str, folder: Path, material: Material) -> System:
    """An index of one of the `SYSTEMS`."""
    module, adapter = SYSTEMS[name]
    system: System = getattr(import_module(module), adapter)(folder, material)
    return system


def run_part(part: str, folder: Path, corpus: Path, *, system: str = "ours") -> Figures:
    """Measure one part in a process of its own; if it fails, there is an "error"."""
    out = folder.with_suffix(".figures")
    command = [sys.executable, "-m", "benchmarks.instant.worker", part, "--folder", str(folder)]
    command += ["--corpus", str(corpus), "--out", str(out), "--system", system]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().split("\n")[-1][-300:]
        return {"error": f"{part}: {last or f'status {done.returncode}'}"}
    figures: Figures = json.loads(out.read_text(encoding="utf-8"))
    return figures


def build(opener: Open, folder: Path, material: Material) -> Figures:
    """Index the corpus, after a small document that triggers late imports."""
    system, loop_before = opener(folder, material), plain_loop_ms()
    system.insert(material.extra[:1])
    clock, warm, before = material.clock, replace(material.clock), Usage()
    system.insert(material.papers)
    used, fakes = before.until_now(), clock.seconds - warm.seconds
    entities, relations = system.counts()
    system.close()
    if not entities:
        raise SystemExit("nothing was extracted")
    return {
        "cpu_ms_per_chunk": round(1000 * (used.cpu - fakes) / material.chunks, 3),
        "wall_ms_per_chunk": round(1000 * (used.wall - fakes) / material.chunks, 3),
        "plain_loop_ms": [loop_before, plain_loop_ms()],
        "bytes_written": used.written,
        "bytes_on_disk": on_disk(folder),
        "model_calls": clock.calls - warm.calls,
        "texts_embedded": clock.texts - warm.texts,
        "entities": entities,
        "relations": relations,
        "peak_rss_mb": peak_mb(),
    }


def change(opener: Open, folder: Path, material: Material) -> Figures:
    """Add documents of one piece, one by one; then delete one of ten pieces."""
    system = opener(folder, material)
    system.insert(material.extra[1:2])
    added = [_used(partial(system.insert, [paper]), material) for paper in material.extra[2:]]
    figures = {f"one_more_{name}": median(one[name] for one in added) for name in added[0]}
    target = material.papers[len(material.papers) // 2].id
    gone = _used(partial(system.delete, target), material)
    figures |= {f"delete_{name}": value for name, value in gone.items()}
    system.close()
    return figures


def cold(opener: Open, folder: Path, material: Material) -> Figures:
    """Measure the first context in a fresh process."""
    before = Usage()
    system = opener(folder, material)
    first = system.context(material.questions[0], system.modes[0])
    used = before.until_now()
    system.close()
    return {
        "cold_first_context_s": round(used.wall, 3),
        "cold_first_context_cpu_s": round(used.cpu, 3),
        "cold_context_chars": first,
        "cold_peak_rss_mb": peak_mb(),
    }


def ask(opener: Open, folder: Path, material: Material) -> Figures:
    """Measure every mode when warm."""
    system = opener(folder, material)
    modes = {mode: time_mode(system, mode, material) for mode in system.modes}
    system.close()
    full = system.modes[0]
    return {
        "modes": modes,
        "full_mode": full,
        "full_mode_p50_ms": modes[full]["p50_ms"],
        "full_mode_cpu_ms": modes[full]["p50_cpu_ms"],
        "full_mode_chars": modes[full]["context_chars"],
        "ask_peak_rss_mb": peak_mb(),
    }


def find(opener: Open, folder: Path, material: Material) -> Figures:
    """The beginnings of the pieces found in every mode, for each question, and of those that state it."""
    system = opener(folder, material)
    found = {
        mode: [_beginnings(system.pieces(asked, mode)) for asked in material.questions]
        for mode in system.modes
    }
    system.close()
    return {"found": found, "stated": [_beginnings(asked.pieces) for asked in material.questions]}


PARTS: dict[str, Callable[[Open, Path, Material], Figures]] = {
    "build": build,
    "change": change,
    "cold": cold,
    "ask": ask,
    "find": find,
}


def _beginnings(pieces: Sequence[str]) -> list[str]:
    """ "Note 7" of each piece."""
    return [piece.partition(".")[0] for piece in pieces]


def _used(work: Callable[[], None], material: Material) -> dict[str, float]:
    fakes, before = material.clock.seconds, Usage()
    work()
    used, fakes = before.until_now(), material.clock.seconds - fakes
    return {
        "cpu_ms": round(1000 * (used.cpu - fakes), 1),
        "wall_ms": round(1000 * (used.wall - fakes), 1),
        "bytes_written": used.written,
    }


def time_mode(system: System, mode: str, material: Material) -> Figures:
    """Time all questions in one mode; the first two warm up, and their times are not counted if there are others.

    The CPU time of all threads counts on a machine that does other work as well.
    """
    times: list[float] = []
    cpu_times: list[float] = []
    sizes: list[int] = []
    for asked in material.questions:
        fakes = material.clock.seconds
        started = time.perf_counter()
        cpu_started = time.process_time()
        sizes.append(system.context(asked, mode))
        fake_seconds = material.clock.seconds - fakes
        cpu_times.append(time.process_time() - cpu_started - fake_seconds)
        times.append(time.perf_counter() - started - fake_seconds)
    return {
        **spread(times[2:] or times),
        "p50_cpu_ms": spread(cpu_times[2:] or cpu_times)["p50_ms"],
        "context_chars": int(median(sizes)),
    }


if __name__ == "__main__":
    main()
