"""The snapshots of an index over HTTP, and what differs between two states."""

from typing import Annotated

from msgspec import Meta, Struct

from lightrag_jsonl.core.snapshots import IndexSnapshot, StateDifference
from lightrag_jsonl.server.routing import Call

SnapshotName = Annotated[str, Meta(min_length=1, max_length=255)]


class DiffParams(Struct, forbid_unknown_fields=True):
    """The snapshot `before`, and the snapshot `after`, or now."""

    before: SnapshotName
    after: SnapshotName | None = None


async def get_snapshots(call: Call) -> list[IndexSnapshot]:
    """The snapshots, the oldest first, with the bytes that are kept for each."""
    return list(await call.index.rag.admin.snapshots())


async def get_difference(call: Call) -> StateDifference:
    """What differs between two states: documents, entities, relations, claims and merges of names."""
    params: DiffParams = call.params
    return await call.index.rag.admin.diff(params.before, params.after)
