"""This checkout beside another one: python -m benchmarks.compare OTHER [--sizes 1000 5000]

OTHER is a git worktree of this project. This checkout's `benchmarks.index` and `benchmarks.query`
measure both packages, in turn, `--rounds` times; further arguments are handed on to them. Prints
one JSON object: for each figure the medians of this package and of the other one, and the ratio of
the first to the second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPTS = ("index", "query")
ROUNDS = 3


def main() -> None:
    """Measure both packages in turn and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--sizes", type=int, nargs="+", default=(1_000,))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=SCRIPTS)
    given, more = parser.parse_known_args()
    arguments = ["--sizes", *map(str, given.sizes), *more]
    sides = {"here": CHECKOUT, "there": given.other.resolve()}
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(given.rounds):
        for side, checkout in sides.items():
            for name, value in _measured(checkout, given.scripts, arguments):
                found.setdefault(name, {"here": [], "there": []})[side].append(value)
    figures = {name: _compared(**values) for name, values in found.items() if all(values.values())}
    print(
        json.dumps({"benchmark": "compare", "rounds": given.rounds, "figures": figures}, indent=2)
    )


def _measured(
    checkout: Path, scripts: Sequence[str], arguments: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """The figures of one checkout, named like "query/1000/modes/mix/p50_ms"."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "benchmarks").symlink_to(CHECKOUT / "benchmarks")
        paths = os.pathsep.join([scratch, str(checkout)])
        # PYTHONSAFEPATH: Python does not look for packages in the folder it was started in
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
        for script in scripts:
            command = [sys.executable, "-m", f"benchmarks.{script}", "--keep", f"{scratch}/kept"]
            done = subprocess.run(
                [*command, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            yield from _flat(script, json.loads(done.stdout)["sizes"])


def _flat(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The numbers in nested mappings, each with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}/{key}", item)
    elif isinstance(value, int | float):
        yield name, float(value)


def _compared(here: list[float], there: list[float]) -> dict[str, float | None]:
    ours, others = median(here), median(there)
    return {"here": ours, "there": others, "ratio": round(ours / others, 3) if others else None}


if __name__ == "__main__":
    main()
