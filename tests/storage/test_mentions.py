"""The mentions kept in memory: found from either side, and the same as those in the database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.mentions import Mentions
from lightrag_jsonl.storage.snapshot import SnapshotKeeper

PAIRS = st.sets(st.tuples(st.integers(1, 9), st.integers(1, 9)))


@given(PAIRS, st.lists(st.integers(0, 10), unique=True))
def test_both_sides_agree_with_the_pairs(pairs: set[tuple[int, int]], wanted: list[int]) -> None:
    """Entities give their chunks and chunks their entities, in the order asked for."""
    table = Mentions.of(*np.array(sorted(pairs), np.int64).reshape(-1, 2).T)
    rows = np.array(wanted, np.int64)
    by_entity = [(e, c) for one in wanted for e, c in sorted(pairs) if e == one]
    by_chunk = [(e, c) for one in wanted for e, c in sorted(pairs) if c == one]
    which, chunks = table.of_entities(rows)
    assert list(zip(rows[which], chunks, strict=True)) == by_entity
    which, entities = table.of_chunks(rows)
    assert list(zip(entities, rows[which], strict=True)) == by_chunk
    assert table.counts(rows).tolist() == [sum(e == one for e, _ in pairs) for one in wanted]


def test_they_follow_inserts_deletes_and_merges(tmp_path: Path) -> None:
    """After every change, what was kept up to date equals what is read anew."""
    database = Database(tmp_path / "kb")
    keeper = SnapshotKeeper(database)

    def check() -> None:
        with keeper.snapshot() as kept, SnapshotKeeper(database).snapshot() as fresh:
            assert np.array_equal(kept.mentions().all, fresh.mentions().all)

    with LightRAG(tmp_path / "kb") as rag:
        check()
        rag.insert(Document("Marley knew Scrooge. Scrooge knew Bob Cratchit.", id="a"))
        check()
        rag.insert(Document("Old Marley visited Scrooge in London.", id="b"))
        check()
        names = sorted(rag.graph)
        rag.merge_entities(names[:2], into="Somebody")
        check()
        rag.unmerge(names[0])
        check()
        rag.update(Document("Old Marley visited Bob Cratchit in Camden Town.", id="b"))
        check()
        rag.delete("a")
        check()
    database.close()
