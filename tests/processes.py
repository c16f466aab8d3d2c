"""A Python of its own for what a test cannot do in the process that runs it."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from benchmarks.referee.material import Material
    from benchmarks.referee.sessions import Arena, Step

# Not Debian's script of this name in /usr/bin, which ends without the browser that it has started.
HEADLESS_SHELL = "/usr/lib/chromium/chromium-headless-shell"


def installed_browser() -> str | None:
    """Chromium that shows no windows, which takes a third less CPU; Chromium or Chrome without it."""
    names = (HEADLESS_SHELL, "chromium", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def heed_interrupts() -> None:
    """Let a child notice SIGINT, which it ignores if the tests run in a shell's background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_python(
    code: str, *arguments: object, cwd: Path = CHECKOUT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code over this checkout, and wait four minutes at most; `environment` adds variables."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        preexec_fn=heed_interrupts,
    )


def run_module_here(command: Sequence[str]) -> str:
    """What `python -m MODULE ...` prints, by its `main` in this process, which has imported the package."""
    interpreter, option, module, *arguments = command
    assert (interpreter, option) == (sys.executable, "-m")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", [module, *arguments])
        import_module(module).main()
    return printed.getvalue()


def session_here(
    arena: "Arena", contestant: str, index: str, material: "Material", steps: "Sequence[Step]"
) -> Any:
    """The figures of a session of the referee whose steps are taken in this process."""
    out = arena.figures_file(contestant)
    run_module_here(arena.command(contestant, index, material, steps, out))
    return json.loads(out.read_text(encoding="utf-8"))
