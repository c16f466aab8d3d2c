"""What all tables share: rows are read and written by the names of columns."""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias, TypeVar, get_origin, get_type_hints

import msgspec
import numpy as np

from lightrag_jsonl.core.types import Kind
from lightrag_jsonl.storage.tables.dialect import Cursor, Dialect, Keys
from lightrag_jsonl.storage.vector_index import Ids

RowValue = TypeVar("RowValue")
ColumnParser: TypeAlias = Callable[[Any], Any]  # from the value in a column to that of a field
ColumnValues: TypeAlias = Mapping[str, Any]  # of one row, by the name of the column

TABLE_NAMES: dict[Kind, str] = {"entity": "entities", "relation": "relations", "chunk": "chunks"}
ALL_ROWS = 2**63 - 1  # after LIMIT
UNCHANGING = {"id", "key", "low", "high"}  # to set them writes to indexes, even if equal


def json_text(value: object) -> str:
    """Compact JSON."""
    return msgspec.json.encode(value).decode()


@cache
def field_names(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a class, which are those of the columns."""
    is_struct = issubclass(kind, msgspec.Struct)
    all_fields: Sequence[Any] = msgspec.structs.fields(kind) if is_struct else fields(kind)
    return tuple([field.name for field in all_fields])


def column_values(row: Any, **columns: Any) -> dict[str, Any]:
    """The fields of a row as the columns of its table, with `columns` besides or in their place; votes and
    texts as JSON, no texts as NULL.
    """
    values = {name: getattr(row, name) for name in field_names(row.__class__)} | columns
    for name, value in values.items():
        if value.__class__ in (dict, tuple):
            values[name] = json_text(value) if value != () else None
    return values


@lru_cache(maxsize=1_000)
def row_type(columns: tuple[str, ...]) -> Any:
    """A tuple whose fields are called as the columns of a query."""
    return namedtuple("Row", columns, rename=True)


def by_name(cursor: Cursor) -> list[Any]:
    """All rows; the values of the columns are attributes."""
    columns = tuple([column[0] for column in cursor.description])
    return list(map(row_type(columns)._make, cursor))


def read_as(kind: type[RowValue], cursor: Cursor, **parsers: ColumnParser) -> list[RowValue]:
    """A value of a class for each row: the columns are called as its fields. What is no single value in the
    class is JSON in the column, unless another of the `parsers` reads it.
    """
    names = [column[0] for column in cursor.description]
    all_parsers = {**column_parsers(kind), **parsers}  # type: ignore[arg-type]  # mypy: no Hashable
    parsed_names = [name for name in all_parsers if name in names]
    rows: list[RowValue] = []
    for row in cursor:
        values = dict(zip(names, row, strict=True))
        for name in parsed_names:
            values[name] = all_parsers[name](values[name])
        rows.append(kind(**values))
    return rows


@cache
def column_parsers(kind: Any) -> dict[str, ColumnParser]:
    """What reads the columns of the fields of a class that SQLite does not store as they are."""
    parsers: dict[str, ColumnParser] = {}
    for name, hint in get_type_hints(kind).items():
        if hint is bool:
            parsers[name] = bool
        elif get_origin(hint) in (dict, Mapping, tuple) or is_dataclass(hint):
            parsers[name] = msgspec.json.Decoder(hint).decode
    return parsers


def only_column(cursor: Cursor) -> list[Any]:
    """The values of the only column."""
    return [value for (value,) in cursor]


def integer_columns(cursor: Cursor) -> dict[str, Ids]:
    """Columns of integers by name, each of shape (rows,)."""
    names = [column[0] for column in cursor.description]
    table = np.fromiter(cursor, np.dtype((np.int64, (len(names),))))
    return dict(zip(names, table.T, strict=True))


class Tables:
    """Tables for reading, through a connection in a transaction."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def _select(
        self, columns: str, table: str, column: str, keys: Keys | None, *, order: str = "id"
    ) -> Cursor:
        """Rows in order: all, or the rows with some values in a column."""
        if keys is None:
            return self.dialect.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")
        test = f"{column} {self.dialect.among()}"
        statement = f"SELECT {columns} FROM {table} WHERE {test} ORDER BY {order}"
        return self.dialect.execute(statement, self.dialect.array(keys))

    def _page(self, limit: int | None, offset: int = 0) -> str:
        """The end of a query for a page of rows."""
        count = ALL_ROWS if limit is None else max(limit, 0)
        return f"LIMIT {count} OFFSET {max(offset, 0)}"


class WritableTables(Tables):
    """Tables for writing, too.

    `touched` collects the ids of changed rows, by kind; `changed` notes any other change that
    queries see.
    """

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.touched: dict[Kind, set[int]] = {kind: set() for kind in TABLE_NAMES}
        self.changed = False

    def _put(self, table: str, rows: Sequence[ColumnValues], *, key: str = "id") -> None:
        """Insert rows, or replace existing rows with the same value in the column `key`.

        Unlike INSERT OR REPLACE, nothing is deleted, so rows that refer to replaced rows stay.
        """
        columns = rows[0] if rows else ()
        changing = [column for column in columns if column not in {key, *UNCHANGING}]
        updates = ", ".join(f"{column} = excluded.{column}" for column in changing)
        self._insert(table, rows, conflict=f"({key}) DO UPDATE SET {updates}")

    def _insert(
        self, table: str, rows: Sequence[ColumnValues], *, conflict: str = "DO NOTHING"
    ) -> None:
        """Insert rows of the same columns, in the same order; `conflict` says what becomes of existing rows."""
        if rows:
            columns = ", ".join(rows[0])
            marks = ", ".join("?" * len(rows[0]))
            self.dialect.execute_many(
                f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT {conflict}",
                [tuple(row.values()) for row in rows],
            )

    def _delete(self, table: str, column: str, keys: Keys) -> int:
        """Delete the rows with some values in a column; returns the number."""
        statement = f"DELETE FROM {table} WHERE {column} = ?"
        return max(0, self.dialect.execute_many(statement, [(key,) for key in keys]))

    def _delete_all(self, table: str) -> int:
        """Delete all rows; returns the number."""
        return self.dialect.execute(f"DELETE FROM {table}").rowcount
