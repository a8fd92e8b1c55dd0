"""Data and factors of which only some rows are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginparts._types import Array

#: Entries that are made at a time where all rows are gone through.
_CHUNK = 1 << 22


class OutOfCore:
    """Data on disk. What can be asked of it is at `marginparts.row_blocks.StoredRows`."""


class RowsOnDemand:
    """A factor (n, r) whose rows are made when they are asked for, for starts of large data.

    Parameters
    ----------
    shape : (n, r)
    dtype : dtype
    make : callable
        ``make(first, last)`` returns these rows.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: Any, make: Callable[[int, int], Array]
    ) -> None:
        self.shape, self.dtype, self.make = shape, np.dtype(dtype), make

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        first, last, _ = rows.indices(len(self))
        return self.make(first, last).astype(self.dtype, copy=False)

    def __mul__(self, scale: Any) -> RowsOnDemand:
        return RowsOnDemand(self.shape, self.dtype, lambda a, b: self.make(a, b) * scale)

    def mean(self, dtype: Any = np.float64) -> float:
        """Return the mean of all entries."""
        step = max(_CHUNK // self.shape[1], 1)
        sums = (self[first : first + step].sum(dtype=dtype) for first in range(0, len(self), step))
        return float(sum(sums)) / (self.shape[0] * self.shape[1])


def made_by_rows(X: Any, r: int, make: Callable[[int, int], Array]) -> Any:
    """Return a factor (n, r) for data: whole, or rows on demand where the data is on disk."""
    n = X.shape[0]
    if isinstance(X, OutOfCore):
        return RowsOnDemand((n, r), X.dtype, make)  # type: ignore[attr-defined]
    return make(0, n).astype(X.dtype)
