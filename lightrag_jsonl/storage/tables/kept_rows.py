"""Kept rows: earlier versions of rows, for the states that people saved as snapshots.

A saved state copies no rows. Before a row changes, the row is kept, once, for the newest state; older
states find the row there. New rows are not kept: row ids grow, and a state knows the next free ids of
the time.
"""

import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.errors import CorruptError, NotFoundError
from lightrag_jsonl.storage.tables.base import (
    WritableTables,
    only_column,
    read_as,
)
from lightrag_jsonl.storage.tables.settings import SettingReads

Rows: TypeAlias = Sequence[Sequence[Any]]  # the values of the columns of each row
RowsByKey: TypeAlias = dict[int, Rows]  # no rows for a key that had none
RowsByTable: TypeAlias = dict[str, RowsByKey]

ALIASES_KEY = 0  # all merges of names together


class KeptTable(Struct, frozen=True, kw_only=True):
    """A table with kept rows, grouped by the value of `key`; the values are the row ids of the table
    `kind`, a name in `NextIds`.
    """

    name: str
    key: str
    kind: str

    @property
    def selection(self) -> str:
        """A query for the key and all columns."""
        return f"SELECT {self.key} AS kept_key, t.* FROM {self.name} t"

    @property
    def has_vectors(self) -> bool:
        """Whether the last column is a vector."""
        return self.name.endswith("_vectors")


def _of_chunk(name: str) -> KeptTable:
    return KeptTable(name=name, key="t.chunk", kind="chunks")


# In an order in which rows can be inserted.
KEPT_TABLES = {
    table.name: table
    for table in (
        KeptTable(name="documents", key="t.id", kind="documents"),
        KeptTable(name="pages", key="t.document", kind="documents"),
        KeptTable(name="chunks", key="t.id", kind="chunks"),
        _of_chunk("rejections"),
        _of_chunk("overrides"),
        KeptTable(name="entities", key="t.id", kind="entities"),
        KeptTable(name="relations", key="t.id", kind="relations"),
        _of_chunk("entity_mentions"),
        _of_chunk("relation_mentions"),
        KeptTable(name="entity_vectors", key="t.id", kind="entities"),
        KeptTable(name="relation_vectors", key="t.id", kind="relations"),
        KeptTable(name="chunk_vectors", key="t.id", kind="chunks"),
        KeptTable(name="aliases", key=str(ALIASES_KEY), kind=""),
    )
}
CHUNK_TABLES = (
    "chunks",
    "rejections",
    "overrides",
    "chunk_vectors",
    "entity_mentions",
    "relation_mentions",
)


class SavedState(NamedTuple):
    """A state of the index with a name: `next_ids` are the next free row ids of that time."""

    id: int
    name: str
    created_at: float
    generation: int
    next_ids: Mapping[str, int]

    def may_have(self, table: str, key: int) -> bool:
        """Whether there may have been rows with a key; later ones have greater keys."""
        kind = KEPT_TABLES[table].kind
        return key < self.next_ids.get(kind, 1)


