"""The kernels for CPUs: threads over the rows of a sparse matrix, BLAS for a dense one.

A sparse matrix is kept twice, by rows and by columns (`storage`), so that both factors are updated
by one row loop in which every output row has one owner: no atomics, and the same bits on any number
of threads. A dense matrix is walked in blocks of samples that fit in the cache, never through an
(n, d) temporary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data, Matrix, Step
from marginparts.backends.base import (
    Also,
    Backend,
    Known,
    Plus,
    Shared,
    gauged,
    inverse_or_zero,
    least_entry,
    tiny,
)
from marginparts.backends.cpu import entries, kernels
from marginparts.backends.cpu.semi import NumbaSemiKernels
from marginparts.backends.cpu.storage import (
    SparseMatrix,
    SparsePattern,
    as_csr,
    in_lines,
    lines_of,
    padded,
    whole_lines,
)
from marginparts.backends.cpu.sweeps import sweep

#: Entries of a dense block: a megabyte or two, so that it stays in the cache.
_BLOCK = 1 << 19

#: The share of nonzeros below which the sparse kernel is chosen (measured: it is as fast as BLAS
#: near 1 for ranks up to 64, near 0.4 at 256).
_SPARSE_PAYS = 0.5

#: Entries up to which a dense matrix is treated as a sparse one without zeros: an update takes as
#: long and coordinate descent gets much further, but the matrix takes four times the memory.
_SMALL_DENSE = 1 << 23


class NumbaBackend(Backend):
    """Compiled, threaded kernels for CSR and dense data."""

    name = "numba"

    def prepare(self, X: Data, like: Matrix | None = None) -> SparseMatrix | Array:
        """Wrap sparse data, dense data with many zeros, and small dense data."""
        if like is not None:
            sparse = isinstance(like, SparseMatrix)
        else:
            sparse = not isinstance(X, np.ndarray) or X.size <= _SMALL_DENSE
            sparse = sparse or bool(np.count_nonzero(X) < _SPARSE_PAYS * X.size)
        if sparse:
            return SparseMatrix(as_csr(X))
        return X if isinstance(X, np.ndarray) else np.asarray(X.toarray())

    def semi(self) -> NumbaSemiKernels:
        """Return the kernels for data of either sign."""
        return NumbaSemiKernels()

    def prepare_once(self, X: Data, like: Matrix) -> SparseMatrix | Array:
        """Leave out what pays only in the second pass."""
        prepared = self.prepare(X, like)
        if isinstance(prepared, SparseMatrix):
            prepared.serves_one_pass = True
        return prepared

    def coefficients(self, S: Data, rows_of: Matrix | None = None) -> SparseMatrix:
        """Wrap a sparse matrix."""
        return SparseMatrix(as_csr(S))

    def pattern(self, S: sp.csr_array) -> SparsePattern:
        """Wrap a sparse matrix of ones."""
        return SparsePattern(as_csr(S))

    def pattern_of(self, X: Matrix) -> SparsePattern:
        """Return the pattern of the nonzeros, in the same arrays."""
        return SparsePattern(X.csr) if isinstance(X, SparseMatrix) else super().pattern_of(X)

    def factor(self, A: Array, rows_of: Matrix | None = None) -> Array:
        """Return a copy of whole cache lines, each at its place in memory."""
        return padded(A)

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

    def ahead_and_sums(
        self, now: Array, before: Array, b: float, least: float
    ) -> tuple[Array, Array]:
        """`ahead` and `column_sums` in one pass."""
        dtype = now.dtype.type
        with kernels.threads(now.size):
            sums = kernels.move_ahead_and_sum(now, before, dtype(b), dtype(least))
        return before, np.asarray(sums.sum(axis=0))

    def ratio_matmul(self, X: Matrix, A: Array, B: Array) -> Array:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X."""
        if not isinstance(X, SparseMatrix):
            return _dense_ratio_matmul(cast(Array, X), A, B)
        r, A, B = A.shape[1], in_lines(A), in_lines(B)
        out = whole_lines(A.shape, A.dtype)
        pieces = X.pieces(B)
        if pieces:
            out[...] = 0
        for columns, piece in pieces or [(slice(None), X)]:
            _ratio_matmul(piece, A, B[columns], out, add=bool(pieces))
        return self.release(out, r)

    def divergence(self, X: Matrix, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x + a.b`` (eq. 2)."""
        return self.log_terms(X, A, B) + float(self.column_sums(A) @ self.column_sums(B))

    def log_terms(self, X: Matrix, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x``."""
        least = A.dtype.type(least_entry(A.dtype))
        if isinstance(X, SparseMatrix):
            A, B = in_lines(A), in_lines(B)
            with kernels.threads(X.nnz * A.shape[1], X.tasks):
                args = (lines_of(A), X.tasks, *X.arrays, A, B, _floor(A), least)
                terms = kernels.log_terms(*args).sum()
        else:
            dense, log_terms = cast(Array, X), entries.log_terms_block
            blocks = _blocks(*dense.shape)
            terms = sum(log_terms(dense[rows], A[rows] @ B.T, least) for rows in blocks)
        return float(terms)

    def half_step(
        self, X: Matrix, A: Array, B: Array, den: Array, *, weight: Array | None = None,
        also: Also | None = None, plus: Plus | None = None, out: Array | None = None,
        gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``."""
        if not isinstance(X, SparseMatrix):
            return self.finish(A, self.numerator(X, A, B, also, plus), den, out, gauge, weight)
        return self._sparse_step(X, _SparsePass(A, B, den, weight, also, plus, out), gauge)

    def half_step_apart(
        self, X: Matrix, A: Array, B: Array, den: Array, *, asked: Shared, also: Also | None = None,
        plus: Plus | None = None, out: Array | None = None, gauge: bool = False,
    ) -> Step:  # fmt: skip
        """`half_step` with a charge for shared features."""
        if not isinstance(X, SparseMatrix):
            return super().half_step_apart(
                X, A, B, den, asked=asked, also=also, plus=plus, gauge=gauge
            )
        args = _SparsePass(A, B, den, None, also, plus, out)
        args.set_apart(asked, den)
        return self._sparse_step(X, args, gauge)

    def _sparse_step(self, X: SparseMatrix, args: _SparsePass, gauge: bool) -> Step:
        B, begun = args.B, args.B[:0]
        pieces = X.pieces(B)
        if pieces:  # all but the last are added up beforehand
            begun = np.zeros_like(args.A)
            for columns, piece in pieces[:-1]:
                _ratio_matmul(piece, args.A, args.B[columns], begun, add=True)
            columns, X = pieces[-1]
            B = args.B[columns]
        gauges = np.zeros((len(X.tasks) - 1 if gauge else 0, 2))
        with kernels.threads(X.nnz * args.A.shape[1], X.tasks):
            kernels.half_step(
                args.lines, X.tasks, *X.arrays, args.A, B, args.den, args.inverse, args.weight,
                args.also, args.plus, args.floor, args.out, gauges, begun, args.apart,
            )  # fmt: skip
        return gauged(args.written, *gauges.sum(axis=0)) if gauge else Step(args.written)

    def half_step_over(
        self, X: Matrix, A: Array, B: Array, den: Array, *, known: Known,
        weight: Array | None = None, also: Also | None = None, plus: Plus | None = None,
        out: Array | None = None, gauge: bool = False,
    ) -> Step:  # fmt: skip
        """`half_step` with ``weight[:, None] * den + known.sums(B)`` for a denominator."""
        if not isinstance(X, SparseMatrix):
            return super().half_step_over(
                X, A, B, den, known=known, weight=weight, also=also, plus=plus, gauge=gauge
            )
        args = _SparsePass(A, B, den, weight, also, plus, out)
        gauges = np.zeros((len(X.tasks) - 1 if gauge else 0, 2))
        less, total = known.gaps is not None, np.zeros((1, args.A.shape[1]))
        if less:
            total[0, : args.rank] = self.column_sums(B)
        T = args.B if less else in_lines(known.blocks(B))
        pointers, places, _ = _sparse(known.gaps if less else known.pattern).arrays
        if places is X.arrays[1]:  # the nonzeros of X: in one go
            pointers = pointers[:0]
        unsure = np.zeros(len(A) if less else 0, np.bool_)
        with kernels.threads(X.nnz * args.A.shape[1], X.tasks):
            kernels.half_step_over(
                args.lines, X.tasks, *X.arrays, args.A, args.B, args.den, args.weight, args.also,
                args.plus, (pointers, places, T), total, unsure, args.floor, args.out, gauges,
            )  # fmt: skip
        if (rows := np.flatnonzero(unsure)).size:  # where a difference has lost its digits
            few = known._replace(pattern=known.pattern.of(rows), gaps=None)
            some = None if weight is None else weight[rows]
            also = also and also._replace(X=_sparse(also.X).of(rows))
            plus = plus and plus._replace(S=_sparse(plus.S).of(rows))
            step = self.half_step_over(
                X.of(rows), args.A[rows], args.B, den, known=few, weight=some, also=also, plus=plus,
                gauge=gauge,
            )  # fmt: skip
            args.out[rows] = step.factor
            if gauge:
                gauges[0] += step.mass, step.mass * (step.violation or 0.0)
        return gauged(args.written, *gauges.sum(axis=0)) if gauge else Step(args.written)

    def finish(
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False,
        weight: Array | None = None,
    ) -> Step:  # fmt: skip
        """Return ``A * numerator / (weight[:, None] * den)``."""
        out = whole_lines(A.shape, A.dtype) if out is None else out
        out = out if out.shape == A.shape else np.empty_like(A)
        weight = np.empty(0, A.dtype) if weight is None else weight.astype(A.dtype)
        inverse = inverse_or_zero(den, A.dtype)[None]
        found = entries.finish_block(A, numerator, den[None].astype(A.dtype), inverse, weight, out)
        return gauged(out, *found) if gauge else Step(out)

    def shrunk(
        self, step: Array, den: Array, weight: Array | None, l1: float, l2: Any,
        before: Array | None = None,
    ) -> Step:  # fmt: skip
        """Turn a step s of a factor into t with ``l2 t**2 + (u + l1) t = u s``, in its place."""
        if den.ndim == 2:  # that of data with gaps
            return super().shrunk(step, den, weight, l1, l2, before)
        n, dtype = len(step), step.dtype
        gauge = np.zeros((0 if before is None else n, 2))
        weight = np.empty(0) if weight is None else weight
        l2 = np.broadcast_to(np.asarray(l2, dtype), n)
        with kernels.threads(step.size):
            entries.shrink(
                step, den.astype(dtype), weight.astype(dtype), dtype.type(l1), l2,
                step if before is None else before, gauge,
            )  # fmt: skip
        return Step(step) if before is None else gauged(step, *gauge.sum(axis=0))

    def overlap(self, A: Array, rows: Array) -> float:
        """Return ``sum_i rows_i sum_{k<l} A_ik A_il``."""
        with kernels.threads(A.size):
            return float(rows @ entries.overlaps(A))

    def entry_divergence(self, X: Array, A: Array, scale: Array) -> float:
        """Return the I-divergence of an array X from ``A * scale``, of the same shape."""
        with kernels.threads(A.size):
            return float(entries.entry_divergences(X, A, scale).sum())

    def added(self, step: Array, A: Array, den: Array) -> Array:
        """Add ``A / den`` to a step in its place."""
        with kernels.threads(step.size):
            entries.add_scaled(step, A, inverse_or_zero(den, step.dtype))
        return step

    def can_sweep(self, X: Matrix) -> bool:
        """Coordinate descent is for sparse data."""
        return isinstance(X, SparseMatrix)

    def sweep(
        self, X: Matrix, A: Array, B: Array, den: Array, *, sweeps: int = 1, settled: float = 0.0,
        lift: float = 0.0, weight: Array | None = None, also: Also | None = None,
        plus: Plus | None = None, out: Array | None = None, gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return A after coordinate descent on what `half_step` lowers, with its options."""
        assert isinstance(X, SparseMatrix)
        args = _SparsePass(A, B, den, weight, also, plus, out)
        gauges, dtype = np.zeros((len(X.tasks) - 1 if gauge else 0, 2)), A.dtype.type
        with kernels.threads(X.nnz * args.A.shape[1], X.tasks):
            sweep(
                args.lines, X.tasks, *X.arrays, args.A, args.B, args.den, args.inverse, args.weight,
                args.also, args.plus, args.floor, sweeps, dtype(settled), dtype(lift), args.out,
                gauges,
            )  # fmt: skip
        return gauged(args.written, *gauges.sum(axis=0)) if gauge else Step(args.written)


class _SparsePass:
    """One pass over the nonzeros: the arguments of `half_step` as the kernels want them."""

    def __init__(
        self, A: Array, B: Array, den: Array, weight: Array | None, also: Also | None,
        plus: Plus | None, out: Array | None,
    ) -> None:  # fmt: skip
        dtype = A.dtype.type
        self.rank, self.A, self.B = A.shape[1], in_lines(A), in_lines(B)
        self.also = self.plus = kernels.no_rows(self.B)
        if also is not None:
            self.also = (*_sparse(also.X).arrays, in_lines(also.B), dtype(also.weight))
        if plus is not None:
            self.plus = (*_sparse(plus.S).arrays, in_lines(plus.T), dtype(plus.weight))
        self.den = np.zeros((1, self.A.shape[1]), A.dtype)
        self.den[0, : len(den)] = den
        self.inverse = np.zeros_like(self.den)
        self.inverse[0, : len(den)] = inverse_or_zero(den, A.dtype)
        self.weight = np.empty(0, A.dtype) if weight is None else weight.astype(A.dtype)
        if out is None or out.shape != self.A.shape:
            out = whole_lines(self.A.shape, A.dtype)
        self.out = out
        self.lines, self.floor = lines_of(self.A), _floor(self.A)
        self.apart: tuple[Array, Array, Array, Array] | None = None

    def set_apart(self, asked: Shared, den: Array) -> None:
        """Make it a pass with a charge for shared features."""
        dtype, mass, half = self.A.dtype, np.zeros_like(self.den), np.zeros_like(self.den)
        mass[0, : self.rank] = asked.mass * inverse_or_zero(asked.sums, np.float64)
        half[0, : self.rank] = (den + asked.l1) / 2
        squares = np.broadcast_to(np.asarray(asked.l2, dtype), len(self.A))
        self.apart = asked.rows.astype(dtype), np.ascontiguousarray(squares), mass, half

    @property
    def written(self) -> Array:
        """What the pass wrote."""
        return self.out if self.out.shape[1] == self.rank else self.out[:, : self.rank].copy()


def _sparse(S: Matrix) -> SparseMatrix:
    return S if isinstance(S, SparseMatrix) else SparseMatrix(as_csr(S))


def _ratio_matmul(X: SparseMatrix, A: Array, B: Array, out: Array, add: bool) -> None:
    """Write ``(X / (A @ B.T)) @ B`` to a factor of whole lines, or add it."""
    with kernels.threads(X.nnz * A.shape[1], X.tasks):
        kernels.ratio_matmul(lines_of(A), X.tasks, *X.arrays, A, B, _floor(A), out, add)


def _floor(A: Array) -> np.floating:
    return A.dtype.type(tiny(A.dtype))


def _dense_ratio_matmul(X: Array, A: Array, B: Array) -> Array:
    """Return ``(X / (A @ B.T)) @ B``, in blocks along the axis that is contiguous in memory."""
    floor = _floor(A)
    if X.flags.c_contiguous:
        out = np.empty(A.shape, A.dtype)
        for rows in _blocks(*X.shape):
            ratio = A[rows] @ B.T
            entries.divide_block(X[rows], ratio, floor)
            np.matmul(ratio, B, out=out[rows])
        return out
    sums = np.zeros(A.shape)  # in float64: a sum over all samples
    for columns in _blocks(*X.T.shape):
        ratio = B[columns] @ A.T
        entries.divide_block(X.T[columns], ratio, floor)
        sums += ratio.T @ B[columns]
    return sums.astype(A.dtype)


def _blocks(n: int, d: int) -> Iterator[slice]:
    """Slices of rows with about `_BLOCK` entries each, and not too many rows to sum in float32."""
    step = max(1, min(_BLOCK // max(d, 1), 4096))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
