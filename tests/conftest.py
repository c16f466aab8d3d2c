"""Fixtures of every test: the shared data folder, no settings, and no network but loopback."""

import asyncio
import inspect
import itertools
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from lightrag_jsonl.core import tokens

# A busy machine makes no test fail; a quick run tries a fifth of the examples.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=20)

CHECKOUT = Path(__file__).resolve().parent.parent
DATA = "LIGHTRAG_JSONL_DATA"
SETTING = re.compile(r"LIGHTRAG_JSONL_|OPENAI_|SSL_CERT_FILE$|(?i:\w+_proxy$)")
MEMORY_FOLDER = Path("/dev/shm")
MEMORY_NEEDED = 2 << 30  # bytes
SLOW_FILE = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the number of examples, the threads of matrices, and the folder of temporary files.

    One thread, before NumPy and PyTorch are imported: further ones keep cores busy while they wait, and
    each core has a test process already. Files are in memory, where there is enough of it and nobody
    chose another folder: each commit of an index waits for the disk.
    """
    settings.load_profile("quick" if is_quick(config) else "patient")
    for name in THREADS:
        os.environ.setdefault(name, "1")
    if config.option.basetemp or "TMPDIR" in os.environ:
        return
    if os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free > MEMORY_NEEDED:
        os.environ["TMPDIR"] = str(MEMORY_FOLDER)
        tempfile.tempdir = str(MEMORY_FOLDER)  # now, not when a test has changed TMPDIR


def is_quick(config: pytest.Config) -> bool:
    """Whether this is the run between two changes, which leaves out what is slow."""
    return bool(config.option.markexpr == "not slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A quick run does not import files of slow tests alone: browsers, clusters and servers take seconds."""
    if not is_quick(config) or collection_path.suffix != ".py":
        return None
    return bool(SLOW_FILE.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process more than cores for the whole suite, whose slow tests wait for servers and browsers."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return cores if is_quick(config) else cores + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs PyTorch comes first: so one of several test processes imports it, and no other."""
    items.sort(key=lambda item: item.get_closest_marker("torch") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that awaits is run by an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real texts and recorded answers; the test is skipped where it is absent."""
    folder = Path(os.environ.get(DATA, CHECKOUT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no shared data: set LIGHTRAG_JSONL_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def o200k(shared_data: Path) -> "tokens.TiktokenTokenizer":
    """The exact tokenizer, from the shared folder of ranks; the default of other tests stays as it is."""
    from tiktoken import registry

    from lightrag_jsonl.core import tokens

    found = tokens.TiktokenTokenizer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(shared_data / "tiktoken"))
        patch.setattr(registry, "ENCODINGS", {})
        tokens._encoding.cache_clear()
        found.count("ranks are read now")
    tokens._encoding.cache_clear()
    return found


@pytest.fixture(scope="session")
def config_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths for settings, a new one each time; no folder is made, since few tests need one."""
    folder = tmp_path_factory.mktemp("settings")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(scope="session", autouse=True)
def only_own_settings(config_folders: Iterator[Path]) -> Iterator[None]:
    """No setting, key, server or proxy comes from whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(next(config_folders)))
        for name in [*os.environ]:
            if SETTING.match(name) and name != DATA:
                patch.delenv(name)
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Iterator[None]:
    """Each client of HTTP reads the machine's certificates for 20 ms, though no test speaks TLS."""
    with pytest.MonkeyPatch.context() as patch:
        if find_spec("httpcore2") is not None:
            import httpcore2

            patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True)
def own_config_folder(config_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test saves as settings, no other reads."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(next(config_folders)))


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """What one test puts into the environment, no other sees, whatever their order."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])  # type: ignore[index]
            if not (host.startswith("127.") or host in ("::1", "localhost")):
                raise OSError(f"tests must not reach {host}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)
