"""Fixtures of the server's tests: a small bilingual index, and a server for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import _kb, kb

if TYPE_CHECKING:
    from selenium import webdriver

    from tests.server.browsing import Page
    from tests.server.running import Running

__all__ = ["_kb", "kb"]


@pytest.fixture
def server(kb: Path) -> Iterator["Running"]:
    """A server for a small bilingual index, `kb`."""
    from tests.server.running import serving

    with serving(kb) as running:
        yield running


@pytest.fixture(scope="module")
def _browser() -> Iterator["webdriver.Chrome"]:
    pytest.importorskip("selenium", reason="needs the package selenium")
    from tests.server.browsing import started_browser

    with started_browser() as browser:
        yield browser


@pytest.fixture
def page(_browser: "webdriver.Chrome") -> Iterator["Page"]:
    """A page whose console stays without errors."""
    from tests.server.browsing import Page

    page = Page(_browser)
    page.problems()
    yield page
    assert page.problems() == []
