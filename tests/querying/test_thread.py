"""Short searches run where they are asked for, all others beside the event loop."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG, StorageError
from lightrag_jsonl.querying.thread import SHORT_SECONDS, SearchThread
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import SnapshotKeeper


def _long() -> int:
    time.sleep(2 * SHORT_SECONDS)
    return threading.get_ident()


async def test_only_what_follows_a_short_search_runs_at_once() -> None:
    """The first one, one that has to wait, and one after a long one change threads."""
    threads, here = SearchThread(), threading.get_ident()
    assert await threads.run(threading.get_ident, ready=True) != here
    assert await threads.run(threading.get_ident, ready=True) == here
    assert await threads.run(threading.get_ident) != here
    assert await threads.run(_long, ready=True) == here
    assert await threads.run(_long, ready=True) != here
    assert await threads.run(threading.get_ident, ready=True) != here
    threads.close()
    with pytest.raises(StorageError, match="closed"):
        await threads.run(threading.get_ident, ready=True)


def test_an_index_is_ready_where_nothing_is_to_be_loaded_or_waited_for(tmp_path: Path) -> None:
    """A commit, and whoever looks at the snapshot, send the next search to its own thread."""
    database = Database(tmp_path)
    keeper = SnapshotKeeper(database)

    def look() -> None:
        with keeper.snapshot():
            pass

    states = [keeper.state()]
    with LightRAG(tmp_path) as rag:
        rag.insert(Document("Scrooge was Marley's partner.", id="partners"))
        states.append(keeper.state())
        look()
        states.append(keeper.state())
        with keeper.snapshot():
            other = threading.Thread(target=lambda: states.append(keeper.state()))
            other.start()
            other.join()
        rag.delete("partners")
        states.append(keeper.state())
        look()
        states.append(keeper.state())
    database.close()
    assert states == ["empty", "behind", "ready", "behind", "empty", "empty"]
