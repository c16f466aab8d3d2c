"""Caches rows that many questions read, until they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", int, str)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """A cache of values by row id or name; when it would exceed `limit`, it is emptied."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[Key, Value] = {}

    def of(
        self, rows: Iterable[Key], read: Callable[[list[Key]], Mapping[Key, Value]]
    ) -> dict[Key, Value]:
        """The values of rows; unknown ones are read, and rows without a value are left out."""
        rows = list(dict.fromkeys(rows))
        missing = [row for row in rows if row not in self._values]
        if missing:
            if len(self._values) + len(missing) > self._limit:
                self._values.clear()
                missing = rows
            self._values.update(read(missing))
        values = self._values
        return {row: values[row] for row in rows if row in values}

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def forget(self, rows: Iterable[Key]) -> None:
        """Forget the values of these rows."""
        for row in rows:
            self._values.pop(row, None)
