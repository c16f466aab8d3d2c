"""Dates for the mentions of an older format: by the present rules for texts, and by position."""

from collections.abc import Mapping, Sequence
from datetime import date

from lightrag_jsonl.core.dates import iso_date
from lightrag_jsonl.core.time_expressions import stated_dates
from lightrag_jsonl.core.types import Chunk
from lightrag_jsonl.storage.rows import (
    POSITION_BITS,
    EntityMentionRow,
    RelationMentionRow,
    StoredDocument,
    document_position,
)
from lightrag_jsonl.storage.views import Transaction

CHUNKS_AT_ONCE = 1_000  # bounds the memory
MOVE = "UPDATE {kind}_mentions SET position = position + ? WHERE chunk = ?"


def add_dates(transaction: Transaction) -> None:
    """Store the dates in the descriptions of all mentions, and move the mentions of documents with
    dates unknown to an older version, such as "June 2021".
    """
    by_hand = set(transaction.edited_chunks())
    rows = [row for row in transaction.chunk_names() if row not in by_hand]
    for start in range(0, len(rows), CHUNKS_AT_ONCE):
        chunks = transaction.chunks(rows[start : start + CHUNKS_AT_ONCE])
        entities = transaction.entity_mentions(chunks=chunks)
        relations = transaction.relation_mentions(chunks=chunks)
        transaction.put_dates("entity", _dates_by_mention(entities, chunks))
        transaction.put_dates("relation", _dates_by_mention(relations, chunks))
    for document in transaction.documents():
        if _has_new_date(document):
            _move(transaction, document)


def _dates_by_mention(
    mentions: Sequence[EntityMentionRow] | Sequence[RelationMentionRow], chunks: Mapping[int, Chunk]
) -> dict[int, tuple[str, str]]:
    dates: dict[int, tuple[str, str]] = {}
    for row in mentions:
        chunk = chunks[row.chunk]
        dates[row.id] = stated_dates(row.mention, chunk.text, iso_date(chunk.date))
    return dates


def _has_new_date(document: StoredDocument) -> bool:
    """Whether a date is known to this version, and was unknown to older versions."""
    if not iso_date(document.date or ""):
        return False
    try:
        date.fromisoformat(f"{document.date}-01-01"[:10])
    except ValueError:
        return True
    return False


def _move(transaction: Transaction, document: StoredDocument) -> None:
    distance = document_position(document.id, document.date) - document_position(document.id, None)
    for chunk in transaction.chunks(documents=[document.id]):
        for kind in ("entity", "relation"):
            statement = MOVE.format(kind=kind)
            transaction.dialect.execute(statement, [distance << POSITION_BITS, chunk])
