"""Edits in an index of the older format, where the mentions of an edit carry a `claim`."""

from typing import Any

from msgspec.json import Decoder

from lightrag_jsonl.core.types import PERSON, UNKNOWN_TYPE
from lightrag_jsonl.storage.rows import MILLION, Override
from lightrag_jsonl.storage.tables.base import by_name
from lightrag_jsonl.storage.tables.dialect import Dialect

CLAIMS_FORMAT = "9"  # the last format with claims
MENTION_TABLES = ("entity_mentions", "relation_mentions")
EDIT = "m.chunk AS id, c.name AS chunk_id, c.created_at, d.metadata, m.claim, m.description"
EDIT_TABLES = "JOIN chunks c ON c.id = m.chunk JOIN documents d ON d.id = c.document"
CLAIMED = f"c.extractor = '{PERSON}' AND m.claim <> ''"
ENTITY_EDITS = f"""SELECT {EDIT}, m.name, m.type FROM entity_mentions m {EDIT_TABLES}
    WHERE {CLAIMED} ORDER BY m.id"""
RELATION_EDITS = f"""SELECT {EDIT}, m.source, m.target, m.keywords, m.strength
    FROM relation_mentions m {EDIT_TABLES} WHERE {CLAIMED} ORDER BY m.id"""

parse_keywords = Decoder(list[str]).decode
parse_metadata = Decoder(dict[str, Any]).decode


def claimed_overrides(dialect: Dialect) -> dict[int, Override]:
    """The overrides in the claims of mentions, by row id of the edit's chunk."""
    overrides: dict[int, Override] = {}
    for row in by_name(dialect.execute(ENTITY_EDITS)):
        type = "" if row.type == UNKNOWN_TYPE else row.type
        overrides[row.id] = _override(row, (row.name,), type=type)
    for row in by_name(dialect.execute(RELATION_EDITS)):
        keywords = parse_keywords(row.keywords)
        names = (row.source, row.target)
        overrides[row.id] = _override(
            row, names, keywords=keywords, weight=round(row.strength * MILLION)
        )
    return overrides


def drop_claims(dialect: Dialect) -> None:
    """Remove the claims, and the mentions of deletions, which said nothing else."""
    for table in MENTION_TABLES:
        dialect.execute(f"DELETE FROM {table} WHERE claim = 'delete'")
        dialect.execute(f"ALTER TABLE {table} DROP COLUMN claim")


def _override(row: Any, names: tuple[str, ...], **changes: object) -> Override:
    metadata = parse_metadata(row.metadata)
    changed = {"description": row.description, **changes} if row.claim == "edit" else {}
    return Override(
        chunk_id=row.chunk_id,
        action=row.claim,
        names=names,
        changes={field: value for field, value in changed.items() if value},
        by=str(metadata.get("by", "")),
        at=round(row.created_at, 6),
        reason=str(metadata.get("reason", "")),
    )
