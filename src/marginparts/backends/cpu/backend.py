"""The kernels for CPUs: threads over the rows of a sparse matrix, BLAS for a dense one.

A sparse matrix is kept twice, by rows and by columns, so that both factors are updated by one row
loop in which every output row has one owner: no atomics, and the same bits on any number of
threads. A dense matrix is walked in blocks of samples that fit in the cache, never through an
(n, d) temporary. Factors have whole cache lines for rows; the columns that fill them up are zero
and stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Step
from marginparts.backends import Also, Plus
from marginparts.backends._common import (
    gauged,
    inverse_or_zero,
    least_entry,
    numerator_of,
    tiny,
    total_of,
)
from marginparts.backends.cpu import kernels
from marginparts.backends.cpu._emit import LINE_BYTES
from marginparts.backends.cpu.sweeps import sweep

#: Entries of a dense block: a megabyte or two, so that it stays in the cache.
_BLOCK = 1 << 19

#: The share of nonzeros below which the sparse kernel is chosen (measured: it is as fast as BLAS
#: near 1 for ranks up to 64, near 0.4 at 256).
_SPARSE_PAYS = 0.5

#: A gathered factor of more bytes than this does not stay in the cache. It is then gathered from in
#: pieces that do, unless their rows would have fewer nonzeros than this on average.
_LARGE_BYTES, _PIECE_BYTES, _WORTH_A_PASS = 1 << 24, 1 << 23, 4

#: Entries up to which a dense matrix is treated as a sparse one without zeros: an update takes as
#: long and coordinate descent gets much further, but the matrix takes four times the memory.
_SMALL_DENSE = 1 << 23


class SparseMatrix:
    """A CSR matrix; the cut of its rows into tasks and its transpose are made when needed.

    A ``fleeting`` one serves one pass, and is not worth cutting into pieces.
    """

    fleeting = False

    def __init__(self, csr: sp.csr_array | None, transpose: SparseMatrix | None = None) -> None:
        if csr is not None:
            self.csr = csr
        if transpose is not None:
            self.T = transpose
        n, d = csr.shape if csr is not None else self.T.shape[::-1]
        self.shape: tuple[int, int] = (n, d)
        self.nnz: int = csr.nnz if csr is not None else self.T.nnz

    @cached_property
    def csr(self) -> sp.csr_array:
        """The rows, from those of the transpose."""
        return self.T.csr.T.tocsr()

    @cached_property
    def T(self) -> SparseMatrix:
        """The transpose, by rows as well."""
        return SparseMatrix(None, transpose=self)

    @cached_property
    def tasks(self) -> Array:
        """Bounds of the tasks, see `row_tasks`."""
        return kernels.row_tasks(self.csr.indptr)

    def pieces(self, B: Array) -> list[tuple[slice, SparseMatrix]]:
        """Cut the columns so that the rows of B that belong to a piece stay in the cache.

        Returns nothing where B is small enough as a whole, where the other factor is larger still,
        and where the rows of a piece would have too few nonzeros to be worth a pass of their own.
        """
        width = max(_PIECE_BYTES // (B.shape[1] * B.itemsize), 1)
        n_pieces = -(-self.shape[1] // width)
        small = B.nbytes <= _LARGE_BYTES or self.shape[0] > self.shape[1]
        if small or self.fleeting or self.nnz < _WORTH_A_PASS * self.shape[0] * n_pieces:
            return []
        if width not in self._pieces:
            bounds = range(0, self.shape[1], width)
            spans = [slice(first, min(first + width, self.shape[1])) for first in bounds]
            self._pieces = {
                width: [(span, SparseMatrix(self.T.csr[span].T.tocsr())) for span in spans]
            }
        return self._pieces[width]

    @cached_property
    def _pieces(self) -> dict[int, list[tuple[slice, SparseMatrix]]]:
        return {}

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Row pointers, column indices and values."""
        return self.csr.indptr, self.csr.indices, self.csr.data

    def __matmul__(self, B: Array) -> Array:
        if B.dtype != self.csr.dtype or B.ndim == 1 or _in_lines(B) is not B:
            return np.asarray(self.csr @ B)
        out = _whole_lines((self.shape[0], B.shape[1]), B.dtype)
        with _tasks(self, B):
            kernels.matmul(_lines(B), self.tasks, *self.arrays, B, out)
        return out


class NumbaBackend:
    """Compiled, threaded kernels for CSR and dense data."""

    name = "numba"

    def prepare(self, X: Any, like: Any = None) -> Any:
        """Wrap sparse data, dense data with many zeros, and small dense data."""
        if like is not None:
            sparse = isinstance(like, SparseMatrix)
        else:
            sparse = sp.issparse(X) or X.size <= _SMALL_DENSE
            sparse = sparse or np.count_nonzero(X) < _SPARSE_PAYS * X.size
        if sparse:
            return SparseMatrix(_with_short_indices(X))
        return X.toarray() if sp.issparse(X) else X

    def coefficients(self, S: Any, rows_of: Any = None) -> SparseMatrix:
        """Wrap a sparse matrix."""
        return SparseMatrix(_with_short_indices(S))

    def factor(self, A: Array, rows_of: Any = None) -> Array:
        """Return a copy of whole cache lines, each at its place in memory."""
        padded = _whole_lines((len(A), A.shape[1]), A.dtype)
        padded[:, : A.shape[1]] = A
        padded[:, A.shape[1] :] = 0
        return padded

    def release(self, A: Array, r: int) -> Array:
        """Return the first r columns."""
        return A if A.shape[1] == r else A[:, :r].copy()

    def column_sums(self, A: Array) -> Array:
        """Return the sums over rows in float64."""
        with kernels.threads(A.size):
            return np.asarray(kernels.column_sums(A).sum(axis=0))

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Array:
        """Write ``max(now + b * (now - before), least * now)`` over ``before``."""
        dtype = now.dtype.type
        with kernels.threads(now.size):
            kernels.move_ahead(now, before, dtype(b), dtype(least))
        return before

    def ratio_matmul(self, X: Any, A: Array, B: Array) -> Array:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X."""
        if not isinstance(X, SparseMatrix):
            return _dense_ratio_matmul(X, A, B)
        r, A, B = A.shape[1], _in_lines(A), _in_lines(B)
        out = _whole_lines(A.shape, A.dtype)
        pieces = X.pieces(B)
        if pieces:
            out[...] = 0
        for columns, piece in pieces or [(slice(None), X)]:
            with _tasks(piece, A):
                kernels.ratio_matmul(
                    _lines(A), piece.tasks, *piece.arrays, A, B[columns], _floor(A), out,
                    bool(pieces),
                )  # fmt: skip
        return self.release(out, r)

    def divergence(self, X: Any, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x + a.b`` (eq. 2)."""
        least = A.dtype.type(least_entry(A.dtype))
        if isinstance(X, SparseMatrix):
            A, B = _in_lines(A), _in_lines(B)
            with _tasks(X, A):
                terms = kernels.log_terms(
                    _lines(A), X.tasks, *X.arrays, A, B, _floor(A), least
                ).sum()
        else:
            terms = sum(
                kernels.log_terms_block(X[rows], A[rows] @ B.T, least) for rows in _blocks(*X.shape)
            )
        return float(terms + self.column_sums(A) @ self.column_sums(B))

    def half_step(self, X: Any, A: Array, B: Array, den: Array, **options: Any) -> Step:
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``."""
        if not isinstance(X, SparseMatrix):
            return _dense_half_step(X, A, B, den, **options)
        return _SparsePass(X, A, B, den, **options).half_step()

    def finish(
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return ``A * numerator / den``."""
        room = _whole_lines(A.shape, A.dtype) if out is None else out
        return _finish(A, numerator, den, None, room if room.shape == A.shape else None, gauge)

    def total(self, parts: Iterable[Array]) -> Array:
        """Return the sum of factors, added up in float64."""
        return total_of(parts)

    def can_sweep(self, X: Any) -> bool:
        """Coordinate descent is for sparse data."""
        return isinstance(X, SparseMatrix)

    def sweep(
        self, X: Any, A: Array, B: Array, den: Array, *, sweeps: int = 1, settled: float = 0.0,
        lift: float = 0.0, **options: Any,
    ) -> Step:  # fmt: skip
        """Return A after coordinate descent on what `half_step` lowers, with its ``options``."""
        return _SparsePass(X, A, B, den, **options).sweep(sweeps, settled, lift)


class _SparsePass:
    """One pass over the nonzeros: the arguments of `half_step` as the kernels want them."""

    def __init__(
        self,
        X: SparseMatrix,
        A: Array,
        B: Array,
        den: Array,
        weight: Array | None = None,
        also: Also | None = None,
        plus: Plus | None = None,
        out: Array | None = None,
        gauge: bool = False,
    ) -> None:
        dtype = A.dtype.type
        self.rank, self.X = A.shape[1], X
        self.A, self.B = _in_lines(A), _in_lines(B)
        absent = kernels.no_rows(self.B)
        self.also = self.plus = absent
        if also is not None:
            self.also = (*also.X.arrays, _in_lines(also.B), dtype(also.weight))
        if plus is not None:
            S = plus.S if isinstance(plus.S, SparseMatrix) else NumbaBackend().coefficients(plus.S)
            self.plus = (*S.arrays, _in_lines(plus.T), dtype(plus.weight))
        self.den = np.zeros((1, self.A.shape[1]), A.dtype)
        self.den[0, : len(den)] = den
        self.inverse = np.zeros_like(self.den)
        self.inverse[0, : len(den)] = inverse_or_zero(den, A.dtype)
        self.weight = np.empty(0, A.dtype) if weight is None else weight.astype(A.dtype)
        if out is None or out.shape != self.A.shape:
            out = _whole_lines(self.A.shape, A.dtype)
        self.out = out
        self.gauge = np.zeros((1 if gauge else 0, 2))
        self.lines, self.floor = _lines(self.A), _floor(self.A)

    def half_step(self) -> Step:
        X, B, begun = self.X, self.B, self.B[:0]
        pieces = X.pieces(B)
        if pieces:
            begun = np.zeros_like(self.A)
            for columns, piece in pieces[:-1]:
                self._add(piece, B[columns], begun)
            columns, X = pieces[-1]
            B = B[columns]
        if len(self.gauge):
            self.gauge = np.zeros((len(X.tasks) - 1, 2))
        with _tasks(X, self.A):
            kernels.half_step(
                self.lines, X.tasks, *X.arrays, self.A, B, self.den, self.inverse, self.weight,
                self.also, self.plus, self.floor, self.out, self.gauge, begun,
            )  # fmt: skip
        return self._done()

    def _add(self, piece: SparseMatrix, B: Array, numerator: Array) -> None:
        """Add the ratios of some columns to the numerator."""
        with _tasks(piece, self.A):
            kernels.ratio_matmul(
                self.lines, piece.tasks, *piece.arrays, self.A, B, self.floor, numerator, True
            )

    def sweep(self, sweeps: int, settled: float, lift: float) -> Step:
        dtype = self.A.dtype.type
        if len(self.gauge):
            self.gauge = np.zeros((len(self.X.tasks) - 1, 2))
        with _tasks(self.X, self.A):
            sweep(
                self.lines, self.X.tasks, *self.X.arrays, self.A, self.B, self.den, self.inverse,
                self.weight, self.also, self.plus, self.floor, sweeps, dtype(settled),
                dtype(lift), self.out, self.gauge,
            )  # fmt: skip
        return self._done()

    def _done(self) -> Step:
        new = self.out if self.out.shape[1] == self.rank else self.out[:, : self.rank].copy()
        if not len(self.gauge):
            return Step(new)
        return gauged(new, *self.gauge.sum(axis=0))


def _with_short_indices(X: Any) -> sp.csr_array:
    """Return CSR data with indices of 32 bits where they suffice: less to read, one kernel."""
    # not from itself: SciPy would copy arrays that are views of larger ones
    X = X if isinstance(X, sp.csr_array) else sp.csr_array(X)
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) < 2**31:
        arrays = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = sp.csr_array(arrays, shape=X.shape, copy=False)
    return X


def _tasks(X: SparseMatrix, A: Array) -> AbstractContextManager[None]:
    """Threads for one pass over the tasks of a matrix."""
    return kernels.threads(X.nnz * A.shape[1], 1 + len(X.tasks) // 64)


def _lines(A: Array) -> Any:
    """Return what tells the compiler the number of lines in a row, see `_vectors`."""
    return np.empty(0, f"S{A.shape[1] * A.itemsize // LINE_BYTES}")


def _row_width(r: int, dtype: Any) -> int:
    """Columns of a factor with r of its own, filled up to whole lines."""
    itemsize = np.dtype(dtype).itemsize
    lines = max(-(-r * itemsize // LINE_BYTES), 1)
    # fewer kernels to compile: above four lines an even number, above sixteen a multiple of four
    grain = 1 if lines <= 4 else 2 if lines <= 16 else 4
    return -(-lines // grain) * grain * LINE_BYTES // itemsize


def _whole_lines(shape: tuple[int, ...], dtype: Any) -> Array:
    """Room for a factor whose rows are whole lines, the first of them at a line's boundary."""
    n, width = shape[0], _row_width(shape[1], dtype)
    size = n * width * np.dtype(dtype).itemsize
    room = np.empty(size + LINE_BYTES, np.uint8)
    start = -room.ctypes.data % LINE_BYTES
    return room[start : start + size].view(dtype).reshape(n, width)


def _in_lines(A: Array) -> Array:
    """Return the factor itself if its rows are whole lines, else a copy that has them."""
    if A.flags.c_contiguous and A.shape[1] == _row_width(A.shape[1], A.dtype):
        return A
    return NumbaBackend().factor(A)


def _floor(A: Array) -> Any:
    return A.dtype.type(tiny(A.dtype))


def _dense_half_step(
    X: Array,
    A: Array,
    B: Array,
    den: Array,
    weight: Array | None = None,
    also: Also | None = None,
    plus: Plus | None = None,
    out: Array | None = None,
    gauge: bool = False,
) -> Step:
    """The numerator through BLAS, then one loop over the factor."""
    numerator = numerator_of(_dense_ratio_matmul, X, A, B, also, plus)
    return _finish(A, numerator, den, weight, out, gauge)


def _finish(
    A: Array, numerator: Array, den: Array, weight: Array | None, out: Array | None, gauge: bool
) -> Step:
    """The update from its numerator."""
    weight = np.empty(0, A.dtype) if weight is None else weight.astype(A.dtype)
    out = np.empty_like(A) if out is None else out
    inverse = inverse_or_zero(den, A.dtype)[None]
    found = kernels.finish_block(A, numerator, den[None].astype(A.dtype), inverse, weight, out)
    return gauged(out, *found) if gauge else Step(out)


def _dense_ratio_matmul(X: Array, A: Array, B: Array) -> Array:
    """Return ``(X / (A @ B.T)) @ B``, in blocks along the axis that is contiguous in memory."""
    floor = _floor(A)
    if X.flags.c_contiguous:
        out = np.empty(A.shape, A.dtype)
        for rows in _blocks(*X.shape):
            ratio = A[rows] @ B.T
            kernels.divide_block(X[rows], ratio, floor)
            np.matmul(ratio, B, out=out[rows])
        return out
    sums = np.zeros(A.shape)  # in float64: a sum over all samples
    for columns in _blocks(*X.T.shape):
        ratio = B[columns] @ A.T
        kernels.divide_block(X.T[columns], ratio, floor)
        sums += ratio.T @ B[columns]
    return sums.astype(A.dtype)


def _blocks(n: int, d: int) -> Iterator[slice]:
    """Slices of rows with about `_BLOCK` entries each, and not too many rows to sum in float32."""
    step = max(1, min(_BLOCK // max(d, 1), 4096))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
