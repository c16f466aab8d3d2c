"""Makes an index of the older format: mentions carry the claims of edits, and there are no overrides."""

import contextlib
import sqlite3
from pathlib import Path

from lightrag_jsonl.storage.rows import Override
from lightrag_jsonl.storage.sqlite.database import FILE_NAME
from lightrag_jsonl.storage.tables.claims import CLAIMS_FORMAT
from lightrag_jsonl.storage.tables.dialect import Dialect
from lightrag_jsonl.storage.views import Transaction

FIRST_ID = 1_000_000  # of the mentions of deletions, above all others
DELETED_ENTITY = """INSERT INTO entity_mentions
    (id, entity, chunk, position, name, type, description, grounded, claim)
    VALUES (?, NULL, ?, 0, ?, 'unknown', '', true, 'delete')"""
DELETED_RELATION = """INSERT INTO relation_mentions
    (id, relation, chunk, position, source, target, keywords, description, strength, forward, claim)
    VALUES (?, NULL, ?, 0, ?, ?, '[]', '', 0, true, 'delete')"""
OLDER_COLUMN = ",\n    claim TEXT NOT NULL\n)"


def put_claims(transaction: Transaction) -> None:
    """Turn the overrides of an index into claims, as the older format has them."""
    overrides = transaction.overrides()
    dialect = transaction.dialect
    for table in ("entity_mentions", "relation_mentions"):
        dialect.execute(f"ALTER TABLE {table} ADD COLUMN claim text NOT NULL DEFAULT ''")
        dialect.execute(f"UPDATE {table} SET claim = ''")
    for chunk, override in overrides.items():
        _put_claim(dialect, chunk, override)
    dialect.execute("DROP TABLE overrides")
    drop_dates(transaction)
    transaction.put_settings({"format": CLAIMS_FORMAT})


def drop_dates(transaction: Transaction) -> None:
    """Remove the dates of mentions, which older formats lack."""
    for table in ("entity_dates", "relation_dates"):
        transaction.dialect.execute(f"DROP TABLE {table}")


def _put_claim(dialect: Dialect, chunk: int, override: Override) -> None:
    is_entity = len(override.names) == 1
    if override.action == "delete":
        statement = DELETED_ENTITY if is_entity else DELETED_RELATION
        dialect.execute(statement, [FIRST_ID + chunk, chunk, *override.names])
    elif is_entity:
        statement = "UPDATE entity_mentions SET claim = ? WHERE chunk = ? AND name = ?"
        dialect.execute(statement, [override.action, chunk, *override.names])
    else:
        statement = "UPDATE relation_mentions SET claim = ? WHERE chunk = ?"
        dialect.execute(statement, [override.action, chunk])


def make_older_file(folder: Path) -> None:
    """Give the tables of a closed SQLite index, with claims, the SQL of the older format."""
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for table in ("entity_mentions", "relation_mentions"):
            query = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?"
            (statement,) = connection.execute(query, [table]).fetchone()
            columns, _, _ = statement.rpartition("\n, claim")
            change = "UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?"
            connection.execute(change, [f"{columns}{OLDER_COLUMN} STRICT", table])
        connection.execute(f"PRAGMA user_version = {CLAIMS_FORMAT}")
        connection.commit()
