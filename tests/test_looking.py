"""Looking into an index from an event loop, which goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import AsyncLightRAG, Document
from lightrag_jsonl.storage.database import FILE_NAME, Database
from lightrag_jsonl.testing import HashEmbedder


async def test_no_look_at_an_index_holds_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large index a look may take seconds, so each has a thread of its own."""
    looking: list[str] = []
    reading = Database.reading

    @contextlib.contextmanager
    def noted(database: Database, **how: Any) -> Iterator[sqlite3.Connection]:
        looking.append(threading.current_thread().name)
        with reading(database, **how) as connection:
            yield connection

    async with AsyncLightRAG(tmp_path, embedder=HashEmbedder(dim=16)) as rag:
        await rag.insert(Document("Marie Curie discovered radium in Paris.", id="curie"))
        trace = (await rag.query("What did Marie Curie discover?")).trace_id
        monkeypatch.setattr(Database, "reading", noted)
        assert (await rag.status()).chunks == 1
        assert [one.id for one in await rag.documents()] == ["curie"]
        assert [page.number for page in await rag.pages("curie")] == [1]
        assert await rag.rejections() == [] and await rag.records()
        assert (await rag.cache_stats()).embeddings
        assert [one.id for one in await rag.traces()] == [trace]
        found = await rag.trace(trace)
        assert (await rag.sources(found)).chunks
        assert "<html" in await rag.trace_html(trace)
        assert "radium" in await rag.export_trace(trace, with_source=True)
        assert (await rag.document_origins("curie")).chunks
        assert await rag.verify() == ()
    assert len(looking) == 13 and threading.main_thread().name not in looking


async def test_a_look_that_outlives_its_database_leaves_nothing_open(tmp_path: Path) -> None:
    """Who closes beside it is told nothing, and SQLite's files go with the last connection."""
    begun, closed = threading.Event(), threading.Event()

    def look(connection: sqlite3.Connection) -> int:
        begun.set()
        closed.wait(10)
        return int(connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    database = Database(tmp_path)
    looking = asyncio.create_task(database.read(look))
    await asyncio.to_thread(begun.wait, 10)
    database.close()
    assert (tmp_path / f"{FILE_NAME}-wal").exists()
    closed.set()
    assert await looking == 0
    assert not (tmp_path / f"{FILE_NAME}-wal").exists()
