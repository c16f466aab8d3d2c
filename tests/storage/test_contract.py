"""The SQLite store keeps the promises of the storage port."""

from __future__ import annotations

from pathlib import Path

from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.testing import StoreContract


class TestSQLiteStore(StoreContract):
    """The contract, in a folder."""

    def make(self, folder: Path) -> Store:
        """A store in this folder."""
        return SQLiteStore(folder)
