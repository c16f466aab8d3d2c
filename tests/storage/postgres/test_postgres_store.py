"""The PostgreSQL store keeps the promises of the port, and its own."""

import contextlib
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import (
    ConfigError,
    CorruptError,
    LightRAG,
    LightRAGError,
    LockedError,
    StorageError,
    VersionError,
)
from lightrag_jsonl.core.address import as_address
from lightrag_jsonl.storage.filters import Condition
from lightrag_jsonl.storage.opening import has_index
from lightrag_jsonl.storage.rows import EntityRow
from lightrag_jsonl.storage.store import Store
from lightrag_jsonl.storage.vector_index import VectorIndex
from tests.cli.conftest import run
from tests.kit import store_at
from tests.storage.contract import StoreContract, put_sample, stored_content
from tests.storage.postgres.conftest import PASSWORD
from tests.storage.test_matching import (  # noqa: F401
    Documents,
    check_conditions,
    check_terms,
    condition_lists,
    deleted_rows,
    documents,
    passage_lists,
    put,
    test_no_term_is_taken_for_a_query,
    test_own_fields_hold_texts,
    test_the_rarer_term_weighs_more,
    test_values_are_compared_with_those_of_their_kind,
)

Url = Callable[[object], str]


@pytest.fixture(scope="module")
def store(
    owned_url: Callable[[object, object], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A store of this test process; each test puts other documents into it."""
    address = owned_url("matching", tmp_path_factory.mktemp("matching"))
    with contextlib.closing(store_at(address)) as opened:
        yield opened


class TestPostgresStore(StoreContract):
    """The PostgreSQL store keeps the promises of the storage port."""

    @pytest.fixture(autouse=True)
    def opened(self, url: Url) -> Iterator[None]:
        """Close what a test opened."""
        with contextlib.ExitStack() as self.stack:
            self.url = url
            yield

    def make(self, folder: Path) -> Store:
        """The store of this name."""
        return self.stack.enter_context(contextlib.closing(store_at(self.url(folder))))


def psql(address: str, *statements: str) -> list[Any]:
    """Run statements as another program would; the rows of the last one."""
    from lightrag_jsonl.storage.postgres.connection import configure, connect

    database = as_address(address)
    with contextlib.closing(connect(database)) as connection:  # type: ignore[arg-type]
        configure(connection, database)  # type: ignore[arg-type]
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


few_examples = settings(max_examples=40, deadline=None)  # SQLite's tests have more


@few_examples
@given(documents, condition_lists)
def test_the_database_agrees_with_python(
    store: Store, contents: Documents, all_conditions: list[Condition]
) -> None:
    """Whatever the conditions and the documents are."""
    check_conditions(store, contents, all_conditions)


@few_examples
@given(passage_lists, deleted_rows, st.booleans())
def test_each_term_finds_its_chunks(
    store: Store, given_texts: list[str], deleted: set[int], rebuilt: bool
) -> None:
    """Also after deletions, and when all terms were made anew."""
    check_terms(store, given_texts, deleted, rebuilt)


def test_words_have_the_scores_that_sqlite_gives_them(store: Store, tmp_path: Path) -> None:
    """BM25 is the same in both stores, for words, accents, beginnings and Chinese."""
    texts = [
        "Curie found radium",
        "Curie, Curie and a café",
        "居里夫人发现了镭",
        "镭和钋",
        "Cafe now",
    ]
    texts += [f"number {n} of several" for n in range(9)]
    texts.append(" ".join(["Curie", *[f"word{n}" for n in range(500)], "radium and curie"]))
    other = store_at(tmp_path)
    terms = ["curie", "café", "radium", "镭*", "居里", "several"]
    found = []
    for one in (store, other):
        put(one, [{"text": text} for text in texts])  # type: ignore[arg-type]
        with one.snapshot() as snapshot:
            allowed = snapshot.search_terms(terms, 99, allowed=[1, 3, 7])
            found.append((snapshot.term_counts(terms), snapshot.search_terms(terms, 99), allowed))
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[0][1:], found[1][1:], strict=True):
        assert [row for row, _ in ours] == [row for row, _ in theirs]
        assert np.allclose([s for _, s in ours], [s for _, s in theirs], rtol=1e-12)


def test_a_word_without_an_end_costs_its_chunk_nothing(store: Store) -> None:
    """PostgreSQL cannot index words of megabytes; they are found by their beginning."""
    put(store, [{"text": f"{'x' * 100_000} ann"}])  # type: ignore[arg-type]
    with store.snapshot() as snapshot:
        assert snapshot.search_terms(["ann"], 9) and snapshot.search_terms(["x" * 300], 9)
    assert store.check() == []


def test_many_vectors_are_searched_by_an_index(url: Url, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of rows HNSW finds what an exact search finds, with filters of all sizes."""
    from lightrag_jsonl.storage.postgres import vectors as postgres_vectors

    monkeypatch.setattr(postgres_vectors, "EXACT_ROWS", 100)
    matrix = np.random.default_rng(1).normal(size=(600, 16)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    rows = np.arange(1, 601)
    with contextlib.closing(store_at(url("hnsw"))) as store:
        with store.transaction() as transaction:
            transaction.put_graph_rows("entity", [EntityRow(n, f"e{n}") for n in rows.tolist()])
            vectors = zip(rows.tolist(), matrix, strict=True)
            transaction.put_vectors("entity", {row: (b"d", one) for row, one in vectors})
        found = psql(url("hnsw"), "SELECT indexname FROM pg_indexes WHERE indexname LIKE '%_16'")
        assert found == [("entity_vectors_16",)]
        with store.snapshot() as snapshot:
            vectors = snapshot.vectors_by_kind["entity"]
            stored = vectors.matrix(rows)
            for allowed in (None, rows[::4], rows[4::60]):
                ids, scores = vectors.search(matrix[:3], 20, allowed)
                exact = matrix[:3] @ stored[(rows if allowed is None else allowed) - 1].T
                best = -np.sort(-exact, axis=1)[:, :20]
                assert ids.shape == best.shape and np.allclose(scores, best, atol=1e-5)


def test_equal_rows_have_equal_neighbors_in_both_stores(url: Url, tmp_path: Path) -> None:
    """The nearest vectors and all scores are those of a folder, ties by row id, for many queries: in
    memory and, with nothing in memory, in the database.
    """
    chance = np.random.default_rng(2)
    matrix = chance.normal(size=(300, 8)).astype(np.float32)
    matrix[200:250] = matrix[:50]
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    queries = matrix[chance.integers(0, 300, 150)] + np.float32(0.01)
    rows = np.arange(1, 301)
    results: list[tuple[Any, ...]] = []
    with contextlib.ExitStack() as stores:
        in_memory = url("equal")
        in_database = f"{url('equal in database')}&graph=database"
        for name in (in_memory, in_database, str(tmp_path)):
            store = stores.enter_context(contextlib.closing(store_at(name)))
            with store.transaction() as transaction:
                entities = [EntityRow(row, f"e{row}") for row in rows.tolist()]
                transaction.put_graph_rows("entity", entities)
                vectors = zip(rows.tolist(), matrix, strict=True)
                transaction.put_vectors("entity", {row: (b"d", vector) for row, vector in vectors})
            with store.snapshot() as snapshot:
                search = snapshot.vectors_by_kind["entity"]
                near = search.search(queries, 12)
                near_allowed = search.search(queries, 12, rows[::7])
                results.append((*near, *near_allowed, search.scores(queries, rows)))
    for memory, database, sqlite in zip(*results, strict=True):
        assert np.array_equal(memory, sqlite)
        assert np.allclose(database, sqlite, atol=1e-6)


def test_vectors_are_in_memory_until_there_are_many(
    url: Url, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has searched before follows changes, the way from few vectors to many, and back."""
    from lightrag_jsonl.storage.postgres import vectors as postgres_vectors

    monkeypatch.setattr(postgres_vectors, "EXACT_ROWS", 20)
    matrix = np.eye(32, dtype=np.float32)

    def put(store: Store, rows: range) -> None:
        with store.transaction() as transaction:
            entities = [EntityRow(row, f"e{row}") for row in rows]
            transaction.put_graph_rows("entity", entities)
            vectors = {row: (b"d", matrix[row]) for row in rows}
            transaction.put_vectors("entity", vectors)

    with contextlib.ExitStack() as stores:
        writer, reader = (
            stores.enter_context(contextlib.closing(store_at(url("growing")))) for _ in range(2)
        )
        for rows, is_in_memory in ((range(1, 11), True), (range(11, 31), False)):
            put(writer, rows)
            with reader.snapshot() as snapshot:
                search = snapshot.vectors_by_kind["entity"]
                assert isinstance(search, VectorIndex) == is_in_memory
                nearest, scores = search.search(matrix[rows.start : rows.stop], 1)
                assert nearest.ravel().tolist() == [*rows] and np.allclose(scores, 1)
        with writer.transaction() as transaction:
            transaction.delete_graph_rows("entity", range(1, 20))
        with reader.snapshot() as snapshot:
            assert isinstance(snapshot.vectors_by_kind["entity"], VectorIndex)
            nearest, _ = snapshot.vectors_by_kind["entity"].search(matrix[20:21], 30)
            assert sorted(nearest[0].tolist()) == [*range(20, 31)] and nearest[0, 0] == 20


def test_lost_connections_are_replaced(url: Url) -> None:
    """After a restart of the server, the first question is answered, not refused."""
    with contextlib.closing(store_at(url("lost"))) as store:
        with contextlib.ExitStack() as entered:
            views = [entered.enter_context(store.view()) for _ in range(3)]
            connections = [view.dialect.connection.info.backend_pid for view in views]
        # Only this test's own: tests of another process use the same server.
        psql(url("lost"), f"SELECT pg_terminate_backend(pid) FROM unnest(ARRAY{connections}) pid")
        assert store.is_empty()


def test_a_view_survives_a_statement_that_fails(url: Url) -> None:
    """The error says where; what was sent before it is answered, and the next view works."""
    with contextlib.closing(store_at(url("failing"))) as store:
        with pytest.raises(StorageError, match="failing_table"), store.view() as view:
            settings = view.dialect.execute("SELECT name FROM settings")
            missing = view.dialect.execute("SELECT 1 FROM failing_table")
            assert list(settings)
            list(missing)
        with pytest.raises(StorageError, match="failing_table"), store.view() as view:
            view.dialect.execute("SELECT 1 FROM failing_table")  # and nobody reads it
        with pytest.raises(StorageError, match="read-only"), store.view() as view:
            list(view.dialect.execute("DELETE FROM settings RETURNING name"))
        assert store.is_empty() and store.check() == []


def test_vectors_that_pgvector_cannot_index_are_refused(url: Url) -> None:
    """The error says how long they may be, before anything is stored."""
    with contextlib.closing(store_at(url("long"))) as store:
        with pytest.raises(ConfigError, match="4,000"), store.transaction() as transaction:
            transaction.put_cached_vectors({b"x": np.ones(4_001, np.float32)})
        with store.view() as view:
            assert not view.cached_vectors()


def test_check_finds_a_wrong_full_text(url: Url) -> None:
    """A posting that is gone is reported, and `rebuild_terms` brings it back."""
    with contextlib.closing(store_at(url("check"))) as store:
        with store.transaction() as transaction:
            put_sample(transaction, 1)
        assert store.check() == []
        psql(url("check"), "DELETE FROM postings WHERE term = 'radium' AND part = 1024")
        assert len(store.check()) == 1
        with store.transaction() as transaction:
            transaction.rebuild_terms()
        assert store.check() == []


def test_what_is_no_index_is_refused(url: Url) -> None:
    """A missing index, one of another format, and another program's schema, each in its words."""
    missing = url("missing")
    with pytest.raises(StorageError, match="there is no index"):
        store_at(missing, create=False)
    assert not has_index(as_address(missing))
    psql(missing, "CREATE SCHEMA IF NOT EXISTS " + missing.rpartition("=")[2])
    assert not has_index(as_address(missing))
    store_at(missing).close()
    psql(missing, "UPDATE settings SET value = '1' WHERE name = 'format'")
    with pytest.raises(VersionError, match=r"has the format 1, .* insert the documents again"):
        store_at(missing)
    psql(missing, "DROP TABLE settings CASCADE")
    with pytest.raises(CorruptError, match="another program"):
        store_at(missing)


def test_who_may_only_read_can_ask_but_not_write(url: Url) -> None:
    """A role without the right to insert opens the index, and is told so when it writes."""
    with contextlib.closing(store_at(url("reader"))) as store:
        with store.transaction() as transaction:
            put_sample(transaction, 1)
        expected = stored_content(store)
    schema = url("reader").rpartition("=")[2]
    psql(
        url("reader"),
        "DROP ROLE IF EXISTS visitor",
        "CREATE ROLE visitor LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO visitor",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO visitor",
    )
    address = url("reader").replace("//postgres:", "//visitor:")
    with contextlib.closing(store_at(address)) as store:
        assert store.read_only and stored_content(store) == expected
        with pytest.raises(StorageError, match="can only be read"), store.transaction():
            pass
    psql(url("reader"), "DROP OWNED BY visitor", "DROP ROLE visitor")


def test_a_lock_that_was_lost_stops_its_writer(url: Url) -> None:
    """When the server ends the connection that holds the lock, nothing more is written under it."""
    with contextlib.closing(store_at(url("lost"))) as store:
        other = store_at(url("lost"))
        with contextlib.closing(other), store.writer_lock(0):
            with pytest.raises(LockedError, match="process"), other.writer_lock(0):
                pass
            psql(
                url("lost"),
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                f"AND objid::int4 = hashtext('{url('lost').rpartition('=')[2]}')",
            )
            lost = pytest.raises(StorageError, match="was lost")
            with other.writer_lock(5), lost, store.transaction():
                pass
        with store.transaction() as transaction:
            put_sample(transaction, 1)
        assert not store.is_empty()


def test_the_password_is_never_shown(
    url: Url, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in texts of objects nor in errors, logs, traces or what the command line prints."""
    caplog.set_level(logging.DEBUG)
    shown: list[object] = []
    with LightRAG(url("secret")) as rag:
        rag.insert("Ann met Bob in Paris.")
        answer = rag.query("Whom did Ann meet?")
        assert "Bob" in answer.text
        shown += [repr(rag), repr(rag.engine), rag.working_dir, repr(rag.working_dir), rag.status()]
        shown += [
            rag.traces.page(str(answer.trace_id)),
            rag.admin.settings(),
            vars(rag.engine.store),
        ]
    failing = [
        lambda: rag.status(),
        lambda: LightRAG(url("secret"), language="zh"),
        lambda: LightRAG(f"postgresql://a:{PASSWORD}@127.0.0.1:9/b"),
        lambda: LightRAG(f"postgresql://a:{PASSWORD}@127.0.0.1:port/b?password={PASSWORD}"),
        lambda: LightRAG(f"postgresql://a:{PASSWORD}@b/c?unknown={PASSWORD[:0]}"),
        lambda: LightRAG(f"postgresql://a:{PASSWORD}@b/c?index=pg_catalog"),
    ]
    for fail in failing:
        with pytest.raises(LightRAGError) as caught:
            fail()
        shown += traceback.format_exception(caught.value)
    for command in (
        ["doctor", "--json"],
        ["status"],
        ["delete", "none"],
        ["query", "--json", "A?"],
    ):
        result = run(command[0], "-w", url("secret"), *command[1:])
        shown += [result.output, result.stderr]
    assert json.loads(result.stdout)["text"]
    assert PASSWORD not in "\n".join([*map(str, shown), caplog.text, *capsys.readouterr()])
