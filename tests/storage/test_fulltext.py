"""The full text finds exactly the chunks that hold a term, whatever was stored and deleted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl.core.text import index_terms
from lightrag_jsonl.core.types import Chunk, Extraction
from lightrag_jsonl.storage.rows import StoredChunk, StoredDocument
from lightrag_jsonl.storage.sqlite.database import SQLiteStore
from lightrag_jsonl.storage.store import Transaction

WORDS = (
    "Ann",
    "ANN",
    "O'Brien",
    "café",
    "12",
    "１２",
    "or",
    "NOT",
    "镭",
    "发现了镭",
    "东京タワー",
    "서울",
    "🙂",
)
texts = st.lists(st.sampled_from((*WORDS, " ", "，", ". ")), max_size=8).map(" ".join)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SQLiteStore:
    """A store; each example puts other chunks into it."""
    return SQLiteStore(tmp_path_factory.mktemp("full-text"))


def put_texts(transaction: Transaction, given_texts: list[str]) -> None:
    """Store documents of one chunk each, with row ids from 1."""
    for row, text in enumerate(given_texts, start=1):
        transaction.put_document(
            StoredDocument(row, f"d{row}", None, None, None, {}, "", "done", 0, 1.0), ()
        )
        chunk = Chunk(f"c{row}", f"d{row}", 0, 1, 0, len(text), text)
        transaction.put_chunks([StoredChunk(row, row, chunk, 1.0, Extraction())])


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, max_size=6), st.sets(st.integers(1, 6)), st.booleans())
def test_each_term_finds_its_chunks(
    store: SQLiteStore, given_texts: list[str], deleted: set[int], rebuilt: bool
) -> None:
    """Also the beginnings of terms, some of the chunks only, and after deletions."""
    with store.transaction(durable=False) as transaction:
        transaction.delete_documents(range(1, 9))
        put_texts(transaction, given_texts)
        transaction.delete_documents(deleted)
        if rebuilt:
            transaction.rebuild_terms()
    rows = set(range(1, len(given_texts) + 1)) - deleted
    terms = {row: set(index_terms(given_texts[row - 1])) for row in rows}
    with store.snapshot() as snapshot:
        for term in set().union(*terms.values(), {"none"}):
            having = {row for row, held in terms.items() if term in held}
            assert {row for row, _ in snapshot.search_terms([term], 99)} == having
            assert snapshot.term_counts([term]) == {term: len(having)}
            start = f"{term[0]}*"
            beginning = {row for row, held in terms.items() if any(t[0] == term[0] for t in held)}
            assert {row for row, _ in snapshot.search_terms([start], 99, allowed=[1, 2])} == (
                beginning & {1, 2}
            )
            assert snapshot.term_counts([start]) == {start: len(beginning)}


def test_the_rarer_term_weighs_more(store: SQLiteStore) -> None:
    """The ranking is that of BM25; equal chunks are in the order of their row ids."""
    with store.transaction(durable=False) as transaction:
        transaction.delete_documents(range(1, 9))
        put_texts(transaction, ["ann bob", "bob cid", "ann bob", "dan eve", "dan eve"])
    with store.snapshot() as snapshot:
        found = snapshot.search_terms(["bob", "cid"], 9)
        assert [row for row, _ in found] == [2, 1, 3] and found[1][1] == found[2][1] > 0
        assert snapshot.search_terms(["bob", "cid"], 1) == found[:1]


@pytest.mark.parametrize("term", ['"', '"; DROP', "a b", "*", "NEAR(", "col:x", "'", "-x", ""])
def test_no_term_is_taken_for_a_query(store: SQLiteStore, term: str) -> None:
    """Whatever is looked for, it is a term and no operator of the query language."""
    with store.transaction(durable=False) as transaction:
        transaction.delete_documents(range(1, 9))
        put_texts(transaction, ["ann", "bob"])
    with store.snapshot() as snapshot:
        assert snapshot.search_terms([term], 9) == []
        assert snapshot.search_terms([term, "ann"], 9)[0][0] == 1
