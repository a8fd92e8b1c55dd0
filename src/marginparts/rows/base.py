"""Data and factors of which only some rows are in memory at a time, or none here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array

#: Entries that are made at a time where all rows are gone through.
_CHUNK = 1 << 22


class Elsewhere:
    """What people give in the place of X when it is not in memory: files, or a Dask array."""

    shape: tuple[int, int]

    def at_hand(self, n_components: int, solver: str) -> AbstractContextManager[Any]:
        """Check all rows, and give them as `OutOfCore` data while a fit lasts."""
        raise NotImplementedError

    def gathered(self) -> Any:
        """Return all rows in memory, or refuse."""
        raise NotImplementedError


class OutOfCore:
    """Trusted data that is on disk or on a cluster, and what a fit can ask of it.

    Attributes
    ----------
    shape : (n, d)
    dtype : float32 or float64
    nnz : int
    mass, lengths : (n,) arrays
        The sum and the Euclidean length of each row, in float64.
    """

    shape: Any
    dtype: Any
    mass: Array
    lengths: Array
    scale: float = 1.0  # what every entry is to be multiplied with when it is read

    def sum(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return the sum of all entries, or of each row."""
        return self.mass if axis == 1 else self.mass.sum()

    def __mul__(self, scale: Any) -> Any:
        scaled = copy(self)
        scaled.scale = self.scale * float(scale)
        scaled.mass, scaled.lengths = self.mass * float(scale), self.lengths * float(scale)
        return scaled

    def kernels(self, backend: Any, r: int) -> Any:
        """Return a backend for such data around the one asked for."""
        raise NotImplementedError

    def transposed_product(self, S: Any) -> Any:
        """Return ``S.T @ X`` (2p, d) for a sparse S (n, 2p)."""
        raise NotImplementedError

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows (m, d), in memory."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Return what tells these rows from others: a checksum of their masses and lengths."""
        found = hashlib.sha256(f"{self.shape} {self.dtype}".encode())
        for facts in (self.mass, self.lengths):
            found.update(np.ascontiguousarray(facts, np.float64).tobytes())
        return f"sha256:{found.hexdigest()}"


@contextmanager
def at_hand(X: Any, n_components: int, solver: str) -> Iterator[Any]:
    """Give the data of a fit: X itself, or what is elsewhere made ready for passes over it."""
    if not isinstance(X, Elsewhere):
        yield X
        return
    with X.at_hand(n_components, solver) as data:
        yield data


def facts_of(X: Any) -> tuple[NDArray[np.float64], Array, NDArray[np.int32]]:
    """Return the mass, the length and the number of nonzeros of each row."""
    mass = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    # so that squares of extreme values stay within range
    largest = (float(X.max()) if X.shape[0] else 0.0) or 1.0
    if not sp.issparse(X):
        lengths = largest * np.linalg.norm(X / largest, axis=1)
        return mass, lengths, np.full(len(X), X.shape[1], np.int32)
    squares = np.divide(X.data, largest, dtype=np.float64)
    np.square(squares, out=squares)
    sums = sp.csr_array((squares, X.indices, X.indptr), shape=X.shape) @ np.ones(X.shape[1])
    return mass, largest * np.sqrt(sums), np.diff(X.indptr).astype(np.int32)


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
        return RowsOnDemand((n, r), X.dtype, make)
    return make(0, n).astype(X.dtype)
