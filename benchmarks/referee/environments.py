"""A virtual environment for each contestant, made once and kept."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import data_folder

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Peer:
    """A version of a package on PyPI.

    - `also`: further requirements, without which it fails to import.
    - `bare`: packages that are installed without their own requirements: the package itself if
      those cannot be met (a GPU), then `also` names the ones that are used.
    """

    name: str
    project: str
    version: str
    title: str
    also: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()


PEERS = (
    Peer("lightrag", "lightrag-hku", "1.5.7", "LightRAG"),
    Peer("nano", "nano-graphrag", "0.0.8.2", "nano-graphrag"),
    # Newer sentencepiece wants a protobuf that fast-graphrag's own requirements exclude.
    Peer("fast", "fast-graphrag", "0.0.5", "fast-graphrag", also=("sentencepiece<0.2.1",)),
    # vllm and a CUDA build of torch are only for models on a GPU of one's own.
    Peer(
        "hipporag",
        "hipporag",
        "2.0.0a4",
        "HippoRAG 2",
        also=(
            "torch", "transformers==4.45.2", "openai==1.92.3", "litellm==1.73.1", "networkx==3.4.2",
            "python_igraph==0.11.8", "tiktoken", "pydantic", "tenacity", "einops", "tqdm", "boto3",
            "datasets", "httpx<1", "pandas", "pyarrow", "scipy",
        ),
        bare=("hipporag==2.0.0a4", "gritlm==1.0.2"),
    ),
    Peer("graphrag", "graphrag", "3.3.0", "GraphRAG"),
)  # fmt: skip


class InstallError(Exception):
    """A package could not be installed; the message is the end of the installer's output."""


def default_cache() -> Path:
    """The folder of the environments: in the user's cache, since they are large."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lightrag-jsonl-referee"


def python_of(peer: Peer, cache: Path) -> Path:
    """The Python interpreter of the environment with `peer`, which is created if needed."""
    home = cache / f"{peer.project}-{peer.version}"
    python = home / "bin" / "python"
    mark = home / ".installed"
    if not mark.is_file():
        print(f"{peer.project} {peer.version}: environment", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        wanted = peer.also if peer.bare else (f"{peer.project}=={peer.version}", *peer.also)
        install = _installer(python)
        _run([*install, *wanted])
        if peer.bare:
            _run([*install, "--no-deps", *peer.bare])
        mark.touch()
    return python


def _installer(python: Path) -> list[str]:
    """uv, which is among the tools of developers, or else pip, which takes minutes to choose versions."""
    uv = Path(sys.executable).parent / "uv"
    if uv.is_file():
        return [str(uv), "pip", "install", "--quiet", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "--quiet"]


def environment() -> Mapping[str, str]:
    """The environment variables of contestants: no real key, nothing from the network, bytecode that
    is kept as users have it, and the folder of tiktoken's ranks if there is one.
    """
    ranks = Path(os.environ.get("TIKTOKEN_CACHE_DIR") or data_folder() / "tiktoken")
    variables = {
        **os.environ,
        "OPENAI_API_KEY": "unused",
        "PYTHONPATH": str(CHECKOUT),
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": "127.0.0.1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    if ranks.is_dir():
        variables["TIKTOKEN_CACHE_DIR"] = str(ranks.resolve())
    return variables


def _run(command: list[str]) -> None:
    # uv does not read pip's settings: the Makefile hands them on, and so does this.
    links = os.environ.get("PIP_FIND_LINKS", "")
    variables = {**os.environ, **({"UV_FIND_LINKS": links} if links else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise InstallError(done.stderr.strip()[-600:] or f"exit status {done.returncode}")
