"""Fixtures of the server's tests: a small bilingual index, and a server for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import _kb, kb

if TYPE_CHECKING:
    from tests.server.running import Running

__all__ = ["_kb", "kb"]


@pytest.fixture
def server(kb: Path) -> Iterator["Running"]:
    """A server for a small bilingual index, `kb`."""
    from tests.server.running import serving

    with serving(kb) as running:
        yield running
