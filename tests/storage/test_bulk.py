"""Many rows in one statement: the same rows as one by one, in few statements."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.storage.bulk import AT_ONCE, put_rows

ROWS = st.lists(st.tuples(st.integers(0, 40), st.text(max_size=3)), max_size=3 * AT_ONCE)


@given(ROWS)
def test_rows_arrive_as_one_by_one(rows: list[tuple[int, str]]) -> None:
    """With a conflict clause too, where the last of a repeated key counts."""
    then = "ON CONFLICT (id) DO UPDATE SET told = excluded.told"
    tables = []
    for at_once in (False, True):
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, told TEXT)")
        if at_once:
            put_rows(connection, "INSERT INTO t", rows, then=then)
        else:
            connection.executemany(f"INSERT INTO t VALUES (?, ?) {then}", rows)
        tables.append(connection.execute("SELECT * FROM t ORDER BY id").fetchall())
        connection.close()
    assert tables[0] == tables[1]


@given(st.integers(0, 1_000), st.integers(1, 998))
def test_few_statements_and_few_kinds_of_them(count: int, width: int) -> None:
    """Each has a power of two rows, and no more variables than any SQLite takes."""
    connection = sqlite3.connect(":memory:")
    columns = ", ".join(f"c{number}" for number in range(width))
    connection.execute(f"CREATE TABLE t ({columns})")
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    put_rows(connection, "INSERT INTO t", [(7,) * width] * count)
    connection.set_trace_callback(None)
    sizes = [text.count("(") for text in asked if text.startswith("INSERT")]
    most = min(AT_ONCE, 999 // width)
    assert sum(sizes) == count == connection.execute("SELECT count(*) FROM t").fetchone()[0]
    assert all(size & (size - 1) == 0 and size <= most for size in sizes)
    assert len(sizes) <= count / (most / 2) + AT_ONCE.bit_length()
    connection.close()
