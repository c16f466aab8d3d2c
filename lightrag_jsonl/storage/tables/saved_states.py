"""Saved states, which people call snapshots of an index, and the way back."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from lightrag_jsonl.storage.tables.base import TABLE_NAMES, json_text, only_column
from lightrag_jsonl.storage.tables.documents import DocumentWrites
from lightrag_jsonl.storage.tables.graph import GraphWrites
from lightrag_jsonl.storage.tables.kept_rows import (
    KEPT_TABLES,
    Rows,
    RowsByKey,
    RowsByTable,
    SavedState,
)
from lightrag_jsonl.storage.vector_index import HALF

# The columns by which a row is the same as before, whatever else has changed; if others stand there, it is
# another row with the same row id.
IDENTITY = {
    "documents": ("name", "content", "created_at"),
    "chunks": ("name", "document"),
    "entities": ("key",),
    "relations": ("low", "high"),
}
REPLACED_TABLES = tuple(name for name in KEPT_TABLES if name not in IDENTITY)


class SavedStateWrites(DocumentWrites, GraphWrites):
    """Saves states, goes back to them, and forgets them."""

    def save_state(self, name: str, created_at: float) -> SavedState:
        """Save the present state; the name must be new."""
        row = {
            "name": name,
            "created_at": created_at,
            "generation": self.generation,
            "next_ids": json_text(self.next_ids()),
        }
        self._insert("saved_states", [row])
        self.__dict__.pop("newest_state", None)
        return self.saved_state(name)

    def delete_state(self, state: SavedState) -> None:
        """Forget a state; the next older state takes over kept rows."""
        older_states = [older for older in self.saved_states() if older.id < state.id]
        if older_states:
            self._hand_down(state, older_states[-1])
        self._delete("saved_rows", "state", [state.id])
        self._delete("saved_states", "id", [state.id])
        self.__dict__.pop("newest_state", None)

    def _hand_down(self, state: SavedState, older: SavedState) -> None:
        """Give the rows kept for a state to an older state, except where the older state has rows."""
        for table in KEPT_TABLES:
            kept_rows = self.kept_rows(state, table)
            kind = KEPT_TABLES[table].kind
            unused_keys = range(state.next_ids.get(kind, 1), older.next_ids.get(kind, 1))
            rows: RowsByKey = {**dict.fromkeys(unused_keys, ()), **kept_rows}
            rows = {key: values for key, values in rows.items() if older.may_have(table, key)}
            for key in self._kept_keys(older, table, rows):
                del rows[key]
            self.put_kept_rows(older, table, rows)

    def rewrite_state(self, state: SavedState, rows_by_table: RowsByTable) -> None:
        """Give a saved state other rows; the index and the other states do not change."""
        older_states = [older for older in self.saved_states() if older.id < state.id]
        for table, rows in rows_by_table.items():
            if older_states:
                older = older_states[-1]
                keys = {key for key in rows if older.may_have(table, key)}
                keys -= self._kept_keys(older, table, keys)
                self.put_kept_rows(older, table, self.rows_at(state, table, keys))
            self.put_kept_rows(state, table, rows)

    def restore(self, state: SavedState) -> set[str]:
        """Restore all rows of a saved state; returns the ids of the deleted documents.

        Newer states stay, since the present rows are kept for the newest state.
        """
        rows_by_table = self.rows_to_restore(state)
        for table in IDENTITY:
            rows_by_table[table] = {**self._later_keys(state, table), **rows_by_table[table]}
        for table, rows in rows_by_table.items():
            self.keep(rows, table)
        gone_documents = self._delete_other_rows(rows_by_table)
        self._put_rows(rows_by_table)
        self.changed = True
        return gone_documents

    def _later_keys(self, state: SavedState, table: str) -> RowsByKey:
        """The keys of present rows that came after a state, or after one of the states after it."""
        states = [later for later in self.saved_states() if later.id >= state.id]
        first_key = min(later.next_ids[KEPT_TABLES[table].kind] for later in states)
        keys = only_column(self.dialect.execute(f"SELECT id FROM {table} WHERE id >= ?", first_key))
        return dict.fromkeys(keys, ())

    def _delete_other_rows(self, rows_by_table: RowsByTable) -> set[str]:
        """Delete the rows that a state has not, or has others in place of; returns the ids of documents."""
        documents = self._other_keys("documents", rows_by_table["documents"])
        other_chunks = self._other_keys("chunks", rows_by_table["chunks"])
        documents |= set(only_column(self._select("document", "chunks", "id", other_chunks)))
        names = only_column(self._select("name", "documents", "id", documents))
        self.delete_documents(documents)
        for table in REPLACED_TABLES:
            self._delete_rows(table, rows_by_table[table])
        relations = self._other_keys("relations", rows_by_table["relations"])
        self.delete_graph_rows("relation", relations)
        entities = self._other_keys("entities", rows_by_table["entities"])
        self.delete_graph_rows("entity", entities)
        return set(names)

    def _delete_rows(self, table: str, keys: Collection[int]) -> None:
        column = KEPT_TABLES[table].key.partition(".")[2]
        if table == "aliases":
            if keys:
                self._delete_all(table)
        else:
            self._delete(table, column, keys)

    def _other_keys(self, table: str, rows: RowsByKey) -> set[int]:
        """The keys of present rows that are to go, or to make room for others."""
        columns = self._columns(table)
        places = [columns.index(column) for column in IDENTITY[table]]
        present_rows = self.rows_by_key(table, rows)
        return {
            key
            for key, present in present_rows.items()
            if present and _values_at(places, present) != _values_at(places, rows[key])
        }

    def _put_rows(self, rows_by_table: RowsByTable) -> None:
        """Insert rows, or replace the rows with the same ids."""
        present_chunks = set(
            only_column(self._select("id", "chunks", "id", rows_by_table["chunks"]))
        )
        for table, rows_by_key in rows_by_table.items():
            columns = self._columns(table)
            rows = [
                dict(zip(columns, self._stored_values(table, values), strict=True))
                for rows in rows_by_key.values()
                for values in rows
            ]
            if table in IDENTITY:
                self._put(table, rows)
            else:
                self._insert(table, rows)
        self._put_derived_rows(rows_by_table, present_chunks)

    def _put_derived_rows(self, rows_by_table: RowsByTable, present_chunks: set[int]) -> None:
        """Store what is derived from restored rows, and note them."""
        new_chunks = rows_by_table["chunks"].keys() - present_chunks
        texts = self._select("id, text", "chunks", "id", new_chunks)
        self.dialect.full_text.add([(row, text) for row, text in texts])
        entities = self.entity_rows(ids=rows_by_table["entities"])
        self._put_stated_aliases(list(entities.values()))
        for kind, table in TABLE_NAMES.items():
            self.touched[kind].update(rows_by_table[table], rows_by_table[f"{kind}_vectors"])
        for table in ("entity_mentions", "relation_mentions"):
            self.touched["chunk"].update(rows_by_table[table])

    def _columns(self, table: str) -> list[str]:
        return [
            column[0]
            for column in self.dialect.execute(f"SELECT * FROM {table} LIMIT 0").description
        ]

    def _stored_values(self, table: str, values: Sequence[Any]) -> Sequence[Any]:
        """Kept values as the database stores them."""
        if not KEPT_TABLES[table].has_vectors:
            return values
        vector = np.frombuffer(values[-1], HALF).astype(np.float32)
        return [*values[:-1], self.dialect.pack(vector)]


def _values_at(places: Sequence[int], rows: Rows) -> list[Any]:
    """The values in some columns of the only row; none without a row."""
    return [row[place] for row in rows for place in places]
