"""Compiled loops over the nonzeros of a CSR matrix, and over dense blocks.

Rows are cut into tasks of about equal work by their nonzeros (a frequent word's row can be ten
thousand times longer than another's). The cut depends on the matrix alone, and each row is summed
by one task in storage order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import get_num_threads, prange, set_num_threads

from marginparts._compiled import FAST_SUMS, compiled
from marginparts._types import Array

#: Nonzeros summed in the factor's type before they join a total in float64.
_RUN = 512

#: Nonzeros times rank up to which one thread is enough.
_SMALL = 1 << 17

#: Tasks a pass is cut into: many more than cores, so that a slow core gets fewer.
_TASKS = 256


def row_tasks(indptr: Array) -> Array:
    """Cut rows into tasks of about equal numbers of nonzeros.

    Parameters
    ----------
    indptr : (n + 1,)
        Row pointers of a CSR matrix.

    Returns
    -------
    (n_tasks + 1,) array
        Task t owns the rows ``tasks[t]:tasks[t + 1]``.
    """
    n = len(indptr) - 1
    # a row costs its nonzeros, and a little for its own write
    work = np.asarray(indptr, dtype=np.int64) + 4 * np.arange(n + 1)
    targets = np.linspace(0, work[-1], min(_TASKS, max(n, 1)) + 1)
    tasks = np.searchsorted(work, targets[:-1], side="left")
    return np.unique(np.append(tasks, n)).astype(np.int64)


@compiled(fastmath=FAST_SUMS, inline="always")
def _add_ratios(lo, hi, indices, data, a, B, weight, floor, total):  # type: ignore[no-untyped-def]
    """Add ``weight * sum_p x_p / (a . B[j_p]) * B[j_p]`` for one row to ``total`` (r,)."""
    r = a.shape[0]
    for p in range(lo, hi):
        b = B[indices[p]]
        fitted = a.dtype.type(0)
        for k in range(r):
            fitted += a[k] * b[k]
        if fitted > floor:
            ratio = weight * data[p] / fitted
            for k in range(r):
                total[k] += ratio * b[k]


@compiled(fastmath=FAST_SUMS, inline="always")
def _sum_ratios(lo, hi, indices, data, a, B, weight, floor, part, total):  # type: ignore[no-untyped-def]
    """Add the ratios of one row to ``total`` (r,) of float64, in runs summed in ``part`` (r,).

    A frequent word's row is so long that a sum in float32 alone would lose its last digits.
    """
    for start in range(lo, hi, _RUN):
        part[:] = 0
        stop = min(start + _RUN, hi)
        _add_ratios(start, stop, indices, data, a, B, weight, floor, part)
        for k in range(len(part)):
            total[k] += part[k]


@compiled(fastmath=FAST_SUMS, parallel=True)
def ratio_matmul(tasks, indptr, indices, data, A, B, floor, out):  # type: ignore[no-untyped-def]
    """Write ``(X / (A @ B.T)) @ B`` to ``out`` (n, r)."""
    one = A.dtype.type(1)
    for t in prange(len(tasks) - 1):
        part, total = np.empty(A.shape[1], A.dtype), np.empty(A.shape[1])
        for i in range(tasks[t], tasks[t + 1]):
            total[:] = 0
            lo, hi = indptr[i], indptr[i + 1]
            _sum_ratios(lo, hi, indices, data, A[i], B, one, floor, part, total)
            for k in range(A.shape[1]):
                out[i, k] = total[k]


@compiled(fastmath=FAST_SUMS, parallel=True)
def half_step(  # type: ignore[no-untyped-def]
    tasks, indptr, indices, data, A, B, inverse, weight, also, plus, floor, out
):
    """Write ``A * (ratio_matmul + also + plus) * inverse / weight[:, None]`` to ``out`` (n, r).

    ``also`` is (indptr, indices, data, B, weight) of a second matrix with the same rows, ``plus``
    is (indptr, indices, data, T, weight) of ``S @ T``; an empty ``indptr`` leaves one out.
    """
    r = A.shape[1]
    one = A.dtype.type(1)
    ptr2, idx2, x2, B2, weight2 = also
    ptr3, idx3, s3, T3, weight3 = plus
    for t in prange(len(tasks) - 1):
        part, total = np.empty(r, A.dtype), np.empty(r)
        for i in range(tasks[t], tasks[t + 1]):
            a = A[i]
            total[:] = 0
            lo, hi = indptr[i], indptr[i + 1]
            _sum_ratios(lo, hi, indices, data, a, B, one, floor, part, total)
            if len(ptr2) > 0:
                lo, hi = ptr2[i], ptr2[i + 1]
                _sum_ratios(lo, hi, idx2, x2, a, B2, weight2, floor, part, total)
            if len(ptr3) > 0:
                for p in range(ptr3[i], ptr3[i + 1]):
                    s = weight3 * s3[p]
                    for k in range(r):
                        total[k] += s * T3[idx3[p], k]
            scale = one if len(weight) == 0 else one / weight[i]
            for k in range(r):
                out[i, k] = a[k] * a.dtype.type(total[k]) * inverse[k] * scale


@compiled(fastmath=FAST_SUMS, parallel=True)
def log_terms(tasks, indptr, indices, data, A, B, floor):  # type: ignore[no-untyped-def]
    """Return ``sum x log(x / a.b) - x`` over the nonzeros with a.b > 0, one number a task."""
    r = A.shape[1]
    sums = np.zeros(len(tasks) - 1)
    for t in prange(len(tasks) - 1):
        total = 0.0
        for i in range(tasks[t], tasks[t + 1]):
            a = A[i]
            for p in range(indptr[i], indptr[i + 1]):
                b = B[indices[p]]
                fitted = a.dtype.type(0)
                for k in range(r):
                    fitted += a[k] * b[k]
                if fitted > floor:
                    x = np.float64(data[p])
                    total += x * np.log(x / np.float64(fitted)) - x
        sums[t] = total
    return sums


# The two loops over dense blocks are not threaded: they run between BLAS calls, whose idle threads
# would fight with ours for the cores.


@compiled(fastmath=FAST_SUMS)
def divide_block(X, fitted, floor):  # type: ignore[no-untyped-def]
    """Replace ``fitted`` by ``X / fitted``, and by 0 where the fit is 0."""
    zero = fitted.dtype.type(0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            fit = fitted[i, j]
            fitted[i, j] = X[i, j] / fit if fit > floor else zero


@compiled(fastmath=FAST_SUMS)
def log_terms_block(X, fitted, floor):  # type: ignore[no-untyped-def]
    """Return ``sum x log(x / a.b) - x`` of a dense block."""
    total = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] > 0 and fitted[i, j] > floor:
                x = np.float64(X[i, j])
                total += x * np.log(x / np.float64(fitted[i, j])) - x
    return total


@contextmanager
def threads(work: int) -> Iterator[None]:
    """Run a small pass on one thread: waking others would cost more than the pass itself.

    ``work`` is the number of nonzeros times the rank.
    """
    if work > _SMALL:
        yield
        return
    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


def no_rows(like: Any, B: Array) -> tuple[Any, ...]:
    """Return an absent ``also`` or ``plus``: the types of the real one, and no row pointers."""
    return like.indptr[:0], like.indices[:0], like.data[:0], B, B.dtype.type(0)
