"""Cached model answers, answers for reuse, and settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage.sqlite.connection import ConnectionReader, ConnectionWriter

RECENT = 2_000  # keys in the small table, until they are moved to the large one
ANSWERS_KEPT = 1_000  # for reuse; of more, the oldest are deleted
SINGLE = "<f4"  # float32, little endian
FOUND = """id = coalesce((SELECT completion FROM recent_keys WHERE number = ?1),
    (SELECT completion FROM completion_keys WHERE number = ?1)) AND key = ?2"""


class CacheReader(ConnectionReader):
    """Reads what was paid for, and settings."""

    def completion(self, key: bytes) -> Completion | None:
        """The cached answer of the request with this key."""
        columns = "text, finish, input_tokens, output_tokens, cached_tokens, calls"
        query = f"SELECT {columns} FROM completions WHERE {FOUND}"
        for text, finish, *tokens in self._rows(query, _number(key), key):
            return Completion(text, finish, Usage(*tokens))
        return None

    def completion_stats(self) -> tuple[int, int]:
        """The number of cached answers, and their size in bytes."""
        size = "coalesce(sum(length(CAST(text AS BLOB))), 0)"
        return self._rows(f"SELECT count(*), {size} FROM completions")[0]

    def reusable_answers(self, signature: str) -> list[tuple[str, Vectors, str]]:
        """(question, vector, answer as JSON) of the stored answers of this generation."""
        query = (
            "SELECT question, vector, answer FROM reusable_answers "
            "WHERE signature = ? AND generation = ? ORDER BY id"
        )
        return [
            (question, np.frombuffer(vector, SINGLE).astype(np.float32), answer)
            for question, vector, answer in self._rows(query, signature, self.generation)
        ]

    def settings(self) -> dict[str, str]:
        """What the index was built with, by name."""
        return dict(self._rows("SELECT name, value FROM settings ORDER BY name"))


class CacheWriter(CacheReader, ConnectionWriter):
    """Writes what was paid for, and settings."""

    def put_completion(
        self, key: bytes, completion: Completion, *, model: str, prompt: str, created_at: float
    ) -> None:
        """Cache a model's answer."""
        usage = completion.usage
        tokens = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.calls)
        number = _number(key)
        self.connection.execute(f"DELETE FROM completions WHERE {FOUND}", (number, key))
        row = self.connection.execute(
            "INSERT INTO completions (key, model, prompt, text, finish, input_tokens, "
            "output_tokens, cached_tokens, calls, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (key, model, prompt, completion.text, completion.finish, *tokens, created_at),
        ).lastrowid
        self.connection.execute("INSERT OR REPLACE INTO recent_keys VALUES (?, ?)", (number, row))
        if row and row % RECENT == 0:
            self.connection.execute(
                "INSERT OR REPLACE INTO completion_keys SELECT * FROM recent_keys ORDER BY number"
            )
            self.connection.execute("DELETE FROM recent_keys")

    def delete_completions(self, keys: Collection[bytes] | None = None) -> int:
        """Delete answers, all (also those for reuse) or those with these keys; returns how many."""
        if keys is not None:  # what leads to them may stay: the key of what it finds is compared
            query = f"DELETE FROM completions WHERE {FOUND}"
            values = [(_number(key), key) for key in keys]
            return self.connection.executemany(query, values).rowcount
        for table in ("recent_keys", "completion_keys", "reusable_answers"):
            self.connection.execute(f"DELETE FROM {table}")
        return self.connection.execute("DELETE FROM completions").rowcount

    def put_reusable_answer(
        self,
        signature: str,
        question: str,
        vector: Vectors,
        answer: str,
        *,
        generation: int | None = None,
    ) -> None:
        """Store an answer for similar questions, if the index is still of this generation."""
        current = self.generation
        if generation not in (None, current):
            return
        self.connection.execute("DELETE FROM reusable_answers WHERE generation < ?", (current,))
        row = self.connection.execute(
            "INSERT INTO reusable_answers (generation, signature, question, vector, answer) "
            "VALUES (?, ?, ?, ?, ?)",
            (current, signature, question, vector.astype(SINGLE).tobytes(), answer),
        ).lastrowid
        oldest = (row or 0) - ANSWERS_KEPT
        self.connection.execute("DELETE FROM reusable_answers WHERE id <= ?", (oldest,))

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Record what the index was built with."""
        self.connection.executemany(
            "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "
            "value = excluded.value",
            settings.items(),
        )


def _number(key: bytes) -> int:
    """64 bits of the hash of a key; should two keys share them, the later answer is kept."""
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big", signed=True)
