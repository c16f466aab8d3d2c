"""A Python of its own for what a test cannot do in the process that runs it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import CHECKOUT


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
