"""The compiled loop of the dual coordinate descent in `svm.duals`."""

from __future__ import annotations

import numpy as np
from numba import prange

from marginparts._compiled import FAST_SUMS, compiled


@compiled(inline="always")
def _next_random(state):  # type: ignore[no-untyped-def]
    """One step of a xorshift generator: a stream of its own for each problem, on any thread."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@compiled(fastmath=FAST_SUMS)
def _solve_one(  # type: ignore[no-untyped-def]
    indptr, indices, data, norms, rows, y, diagonal, upper, alpha, w, tol, max_epochs, seed
):
    """Cycle through the samples of one problem until their projected gradients agree.

    Samples at a bound whose gradient pushes outward are set aside (shrinking, Hsieh et al. 2008
    section 3.2) and all are checked once more before the end.
    """
    m = len(rows)
    active = np.arange(m)
    size = m
    state = np.uint64(seed) * np.uint64(2654435769) + np.uint64(88172645463325252)
    old_max, old_min = np.inf, -np.inf
    for epoch in range(max_epochs):
        for s in range(size - 1, 0, -1):
            state = _next_random(state)
            other = np.int64(state % np.uint64(s + 1))
            active[s], active[other] = active[other], active[s]
        new_max, new_min = -np.inf, np.inf
        s = 0
        while s < size:
            a = active[s]
            i = rows[a]
            dot = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                dot += w[indices[p]] * data[p]
            gradient = y[a] * dot - 1 + diagonal[a] * alpha[a]
            projected = gradient
            outward = False
            if alpha[a] <= 0:
                outward = gradient > old_max
                projected = min(gradient, 0.0)
            elif alpha[a] >= upper[a]:
                outward = gradient < old_min
                projected = max(gradient, 0.0)
            if outward:
                size -= 1
                active[s], active[size] = active[size], active[s]
                continue
            new_max, new_min = max(new_max, projected), min(new_min, projected)
            curvature = norms[i] + diagonal[a]
            if projected != 0:
                before = alpha[a]
                if curvature > 0:
                    alpha[a] = min(max(before - gradient / curvature, 0.0), upper[a])
                else:  # an empty sample under the hinge: linear in alpha, so it goes to a bound
                    alpha[a] = upper[a] if gradient < 0 else 0.0
                step = (alpha[a] - before) * y[a]
                for p in range(indptr[i], indptr[i + 1]):
                    w[indices[p]] += step * data[p]
            s += 1
        if new_max - new_min <= tol and max(new_max, -new_min) <= tol:
            if size == m:
                return epoch + 1
            size, old_max, old_min = m, np.inf, -np.inf
            continue
        old_max = new_max if new_max > 0 else np.inf
        old_min = new_min if new_min < 0 else -np.inf
    return max_epochs + 1


@compiled(parallel=True)
def solve_all(  # type: ignore[no-untyped-def]
    indptr, indices, data, norms, starts, rows, y, diagonal, upper, alpha, W, tol, max_epochs, seed
):
    """Solve independent problems side by side; problem t owns the slice starts[t]:starts[t + 1]."""
    epochs = np.zeros(len(starts) - 1, np.int64)
    for t in prange(len(starts) - 1):
        lo, hi = starts[t], starts[t + 1]
        w = W[t]
        for a in range(lo, hi):
            if alpha[a] != 0:
                i = rows[a]
                for p in range(indptr[i], indptr[i + 1]):
                    w[indices[p]] += alpha[a] * y[a] * data[p]
        epochs[t] = _solve_one(
            indptr, indices, data, norms, rows[lo:hi], y[lo:hi], diagonal[lo:hi], upper[lo:hi],
            alpha[lo:hi], w, tol, max_epochs, seed + t + 1,
        )  # fmt: skip
    return epochs
