"""Vectors share rows of the database; by text and by owner each is found as if it had its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.errors import CorruptError
from lightrag_jsonl.protocols import Vectors
from lightrag_jsonl.storage import checks, embeddings, schema
from lightrag_jsonl.storage.embeddings import (
    BLOCK,
    PREFIX_BYTES,
    embedding_ids,
    load_vectors,
    put_embeddings,
    text_key,
)
from lightrag_jsonl.storage.vector_upkeep import (
    clear_unused_embeddings,
    count_embeddings,
    mend_embeddings,
)

DIM = 5
KEYS = [text_key("hash", f"text {number}") for number in range(3 * BLOCK)]
ALIKE = [
    KEYS[0][:PREFIX_BYTES] + text_key("other", str(number))[PREFIX_BYTES:] for number in (1, 2)
]


@contextlib.contextmanager
def database(*, format: int = schema.FORMAT) -> Iterator[sqlite3.Connection]:
    """The tables in memory; of format 2, those of the vectors as they were then."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create(connection)
        if format == 2:
            connection.execute("DROP TABLE vectors")
            connection.execute("DROP TABLE vector_keys")
            connection.execute("DROP TABLE earlier_summaries")
            connection.execute(
                "CREATE TABLE embeddings (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, "
                "vector BLOB NOT NULL)"
            )
        connection.execute("INSERT INTO settings VALUES ('dim', ?)", (str(DIM),))
        yield connection


def vector(key: bytes, dim: int = DIM) -> Vectors:
    """The vector that belongs to a key, of unit length as all that are stored."""
    numbers = np.random.default_rng(list(key)).standard_normal(dim)
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


def own(connection: sqlite3.Connection, number: int, embedding: int | None) -> None:
    """An entity that has a vector."""
    connection.execute(
        "INSERT INTO entities (id, key, name, type, description, tally, mentions, created_at, "
        "embedding) VALUES (?, ?, '', '', '', '', 1, 0, ?)",
        (number, str(number), embedding),
    )


def sound(connection: sqlite3.Connection) -> bool:
    """Whether rows and index fit together."""
    return not [one for one in checks.problems(connection) if "vectors" in one or "texts" in one]


@given(
    st.lists(st.lists(st.sampled_from(KEYS + ALIKE), unique=True), max_size=6),
    st.sets(st.sampled_from(KEYS + ALIKE)),
)
def test_each_vector_is_found_as_if_it_had_a_row(puts: list[list[bytes]], used: set[bytes]) -> None:
    """By its text and by its owner, however they came, after what is not in use was cleared, too."""
    with database() as connection:
        ids: dict[bytes, int] = {}
        for keys in puts:
            got = put_embeddings(connection, {key: vector(key) for key in keys})
            assert all(ids.setdefault(key, id) == id for key, id in got.items())
        assert len(set(ids.values())) == len(ids)
        assert embedding_ids(connection, KEYS + ALIKE) == ids and sound(connection)

        owned = {number: key for number, key in enumerate(sorted(used)) if key in ids}
        for number, key in owned.items():
            own(connection, number, ids[key])
        stored, unused = count_embeddings(connection)
        assert stored - unused == len(owned)
        for step in range(2):
            rows, matrix = load_vectors(connection, "entity", DIM)
            assert rows.tolist() == sorted(owned) and matrix.dtype == np.float32
            assert all(
                np.array_equal(matrix[place], vector(owned[row])) for place, row in enumerate(rows)
            )
            some, few = load_vectors(connection, "entity", DIM, {*list(owned)[::2], 999})
            assert some.tolist() == list(owned)[::2] and len(few) == len(some)
            if not step:
                assert clear_unused_embeddings(connection) == unused
                assert count_embeddings(connection) == (len(owned), 0)
        assert sound(connection)
        assert embedding_ids(connection, KEYS + ALIKE) == {key: ids[key] for key in owned.values()}


def test_what_was_stored_meanwhile_is_used() -> None:
    """Of two who embedded the same text the second finds the first one's vector; no row is added."""
    with database() as connection:
        first = put_embeddings(connection, {key: vector(key) for key in KEYS[:20]})
        again = put_embeddings(connection, {key: vector(key) for key in KEYS[10:30]})

        assert all(again[key] == first[key] for key in KEYS[10:20])
        assert count_embeddings(connection) == (30, 30)
        assert len({*first.values(), *again.values()}) == 30 and sound(connection)


