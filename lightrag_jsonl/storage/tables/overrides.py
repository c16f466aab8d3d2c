"""Overrides: the values that people set by hand."""

from collections.abc import Mapping

from lightrag_jsonl.storage.rows import Override, RowIds
from lightrag_jsonl.storage.tables.base import Tables, json_text, parsed_rows
from lightrag_jsonl.storage.tables.kept_rows import KeepingTables


class OverrideReads(Tables):
    """Reads overrides."""

    def overrides(self, chunks: RowIds = None) -> dict[int, Override]:
        """The overrides in the edits of people, by row id of the edit's chunk: all, or of some chunks."""
        columns = """o.chunk, c.name AS chunk_id, o.action, o.names, o.changes, o.author AS "by",
            o.made_at AS "at", o.reason"""
        table = "overrides o JOIN chunks c ON c.id = o.chunk"
        cursor = self._select(columns, table, "o.chunk", chunks, order="o.chunk")
        rows = parsed_rows(cursor, Override)
        return {row.pop("chunk"): Override(**row) for row in rows}


class OverrideWrites(OverrideReads, KeepingTables):
    """Writes overrides."""

    def put_overrides(self, overrides: Mapping[int, Override]) -> None:
        """Store overrides, by row id of the edit's chunk; deleting the chunk deletes the override."""
        rows = [_override_columns(chunk, override) for chunk, override in overrides.items()]
        self.keep(overrides, "overrides")
        self._put("overrides", rows, key="chunk")


def _override_columns(chunk: int, override: Override) -> dict[str, object]:
    return {
        "chunk": chunk,
        "action": override.action,
        "names": json_text(override.names),
        "changes": json_text(override.changes),
        "author": override.by,
        "made_at": override.at,
        "reason": override.reason,
    }
