"""Opens the store that an address leads to."""

from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.address import Address, DatabaseURL
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.storage.sqlite.database import FILE_NAME, SQLiteStore
from lightrag_jsonl.storage.store import Store

if TYPE_CHECKING:
    from lightrag_jsonl.storage.postgres.database import PostgresStore


def open_store(address: Address, *, create: bool = True) -> Store:
    """The store at an address; with `create` False, `StorageError` if there is no index."""
    if isinstance(address, DatabaseURL):
        return _postgres()(address, create=create)
    return SQLiteStore(address, create=create)


def has_index(address: Address) -> bool:
    """Whether there is an index at an address; nothing is made."""
    if isinstance(address, Path):
        return (address / FILE_NAME).is_file()
    return _postgres().has_index(address)


def _postgres() -> "type[PostgresStore]":
    try:
        from lightrag_jsonl.storage.postgres.database import PostgresStore
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs more packages: pip install 'lightrag-jsonl[postgres]' ({error})"
        ) from error
    return PostgresStore