class SavedStateReads(SettingReads):
    """Reads saved states, and rows in the form in which they are kept."""

    def saved_states(self) -> list[SavedState]:
        """The saved states, the oldest first."""
        cursor = self.dialect.execute("SELECT * FROM saved_states ORDER BY id")
        return read_as(SavedState, cursor)

    def saved_state(self, name: str) -> SavedState:
        """The state with a name; `NotFoundError` lists the names of all."""
        states = {state.name: state for state in self.saved_states()}
        if name not in states:
            names = ", ".join(states) or "none"
            raise NotFoundError(f"no such snapshot: {name}; there are: {names}")
        return states[name]

    def kept_bytes(self) -> dict[int, int]:
        """The bytes of the rows that are kept for each state, by its row id."""
        statement = "SELECT state, coalesce(sum(length(content)), 0) FROM saved_rows GROUP BY state"
        return {state: int(size) for state, size in self.dialect.execute(statement)}

    def kept_rows(self, state: SavedState, table: str) -> RowsByKey:
        """The rows of a table that are kept for a state; `CorruptError` if they are damaged."""
        statement = "SELECT key, content FROM saved_rows WHERE state = ? AND name = ? ORDER BY key"
        rows: RowsByKey = {}
        for key, content in self.dialect.execute(statement, state.id, table):
            try:
                rows[key] = unpack_rows(content)
            except ValueError as error:
                raise CorruptError(
                    f"the snapshot {state.name!r} cannot be read: {table} {key}: {error}; delete it"
                ) from error
        return rows

    def rows_to_restore(self, state: SavedState) -> RowsByTable:
        """The rows of a state that were deleted or changed since; rows added since are left out, unless
        kept.
        """
        states = [later for later in self.saved_states() if later.id >= state.id]
        rows_by_table: RowsByTable = {table: {} for table in KEPT_TABLES}
        for later in reversed(states):
            for table, rows in rows_by_table.items():
                earlier_rows = {key: rows[key] for key in rows if later.may_have(table, key)}
                rows_by_table[table] = {**earlier_rows, **self.kept_rows(later, table)}
        return rows_by_table

    def rows_at(
        self, state: SavedState, table: str, keys: Collection[int] | None = None
    ) -> RowsByKey:
        """The rows of a table in a saved state, all or those with some keys."""
        later_states = [later for later in self.saved_states() if later.id >= state.id]
        rows = {
            key: values
            for key, values in self.rows_by_key(table, keys).items()
            if all(later.may_have(table, key) for later in later_states)
        }
        kept_rows = self.rows_to_restore(state)[table]
        return rows | {key: kept_rows[key] for key in kept_rows if keys is None or key in keys}

    def documents_at(self, state: SavedState) -> dict[str, tuple[str, float]]:
        """The documents in a saved state by id, each with the digest of its content and its time."""
        cursor = self.dialect.execute("SELECT * FROM documents LIMIT 0")
        columns = [column[0] for column in cursor.description]
        documents: dict[str, tuple[str, float]] = {}
        for rows in self.rows_at(state, "documents").values():
            for values in rows:
                document = dict(zip(columns, values, strict=True))
                documents[document["name"]] = (document["content"], document["created_at"])
        return documents

    def rows_by_key(self, table: str, keys: Collection[int] | None = None) -> RowsByKey:
        """The present rows of a table, all or by key; an empty list for a key without rows."""
        kept_table = KEPT_TABLES[table]
        rows: defaultdict[int, list[list[Any]]] = defaultdict(list)
        if keys is None:
            cursor = self.dialect.execute(f"{kept_table.selection} ORDER BY 1, 2, 3")
        elif keys:
            test = f"{kept_table.key} {self.dialect.among()}"
            statement = f"{kept_table.selection} WHERE {test} ORDER BY 1, 2, 3"
            cursor = self.dialect.execute(statement, self.dialect.array(keys))
        else:
            return {}
        for key, *values in cursor:
            if kept_table.has_vectors:
                values[-1] = self.dialect.unpack(values[-1]).tobytes()
            rows[key].append(values)
        missing = {key: () for key in keys or () if key not in rows}
        return {**rows, **missing}


class KeepingTables(SavedStateReads, WritableTables):
    """Tables whose rows are kept before they change, if there is a saved state."""

    @cached_property
    def newest_state(self) -> SavedState | None:
        """The state that was saved last."""
        return max(self.saved_states(), key=lambda state: state.id, default=None)

    def keep(self, keys: Collection[int], *tables: str) -> None:
        """Keep the rows of tables with some keys for the newest state, before a change; rows kept already
        stay.
        """
        state = self.newest_state
        if state is None:
            return
        for table in tables:
            due = {key for key in keys if state.may_have(table, key)}
            if due:
                due -= self._kept_keys(state, table, due)
                self.put_kept_rows(state, table, self.rows_by_key(table, due))

    def put_kept_rows(self, state: SavedState, table: str, rows: RowsByKey) -> None:
        """Keep rows for a state, in place of those kept before."""
        saved_rows = [
            {"state": state.id, "name": table, "key": key, "content": pack_rows(values)}
            for key, values in sorted(rows.items())
        ]
        conflict = "(state, name, key) DO UPDATE SET content = excluded.content"
        self._insert("saved_rows", saved_rows, conflict=conflict)

    def _kept_keys(self, state: SavedState, table: str, keys: Collection[int]) -> set[int]:
        """Those of the keys whose rows are kept for a state."""
        statement = (
            "SELECT key FROM saved_rows WHERE state = ? AND name = ? "
            f"AND key {self.dialect.among()}"
        )
        array = self.dialect.array(keys)
        return set(only_column(self.dialect.execute(statement, state.id, table, array)))


def pack_rows(rows: Rows) -> bytes | None:
    """Rows as compressed bytes; None for no rows."""
    if not rows:
        return None
    return zlib.compress(msgspec.msgpack.encode(rows))


def unpack_rows(content: bytes | None) -> Rows:
    """The rows of `pack_rows`; `ValueError` if the bytes are damaged."""
    if content is None:
        return ()
    try:
        return msgspec.msgpack.decode(zlib.decompress(content), type=list[list[Any]])
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"damaged bytes: {error}") from error
