"""This checkout beside another one: python -m benchmarks.compare [OTHER] [--run "texts --modes mix"]

OTHER is the folder of a checkout, or a commit, by default the one before this checkout. This checkout's benchmarks measure both packages, in turn, `--rounds` times. Prints one JSON object: for each
figure the medians of this package and of the other one, the ratio of the first to the second, and the ratio of
the least to the least. With `--most 2` the exit code is 1 if twice as much CPU time is needed anywhere: `make speed`,
which continuous integration runs. Where there is no history nothing is compared, and the reason is printed.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = ("lightrag_jsonl", "prompts_en", "prompts_zh")
ROUNDS = 3
RUNS = ("index --sizes 1000", "query --sizes 1000")  # benchmarks and their arguments
CPU = ("cpu_ms_per_chunk", "p50_cpu_ms")  # how the names of figures end that `--most` is about

Figure: TypeAlias = Mapping[str, float | None]


class NothingToCompareError(Exception):
    """There is no other package; the message says why."""


def main() -> None:
    """Measure both packages in turn and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", nargs="?", help="the folder of the other checkout, or a commit")
    parser.add_argument("--run", nargs="+", default=RUNS, help="benchmarks with their arguments")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--most", type=float, help="the greatest ratio of the least CPU times")
    arguments = parser.parse_args()
    try:
        with ExitStack() as stack:
            other = Path(arguments.other or "")
            if arguments.other is None or not other.is_dir():
                other = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                unpack(arguments.other or commit_before(), other)
            figures = compared(other.resolve(), arguments.run, rounds=arguments.rounds)
    except NothingToCompareError as reason:
        print(f"nothing compared: {reason}", file=sys.stderr)
        return
    print(
        json.dumps(
            {"benchmark": "compare", "rounds": arguments.rounds, "figures": figures}, indent=2
        )
    )
    if arguments.most is not None:
        slower = too_slow(figures, arguments.most)
        if slower:
            sys.exit("slower than before: " + ", ".join(slower))


def commit_before() -> str:
    """The commit before this checkout: the last one where the package has changes that are not committed."""
    commit = "HEAD" if _git("diff", "--name-only", "HEAD", "--", *PACKAGE) else "HEAD^"
    if not _git("diff", "--name-only", commit, "--", *PACKAGE):
        raise NothingToCompareError("the package is the one of the commit before")
    return commit


def unpack(commit: str, folder: Path) -> None:
    """Put the package of a commit into a folder."""
    with tarfile.open(fileobj=BytesIO(_git("archive", commit, *PACKAGE))) as files:
        files.extractall(folder, filter="data")


def compared(other: Path, runs: Sequence[str], *, rounds: int) -> dict[str, Figure]:
    """The figures that both packages have, by name."""
    sides = {"here": CHECKOUT, "there": other}
    values_by_name: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        order = [*sides] if number % 2 == 0 else [*sides][::-1]
        for side in order:
            for run in runs:
                script, *options = shlex.split(run)
                try:
                    figures = list(_measured(sides[side], script, options))
                except subprocess.CalledProcessError as error:
                    if side == "here":
                        raise
                    message = f"benchmarks.{script} does not run on the other version"
                    raise NothingToCompareError(message) from error
                for name, value in figures:
                    values_by_name.setdefault(name, {"here": [], "there": []})[side].append(value)
    return {
        name: _compared(**values) for name, values in values_by_name.items() if all(values.values())
    }


def too_slow(figures: Mapping[str, Figure], most: float) -> list[str]:
    """The CPU times whose least is more than so many times the other package's, in words."""
    return [
        f"{name} {figure['least_ratio']} times"
        for name, figure in figures.items()
        if name.endswith(CPU) and (figure["least_ratio"] or 0) > most
    ]


def _git(*arguments: str) -> bytes:
    """What git prints in this checkout."""
    try:
        return subprocess.run(
            ["git", *arguments], cwd=CHECKOUT, capture_output=True, check=True
        ).stdout
    except FileNotFoundError:
        raise NothingToCompareError("git is not installed") from None
    except subprocess.CalledProcessError as error:
        detail = error.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise NothingToCompareError(f"no such commit ({detail})") from error


def _measured(checkout: Path, script: str, options: Sequence[str]) -> Iterator[tuple[str, float]]:
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


def _compared(here: list[float], there: list[float]) -> Figure:
    ours, others = median(here), median(there)
    return {
        "here": ours,
        "there": others,
        "ratio": round(ours / others, 3) if others else None,
        "least_ratio": round(min(here) / min(there), 3) if min(there) else None,
    }


if __name__ == "__main__":
    main()
