"""The built wheel, installed and tested away from its sources: python -m tests.packaging.installed wheel

`wheel`: the core alone works; then the whole test suite and the typed examples run against it.
`lowest`: the same suite with the oldest version of every core dependency that is allowed.
Needs `uv`. Arguments after `--` go to pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COPIED = (
    "tests",
    "benchmarks",
    "docs",
    "examples",
    "prompts_en",
    "prompts_zh",
    "README.md",
    "README.zh.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "pyproject.toml",
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".mypy_cache", ".pytest_cache")


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
        away = place / "away"
        copy_tests(away)
        smoke = away / "tests" / "packaging" / "core_only.py"
        run(str(python), str(smoke), cwd=empty(place / "empty"))
        install(python, f"{wheel}[dev]")
        sys.stdout.write(core_versions(python) + "\n")
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


def copy_tests(away: Path) -> None:
    """The tests and what they read, but not the package."""
    away.mkdir()
    for name in COPIED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, away / name, ignore=LEFT_OUT)
        elif source.is_file():
            shutil.copy(source, away / name)


def core_versions(python: Path) -> str:
    """The installed versions of the core dependencies, a line each."""
    code = (
        "import re, importlib.metadata as m\n"
        "for r in m.requires('lightrag-jsonl'):\n"
        "    if 'extra ==' not in r:\n"
        "        name = re.match(r'[\\w.-]+', r)[0]; print(name, m.version(name))\n"
    )
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def empty(folder: Path) -> Path:
    """A new folder."""
    folder.mkdir()
    return folder


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
