"""Snapshots of an index by name: made, listed, deleted, and rolled back to without a model."""

from datetime import UTC, datetime

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.snapshots import IndexSnapshot
from lightrag_jsonl.storage.tables.kept_rows import SavedState
from lightrag_jsonl.storage.views import StoreView, Transaction
from lightrag_jsonl.text.strings import sanitize


def save_snapshot(name: str, now: float, transaction: Transaction) -> IndexSnapshot:
    """Save the present state under a name; `ConfigError` for an empty name, or one that is taken."""
    name = sanitize(name).strip()
    if not name:
        raise ConfigError("a snapshot needs a name: it is empty")
    if name in {state.name for state in transaction.saved_states()}:
        raise ConfigError(
            f"there is a snapshot {name!r} already: delete it, or choose another name"
        )
    return _snapshot(transaction.save_state(name, now), 0)


def named_snapshots(view: StoreView) -> tuple[IndexSnapshot, ...]:
    """The snapshots, the oldest first."""
    kept_bytes = view.kept_bytes()
    return tuple(_snapshot(state, kept_bytes.get(state.id, 0)) for state in view.saved_states())


def forget_snapshot(name: str, transaction: Transaction) -> None:
    """Forget a snapshot; `NotFoundError` lists the names of all."""
    transaction.delete_state(transaction.saved_state(sanitize(name).strip()))


def return_to_snapshot(name: str, transaction: Transaction) -> IndexSnapshot:
    """Make the index what it was in a snapshot; `NotFoundError` lists the names of all."""
    state = transaction.saved_state(sanitize(name).strip())
    gone_documents = transaction.restore(state)
    transaction.outdate_answers(gone_documents)
    return _snapshot(state, transaction.kept_bytes().get(state.id, 0))


def _snapshot(state: SavedState, kept_bytes: int) -> IndexSnapshot:
    created_at = datetime.fromtimestamp(state.created_at, UTC)
    return IndexSnapshot(name=state.name, created_at=created_at, kept_bytes=kept_bytes)
