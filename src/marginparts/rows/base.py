"""Rows that are not in memory: what every kind of them offers, and how a fit takes them.

Two classes stand for the same rows at two times. `Elsewhere` is what a person gives in the place of
X: files (`rows.disk`), or a Dask array (`rows.dask`). While a fit lasts, `at_hand` turns it into
`OutOfCore`: trusted blocks of rows, with what a fit asks of its data. Everything above this package
asks one of these two questions, or takes arrays.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from marginparts._types import Array, Data

if TYPE_CHECKING:
    from marginparts.backends import Backend

#: Entries that are made at a time where all rows are gone through.
_CHUNK = 1 << 22

#: Mass, length and number of nonzeros of each row.
Facts: TypeAlias = tuple[NDArray[np.float64], Array, NDArray[np.int32]]


class Elsewhere(ABC):
    """What people give in the place of X when it is not in memory: files, or a Dask array."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]  # what its entries become: float32 stays, all else is float64

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def at_hand(self, n_components: int, solver: str) -> AbstractContextManager[OutOfCore]:
        """Check all rows, and give them as `OutOfCore` data while a fit lasts."""

    @abstractmethod
    def gathered(self) -> Any:
        """Return all rows in memory, or refuse."""


class OutOfCore(ABC):
    """Trusted blocks of rows on disk or on a cluster, and what a fit can ask of them."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool
    bounds: Sequence[int]  # block i has the rows bounds[i]:bounds[i + 1]
    scale: float = 1.0  # what every entry is to be multiplied with when it is read

    def _note(self, facts: Sequence[Facts]) -> None:
        """Keep what is known of the rows of each block: three arrays (n,)."""
        self.mass, self.lengths, self.counts = map(np.concatenate, zip(*facts, strict=True))
        self.bounds = [0, *np.cumsum([len(block[0]) for block in facts]).tolist()]
        self.nnz = int(self.counts.sum(dtype=np.int64))

    def sum(self, axis: int | None = None, dtype: DTypeLike | None = None) -> Any:
        """Return the sum of all entries, or of each row."""
        return self.mass if axis == 1 else self.mass.sum()

    def __mul__(self, scale: float | np.floating) -> Self:
        scaled = copy(self)
        scaled.scale = self.scale * float(scale)
        scaled.mass, scaled.lengths = self.mass * float(scale), self.lengths * float(scale)
        return scaled

    def __getitem__(self, rows: ArrayLike) -> Data:
        """Return some rows (m, d) in memory, in the order asked for: the labeled ones, say."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[order], self.bounds)
        wanted = {
            i: rows[order[cuts[i] : cuts[i + 1]]] - self.bounds[i]
            for i in np.flatnonzero(np.diff(cuts)).tolist()
        }
        back = np.argsort(order, kind="stable")
        empty = np.empty((0, self.shape[1]), self.dtype)
        if self.sparse:
            found = [sp.csr_array(empty), *self._rows_of_blocks(wanted)]
            return sp.csr_array(sp.vstack(found, format="csr")[back])
        return np.concatenate([empty, *self._rows_of_blocks(wanted)])[back]

    def fits(self, rows: ArrayLike) -> bool:
        """Whether some rows can be had in memory at once."""
        return True

    @abstractmethod
    def _rows_of_blocks(self, wanted: dict[int, NDArray[np.intp]]) -> list[Data]:
        """Return some rows of some blocks, by their places within each."""

    @abstractmethod
    def kernels(self, backend: str | Backend, r: int) -> Backend:
        """Return a backend for such data around the one asked for."""

    def transposed_product(self, S: Data) -> Data:
        """Return ``S.T @ X`` (2p, d) for a sparse S (n, 2p), from the rows that S needs."""
        S = sp.csr_array(S)
        known = np.flatnonzero(np.diff(S.indptr))
        product = S[known].T @ self[known]
        return product.astype(self.dtype)

    def fingerprint(self) -> str:
        """Return what tells these rows from others: a checksum of their masses and lengths."""
        found = hashlib.sha256(f"{self.shape} {self.dtype}".encode())
        for facts in (self.mass, self.lengths):
            found.update(np.ascontiguousarray(facts, np.float64).tobytes())
        return f"sha256:{found.hexdigest()}"


#: What a fit works on, and what it may be given.
Rows: TypeAlias = Data | OutOfCore
Given: TypeAlias = ArrayLike | sp.sparray | Elsewhere


@contextmanager
def at_hand(X: Data | Elsewhere, n_components: int, solver: str) -> Iterator[Any]:
    """Give the data of a fit: X itself, or what is elsewhere made ready for passes over it."""
    if not isinstance(X, Elsewhere):
        yield X
        return
    with X.at_hand(n_components, solver) as data:
        if not data.mass.any():
            raise ValueError(f"{X!r} needs at least one positive entry; all are zero.")
        yield data


def facts_of(X: Data) -> Facts:
    """Return the mass, the length and the number of nonzeros of each row."""
    mass = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    # so that squares of extreme values stay within range
    largest = (float(X.max()) if X.shape[0] else 0.0) or 1.0
    if isinstance(X, np.ndarray):
        lengths = largest * np.linalg.norm(X / largest, axis=1)
        return mass, lengths, np.full(len(X), X.shape[1], np.int32)
    squares = np.divide(X.data, largest, dtype=np.float64)
    np.square(squares, out=squares)
    sums = sp.csr_array((squares, X.indices, X.indptr), shape=X.shape) @ np.ones(X.shape[1])
    return mass, largest * np.sqrt(sums), np.diff(X.indptr).astype(np.int32)


class RowsOnDemand:
    """A factor (n, r) whose rows ``make(first, last)`` makes when they are asked for.

    For starts of large data.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: DTypeLike, make: Callable[[int, int], Array]
    ) -> None:
        self.shape, self.dtype, self.make = shape, np.dtype(dtype), make

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        first, last, _ = rows.indices(len(self))
        return self.make(first, last).astype(self.dtype, copy=False)

    def __mul__(self, scale: float) -> RowsOnDemand:
        return RowsOnDemand(self.shape, self.dtype, lambda a, b: self.make(a, b) * scale)

    def mean(self, dtype: DTypeLike = np.float64) -> float:
        """Return the mean of all entries."""
        step = max(_CHUNK // self.shape[1], 1)
        sums = (self[first : first + step].sum(dtype=dtype) for first in range(0, len(self), step))
        return float(sum(sums)) / (self.shape[0] * self.shape[1])
