"""This checkout beside another one: python -m benchmarks.compare OTHER [--sizes 1000 5000]

OTHER is a git worktree of this project. This checkout's `benchmarks.index` and `benchmarks.query`
measure both packages, in turn, `--rounds` times. Prints one JSON object: for each figure the medians
of this package and of the other one, and the ratio of the first to the second.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
ROUNDS, COLD, ANSWERS = 3, 5, 240


def main() -> None:
    """Measure both packages in turn and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--sizes", nargs="+", default=["1000"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--cold", type=int, default=COLD, help="for benchmarks.index; 0 leaves it out"
    )
    parser.add_argument("--answers", type=int, default=ANSWERS, help="for benchmarks.query")
    given = parser.parse_args()
    scripts = [["query", "--answers", str(given.answers)]]
    if given.cold:
        scripts.insert(0, ["index", "--cold", str(given.cold)])
    sides = {"here": CHECKOUT, "there": given.other.resolve()}
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(given.rounds):
        for side, checkout in sides.items():
            for script, *options in scripts:
                for name, value in _measured(checkout, script, [*options, "--sizes", *given.sizes]):
                    found.setdefault(name, {"here": [], "there": []})[side].append(value)
    figures = {name: _compared(**values) for name, values in found.items() if all(values.values())}
    print(
        json.dumps({"benchmark": "compare", "rounds": given.rounds, "figures": figures}, indent=2)
    )


def _measured(checkout: Path, script: str, options: list[str]) -> Iterator[tuple[str, float]]:
    """What a script says of one checkout's package, named like "query/1000/modes/mix/p50_ms"."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "benchmarks").symlink_to(CHECKOUT / "benchmarks")
        paths = os.pathsep.join([scratch, str(checkout)])
        # PYTHONSAFEPATH: Python does not look for packages in the folder it was started in
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-m", f"benchmarks.{script}", *options]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, check=True, text=True
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
