"""Turns anyone's rows of numbers into the unit vectors that an index takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lightrag_jsonl.core.errors import EmbeddingError
from lightrag_jsonl.core.protocols import Vectors

TOLERANCE = 1e-3  # by which a unit vector's length may be off


def normalize_vectors(
    rows: npt.ArrayLike | Sequence[object], *, count: int, dim: int | None, source: str
) -> Vectors:
    """float32 of shape (count, dim), each row divided by its length; a row of zeros stays zero.

    Rows that are unit vectors already are not changed. Raises `EmbeddingError` if the shape is
    different (`dim=None` accepts any width) or a number is not finite; `source` names the embedder
    in it.
    """
    try:
        table = np.asarray(rows)
        if table.dtype != np.float32:
            table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbeddingError(f"{source}: the vectors are no table of numbers: {error}") from error
    if count == 0 and table.size == 0:
        return np.zeros((0, dim or 0), dtype=np.float32)
    is_table = table.ndim == 2 and len(table) == count and table.shape[1] > 0
    if not is_table or dim not in (None, table.shape[1]):
        raise EmbeddingError(
            f"{source}: {count} texts must give vectors of shape ({count}, {dim or 'dim'}), "
            f"got {table.shape}"
        )
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise EmbeddingError(f"{source}: a vector holds NaN or infinity, or is that long")
    if table.dtype == np.float32 and (np.abs(lengths - 1.0) <= TOLERANCE).all():
        return table
    unit: Vectors = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    return unit.astype(np.float32, copy=False)
