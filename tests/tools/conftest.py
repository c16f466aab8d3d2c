"""A small foreign index, for the importer's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.foreign import Foreign, small


@pytest.fixture
def foreign(tmp_path: Path) -> Foreign:
    """A directory with one document of two chunks and two connected nodes."""
    return small(tmp_path / "there")
