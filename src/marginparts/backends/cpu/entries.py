"""Compiled loops over steps that are penalized, and over blocks of dense data."""

from __future__ import annotations

import numpy as np
from numba import prange

from marginparts._compiled import FAST_SUMS, IN_ORDER, compiled
from marginparts.backends.cpu import _vectors as vec


@compiled(parallel=True)
def add_scaled(step, A, scale):  # type: ignore[no-untyped-def]
    """Add ``A * scale`` to a step, with a scale for each column."""
    for i in prange(len(step)):
        for k in range(step.shape[1]):
            step[i, k] += A[i, k] * scale[k]


@compiled(inline="always")
def gap_of(v, g, u, mass, least):  # type: ignore[no-untyped-def]
    """Return the violation of an entry v with numerator g and denominator u, in its row's mass."""
    return abs(min(v * u, mass * ((u - g) / max(u, g, least))))


@compiled(fastmath=IN_ORDER, parallel=True)
def shrink(step, den, weight, l1, l2, before, gauge):  # type: ignore[no-untyped-def]
    """Write t with ``l2 t**2 + (u + l1) t = u s`` over each s of a step, u = weight * den.

    An empty weight is one. ``gauge`` (n, 2) gets each row's mass and violation, from the factor
    ``before`` the step; an empty one leaves them out.
    """
    half, least, one = step.dtype.type(0.5), step.dtype.type(1e-37), step.dtype.type(1)
    for i in prange(len(step)):
        w, square = one if len(weight) == 0 else weight[i], l2[i]
        if len(gauge) > 0:
            mass = step.dtype.type(0)
            for k in range(step.shape[1]):
                mass += w * den[k] * step[i, k]
            worst = step.dtype.type(0)
            for k in range(step.shape[1]):
                u, v = w * den[k], before[i, k]
                g = u * step[i, k] / v if v > 0 else step.dtype.type(0)
                worst = max(worst, gap_of(v, g, u + l1 + square * v, mass, least))
            gauge[i, 0], gauge[i, 1] = mass, worst
        for k in range(step.shape[1]):
            u = w * den[k]
            a, b = u * step[i, k], half * (u + l1)
            step[i, k] = a / max(b + np.sqrt(b * b + square * a), least)


@compiled(fastmath=FAST_SUMS, parallel=True)
def overlaps(A):  # type: ignore[no-untyped-def]
    """Return ``sum_{k<l} A_ik A_il`` of each row (n,) in float64."""
    terms = np.zeros(len(A))
    for i in prange(len(A)):
        total, squares = 0.0, 0.0
        for k in range(A.shape[1]):
            a = np.float64(A[i, k])
            total += a
            squares += a * a
        terms[i] = (total * total - squares) / 2
    return terms


@compiled(parallel=True)
def entry_divergences(X, fitted, scale):  # type: ignore[no-untyped-def]
    """Return the I-divergence of each row of X from ``fitted * scale`` (n,) in float64."""
    terms = np.zeros(len(X))
    for i in prange(len(X)):
        total = 0.0
        for k in range(X.shape[1]):
            x, fit = np.float64(X[i, k]), np.float64(fitted[i, k]) * scale[k]
            if x == 0:
                total += fit
            elif fit > 0:
                more = fit / x - 1  # next to nothing where one is the other
                total += x * (more - np.log1p(more))
            else:
                total = np.inf
        terms[i] = total
    return terms


# The two loops over dense blocks are not threaded: they run between BLAS calls, whose idle threads
# would fight with ours for the cores.


@compiled(fastmath=IN_ORDER)
def divide_block(X, fitted, floor):  # type: ignore[no-untyped-def]
    """Replace ``fitted`` by ``X / fitted``, and by 0 where the fit is 0."""
    zero = fitted.dtype.type(0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            fit = fitted[i, j]
            fitted[i, j] = X[i, j] / fit if fit > floor else zero


@compiled()
def finish_block(A, numerator, den, inverse, weight, out):  # type: ignore[no-untyped-def]
    """Write ``A * numerator * inverse / weight[:, None]``; return the rows' mass and violation."""
    one, least = A.dtype.type(1), A.dtype.type(1e-37)
    total, violations = 0.0, 0.0
    mode = vec.flush_denormals()
    for i in range(A.shape[0]):
        w = one if len(weight) == 0 else weight[i]
        mass = A.dtype.type(0)
        for k in range(A.shape[1]):
            mass += A[i, k] * numerator[i, k]
        worst = A.dtype.type(0)
        for k in range(A.shape[1]):
            u, g = den[0, k] * w, numerator[i, k]
            worst = max(worst, gap_of(A[i, k], g, u, mass, least))
            out[i, k] = A[i, k] * g * inverse[0, k] / w
        total += mass
        violations += worst
    vec.restore_mode(mode)
    return total, violations


@compiled(fastmath=FAST_SUMS)
def log_terms_block(X, fitted, least):  # type: ignore[no-untyped-def]
    """Return ``sum x log(x / a.b) - x`` of a dense block, infinite as that of `log_terms`."""
    total = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] > 0 and fitted[i, j] > 0:
                x = np.float64(X[i, j])
                total += x * np.log(x / np.float64(fitted[i, j])) - x
            elif X[i, j] > least:
                return np.inf
    return total
