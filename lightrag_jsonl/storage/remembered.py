"""Rows that question after question reads, remembered until they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", int, str)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Values by row id or name; of more than `limit`, all are forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[Key, Value] = {}

    def of(
        self, rows: Iterable[Key], read: Callable[[list[Key]], Mapping[Key, Value]]
    ) -> dict[Key, Value]:
        """The values of rows; those not yet known are read, and what has no value is left out."""
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
        """Forget all of them."""
        self._values.clear()

    def forget(self, rows: Iterable[Key]) -> None:
        """Read these rows again when they are asked for."""
        for row in rows:
            self._values.pop(row, None)
