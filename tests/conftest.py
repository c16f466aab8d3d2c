"""Fixtures that every test may use: the shared data folder, and no network but loopback."""

import asyncio
import inspect
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lightrag_jsonl.core import tokens

# A busy machine makes no test fail.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

CHECKOUT = Path(__file__).resolve().parent.parent


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
    folder = Path(os.environ.get("LIGHTRAG_JSONL_DATA", CHECKOUT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no shared data: set LIGHTRAG_JSONL_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def o200k(shared_data: Path) -> tokens.TiktokenTokenizer:
    """The exact tokenizer, from the shared folder of ranks; the default of other tests stays as it is."""
    from tiktoken import registry

    found = tokens.TiktokenTokenizer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(shared_data / "tiktoken"))
        patch.setattr(registry, "ENCODINGS", {})
        tokens._encoding.cache_clear()
        found.count("ranks are read now")
    tokens._encoding.cache_clear()
    return found


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse every connection that leaves this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])  # type: ignore[index]
            if not (host.startswith("127.") or host in ("::1", "localhost")):
                raise OSError(f"tests must not reach {host}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield
