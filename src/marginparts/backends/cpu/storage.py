"""Sparse matrices and factors as the kernels for CPUs read them.

A sparse matrix is kept twice, by rows and by columns, each with a cut of its rows into tasks.
Factors have whole cache lines for rows; the columns that fill them up are zero and stay so.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data, Matrix
from marginparts.backends.cpu import kernels
from marginparts.backends.cpu._emit import LINE_BYTES
from marginparts.validation import with_short_indices

#: Nonzeros from which a transpose is not made before it is needed.
_LARGE_TRANSPOSE = 1 << 21

#: A gathered factor of more bytes than this does not stay in the cache. It is then gathered from in
#: pieces that do, unless their rows would have fewer nonzeros than this on average.
_LARGE_BYTES, _PIECE_BYTES, _WORTH_A_PASS = 1 << 24, 1 << 23, 4


def row_tasks(indptr: NDArray[Any]) -> NDArray[np.int64]:
    """Cut the rows of a CSR matrix into tasks of about equal numbers of nonzeros.

    Task t owns the rows ``tasks[t]:tasks[t + 1]`` of what is returned.
    """
    n = len(indptr) - 1
    # a row costs its nonzeros, and a little for its own write
    work = np.asarray(indptr, dtype=np.int64) + 4 * np.arange(n + 1)
    targets = np.linspace(0, work[-1], min(kernels.TASKS, max(n, 1)) + 1)
    tasks = np.searchsorted(work, targets[:-1], side="left")
    return np.unique(np.append(tasks, n)).astype(np.int64)


class SparseMatrix:
    """A CSR matrix with the cut of its rows into tasks; its transpose is made when needed.

    One that ``serves_one_pass`` is not worth cutting into pieces.
    """

    def __init__(self, csr: sp.csr_array, serves_one_pass: bool = False) -> None:
        self.csr, self.serves_one_pass = csr, serves_one_pass
        self.shape: tuple[int, int] = csr.shape
        self.nnz: int = csr.nnz
        self.tasks = row_tasks(csr.indptr)
        #: Row pointers, column indices and values.
        self.arrays = csr.indptr, csr.indices, csr.data
        self._pieces: tuple[int, list[tuple[slice, SparseMatrix]]] = 0, []

    @cached_property
    def T(self) -> SparseMatrix:
        """The transpose, by rows as well."""
        if self.nnz > _LARGE_TRANSPOSE:
            return _Transpose(self)
        transpose = SparseMatrix(self.csr.T.tocsr())
        transpose.T = self
        return transpose

    def of(self, rows: NDArray[np.intp]) -> SparseMatrix:
        """Return some of the rows."""
        return type(self)(self.csr[rows])

    def pieces(self, B: Array) -> list[tuple[slice, SparseMatrix]]:
        """Cut the columns so that the rows of B that belong to a piece stay in the cache.

        Returns nothing where B is small enough as a whole, where the other factor is larger still,
        and where the rows of a piece would have too few nonzeros to be worth a pass of their own.
        """
        (n, d), width = self.shape, max(_PIECE_BYTES // (B.shape[1] * B.itemsize), 1)
        small = B.nbytes <= _LARGE_BYTES or n > d
        if small or self.serves_one_pass or self.nnz < _WORTH_A_PASS * n * -(-d // width):
            return []
        if self._pieces[0] != width:
            spans = [slice(first, min(first + width, d)) for first in range(0, d, width)]
            self._pieces = (
                width, [(span, SparseMatrix(self.T.csr[span].T.tocsr())) for span in spans]
            )  # fmt: skip
        return self._pieces[1]

    def __matmul__(self, B: Array) -> Array:
        if B.dtype != self.csr.dtype or B.ndim == 1 or in_lines(B) is not B:
            return np.asarray(self.csr @ B)
        out = whole_lines((self.shape[0], B.shape[1]), B.dtype)
        with kernels.threads(self.nnz * B.shape[1], self.tasks):
            kernels.matmul(lines_of(B), self.tasks, *self.arrays, B, out)
        return out


class _Transpose(SparseMatrix):
    """A transpose that is made when it is needed as a whole; its pieces are made of the matrix."""

    def __init__(self, of: SparseMatrix) -> None:
        self.T, self.serves_one_pass = of, False
        self.shape, self.nnz = (of.shape[1], of.shape[0]), of.nnz
        self._pieces = 0, []

    def __getattr__(self, name: str) -> Any:
        if name not in ("csr", "tasks", "arrays"):
            raise AttributeError(name)
        super().__init__(self.T.csr.T.tocsr())
        return getattr(self, name)

    def of(self, rows: NDArray[np.intp]) -> SparseMatrix:
        """Return some of the rows."""
        return SparseMatrix(self.csr[rows])


class SparsePattern(SparseMatrix):
    """A sparse matrix of ones; long sums of rows keep their digits."""

    def __matmul__(self, B: Array) -> Array:
        r, B = B.shape[1], in_lines(B)
        out = whole_lines((self.shape[0], r), B.dtype)
        with kernels.threads(self.nnz * B.shape[1], self.tasks):
            kernels.pattern_matmul(lines_of(B), self.tasks, *self.arrays[:2], B, out)
        return out if out.shape[1] == r else out[:, :r].copy()


def as_csr(X: Data | Matrix) -> sp.csr_array:
    """Return data as CSR with indices of 32 bits where they suffice."""
    # not from itself: SciPy would copy arrays that are views of larger ones
    return with_short_indices(X if isinstance(X, sp.csr_array) else sp.csr_array(X))


def lines_of(A: Array) -> NDArray[np.bytes_]:
    """Return what tells the compiler the number of lines in a row, see `_vectors`."""
    return np.empty(0, f"S{A.shape[1] * A.itemsize // LINE_BYTES}")


@cache
def row_width(r: int, itemsize: int) -> int:
    """Columns of a factor with r of its own, filled up to whole lines."""
    lines = max(-(-r * itemsize // LINE_BYTES), 1)
    # fewer kernels to compile: above four lines an even number, above sixteen a multiple of four
    grain = 1 if lines <= 4 else 2 if lines <= 16 else 4
    return -(-lines // grain) * grain * LINE_BYTES // itemsize


def whole_lines(shape: tuple[int, ...], dtype: np.dtype[np.floating]) -> Array:
    """Return an empty factor whose rows are whole lines, the first of them at a line's boundary."""
    n, width = shape[0], row_width(shape[1], dtype.itemsize)
    size = n * width * dtype.itemsize
    buffer = np.empty(size + LINE_BYTES, np.uint8)
    start = -buffer.ctypes.data % LINE_BYTES
    return buffer[start : start + size].view(dtype).reshape(n, width)


def in_lines(A: Array) -> Array:
    """Return the factor itself if its rows are whole lines, else a copy that has them."""
    if A.flags.c_contiguous and A.shape[1] == row_width(A.shape[1], A.itemsize):
        return A
    return padded(A)


def padded(A: Array) -> Array:
    """Return a copy of a factor in rows of whole lines, filled up with zeros."""
    found = whole_lines(A.shape, A.dtype)
    found[:, : A.shape[1]] = A
    found[:, A.shape[1] :] = 0
    return found
