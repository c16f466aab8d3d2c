"""The built wheel, installed and tested away from its sources: python -m tests.packaging.installed wheel

`wheel`: the core alone works; then the test suite and the typed examples run against it.
`lowest`: the same suite with the oldest version of every core dependency that is allowed.
Needs `uv`. Arguments after `--` go to pytest.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
NOT_COPIED = shutil.ignore_patterns("lightrag_jsonl", "__pycache__", "dist", ".*")


def main() -> None:
    """Build, install, test; the exit status is that of the first step that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["wheel", "lowest"])
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="installed-") as scratch:
        place = Path(scratch)
        wheel = built(place / "dist")
        python = environment(place / "venv")
        if given.what == "wheel":
            install(python, str(wheel))
        else:
            project = str(CHECKOUT / "pyproject.toml")
            install(python, "--resolution", "lowest-direct", "-r", project)
            install(python, "--no-deps", str(wheel))
        away, empty = place / "away", place / "empty"
        shutil.copytree(CHECKOUT, away, ignore=NOT_COPIED)
        empty.mkdir()
        run(str(python), str(away / "tests" / "packaging" / "core_only.py"), cwd=empty)
        install(python, f"{wheel}[dev]")
        run(sys.executable, "-m", "uv", "pip", "freeze", "--python", str(python))
        if given.what == "wheel":
            run(str(python), "-m", "mypy", "--strict", "tests/typed", cwd=away)
        workers = ("-n", "auto", "--maxprocesses=4", "--dist=worksteal")
        run(
            str(python), "-m", "pytest", "-p", "no:cacheprovider", *workers, *given.pytest, cwd=away
        )


def built(folder: Path) -> Path:
    """The wheel of this checkout."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=CHECKOUT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment(folder: Path) -> Path:
    """The interpreter of a new, empty virtual environment."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    """Install into an environment; what is there already stays if it will do."""
    held = ("-c", str(CHECKOUT / "constraints.txt"))
    run(sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(python), *held, *what)


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a step; end with its status if it fails. The shared data is found from anywhere."""
    data = os.environ.get("LIGHTRAG_JSONL_DATA", str(CHECKOUT.parent / "shared" / "data"))
    given = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {
        "LIGHTRAG_JSONL_DATA": data
    }
    sys.stderr.write(f"$ {' '.join(command)}\n")
    status = subprocess.run(command, cwd=cwd, env=given, check=False).returncode
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
