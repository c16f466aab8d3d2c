"""What an evaluation reads from an index besides asking it: BM25 hits, ids, and mentions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.storage import documents, fulltext
from lightrag_jsonl.storage.database import Database
from lightrag_jsonl.storage.snapshot import Snapshot, SnapshotKeeper
from lightrag_jsonl.types import Chunk


class Lookup:
    """Reads an index, which may be open elsewhere at the same time."""

    def __init__(self, working_dir: str | Path) -> None:
        self._database = Database(working_dir)
        self._keeper = SnapshotKeeper(self._database)

    def by_words(self, question: str, limit: int) -> tuple[Chunk, ...]:
        """The best chunks by BM25 alone."""
        with self._database.reading() as connection:
            hits = fulltext.search(connection, question, limit)
            found = documents.chunks_by_row(connection, [row for row, _ in hits])
            return tuple(replace(found[row], score=score) for row, score in hits)

    def chunk_rows(self, names: Iterable[str]) -> dict[str, frozenset[int]]:
        """The chunks (row ids) with these chunk or document ids; `ConfigError` names unknown ones."""
        wanted = list(dict.fromkeys(names))
        with self._database.reading() as connection:
            found = dict.fromkeys(wanted, frozenset[int]())
            for query in (
                "SELECT d.name, c.id FROM documents d JOIN chunks c ON c.document = d.id",
                "SELECT name, id FROM chunks",
            ):
                for name, row in connection.execute(query):
                    if name in found:
                        found[name] |= {row}
        unknown = [name for name in wanted if not found[name]]
        if unknown:
            shown = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
            raise ConfigError(f"{len(unknown)} supporting ids are not in the index: {shown}")
        return found

    def mentions(self) -> dict[int, tuple[int, ...]]:
        """Every entity's chunks, by row id."""
        found: dict[int, list[int]] = {}
        with self.snapshot() as snapshot:
            entities, chunks = snapshot.mentions().all
            for entity, chunk in zip(entities.tolist(), chunks.tolist(), strict=True):
                found.setdefault(entity, []).append(chunk)
        return {entity: tuple(chunks) for entity, chunks in found.items()}

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Graph, vectors and database in one consistent view."""
        return self._keeper.snapshot()

    def close(self) -> None:
        """Close the index."""
        self._database.close()

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
