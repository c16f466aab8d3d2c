"""Opens the store that an address leads to, or a copy of an index in a saved state."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lightrag_jsonl.core.address import Address, DatabaseURL, IndexGroup
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.storage.store import Store

if TYPE_CHECKING:
    from lightrag_jsonl.storage.postgres.database import PostgresStore


def open_store(address: Address, *, create: bool = True) -> Store:
    """The store at an address; with `create` False, and for several indexes, `StorageError` if there is none."""
    if isinstance(address, IndexGroup):
        return _joined_store(address)
    if isinstance(address, DatabaseURL):
        return _postgres()(address, create=create)
    from lightrag_jsonl.storage.sqlite.database import SQLiteStore

    return SQLiteStore(address, create=create)


@contextmanager
def copy_of_state(store: Store, name: str) -> Iterator[Address]:
    """The address of a temporary copy of an index, in a saved state and without saved states.

    `NotFoundError` lists the names of all states.
    """
    with store.view() as view:
        view.saved_state(name)
    with store.temporary_copy() as address:
        with closing(open_store(address)) as copy, copy.transaction() as transaction:
            transaction.restore(transaction.saved_state(name))
            for state in reversed(transaction.saved_states()):
                transaction.delete_state(state)
        yield address


def has_index(address: Address) -> bool:
    """Whether there is an index at an address; nothing is made. Of several, `open_store` tells which is missing."""
    if isinstance(address, IndexGroup):
        return True
    if isinstance(address, Path):
        from lightrag_jsonl.storage.sqlite.database import FILE_NAME

        return (address / FILE_NAME).is_file()
    return _postgres().has_index(address)


def _joined_store(group: IndexGroup) -> Store:
    """Several indexes as one store, with a temporary one for what questions leave."""
    from tempfile import TemporaryDirectory

    from lightrag_jsonl.storage.joined.store import JoinedStore

    with ExitStack() as stack:
        stores = [
            stack.enter_context(closing(open_store(address, create=False)))
            for address in group.parts
        ]
        folder = stack.enter_context(TemporaryDirectory(prefix="lightrag-"))
        scratch = stack.enter_context(closing(open_store(Path(folder))))
        return JoinedStore(stores, group.names, scratch, close=stack.pop_all().close)


def _postgres() -> "type[PostgresStore]":
    try:
        from lightrag_jsonl.storage.postgres.database import PostgresStore
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs more packages: pip install '.[postgres]' ({error})"
        ) from error
    return PostgresStore