def test_two_keys_that_begin_alike_are_never_taken_for_each_other() -> None:
    """Whichever is cleared, the others are found."""
    alike = [KEYS[0], *ALIKE]
    for going in alike:
        with database() as connection:
            ids: dict[bytes, int] = {}
            for number, key in enumerate(alike):
                ids |= put_embeddings(connection, {key: vector(key)})
                own(connection, number, None if key == going else ids[key])

            assert embedding_ids(connection, alike) == ids and len(set(ids.values())) == 3
            assert clear_unused_embeddings(connection) == 1
            del ids[going]
            assert embedding_ids(connection, alike) == ids and sound(connection)
            matrix = load_vectors(connection, "entity", DIM)[1]
            assert np.array_equal(matrix, np.array([vector(key) for key in ids]))


def test_a_vector_that_is_gone_is_left_out() -> None:
    """Its owner has none, the others have theirs; made anew, it is found again."""
    with database() as connection:
        ids = put_embeddings(connection, {key: vector(key) for key in KEYS})
        for number, key in enumerate(KEYS):
            own(connection, number, ids[key])
        own(connection, 500, None)
        own(connection, 501, 10_000)
        connection.execute("DELETE FROM vectors WHERE block = 2")

        rows, matrix = load_vectors(connection, "entity", DIM)
        kept = [number for number, key in enumerate(KEYS) if ids[key] // BLOCK != 2]
        assert rows.tolist() == kept and len(kept) == len(KEYS) - BLOCK
        assert np.array_equal(matrix, np.array([vector(KEYS[number]) for number in kept]))
        gone = [key for key in KEYS if key not in embedding_ids(connection, KEYS)]
        assert len(gone) == BLOCK
        anew = put_embeddings(connection, {key: vector(key) for key in gone})
        assert embedding_ids(connection, KEYS) == ids | anew


def test_rows_of_vectors_that_are_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners need not stand in the order of their vectors: each has its own, however many are read."""
    monkeypatch.setattr(embeddings, "READ", 1)
    with database() as connection:
        ids = put_embeddings(connection, {key: vector(key) for key in KEYS})
        keys = [*reversed(KEYS), *KEYS[::7]]
        for number, key in enumerate(keys):
            own(connection, number, ids[key])

        rows, matrix = load_vectors(connection, "entity", DIM)
        assert rows.tolist() == list(range(len(keys)))
        assert np.array_equal(matrix, np.array([vector(key) for key in keys]))


def test_damaged_vectors_are_an_error_that_says_what_to_do() -> None:
    """No wrong vector is made of what is left of them."""
    with database() as connection:
        own(connection, 1, put_embeddings(connection, {KEYS[0]: vector(KEYS[0])})[KEYS[0]])
        connection.execute("UPDATE vectors SET data = substr(data, 2)")
        with pytest.raises(CorruptError, match="doctor --repair"):
            load_vectors(connection, "entity", DIM)


def test_an_id_that_leads_nowhere_is_nobodys_once_mended() -> None:
    """The next vector may get it, and would stand for another text."""
    with database() as connection:
        ids = put_embeddings(connection, {KEYS[0]: vector(KEYS[0])})
        own(connection, 1, ids[KEYS[0]])
        own(connection, 2, ids[KEYS[0]] + BLOCK)
        assert mend_embeddings(connection, DIM) == 1
        connection.execute("UPDATE vectors SET data = substr(data, 2)")
        assert mend_embeddings(connection, DIM) == 1
        put_embeddings(connection, {KEYS[1]: vector(KEYS[1])})
        assert load_vectors(connection, "entity", DIM)[0].tolist() == []


@pytest.mark.parametrize("step", [1, 3, 40])
def test_vectors_of_format_2_keep_their_ids(step: int) -> None:
    """Also where some had been cleared; those of another embedder stay known by their texts."""
    keys = KEYS + ALIKE
    ids = {key: 1 + step * place for place, key in enumerate(keys)}
    others = keys[5::7]
    with database(format=2) as connection:
        connection.executemany(
            "INSERT INTO embeddings VALUES (?, ?, ?)",
            [
                (id, key, vector(key, 3 if key in others else DIM).tobytes())
                for key, id in ids.items()
            ],
        )
        for number, key in enumerate(keys):
            own(connection, number, None if key in others else ids[key])
        connection.execute("PRAGMA user_version = 2")
        schema.migrate(connection, 2)

        rows, matrix = load_vectors(connection, "entity", DIM)
        stay = [number for number, key in enumerate(keys) if key not in others]
        assert rows.tolist() == stay
        assert np.array_equal(matrix, np.array([vector(keys[number]) for number in stay]))
        found = embedding_ids(connection, keys)
        assert set(found) == set(keys) and sound(connection)
        assert all(found[keys[number]] == ids[keys[number]] for number in stay)
        for number, key in enumerate(others):
            own(connection, 100 + number, found[key])
        connection.execute("UPDATE entities SET embedding = NULL WHERE id < 100")
        matrix = load_vectors(connection, "entity", 3)[1]
        assert np.array_equal(matrix, np.array([vector(key, 3) for key in others]))
