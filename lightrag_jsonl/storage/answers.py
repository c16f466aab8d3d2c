"""Stored answers for reuse: each with its question's vector, for one generation of the index."""

from __future__ import annotations

import sqlite3

import numpy as np

from lightrag_jsonl.protocols import Vectors

KEPT = 1_000  # of more, the oldest are deleted


def kept(
    connection: sqlite3.Connection, signature: str, generation: int
) -> tuple[list[tuple[str, str]], Vectors]:
    """A signature's (question, answer as JSON) pairs, oldest first, and their vectors, shape (n, dim)."""
    rows = connection.execute(
        "SELECT question, answer, vector FROM answers "
        "WHERE signature = ? AND generation = ? ORDER BY id",
        (signature, generation),
    ).fetchall()
    matrix = np.frombuffer(b"".join(row[2] for row in rows), np.float32)
    return [row[:2] for row in rows], matrix.reshape(len(rows), -1 if rows else 0)


def keep(
    connection: sqlite3.Connection,
    *,
    signature: str,
    generation: int,
    question: str,
    vector: Vectors,
    answer: str,
) -> None:
    """Store an answer (JSON); those of other generations, and all but the newest `KEPT`, are deleted."""
    connection.execute("DELETE FROM answers WHERE generation <> ?", (generation,))
    connection.execute(
        "INSERT INTO answers (generation, signature, question, vector, answer) "
        "VALUES (?, ?, ?, ?, ?)",
        (generation, signature, question, vector.tobytes(), answer),
    )
    connection.execute("DELETE FROM answers WHERE id <= (SELECT max(id) FROM answers) - ?", (KEPT,))
