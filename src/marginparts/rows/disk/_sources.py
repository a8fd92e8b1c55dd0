"""Matrices in files, a number of rows at a time and as the files have them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from marginparts._types import Data
from marginparts.files.atomic import FileProblemError
from marginparts.rows.disk._limits import shown


class Stored(Protocol):
    """An array in a file, read by slices."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, rows: slice) -> Any: ...


class Chunk(NamedTuple):
    """Some rows as a file has them: CSR or dense, not checked yet."""

    X: Data
    path: Path
    #: The place in the file of the first of these rows, from 1.
    place: int


class Bounds(NamedTuple):
    """How much may be read at a time."""

    #: Nonzeros of a chunk (entries, of a dense one).
    entries: int
    rows: int
    #: Bytes of a file that can only be read whole.
    file_bytes: int


@dataclass
class Source(ABC):
    """A matrix in files.

    ``largest_row`` is the number of entries of the largest row, 0 where that takes reading all.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    nnz: int
    sparse: bool
    largest_row: int

    @abstractmethod
    def chunks(self, most: Bounds) -> Iterator[Chunk]:
        """Yield all rows in order."""


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type in which a file's entries are counted: float32 stays, the rest is float64."""
    return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)


def check_real(path: Path, *dtypes: DTypeLike) -> None:
    """Refuse entries that are no real numbers."""
    for dtype in dtypes:
        if np.dtype(dtype).kind not in "buif":
            raise FileProblemError(f"{path} holds {dtype} entries; save a matrix of real numbers.")


def row_spans(indptr: NDArray[Any], most: Bounds) -> Iterator[tuple[int, int]]:
    """Cut rows so that no piece has too many rows or nonzeros, unless a single row has."""
    first, n = 0, len(indptr) - 1
    while first < n:
        fitting = int(np.searchsorted(indptr, indptr[first] + most.entries, side="right")) - 1
        last = min(max(fitting, first + 1), first + most.rows, n)
        yield first, last
        first = last


@dataclass
class CsrSource(Source):
    """The three arrays of a CSR matrix, each in its own file or data set.

    ``arrays`` opens the values and the column indices, which can be sliced.
    """

    path: Path
    indptr: NDArray[np.int64]
    arrays: Callable[[], AbstractContextManager[tuple[Any, Any]]]

    def chunks(self, most: Bounds) -> Iterator[Chunk]:
        """Yield all rows in order."""
        with self.arrays() as (data, indices):
            for first, last in row_spans(self.indptr, most):
                lo, hi = int(self.indptr[first]), int(self.indptr[last])
                columns = np.asarray(indices[lo:hi])
                self._check(columns, first, last)
                pointers = self.indptr[first : last + 1] - lo
                arrays = np.asarray(data[lo:hi]), columns, pointers
                shape = (last - first, self.shape[1])
                yield Chunk(_short(arrays, shape), self.path, first + 1)

    def _check(self, columns: NDArray[Any], first: int, last: int) -> None:
        if len(columns) and not 0 <= columns.min() <= columns.max() < self.shape[1]:
            raise FileProblemError(
                f"{self.path}, rows {first + 1} to {last}: a column index is not in 0 to "
                f"{self.shape[1] - 1}; write the file again, with its shape."
            )


def _short(arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> sp.csr_array:
    """Return a CSR matrix with indices of 32 bits where they suffice."""
    data, indices, indptr = arrays
    index = np.int32 if max(len(data), *shape) < 2**31 else np.int64
    indices, indptr = indices.astype(index, copy=False), indptr.astype(index)
    return sp.csr_array((data, indices, indptr), shape=shape)


def csr_source(
    path: Path, shape: tuple[int, int], indptr: NDArray[Any], data: Stored, indices: Stored,
    arrays: Callable[[], AbstractContextManager[tuple[Any, Any]]] | None = None,
) -> CsrSource:  # fmt: skip
    """Check that three arrays make a CSR matrix, without reading the long ones."""
    check_real(path, data.dtype)
    indptr = np.asarray(indptr)
    lengths = {data.shape, indices.shape, (int(indptr[-1]) if len(indptr) else -1,)}
    rises = indptr.ndim == 1 and indptr.dtype.kind in "iu" and (np.diff(indptr) >= 0).all()
    if not rises or len(lengths) > 1 or indptr[0] != 0 or indices.dtype.kind not in "iu":
        raise FileProblemError(
            f"{path} is no CSR matrix: indptr must rise from 0 to the number of its data and "
            "indices; write it again."
        )
    if len(indptr) - 1 != shape[0]:
        raise FileProblemError(
            f"{path} has {len(indptr) - 1} rows by its indptr and {shape[0]} by its shape; "
            "write it again."
        )
    found = (int(shape[0]), int(shape[1]))
    indptr = indptr.astype(np.int64, copy=False)
    opened = arrays or (lambda: nullcontext((data, indices)))
    largest = int(np.diff(indptr).max(initial=0))
    dtype = float_type(data.dtype)
    return CsrSource(found, dtype, int(indptr[-1]), True, largest, path, indptr, opened)


@dataclass
class DenseSource(Source):
    """A dense matrix in a file or data set; ``rows`` opens it, to be sliced."""

    path: Path
    rows: Callable[[], AbstractContextManager[Any]]

    def chunks(self, most: Bounds) -> Iterator[Chunk]:
        """Yield all rows in order."""
        step = max(min(most.rows, most.entries // max(self.shape[1], 1)), 1)
        with self.rows() as X:
            for first in range(0, self.shape[0], step):
                yield Chunk(np.asarray(X[first : first + step]), self.path, first + 1)


def dense_source(
    path: Path, X: Stored, rows: Callable[[], AbstractContextManager[Any]] | None = None
) -> DenseSource:
    """Check that an array is a matrix, without reading it."""
    check_real(path, X.dtype)
    if len(X.shape) != 2:
        raise FileProblemError(f"{path} has an array of shape {tuple(X.shape)}; save a matrix.")
    n, d = int(X.shape[0]), int(X.shape[1])
    opened = rows or (lambda: nullcontext(X))
    return DenseSource((n, d), float_type(X.dtype), n * d, False, d, path, opened)


def too_large(path: Path, size: int, most: int) -> FileProblemError:
    """Return the complaint about a file that has to be read whole."""
    return FileProblemError(
        f"{path} holds {shown(size)}, and the memory limit leaves {shown(most)} for a file that is "
        "read whole; raise memory_limit or save it as several files with fewer rows."
    )
