"""The kernels for CPUs: threads over the rows of a sparse matrix, BLAS for a dense one.

A sparse matrix is kept twice, by rows and by columns, so that both factors are updated by one row
loop in which every output row has one owner: no atomics, and the same bits on any number of
threads. A dense matrix is walked in blocks of samples that fit in the cache, never through an
(n, d) temporary.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array
from marginparts.backends import Also, Plus
from marginparts.backends import _numba_kernels as kernels
from marginparts.backends._common import column_sums, composed_half_step, inverse_or_zero, tiny

#: Entries of a dense block: a megabyte or two, so that it stays in the cache.
_BLOCK = 1 << 19

#: The share of nonzeros below which the sparse kernel beats BLAS (measured: equal near 0.4).
_SPARSE_PAYS = 0.3


class SparseMatrix:
    """A CSR matrix; the cut of its rows into tasks and its transpose are made when needed."""

    def __init__(self, csr: sp.csr_array, transpose: SparseMatrix | None = None) -> None:
        self.csr = csr
        self.shape = csr.shape
        if transpose is not None:
            self.T = transpose

    @cached_property
    def T(self) -> SparseMatrix:
        """The transpose, by rows as well."""
        return SparseMatrix(self.csr.T.tocsr(), transpose=self)

    @cached_property
    def tasks(self) -> Array:
        """Bounds of the tasks, see `row_tasks`."""
        return kernels.row_tasks(self.csr.indptr)

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Row pointers, column indices and values."""
        return self.csr.indptr, self.csr.indices, self.csr.data

    def __matmul__(self, B: Array) -> Array:
        return np.asarray(self.csr @ B)


class NumbaBackend:
    """Compiled, threaded kernels for CSR and dense data."""

    name = "numba"

    def prepare(self, X: Any, like: Any = None) -> Any:
        """Wrap sparse data, and dense data with so many zeros that skipping them pays."""
        if like is not None:
            sparse = isinstance(like, SparseMatrix)
        else:
            sparse = sp.issparse(X) or np.count_nonzero(X) < _SPARSE_PAYS * X.size
        if sparse:
            return SparseMatrix(sp.csr_array(X))
        return X.toarray() if sp.issparse(X) else X

    def ratio_matmul(self, X: Any, A: Array, B: Array) -> Array:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X."""
        if not isinstance(X, SparseMatrix):
            return _dense_ratio_matmul(X, A, B)
        out = np.empty(A.shape, A.dtype)
        with kernels.threads(X.csr.nnz * A.shape[1]):
            kernels.ratio_matmul(X.tasks, *X.arrays, A, B, A.dtype.type(tiny(A.dtype)), out)
        return out

    def divergence(self, X: Any, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x + a.b`` (eq. 2)."""
        floor = A.dtype.type(tiny(A.dtype))
        if isinstance(X, SparseMatrix):
            with kernels.threads(X.csr.nnz * A.shape[1]):
                terms = kernels.log_terms(X.tasks, *X.arrays, A, B, floor).sum()
        else:
            terms = sum(
                kernels.log_terms_block(X[rows], A[rows] @ B.T, floor) for rows in _blocks(*X.shape)
            )
        return float(terms + column_sums(A) @ column_sums(B))

    def half_step(
        self,
        X: Any,
        A: Array,
        B: Array,
        den: Array,
        *,
        weight: Array | None = None,
        also: Also | None = None,
        plus: Plus | None = None,
    ) -> Array:
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``."""
        if isinstance(X, SparseMatrix):
            return _sparse_half_step(X, A, B, den, weight, also, plus)
        return composed_half_step(_dense_ratio_matmul, X, A, B, den, weight, also, plus)


def _sparse_half_step(
    X: SparseMatrix,
    A: Array,
    B: Array,
    den: Array,
    weight: Array | None,
    also: Also | None,
    plus: Plus | None,
) -> Array:
    """One fused pass: read the nonzeros, write the new factor, nothing in between."""
    dtype = A.dtype.type
    absent = kernels.no_rows(X.csr, B)
    also_args = absent if also is None else (*also.X.arrays, also.B, dtype(also.weight))
    plus_args = absent
    if plus is not None:
        plus_args = (plus.S.indptr, plus.S.indices, plus.S.data, plus.T, dtype(plus.weight))
    inverse = inverse_or_zero(den, A.dtype)
    weight = np.empty(0, A.dtype) if weight is None else weight.astype(A.dtype)
    out = np.empty(A.shape, A.dtype)
    floor = dtype(tiny(A.dtype))
    with kernels.threads(X.csr.nnz * A.shape[1]):
        kernels.half_step(
            X.tasks, *X.arrays, A, B, inverse, weight, also_args, plus_args, floor, out
        )
    return out


def _dense_ratio_matmul(X: Array, A: Array, B: Array) -> Array:
    """Return ``(X / (A @ B.T)) @ B``, in blocks along the axis that is contiguous in memory."""
    floor = A.dtype.type(tiny(A.dtype))
    if X.flags.c_contiguous:
        out = np.empty(A.shape, A.dtype)
        for rows in _blocks(*X.shape):
            ratio = A[rows] @ B.T
            kernels.divide_block(X[rows], ratio, floor)
            np.matmul(ratio, B, out=out[rows])
        return out
    out = np.zeros(A.shape)  # in float64: a sum over all samples
    for columns in _blocks(*X.T.shape):
        ratio = B[columns] @ A.T
        kernels.divide_block(X.T[columns], ratio, floor)
        out += ratio.T @ B[columns]
    return out.astype(A.dtype)


def _blocks(n: int, d: int) -> Iterator[slice]:
    """Slices of rows with about `_BLOCK` entries each, and not too many rows to sum in float32."""
    step = max(1, min(_BLOCK // max(d, 1), 4096))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
