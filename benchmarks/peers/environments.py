"""A virtual environment for each measured library, made once and kept."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Peer:
    """A version of a library on PyPI, and further requirements without which it fails to import."""

    project: str
    version: str
    title: str
    also: tuple[str, ...] = ()


PEERS = (
    Peer("lightrag-hku", "1.5.7", "LightRAG"),
    Peer("nano-graphrag", "0.0.8.2", "nano-graphrag"),
    # Newer sentencepiece wants a protobuf that fast-graphrag's own requirements exclude.
    Peer("fast-graphrag", "0.0.5", "fast-graphrag", also=("sentencepiece<0.2.1",)),
)


class InstallError(Exception):
    """A library could not be installed; the message is the end of the installer's output."""


def python_of(peer: Peer, cache: Path) -> Path:
    """The Python interpreter of the environment with `peer`, which is created if needed."""
    home = cache / f"{peer.project}-{peer.version}"
    python, done = home / "bin" / "python", home / ".installed"
    if not done.is_file():
        print(f"{peer.project} {peer.version}: environment", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        wanted = [f"{peer.project}=={peer.version}", *peer.also]
        _run([str(python), "-m", "pip", "install", "--quiet", *wanted])
        done.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(done.stderr.strip()[-600:] or f"exit status {done.returncode}")
