"""Ready-made chunks and records that a caller provides instead of asking a model."""

from __future__ import annotations

from collections.abc import Sequence

from lightrag_jsonl.drift import normalize_graph_record
from lightrag_jsonl.errors import ConfigError
from lightrag_jsonl.indexing.spans import Span, chunks_at
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.schemas import Schema
from lightrag_jsonl.text import sanitize
from lightrag_jsonl.types import Chunk, Page, Record, Rejection


def given_chunks(
    pages: Sequence[Page], pieces: Sequence[str], tokenizer: Tokenizer
) -> tuple[Chunk, ...]:
    """The pieces as chunks; each is searched in the pages from where the previous one began.

    `ConfigError` names a piece that does not occur.
    """
    spans: list[tuple[Page, Span]] = []
    at, position = 0, 0
    for index, piece in enumerate(map(sanitize, pieces)):
        where = _find(pages, piece, at, position)
        if where is None or not piece:
            raise ConfigError(f"chunks[{index}] does not occur in the document, in this order")
        at, start = where
        spans.append((pages[at], Span(start, start + len(piece), tokenizer.count(piece))))
        position = start + 1
    return chunks_at(spans)


def _find(pages: Sequence[Page], piece: str, at: int, position: int) -> tuple[int, int] | None:
    for number in range(at, len(pages)):
        start = pages[number].text.find(piece, position if number == at else 0)
        if start >= 0:
            return number, start
    return None


def given_records(
    records: Sequence[Record], schema: Schema | None, chunks: int
) -> list[tuple[list[tuple[int, Record]], list[Rejection]]]:
    """For each chunk its (line, record) pairs and what was refused; lines count from 1.

    `ConfigError` if a record is not a mapping, or names a chunk that does not exist.
    """
    found: list[tuple[list[tuple[int, Record]], list[Rejection]]] = [
        ([], []) for _ in range(chunks)
    ]
    for line, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise ConfigError(f"records[{line - 1}] is no mapping but {type(record).__name__}")
        index = record.get("chunk")
        index = 0 if index is None else index
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < chunks:
            raise ConfigError(
                f"records[{line - 1}] names chunk {index!r}; the document has chunks 0 to {chunks - 1}"
            )
        plain = {key: value for key, value in record.items() if key != "chunk"}
        for one in normalize_graph_record(plain):
            problem = None if schema is None else schema.error(one)
            if problem is None:
                found[index][0].append((line, one))
            else:
                found[index][1].append(Rejection(line, str(one), "schema", problem))
    return found
