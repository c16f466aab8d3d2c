"""Turns anyone's rows of numbers into the unit vectors that an index takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.errors import EmbeddingError
from lightrag_jsonl.protocols import Vectors

UNIT_TOLERANCE = 1e-3


def unit_rows(
    rows: npt.ArrayLike | Sequence[object], *, count: int, dim: int | None, source: str
) -> Vectors:
    """float32 of shape (count, dim), each row divided by its length; a row of zeros stays zero.

    Rows that are unit vectors already are not changed. Raises `EmbeddingError` if the shape is
    different (`dim=None` accepts any width) or a number is not finite; `source` names the embedder
    in it.
    """
    if _are_unit_rows(rows, (count, dim)):
        return cast(Vectors, rows)
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbeddingError(f"{source}: the vectors are no table of numbers: {error}") from error
    if count == 0 and table.size == 0:
        return np.zeros((0, dim or 0), dtype=np.float32)
    wanted = (count, table.shape[-1] if dim is None and table.ndim == 2 else dim)
    if table.shape != wanted or table.shape[-1] == 0:
        raise EmbeddingError(
            f"{source}: {count} texts must give vectors of shape ({count}, {dim or 'dim'}), "
            f"got {table.shape}"
        )
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise EmbeddingError(f"{source}: a vector holds NaN or infinity, or is that long")
    unit: npt.NDArray[np.float64] = np.divide(
        table, lengths, out=np.zeros_like(table), where=lengths > 0
    )
    return unit.astype(np.float32)


def are_units(rows: Vectors) -> bool:
    """Whether every row has unit length or is zero, as `unit_rows` leaves it."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
        return bool(((np.abs(lengths - 1.0) <= 2 * UNIT_TOLERANCE) | (lengths == 0)).all())


def _are_unit_rows(rows: object, shape: tuple[int, int | None]) -> bool:
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.float32 and rows.shape == shape):
        return False
    squares = np.einsum("ij,ij->i", rows, rows)
    return bool((np.abs(squares - 1.0) <= 2 * UNIT_TOLERANCE).all())
