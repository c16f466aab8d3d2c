"""Cached answers of models, and answers that similar questions may reuse."""

from collections.abc import Collection

import numpy as np

from lightrag_jsonl.core.protocols import Vectors
from lightrag_jsonl.core.types import Completion
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.storage.tables.base import (
    Tables,
    WritableTables,
    by_name,
    column_values,
    field_names,
    json_text,
    only_column,
)
from lightrag_jsonl.storage.tables.settings import SettingReads
from lightrag_jsonl.text.patterns import pattern_of

ANSWERS_KEPT = 1_000  # for similar questions; of more, the oldest are deleted
SINGLE = "<f4"  # float32, little endian
JSON_TEXT = pattern_of(r'"(?:[^"\\]|\\.)*"')
CHUNK_ID = pattern_of('"(chunk-[0-9a-f]{16})"')
OF_NO_DOCUMENT = """document IS NULL OR document NOT IN (
    SELECT name FROM documents UNION ALL SELECT name FROM pending)"""


class AnswerReads(SettingReads, Tables):
    """Reads answers."""

    def completion(self, key: bytes) -> Completion | None:
        """The cached answer of the request with this key."""
        numbers = ", ".join(field_names(Usage))
        statement = f"SELECT text, finish, {numbers} FROM completions WHERE key = ?"
        for text, finish, *usage in self.dialect.execute(statement, key):
            return Completion(self.dialect.unpack_text(text), finish, Usage(*usage))
        return None

    def completion_keys(self) -> dict[bytes, str | None]:
        """The keys of all cached answers, oldest first, each with the id of the document that the
        request quoted; None if there may have been several.
        """
        return dict(self.dialect.execute("SELECT key, document FROM completions ORDER BY id"))

    def completion_stats(self) -> tuple[int, int]:
        """The number of cached answers, and the bytes that their texts take in the database."""
        size = f"coalesce(sum({self.dialect.byte_length('text')}), 0)"
        statement = f"SELECT count(*) AS answers, {size} AS size FROM completions"
        (row,) = by_name(self.dialect.execute(statement))
        return row.answers, int(row.size)

    def reusable_answers(self, signature: str) -> list[tuple[str, Vectors, str]]:
        """(question, vector, answer as JSON) of the stored answers of this generation."""
        cursor = self.dialect.execute(
            "SELECT question, vector, answer FROM reusable_answers "
            "WHERE signature = ? AND generation = ? ORDER BY id",
            signature,
            self.generation,
        )
        return [
            (question, np.frombuffer(vector, SINGLE).astype(np.float32), answer)
            for question, vector, answer in cursor
        ]


class AnswerWrites(AnswerReads, WritableTables):
    """Writes answers."""

    def put_completion(
        self, key: bytes, completion: Completion, document: str | None = None
    ) -> None:
        """Cache a model's answer; `document` is the id of the document that the request quoted, None
        if there may have been several.
        """
        row = column_values(
            completion.usage,
            key=key,
            text=self.dialect.pack_text(completion.text),
            finish=completion.finish,
            document=document,
        )
        self._put("completions", [row], key="key")

    def delete_completions(self, keys: Collection[bytes] | None = None) -> int:
        """Delete all answers, reusable answers included, or some by key; returns the number."""
        if keys is None:
            self._delete_all("reusable_answers")
            return self._delete_all("completions")
        return self._delete("completions", "key", keys)

    def outdate_answers(self, documents: Collection[str]) -> None:
        """Note that the cached answers about some documents are about versions that are deleted or
        replaced: a purge deletes them, even if there is again a document with that id.
        """
        if documents:
            test = f"document {self.dialect.among()}"
            self.dialect.execute(
                f"UPDATE completions SET document = NULL WHERE {test}",
                self.dialect.array(documents),
            )

    def purge(self, names: Collection[str]) -> tuple[int, int]:
        """Delete whatever may quote deleted documents: cached answers, except about one document that
        is still there, reusable answers, cached vectors, and queries that refer to a deleted chunk
        or to an entity with one of these names.

        Returns the numbers of cached answers and of queries that were deleted.
        """
        self._delete_all("reusable_answers")
        self._delete_all("cached_vectors")
        answers = self.dialect.execute(f"DELETE FROM completions WHERE {OF_NO_DOCUMENT}").rowcount
        traces = self._traces_that_quote(names)
        return answers, self._delete("traces", "id", traces)

    def _traces_that_quote(self, names: Collection[str]) -> set[int]:
        """Row ids of the queries that refer to a deleted chunk or to some names."""
        chunks = set(only_column(self.dialect.execute("SELECT name FROM chunks")))
        quoted_names = {json_text(name) for name in names}
        traces = set()
        for trace, event in self.dialect.execute("SELECT trace, event FROM trace_events"):
            has_all_chunks = chunks.issuperset(CHUNK_ID.findall(event))
            if not has_all_chunks or not quoted_names.isdisjoint(JSON_TEXT.findall(event)):
                traces.add(trace)
        return traces

    def put_reusable_answer(
        self, signature: str, question: str, vector: Vectors, answer: str, generation: int
    ) -> None:
        """Store an answer for similar questions, if the index is still of `generation`; answers of
        earlier generations are deleted.
        """
        if generation != self.generation:
            return
        (id,) = only_column(
            self.dialect.execute(
                "INSERT INTO reusable_answers (generation, signature, question, vector, answer) "
                "VALUES (?, ?, ?, ?, ?) RETURNING id",
                generation,
                signature,
                question,
                vector.astype(SINGLE).tobytes(),
                answer,
            )
        )
        self.dialect.execute(
            "DELETE FROM reusable_answers WHERE generation < ? OR id <= ?",
            generation,
            id - ANSWERS_KEPT,
        )
