"""Compiled loops over the nonzeros of a CSR matrix, and over the entries of a factor.

Rows are cut into tasks of about equal work by their nonzeros (a frequent word's row can be ten
thousand times longer than another's). The cut depends on the matrix alone, and each row is summed
by one task in storage order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import get_num_threads, parallel_chunksize, prange, set_num_threads
from numpy.typing import NDArray

from marginparts._compiled import FAST_SUMS, IN_ORDER, compiled
from marginparts._types import Array
from marginparts.backends.cpu import _vectors as vec

#: Nonzeros summed in the factor's type before they join a total in float64.
_RUN = 512
#: Tasks a pass is cut into: many more than cores, so that a slow core gets fewer.
TASKS = 256

#: The share of a sum that must be left of it for a difference to have its digits.
_LEFT = 0.01

#: How many nonzeros ahead their rows of the other factor are asked for (measured: 4 to 16 alike).
AHEAD = 8

#: Nonzeros times rank up to which one thread is enough.
_SMALL = 1 << 17


@compiled(fastmath=IN_ORDER, inline="always")
def sum_ratios(lines, sums, total, lo, hi, indices, data, A, i, B, weight, floor):  # type: ignore[no-untyped-def]
    """Add ``weight * sum_p x_p / (A[i] . B[j_p]) * B[j_p]`` over the nonzeros of one row to sums.

    A frequent word's row is so long that a sum in float32 alone would lose its last digits: runs
    of it are added up in ``total`` (1, r), which must be 0 and is 0 afterwards.
    """
    last = len(indices) - 1
    for start in range(lo, hi, _RUN):
        for p in range(start, min(start + _RUN, hi)):
            vec.prefetch(lines, B, indices[min(p + AHEAD, last)])
            j = indices[p]
            fitted = vec.dot(lines, A, i, B, j)
            if fitted > floor:
                vec.add_scaled(lines, sums, weight * data[p] / fitted, B, j)
        if start + _RUN < hi:
            vec.spill(lines, sums, total)
    if hi - lo > _RUN:
        vec.unspill(lines, sums, total)
        total[:] = 0


@compiled(fastmath=IN_ORDER, inline="always")
def sum_near_ratios(lines, sums, lo, hi, indices, data, A, i, B, weight, floor):  # type: ignore[no-untyped-def]
    """`sum_ratios` for a B of few rows: it is in the cache, and no row of X is long."""
    for p in range(lo, hi):
        j = indices[p]
        fitted = vec.dot(lines, A, i, B, j)
        if fitted > floor:
            vec.add_scaled(lines, sums, weight * data[p] / fitted, B, j)


@compiled(fastmath=IN_ORDER, inline="always")
def sum_plus(lines, sums, lo, hi, indices, data, T, weight):  # type: ignore[no-untyped-def]
    """Add ``weight * S[i] @ T`` to sums, S[i] a sparse row."""
    for p in range(lo, hi):
        vec.add_scaled(lines, sums, weight * data[p], T, indices[p])


@compiled(fastmath=IN_ORDER, inline="always")
def sum_rows(lines, sums, total, lo, hi, indices, B):  # type: ignore[no-untyped-def]
    """Add the rows of B that are named to sums; ``total`` is that of `sum_ratios`."""
    one, last = B.dtype.type(1), len(indices) - 1
    for start in range(lo, hi, _RUN):
        for p in range(start, min(start + _RUN, hi)):
            vec.prefetch(lines, B, indices[min(p + AHEAD, last)])
            vec.add_scaled(lines, sums, one, B, indices[p])
        if start + _RUN < hi:
            vec.spill(lines, sums, total)
    if hi - lo > _RUN:
        vec.unspill(lines, sums, total)
        total[:] = 0


@compiled()
def take_rows(lines, left, wide, total, lo, hi, indices, B):  # type: ignore[no-untyped-def]
    """Write the total (1, r) less the rows of B that are named; say whether that loses digits.

    ``wide`` (1, r), in float64, must be 0 and is 0 afterwards.
    """
    lost, last = False, len(indices) - 1
    for p in range(lo, hi):
        vec.prefetch(lines, B, indices[min(p + AHEAD, last)])
        j = indices[p]
        for k in range(B.shape[1]):
            wide[0, k] += B[j, k]
    for k in range(B.shape[1]):
        rest = total[0, k] - wide[0, k]
        lost |= rest < _LEFT * total[0, k]
        left[0, k] = rest
        wide[0, k] = 0
    return lost


@compiled(fastmath=IN_ORDER, inline="always")
def sum_both(lines, sums, below, total, wide, lo, hi, indices, data, A, i, B, floor):  # type: ignore[no-untyped-def]
    """`sum_ratios` and `sum_rows` of the same nonzeros in one go, with a total for each."""
    one, last = B.dtype.type(1), len(indices) - 1
    for start in range(lo, hi, _RUN):
        for p in range(start, min(start + _RUN, hi)):
            vec.prefetch(lines, B, indices[min(p + AHEAD, last)])
            j = indices[p]
            fitted = vec.dot(lines, A, i, B, j)
            vec.add_scaled(lines, below, one, B, j)
            if fitted > floor:
                vec.add_scaled(lines, sums, data[p] / fitted, B, j)
        if start + _RUN < hi:
            vec.spill(lines, sums, total)
            vec.spill(lines, below, wide)
    if hi - lo > _RUN:
        vec.unspill(lines, sums, total)
        vec.unspill(lines, below, wide)
        total[:], wide[:] = 0, 0


@compiled(fastmath=IN_ORDER, parallel=True)
def pattern_matmul(lines, tasks, indptr, indices, B, out):  # type: ignore[no-untyped-def]
    """Write ``X @ B`` to ``out`` (n, r) for an X of ones."""
    for t in prange(len(tasks) - 1):
        sums, total = vec.new_sums(lines, B), np.zeros((1, B.shape[1]))
        for i in range(tasks[t], tasks[t + 1]):
            vec.clear(lines, sums)
            sum_rows(lines, sums, total, indptr[i], indptr[i + 1], indices, B)
            vec.write(lines, sums, out, i)


@compiled(fastmath=IN_ORDER, parallel=True)
def matmul(lines, tasks, indptr, indices, data, B, out):  # type: ignore[no-untyped-def]
    """Write ``X @ B`` to ``out`` (n, r)."""
    for t in prange(len(tasks) - 1):
        sums = vec.new_sums(lines, B)
        for i in range(tasks[t], tasks[t + 1]):
            vec.clear(lines, sums)
            sum_plus(lines, sums, indptr[i], indptr[i + 1], indices, data, B, B.dtype.type(1))
            vec.write(lines, sums, out, i)


@compiled(fastmath=IN_ORDER, parallel=True)
def ratio_matmul(lines, tasks, indptr, indices, data, A, B, floor, out, add):  # type: ignore[no-untyped-def]
    """Write ``(X / (A @ B.T)) @ B`` to ``out`` (n, r), or add it to what is there."""
    one = A.dtype.type(1)
    for t in prange(len(tasks) - 1):
        mode = vec.flush_denormals()
        sums, total = vec.new_sums(lines, A), np.zeros((1, A.shape[1]))
        for i in range(tasks[t], tasks[t + 1]):
            lo, hi = indptr[i], indptr[i + 1]
            if add and lo == hi:
                continue
            if add:
                vec.read(lines, sums, out, i)
            else:
                vec.clear(lines, sums)
            sum_ratios(lines, sums, total, lo, hi, indices, data, A, i, B, one, floor)
            vec.write(lines, sums, out, i)
        vec.restore_mode(mode)


@compiled(fastmath=FAST_SUMS)
def charged_denominators(A, i, half, w, square, own):  # type: ignore[no-untyped-def]
    """Write to ``own`` (1, r) what a row has for denominators with a charge for shared features."""
    two, total = A.dtype.type(2), A.dtype.type(0)
    for k in range(A.shape[1]):
        total += A[i, k]
    for k in range(A.shape[1]):
        own[0, k] = two * half[0, k] + square * A[i, k] + w * (total - A[i, k])


@compiled(fastmath=IN_ORDER, parallel=True)
def half_step(  # type: ignore[no-untyped-def]
    lines, tasks, indptr, indices, data, A, B, den, inverse, weight, also, plus, floor, out, gauge,
    begun, apart,
):  # fmt: skip
    """Write ``A * (ratio_matmul + also + plus) * inverse / weight[:, None]`` to ``out`` (n, r).

    ``also`` is (indptr, indices, data, B, weight) of a second matrix with the same rows, ``plus``
    is (indptr, indices, data, T, weight) of ``S @ T``; an empty ``indptr`` leaves one out.
    ``out`` may be A itself. ``gauge`` (n_tasks, 2) gets each task's mass and violation, ``begun``
    (n, r) is a part of the numerator that is there already; empty ones leave them out.
    ``apart`` is (w, square, mass, half): the mass joins the numerators, and the rest is for
    `write_apart`. None leaves it out, of the compiled code as well: few fits ask for it.
    """
    one = A.dtype.type(1)
    ptr2, idx2, x2, B2, weight2 = also
    ptr3, idx3, s3, T3, weight3 = plus
    for t in prange(len(tasks) - 1):
        mode = vec.flush_denormals()
        sums, total, own = vec.new_sums(lines, A), np.zeros((1, A.shape[1])), den.copy()
        for i in range(tasks[t], tasks[t + 1]):
            if len(begun) > 0:
                vec.read(lines, sums, begun, i)
            else:
                vec.clear(lines, sums)
            lo, hi = indptr[i], indptr[i + 1]
            sum_ratios(lines, sums, total, lo, hi, indices, data, A, i, B, one, floor)
            if len(ptr2) > 0:
                lo, hi = ptr2[i], ptr2[i + 1]
                sum_near_ratios(lines, sums, lo, hi, idx2, x2, A, i, B2, weight2, floor)
            if len(ptr3) > 0:
                sum_plus(lines, sums, ptr3[i], ptr3[i + 1], idx3, s3, T3, weight3)
            w = one if len(weight) == 0 else weight[i]
            if apart is not None:
                vec.add_scaled(lines, sums, one, apart[2], 0)
            if len(gauge) > 0:
                if apart is not None:
                    charged_denominators(A, i, apart[3], apart[0][i], apart[1][i], own)
                mass, worst = vec.violation(lines, sums, A, i, own, w)
                gauge[t, 0] += mass
                gauge[t, 1] += worst
            if apart is not None:
                vec.write_apart(lines, sums, A, i, apart[3], apart[0][i], apart[1][i], out)
            else:
                vec.write_step(lines, sums, A, i, inverse, one / w, out)
        vec.restore_mode(mode)


@compiled(fastmath=IN_ORDER, parallel=True)
def half_step_over(  # type: ignore[no-untyped-def]
    lines, tasks, indptr, indices, data, A, B, den, weight, also, plus, known, all_of_B, unsure,
    floor, out, gauge,
):  # fmt: skip
    """`half_step` with ``weight[:, None] * den + known`` for a denominator.

    ``known`` is (indptr, indices, T): the rows of T that are added up for each row. An empty
    ``indptr`` stands for the rows of B at the nonzeros of X. With ``unsure`` (n,) they are taken
    from ``all_of_B`` (1, r) instead; rows where too little is left are marked, and not written.
    """
    one, least = A.dtype.type(1), np.finfo(A.dtype).tiny
    ptr2, idx2, x2, B2, weight2 = also
    ptr3, idx3, s3, T3, weight3 = plus
    ptr4, idx4, T4 = known
    for t in prange(len(tasks) - 1):
        mode = vec.flush_denormals()
        sums, below = vec.new_sums(lines, A), vec.new_sums(lines, A)
        total, wide = np.zeros(den.shape), np.zeros(den.shape)
        own, inverse = np.zeros_like(den), np.zeros_like(den)
        kept = False  # whether the denominator is still that of a row without gaps
        for i in range(tasks[t], tasks[t + 1]):
            vec.clear(lines, sums)
            lo, hi = indptr[i], indptr[i + 1]
            whole = len(unsure) > 0 and ptr4[i] == ptr4[i + 1]
            if len(unsure) > 0:
                if not (whole and kept):
                    unsure[i] = take_rows(
                        lines, own, wide, all_of_B, ptr4[i], ptr4[i + 1], idx4, T4
                    )
                    if unsure[i]:
                        kept = False
                        continue
                sum_ratios(lines, sums, total, lo, hi, indices, data, A, i, B, one, floor)
            elif len(ptr4) > 0:
                vec.clear(lines, below)
                sum_ratios(lines, sums, total, lo, hi, indices, data, A, i, B, one, floor)
                sum_rows(lines, below, wide, ptr4[i], ptr4[i + 1], idx4, T4)
                vec.write(lines, below, own, 0)
            else:
                vec.clear(lines, below)
                sum_both(lines, sums, below, total, wide, lo, hi, indices, data, A, i, B, floor)
                vec.write(lines, below, own, 0)
            if len(ptr2) > 0:
                lo, hi = ptr2[i], ptr2[i + 1]
                sum_near_ratios(lines, sums, lo, hi, idx2, x2, A, i, B2, weight2, floor)
            if len(ptr3) > 0:
                sum_plus(lines, sums, ptr3[i], ptr3[i + 1], idx3, s3, T3, weight3)
            if not (whole and kept):
                w = one if len(weight) == 0 else weight[i]
                for k in range(den.shape[1]):
                    own[0, k] += w * den[0, k]
                    inverse[0, k] = one / own[0, k] if own[0, k] >= least else 0
                kept = whole and len(weight) == 0
            if len(gauge) > 0:
                mass, worst = vec.violation(lines, sums, A, i, own, one)
                gauge[t, 0] += mass
                gauge[t, 1] += worst
            vec.write_step(lines, sums, A, i, inverse, one, out)
        vec.restore_mode(mode)


@compiled()
def _wide_dot(A, i, B, j):  # type: ignore[no-untyped-def]
    """Return ``A[i] . B[j]`` in float64."""
    total = 0.0
    for k in range(A.shape[1]):
        total += np.float64(A[i, k]) * np.float64(B[j, k])
    return total


@compiled(fastmath=IN_ORDER, parallel=True)
def log_terms(lines, tasks, indptr, indices, data, A, B, floor, least):  # type: ignore[no-untyped-def]
    """Return ``sum x log(x / a.b) - x`` over the nonzeros, one number a task.

    It is infinite where an entry above ``least`` has no fit at all. Fits below ``floor`` are summed
    again in float64: the numbers of float32 end not far below it.
    """
    terms = np.zeros(len(tasks) - 1)
    last = len(indices) - 1
    for t in prange(len(tasks) - 1):
        mode = vec.flush_denormals()
        total = 0.0
        for i in range(tasks[t], tasks[t + 1]):
            for p in range(indptr[i], indptr[i + 1]):
                vec.prefetch(lines, B, indices[min(p + AHEAD, last)])
                fitted = vec.dot(lines, A, i, B, indices[p])
                x, fit = np.float64(data[p]), np.float64(fitted)
                if fitted <= floor:
                    fit = _wide_dot(A, i, B, indices[p])
                if fit > 0:
                    total += x * np.log(x / fit) - x
                elif data[p] > least:
                    total = np.inf
        terms[t] = total
        vec.restore_mode(mode)
    return terms


@compiled(fastmath=IN_ORDER, parallel=True)
def column_sums(A):  # type: ignore[no-untyped-def]
    """Return sums over rows (n_blocks, r) in float64, a block at a time."""
    n, r = A.shape
    n_blocks = min(TASKS, (n + 255) // 256)
    sums = np.zeros((n_blocks, r))
    for t in prange(n_blocks):
        for i in range(n * t // n_blocks, n * (t + 1) // n_blocks):
            for k in range(r):
                sums[t, k] += A[i, k]
    return sums


@compiled(parallel=True)
def move_ahead(now, before, b, least):  # type: ignore[no-untyped-def]
    """Write ``max(now + b * (now - before), least * now)`` over ``before``."""
    for i in prange(now.shape[0]):
        for k in range(now.shape[1]):
            point = now[i, k] + b * (now[i, k] - before[i, k])
            before[i, k] = max(point, least * now[i, k])


@compiled(fastmath=IN_ORDER, parallel=True)
def move_ahead_and_sum(now, before, b, least):  # type: ignore[no-untyped-def]
    """`move_ahead`; return what `column_sums` then returns."""
    n, r = now.shape
    n_blocks = min(TASKS, (n + 255) // 256)
    sums = np.zeros((n_blocks, r))
    for t in prange(n_blocks):
        for i in range(n * t // n_blocks, n * (t + 1) // n_blocks):
            for k in range(r):
                point = max(now[i, k] + b * (now[i, k] - before[i, k]), least * now[i, k])
                before[i, k] = point
                sums[t, k] += point
    return sums


@contextmanager
def threads(work: int, tasks: Sequence[int] | NDArray[np.int64] = ()) -> Iterator[None]:
    """Run a small pass on one thread: waking others would cost more than the pass itself.

    ``work`` is the number of nonzeros times the rank. In a larger pass a thread takes some of the
    tasks at a time, so that one that is slow gets fewer; without tasks the rows are shared out
    beforehand.
    """
    if work > _SMALL:
        with parallel_chunksize(1 + len(tasks) // 64 if len(tasks) else 0):
            yield
        return
    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


def no_rows(B: Array) -> tuple[Any, ...]:
    """Return an absent ``also`` or ``plus``: the types of the real one, and no row pointers."""
    index = np.empty(0, np.int32)
    return index, index, B.ravel()[:0], B, B.dtype.type(0)
