"""Writes many rows in one statement.

Python's SQLite module releases the interpreter lock for each statement it runs. If other threads
are busy, getting it back takes milliseconds, so a thousand statements would take seconds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

AT_ONCE = 64  # rows in one statement at the most
VARIABLES = 999  # of one statement, in the oldest SQLite
STATEMENTS = 256  # compiled statements cached by a connection; each use of `put_rows` has seven


def put_rows(
    connection: sqlite3.Connection, into: str, rows: Iterable[Sequence[Any]], *, then: str = ""
) -> None:
    """Run the statement `into` (the part before VALUES) for all rows; `then` follows the values.

    All rows have the same length. Each statement takes a power of two of rows, so that few
    different statements are compiled.
    """
    waiting = list(rows)
    if not waiting:
        return
    width = len(waiting[0])
    marks = f"({', '.join('?' * width)})"
    for some in _pieces(waiting, min(AT_ONCE, VARIABLES // width)):
        values = ", ".join([marks] * len(some))
        connection.execute(f"{into} VALUES {values} {then}", list(chain.from_iterable(some)))


def delete_rows(
    connection: sqlite3.Connection, table: str, column: str, values: Iterable[int | str]
) -> int:
    """Delete the rows whose `column` has one of these values; returns how many there were."""
    wanted = json.dumps(sorted(values), ensure_ascii=False)
    return connection.execute(
        f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (wanted,)
    ).rowcount


def _pieces(rows: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    """The rows in pieces whose lengths are powers of two, at most `most`."""
    start, length = 0, 1 << (most.bit_length() - 1)
    while start < len(rows):
        while length > len(rows) - start:
            length //= 2
        yield rows[start : start + length]
        start += length
