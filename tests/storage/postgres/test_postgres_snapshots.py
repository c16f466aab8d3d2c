"""Snapshots in PostgreSQL: the same rows come back, and temporary copies are dropped."""

from collections.abc import Callable

import pytest

from lightrag_jsonl import Document
from lightrag_jsonl.storage.postgres import database
from lightrag_jsonl.storage.tables.base import only_column
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import index, problems, read_names
from tests.laws.test_rollback import all_rows

EVENTS = "SELECT trace, event FROM trace_events ORDER BY id"
COPIES = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname::text, 'copy-')"


async def test_a_rollback_leaves_every_row(url: Callable[[object], str]) -> None:
    """Back, forward and back again, after changes, deletions, edits and merges of names."""
    address = url("rollback")
    async with index(address, ScriptedLLM(read_names)) as rag:
        store = rag.engine.store
        await rag.insert([Document("Ann wrote to Bob.", id="a"), Document("Dan met Bob.", id="d")])
        await rag.admin.snapshot("before")
        before = all_rows(store)
        await rag.delete("d")
        await rag.insert([Document("Ann wrote to 居里.", id="a"), Document("Eva met Ann.", id="e")])
        await rag.entities.edit("Ann", description="A writer.", by="Eve")
        await rag.entities.merge(["Eva"], into="Ann")
        await rag.admin.snapshot("after")
        after = all_rows(store)
        for name, rows in (("before", before), ("after", after), ("before", before)):
            await rag.admin.rollback(name)
            assert all_rows(store) == rows
            assert problems(address, store) == []


async def test_a_difference_is_read_from_a_copy_that_goes(url: Callable[[object], str]) -> None:
    """Documents, entities and evidence of a snapshot and of now; a purge works on copies, too."""
    address = url("difference")
    llm = ScriptedLLM(read_names)
    async with index(address, llm) as rag:
        await rag.insert(Document("Ann knows Bob.", id="a"))
        await rag.insert(Document("Quixotry knows Bob.", id="secret"))
        await rag.admin.snapshot("before")
        await rag.insert(Document("Cid knows Bob.", id="c"))
        calls = len(llm.requests)
        difference = await rag.admin.diff("before", questions=["Who is Cid?"])
        assert len(llm.requests) == calls and difference.estimate.calls == 4
        assert [item.name for item in difference.documents] == ["c"]
        assert "Cid" in {item.name for item in difference.entities}
        assert len(difference.answers) == 1
        await rag.delete("secret", purge=True)
        await rag.admin.rollback("before")
        assert {document.id for document in await rag.documents()} == {"a"}
        assert await rag.admin.check(full=True) == []
        with rag.engine.store.view() as view:
            assert only_column(view.dialect.execute(COPIES)) == []


@pytest.mark.parametrize("order", ["relname", "relname DESC"])
async def test_a_copy_does_not_depend_on_the_order_of_tables(
    order: str, url: Callable[[object], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server names tables in any order; events refer to traces, and kept rows to snapshots."""
    monkeypatch.setattr(database, "TABLES_OF", f"{database.TABLES_OF} ORDER BY {order}")
    address = url(f"order {order}")
    async with index(address, ScriptedLLM(read_names)) as rag:
        await rag.insert([Document("Ann knows Bob.", id="a"), Document("Dan met Bob.", id="d")])
        await rag.query("Who knows Bob?")
        await rag.admin.snapshot("before")
        await rag.delete("d")
    async with index(address) as rag:  # all traces are written by now
        store = rag.engine.store
        with store.view() as view:
            events = list(view.dialect.execute(EVENTS))
        with store.temporary_copy() as copy:
            async with index(copy) as copied:
                with copied.engine.store.view() as view:
                    assert events and list(view.dialect.execute(EVENTS)) == events
