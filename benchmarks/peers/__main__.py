"""Compares this library with its peers, in one run: python -m benchmarks.peers --sizes 200 1000

Installs each peer from PyPI in an environment of its own, and gives all of them the same texts, the
same instant model and the same fast embedder. Prints one JSON object with the figures and their
ratios to ours, and writes the table of the READMEs. Each part runs in a fresh process, one at a
time, with one thread for each numeric library.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import data_folder
from benchmarks.peers.environments import PEERS, InstallError, python_of
from benchmarks.peers.material import write
from benchmarks.peers.table import ROWS, table
from benchmarks.readme import put
from lightrag_jsonl import __version__

CHECKOUT = Path(__file__).resolve().parents[2]
READMES = {"en": "README.md", "zh": "README.zh.md"}
PARTS = ("build", "change", "ask")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Figures = dict[str, Any]


def main() -> None:
    """Install, measure, print, and write the table."""
    given = _arguments()
    pythons, failed = _pythons(given)
    environment = _environment(given.tiktoken)
    sizes: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for size in given.sizes:
            corpus = Path(scratch) / f"corpus-{size}.json"
            write(corpus, size)
            measured = {
                name: _measure(name, python, corpus, environment, given.timeout)
                for name, python in pythons.items()
            }
            sizes[str(size)] = measured | failed
    titles = {peer.project: f"{peer.title} {peer.version}" for peer in PEERS}
    titles["ours"] = f"lightrag-jsonl {__version__}"
    print(json.dumps(_report(sizes, titles, environment), indent=2, ensure_ascii=False))
    for language, name in {} if given.no_readme else READMES.items():
        put(CHECKOUT / name, "peers", table(sizes, titles, language))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(200, 1_000), help="chunks")
    projects = [peer.project for peer in PEERS]
    parser.add_argument("--peers", nargs="*", choices=projects, default=projects)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".peers", help="environments")
    parser.add_argument("--tiktoken", type=Path, help="folder with tiktoken's ranks")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a part may take")
    parser.add_argument("--no-readme", action="store_true", help="leave the READMEs alone")
    return parser.parse_args()


def _pythons(given: argparse.Namespace) -> tuple[dict[str, Path], dict[str, Figures]]:
    """The Python interpreters to measure with, ours first, and errors of failed installations."""
    pythons, failed = {"ours": Path(sys.executable)}, {}
    for peer in PEERS:
        if peer.project not in given.peers:
            continue
        _say(f"{peer.project} {peer.version}: environment")
        try:
            pythons[peer.project] = python_of(peer, given.cache.resolve())
        except InstallError as error:
            failed[peer.project] = {"error": f"not installed: {error}"}
    return pythons, failed


def _environment(ranks: Path | None) -> dict[str, str]:
    """The environment variables of measured processes: no real key, one thread for numeric
    libraries, and the folder of tiktoken's ranks if there is one.
    """
    ranks = ranks or Path(os.environ.get("TIKTOKEN_CACHE_DIR") or data_folder() / "tiktoken")
    given = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "OPENAI_API_KEY": "unused"}
    return given | ({"TIKTOKEN_CACHE_DIR": str(ranks.resolve())} if ranks.is_dir() else {})


def _measure(
    name: str, python: Path, corpus: Path, environment: Mapping[str, str], timeout: float
) -> Figures:
    """The figures of all parts; if one fails, those of the parts before it, and the error."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder, out = Path(scratch) / "kb", Path(scratch) / "figures.json"
        for part in PARTS:
            _say(f"{name}: {part}, {corpus.stem}")
            command = [str(python), "-m", "benchmarks.peers.worker", name, part]
            command += ["--folder", str(folder), "--corpus", str(corpus), "--out", str(out)]
            error = _run(command, environment, timeout)
            if error:
                return figures | {"error": f"{part}: {error}"}
            figures |= json.loads(out.read_text(encoding="utf-8"))
    return figures


def _run(command: Sequence[str], environment: Mapping[str, str], timeout: float) -> str:
    """Run a process; returns why it failed, or ""."""
    try:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=dict(environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {timeout:.0f} s"
    said = done.stderr.decode(errors="replace").strip()
    return (said.split("\n")[-1][-300:] or f"status {done.returncode}") if done.returncode else ""


def _report(
    sizes: Mapping[str, Mapping[str, Figures]],
    titles: Mapping[str, str],
    environment: Mapping[str, str],
) -> Figures:
    return {
        "benchmark": "peers",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "exact_tokens": "TIKTOKEN_CACHE_DIR" in environment,
        "versions": titles,
        "sizes": sizes,
        "times_ours": {size: _ratios(systems) for size, systems in sizes.items()},
    }


def _ratios(systems: Mapping[str, Figures]) -> Figures:
    """Each peer's figures divided by ours."""
    ours = systems["ours"]
    return {
        name: {
            row.key: round(figures[row.key] / ours[row.key], 2)
            for row in ROWS
            if ours.get(row.key) and row.key in figures
        }
        for name, figures in systems.items()
        if name != "ours"
    }


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
