"""Compares this library with its peers, in one run: python -m benchmarks.peers --sizes 200 1000

Installs each peer from PyPI in an environment of its own, and gives all of them the same texts, the
same instant model and the same fast embedder. Prints one JSON object with the figures and their
ratios to ours, and writes the tables of docs/benchmarks*.md. Beside the peers stands the floor: the least work
that the task takes (`benchmarks.floor`). Each part runs in a fresh process, one at a
time, with the numeric libraries set up as users have them: their threads cost time, too.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets import data_folder
from benchmarks.peers.environments import PEERS, InstallError, python_of
from benchmarks.peers.material import CHECKOUT, write
from benchmarks.peers.worker import PARTS, run_part
from benchmarks.tables import PEER_ROWS, peer_table, put

READMES = {"en": "docs/benchmarks.md", "zh": "docs/benchmarks.zh.md"}
PROJECTS = [peer.project for peer in PEERS]

Figures = dict[str, Any]


def main() -> None:
    """Install, measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(200, 1_000), help="chunks")
    parser.add_argument("--peers", nargs="*", choices=PROJECTS, default=PROJECTS)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".peers", help="environments")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a part may take")
    parser.add_argument("--no-readme", action="store_true", help="leave the READMEs alone")
    given = parser.parse_args()
    pythons, failed = _pythons(given.peers, given.cache.resolve())
    environment = _environment()
    sizes: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for size in given.sizes:
            corpus = Path(scratch) / f"corpus-{size}.json"
            write(corpus, size)
            measured = {
                name: _measure(name, python, corpus, environment, given.timeout)
                for name, python in pythons.items()
            }
            sizes[str(size)] = measured | failed
    print(json.dumps(_report(sizes, environment), indent=2, ensure_ascii=False))
    titles = {"floor": "benchmarks.floor"}
    titles |= {peer.project: f"{peer.title} {peer.version}" for peer in PEERS}
    for language, name in {} if given.no_readme else READMES.items():
        put(CHECKOUT / name, "peers", peer_table(sizes, titles, language))


def _pythons(projects: Sequence[str], cache: Path) -> tuple[dict[str, Path], dict[str, Figures]]:
    """The Python interpreters to measure with, ours and the floor first, and errors of failed
    installations.
    """
    pythons = {"ours": Path(sys.executable), "floor": Path(sys.executable)}
    failed: dict[str, Figures] = {}
    for peer in PEERS:
        if peer.project in projects:
            try:
                pythons[peer.project] = python_of(peer, cache)
            except InstallError as error:
                failed[peer.project] = {"error": f"not installed: {error}"}
    return pythons, failed


def _environment() -> dict[str, str]:
    """The environment variables of measured processes: those of this one, no real key, and the folder
    of tiktoken's ranks if there is one.
    """
    ranks = Path(os.environ.get("TIKTOKEN_CACHE_DIR") or data_folder() / "tiktoken")
    environment = {**os.environ, "OPENAI_API_KEY": "unused"}
    if ranks.is_dir():
        environment["TIKTOKEN_CACHE_DIR"] = str(ranks.resolve())
    return environment


def _measure(
    name: str, python: Path, corpus: Path, environment: Mapping[str, str], timeout: float
) -> Figures:
    """The figures of all parts; if one fails, those of the parts before it, and the error."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        for part in PARTS:
            figures |= run_part(
                name,
                part,
                Path(scratch) / "kb",
                corpus,
                python=str(python),
                environment=environment,
                timeout=timeout,
            )
            if "error" in figures:
                break
    return figures


def _report(sizes: Mapping[str, Figures], environment: Mapping[str, str]) -> Figures:
    return {
        "benchmark": "peers",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "exact_tokens": "TIKTOKEN_CACHE_DIR" in environment,
        "versions": {peer.project: peer.version for peer in PEERS},
        "sizes": sizes,
        "times_ours": {size: _ratios(systems) for size, systems in sizes.items()},
    }


def _ratios(systems: Mapping[str, Figures]) -> Figures:
    """Each peer's figures divided by ours."""
    ours = systems["ours"]
    return {
        name: {
            key: round(figures[key] / ours[key], 2)
            for key in PEER_ROWS
            if ours.get(key) and key in figures
        }
        for name, figures in systems.items()
        if name != "ours"
    }


if __name__ == "__main__":
    main()
