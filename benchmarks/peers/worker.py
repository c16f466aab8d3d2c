"""Measures one part of one library; `benchmarks.peers` starts it in a process of its own.

The figures go to a file, since some libraries print while they work.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.material import Material, System, read
from benchmarks.usage import Usage, on_disk, peak_mb, spread

ADAPTERS = {
    "ours": ("benchmarks.peers.ours", "Ours"),
    "lightrag-hku": ("benchmarks.peers.light", "Light"),
    "nano-graphrag": ("benchmarks.peers.nano", "Nano"),
    "fast-graphrag": ("benchmarks.peers.fast", "Fast"),
}

Open = Callable[[Path, Material], System]
Figures = dict[str, Any]


def main() -> None:
    """Measure one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=list(ADAPTERS))
    parser.add_argument("part", choices=list(PARTS))
    for name in ("folder", "corpus", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    module, name = ADAPTERS[given.system]
    material = read(given.corpus)
    figures = PARTS[given.part](getattr(import_module(module), name), given.folder, material)
    given.out.write_text(json.dumps(figures), encoding="utf-8")


def build(open_system: Open, folder: Path, material: Material) -> Figures:
    """Index the corpus, after a small document that triggers late imports."""
    system = open_system(folder, material)
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
        "bytes_written": used.written,
        "bytes_on_disk": on_disk(folder),
        "model_calls": clock.calls - warm.calls,
        "texts_embedded": clock.texts - warm.texts,
        "entities": entities,
        "relations": relations,
        "peak_rss_mb": peak_mb(),
    }


def change(open_system: Open, folder: Path, material: Material) -> Figures:
    """Add two documents of one piece, and measure the second; then delete one of ten pieces."""
    system = open_system(folder, material)
    _, first, second = material.extra
    system.insert([first])
    figures = _used("one_more", lambda: system.insert([second]), material)
    if system.can_delete:
        target = material.papers[len(material.papers) // 2].id
        figures |= _used("delete", lambda: system.delete(target), material)
    system.close()
    return figures


def ask(open_system: Open, folder: Path, material: Material) -> Figures:
    """Measure the first context in a fresh process, then every mode when warm."""
    began = time.perf_counter()
    system = open_system(folder, material)
    full = system.modes[0]
    first = system.context(material.questions[0], full)
    cold = time.perf_counter() - began
    modes = {mode: _mode(system, mode, material) for mode in system.modes}
    system.close()
    return {
        "cold_first_context_s": round(cold, 3),
        "cold_context_chars": first,
        "modes": modes,
        "full_mode": full,
        "full_mode_p50_ms": modes[full]["p50_ms"],
        "full_mode_chars": modes[full]["context_chars"],
        "ask_peak_rss_mb": peak_mb(),
    }


PARTS: dict[str, Callable[[Open, Path, Material], Figures]] = {
    "build": build,
    "change": change,
    "ask": ask,
}


def _used(label: str, work: Callable[[], None], material: Material) -> Figures:
    fakes, before = material.clock.seconds, Usage()
    work()
    used, fakes = before.until_now(), material.clock.seconds - fakes
    return {
        f"{label}_cpu_ms": round(1000 * (used.cpu - fakes), 1),
        f"{label}_wall_ms": round(1000 * (used.wall - fakes), 1),
        f"{label}_bytes_written": used.written,
    }


def _mode(system: System, mode: str, material: Material) -> Figures:
    """Time all questions in one mode; the first two warm up, and their times are not counted."""
    times, sizes = [], []
    for asked in material.questions:
        fakes, started = material.clock.seconds, time.perf_counter()
        sizes.append(system.context(asked, mode))
        times.append(time.perf_counter() - started - (material.clock.seconds - fakes))
    return {**spread(times[2:]), "context_chars": int(median(sizes))}


if __name__ == "__main__":
    main()
