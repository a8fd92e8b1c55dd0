"""Which entries are known: all but some, some alone, those that are not zero, all but blocks.

Each kind says what the loss needs of it: the sums of a factor over what is known of each row, as a
`Known`, at a cost of what is listed. Past this module an entry that is not
known is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data, Matrix
from marginparts.backends import Backend, Known
from marginparts.backends.base import safe_ratio
from marginparts.losses.gaps import GappedProblem

#: What may be said of missing values.
MISSING = ("nan", "zeros")

#: Entries that are filled at a time.
_FILLED = 1 << 16


class Gaps(ABC):
    """Where data (n, d) has gaps."""

    @abstractmethod
    def known(self, X: Data) -> Data:
        """Return data with zeros in the gaps."""

    @abstractmethod
    def sides(self, backend: Backend, X: Matrix) -> tuple[Known, Known]:
        """Return what is known of each row, and of each column, of prepared data."""

    @abstractmethod
    def of_rows(self, rows: Any) -> Gaps:
        """Return the gaps of some rows."""

    def problem(self, kernels: Backend, X: Matrix) -> GappedProblem:
        """Return the problem of prepared data that has zeros in the gaps (`known`)."""
        if not kernels.can_shrink:
            raise ValueError(f"backend={kernels.name!r} cannot carry gaps; use backend='numba'.")
        rows, columns = self.sides(kernels, X)
        return GappedProblem(kernels, X=X, rows=rows, columns=columns)


#: What is missing: nothing, NaN, zeros, or what a mask says.
Missing = str | Gaps | None


@dataclass(frozen=True)
class Listed(Gaps):
    """Gaps that are listed: the stored entries of ``places`` (n, d)."""

    places: sp.csr_array

    def known(self, X: Data) -> Data:
        """Return data with zeros in the gaps."""
        if isinstance(X, np.ndarray):
            X = X.copy()
            X[_rows_of(self.places), self.places.indices] = 0
            return X
        return _only(X, ~np.isin(_keys(X), _keys(self.places), assume_unique=True))

    def sides(self, backend: Backend, X: Matrix) -> tuple[Known, Known]:
        """Return sums over the largest blocks of a binary tree that have no gap."""
        return _all_but(self.places, backend), _all_but(self.places.T.tocsr(), backend)

    def of_rows(self, rows: Any) -> Listed:
        """Return the gaps of some rows."""
        return Listed(self.places[rows])


@dataclass(frozen=True)
class AllBut(Gaps):
    """All is a gap but what is listed: the stored entries of ``places`` (n, d)."""

    places: sp.csr_array

    def known(self, X: Data) -> Data:
        """Return the data, which has nothing elsewhere (`masked`)."""
        return X

    def sides(self, backend: Backend, X: Matrix) -> tuple[Known, Known]:
        """Return sums over all that is known."""
        rows, columns = (backend.pattern(side.tocsr()) for side in (self.places, self.places.T))
        return Known(rows, _itself), Known(columns, _itself)

    def of_rows(self, rows: Any) -> AllBut:
        """Return the gaps of some rows."""
        return AllBut(self.places[rows])


class Zeros(Gaps):
    """All zeros are gaps."""

    def known(self, X: Data) -> Data:
        """Return the data, in which gaps are zeros."""
        return X

    def sides(self, backend: Backend, X: Matrix) -> tuple[Known, Known]:
        """Return sums over all that is known."""
        patterns = backend.pattern_of(X), backend.pattern_of(X.T)
        return Known(patterns[0], _itself), Known(patterns[1], _itself)

    def of_rows(self, rows: Any) -> Zeros:
        """Return the gaps of some rows."""
        return self


@dataclass(frozen=True)
class Blocks(Gaps):
    """A share 1 / ``count`` of all entries, the same of each row and each column.

    Rows and columns are in groups; entry (i, j) is a gap if ``rows[i] + columns[j]`` is ``fold``
    modulo ``count``. Zeros are hidden like all else, and yet nothing is listed.
    """

    rows: NDArray[np.intp]  # (n,)
    columns: NDArray[np.intp]  # (d,)
    fold: int
    count: int

    def known(self, X: Data) -> Data:
        """Return data with zeros in the gaps."""
        return self._where(X, hidden=False)

    def hidden(self, X: Data) -> Data:
        """Return data with zeros everywhere else."""
        return self._where(X, hidden=True)

    def _where(self, X: Data, hidden: bool) -> Data:
        if isinstance(X, np.ndarray):
            gaps = (self.rows[:, None] + self.columns) % self.count == self.fold
            return np.where(gaps == hidden, X, X.dtype.type(0))
        gaps = (self.rows[_rows_of(X)] + self.columns[X.indices]) % self.count == self.fold
        return _only(X, gaps == hidden)

    def sides(self, backend: Backend, X: Matrix) -> tuple[Known, Known]:
        """Return sums over groups."""
        rows, columns = (
            _pattern(np.arange(len(groups)), groups, (len(groups), self.count))
            for groups in (self.rows, self.columns)
        )
        groups = np.arange(self.count)
        apart = sp.csr_array(((groups[:, None] + groups) % self.count != self.fold).astype(np.int8))

        def side(own: sp.csr_array, other: sp.csr_array) -> Known:
            sums = backend.pattern(other.T.tocsr())
            return Known(backend.pattern(sp.csr_array(own @ apart)), sums.__matmul__)

        return side(rows, columns), side(columns, rows)

    def of_rows(self, rows: Any) -> Blocks:
        """Return the gaps of some rows."""
        return Blocks(self.rows[rows], self.columns, self.fold, self.count)


def masked(X: Data, mask: Any, missing: str | None) -> tuple[Data, Missing]:
    """Return data of which a mask (n, d) says what is known, and what is missing of it.

    What is not known becomes NaN. Where both are sparse that would be nearly all, so what is known
    is listed instead.
    """
    if mask is None:
        return X, missing
    mask = mask if sp.issparse(mask) else np.asarray(mask)
    if mask.dtype != bool or mask.shape != X.shape:
        raise ValueError(
            f"mask has shape {mask.shape} and type {mask.dtype}; it must be {X.shape} and bool, "
            "True where an entry is known."
        )
    if missing == "zeros":
        raise ValueError('missing="zeros" says what is known, and so does mask; give one of them.')
    if isinstance(X, np.ndarray):
        mask = mask.toarray() if sp.issparse(mask) else mask
        return np.where(mask, X, X.dtype.type(np.nan)), "nan"
    if not sp.issparse(mask):
        rows, columns = np.nonzero(~mask)
        holes = sp.csr_array((np.full(len(rows), np.nan, X.dtype), (rows, columns)), shape=X.shape)
        return sp.csr_array(_only(X, mask[_rows_of(X), X.indices]) + holes), "nan"
    rows, columns = mask.nonzero()
    places, empty = _pattern(rows, columns, X.shape), np.isnan(X.data)
    if empty.any():
        X, holes = _only(X, ~empty), _keys(X)[empty]
        places = _only(places, ~np.isin(_keys(places), holes, assume_unique=True))
    kept = np.isin(_keys(X), _keys(places), assume_unique=True)
    return _only(X, kept), AllBut(places)


def filled(X: Data, H: Array, parts: Array) -> Data:
    """Return data with ``H @ parts`` where it is NaN; sparse data stays sparse."""
    new: Any = X.copy()
    values = new.data if sp.issparse(new) else new
    at = np.nonzero(np.isnan(values))
    rows, columns = (_rows_of(new)[at], new.indices[at]) if sp.issparse(new) else at
    found, V = np.empty(len(rows), X.dtype), parts.T
    for first in range(0, len(rows), _FILLED):
        some = slice(first, first + _FILLED)
        found[some] = np.einsum("ek,ek->e", H[rows[some]], V[columns[some]])
    values[at] = found
    if sp.issparse(new):
        new.eliminate_zeros()
    return new


def found_gaps(X: Data, missing: str | Gaps) -> tuple[Data, Gaps]:
    """Return data without NaN, and its gaps.

    A NaN becomes the mean of what is known of its column: classifiers and starts, which need whole
    rows, lean to no side by it. No loss sees it.
    """
    if isinstance(missing, Gaps):
        return X, missing
    if missing == "zeros":
        return X, Zeros()
    if isinstance(X, np.ndarray):
        rows, columns = np.nonzero(np.isnan(X))
        gaps = Listed(_pattern(rows, columns, X.shape))
        X = gaps.known(X)
        X[rows, columns] = _means(X, columns)[columns]
        return X, gaps
    empty = np.isnan(X.data)
    rows, columns = _rows_of(X)[empty], X.indices[empty]
    means = _means(_only(X, ~empty), columns)
    values = np.where(empty, means[X.indices], X.data)
    filled = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return _only(filled, values > 0), Listed(_pattern(rows, columns, X.shape))


def _means(X: Data, gaps: NDArray[Any]) -> Array:
    """Return the mean of what is known of each column, with gaps in these; 0 where nothing is."""
    known = X.shape[0] - np.bincount(gaps, minlength=X.shape[1])
    sums = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    return safe_ratio(sums, known).astype(X.dtype)


def _all_but(places: sp.csr_array, backend: Backend) -> Known:
    """Return the side of all entries but the places.

    The columns that have gaps, and the sum of all others, are the leaves of a binary tree. What is
    known of a row are the largest blocks of the tree without a gap: the siblings, if they have
    none, of all blocks that have one.
    """
    n, d = places.shape
    columns, leaves = np.unique(places.indices, return_inverse=True)
    rows, width, first = _rows_of(places), len(columns) + 1, 0
    found: list[tuple[Any, Any]] = []
    while width > 1:
        siblings = leaves ^ 1
        whole = siblings < width
        # in order: of two siblings with gaps, one follows the other
        both = (rows[1:] == rows[:-1]) & (leaves[1:] == siblings[:-1])
        whole[1:] &= ~both
        whole[:-1] &= ~both
        found.append((rows[whole], first + siblings[whole]))
        once = np.append(~both, True)  # their parent
        rows, leaves = rows[once[: len(rows)]], leaves[once[: len(rows)]] >> 1
        first, width = first + width, (width + 1) // 2
    without = np.flatnonzero(np.diff(places.indptr) == 0)
    found.append((without, np.full(len(without), first)))
    filled, blocks = (np.concatenate(part) for part in zip(*found, strict=True))
    others = np.setdiff1d(np.arange(d), columns)
    rest = backend.pattern(_pattern(np.zeros_like(others), others, (1, d)))
    pattern = backend.pattern(_pattern(filled, blocks, (n, first + 1)))
    gaps = backend.pattern(places) if 2 * places.nnz < pattern.nnz else None
    return Known(pattern, partial(_tree, columns, rest, first + 1), gaps)


def _tree(columns: NDArray[Any], rest: Any, size: int, B: Array) -> Array:
    """Return the sums of B (d, r) over all blocks of the tree (size, r), level by level."""
    T = np.empty((size, B.shape[1]), B.dtype)
    first, width = 0, len(columns) + 1
    T[: width - 1] = B[columns]
    T[width - 1] = (rest @ B)[0]
    while width > 1:
        level, above = T[first : first + width], T[first + width :][: (width + 1) // 2]
        above[:] = level[::2]
        above[: width // 2] += level[1::2]
        first, width = first + width, len(above)
    return T


def _itself(B: Array) -> Array:
    return B


def _rows_of(X: sp.csr_array) -> NDArray[np.int64]:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def _keys(X: sp.csr_array) -> NDArray[np.int64]:
    """Return a number for the place of each stored entry."""
    return _rows_of(X) * X.shape[1] + X.indices


def _only(X: sp.csr_array, kept: NDArray[np.bool_]) -> sp.csr_array:
    """Return some of the stored entries."""
    ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
    return sp.csr_array((X.data[kept], X.indices[kept], ends), shape=X.shape)


def _pattern(rows: Any, columns: Any, shape: tuple[int, ...]) -> sp.csr_array:
    """Return a matrix with ones at some places, each named once."""
    found = sp.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=shape)
    found.sort_indices()
    return found
