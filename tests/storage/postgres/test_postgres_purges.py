"""Purged means purged in PostgreSQL, too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.indexing import test_purge_marks as in_folders


class TestPurgesInPostgres(in_folders.TestPurges):
    """What a purged text left is honoured by merges, inserts and imports."""

    @pytest.fixture
    def place(self, url: Callable[[object], str], tmp_path: Path) -> in_folders.Place:
        return lambda name: url(tmp_path / name)
