"""The compiled method of active sets in `solve.nonnegative`: a small problem a row, on any thread.

Of a row it keeps the entries that are not zero in some order, and the Cholesky factor of their Gram
matrix in that order. A new one comes last and adds a row; one that leaves changes those after it.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from marginparts._compiled import FAST_SUMS, compiled

#: Rows that share what they work in.
_TOGETHER = 256


@compiled(fastmath=FAST_SUMS)
def _factorize(gram, ridge, order, first, count, L):  # type: ignore[no-untyped-def]
    """Bring the rows of L from the first up to the last up to date."""
    for a in range(first, count):
        row = gram[order[a]]
        for b in range(a):
            rest = row[order[b]]
            for c in range(b):
                rest -= L[a, c] * L[b, c]
            L[a, b] = rest / L[b, b]
        rest = row[order[a]] + ridge
        for c in range(a):
            rest -= L[a, c] * L[a, c]
        L[a, a] = np.sqrt(max(rest, ridge / 4))  # rounding can take what there is of the ridge


@compiled(fastmath=FAST_SUMS)
def _solve(L, count, y):  # type: ignore[no-untyped-def]
    """Solve ``L L' y = y`` in place."""
    for a in range(count):
        rest = y[a]
        for c in range(a):
            rest -= L[a, c] * y[c]
        y[a] = rest / L[a, a]
    for a in range(count - 1, -1, -1):
        y[a] /= L[a, a]
        for c in range(a):
            y[c] -= L[a, c] * y[a]


@compiled(fastmath=FAST_SUMS)
def _pull(gram, wanted, h, k, order, count):  # type: ignore[no-untyped-def]
    """Return how much the loss falls with entry k, and how large the terms of that sum are."""
    pull, size, row = wanted[k], abs(wanted[k]), gram[k]
    for a in range(count):
        term = row[order[a]] * h[order[a]]
        pull -= term
        size += abs(term)
    return pull, size


@compiled(fastmath=FAST_SUMS)
def _pulls(gram, wanted, h, order, count, y):  # type: ignore[no-untyped-def]
    """Put the pulls on entries of the order into y, and return the largest beside its terms."""
    largest = 0.0
    for a in range(count):
        y[a], size = _pull(gram, wanted, h, order[a], order, count)
        if size > 0:
            largest = max(largest, abs(y[a]) / size)
    return largest


@compiled(fastmath=FAST_SUMS)
def _step(h, order, count, y):  # type: ignore[no-untyped-def]
    """Go by y, or as far as no entry is below zero; return the share, and whether one stopped it.

    Those that are zero now are left where they are in the order.
    """
    share, stopped = 1.0, -1
    for a in range(count):
        now = h[order[a]]
        if now + y[a] <= 0:
            most = now / -y[a] if y[a] < 0 else 0.0
            if stopped < 0 or most < share:
                share, stopped = min(most, 1.0), a
    for a in range(count):
        h[order[a]] = max(h[order[a]] + share * y[a], 0.0)
    if stopped >= 0:
        h[order[stopped]] = 0.0
    return share, stopped >= 0


@compiled(fastmath=FAST_SUMS)
def _without_zeros(h, order, count):  # type: ignore[no-untyped-def]
    """Take zero entries out of the order; return how many are left, and where the first was."""
    kept, first = 0, count
    for a in range(count):
        if h[order[a]] > 0:
            order[kept] = order[a]
            kept += 1
        else:
            first = min(first, a)
    return kept, first


@compiled(fastmath=FAST_SUMS)
def _most_wanted(gram, wanted, h, order, count, barred, tol):  # type: ignore[no-untyped-def]
    """Return the zero entry with which the loss falls most, or -1 where it does with none."""
    best, found = 0.0, -1
    for k in range(len(h)):
        if h[k] > 0 or barred[k]:
            continue
        pull, size = _pull(gram, wanted, h, k, order, count)
        if pull > tol * size and pull > best:
            best, found = pull, k
    return found


@compiled(fastmath=FAST_SUMS)
def _row_to_optimum(gram, wanted, h, ridge, tol, L, order, y, dead, barred):  # type: ignore[no-untyped-def]
    """Bring one row to its optimum; no step of it raises the loss."""
    barred[:], count, done, newest, before = dead, 0, 0, -1, np.inf
    for k in range(len(h)):
        h[k] = 0.0 if dead[k] else h[k]
        if h[k] > 0:
            order[count] = k
            count += 1
    for _ in range(10 * len(h) + 20):  # it takes far fewer: this ends what rounding would repeat
        left = _pulls(gram, wanted, h, order, count, y)
        if left > tol and left < before / 2:  # tied by the ridge, one step may not be all
            _factorize(gram, ridge, order, done, count, L)
            _solve(L, count, y)
            share, stopped = _step(h, order, count, y)
            done, before = count, left
            if share > 0:
                barred[:] = dead
            elif newest >= 0:
                barred[newest] = True  # it came in by rounding alone
            if stopped:
                count, done = _without_zeros(h, order, count)
                before = np.inf
            continue
        newest = _most_wanted(gram, wanted, h, order, count, barred, tol)
        if newest < 0:
            break
        order[count], before = newest, np.inf
        count += 1


@compiled(parallel=True)
def rows_to_optimum(gram, XV, H, ridge, tol):  # type: ignore[no-untyped-def]
    """Bring each row h of H (n, r) to the minimum of ``h'Gh - 2 h'b`` over h >= 0, in place.

    b is its row of ``X V``. Steps are tied to where they begin by a small ridge, for parts that are
    dependent; entries of parts of length 0 become zero.
    """
    n, r = H.shape
    dead = ~(np.diag(gram) > 0)
    for block in prange((n + _TOGETHER - 1) // _TOGETHER):
        L, y = np.zeros((r, r)), np.zeros(r)
        order, barred = np.zeros(r, np.int64), dead.copy()
        for i in range(block * _TOGETHER, min((block + 1) * _TOGETHER, n)):
            _row_to_optimum(gram, XV[i], H[i], ridge, tol, L, order, y, dead, barred)
