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


@compiled(fastmath=IN_ORDER, parallel=True)
def shrink(step, den, weight, l1, l2):  # type: ignore[no-untyped-def]
    """Write t with ``l2 t**2 + (u + l1) t = u s`` over each s of a step, u = weight * den.

    An empty weight is one.
    """
    half, least, one = step.dtype.type(0.5), step.dtype.type(1e-37), step.dtype.type(1)
    for i in prange(len(step)):
        w, square = one if len(weight) == 0 else weight[i], l2[i]
        for k in range(step.shape[1]):
            u = w * den[k]
            a, b = u * step[i, k], half * (u + l1)
            step[i, k] = a / max(b + np.sqrt(b * b + square * a), least)


@compiled(fastmath=FAST_SUMS, parallel=True)
def set_apart(step, before, den, mass, rows, l1, l2):  # type: ignore[no-untyped-def]
    """Write t with ``q / v t**2 + (den + l1) t = g v`` over each s of a step, v before it.

    ``g`` is ``den s / v + mass`` and ``q`` is ``l2 v + rows (sum of the row - v)``.
    """
    half, least = step.dtype.type(0.5), step.dtype.type(1e-37)
    for i in prange(len(step)):
        total = step.dtype.type(0)
        for k in range(step.shape[1]):
            total += before[i, k]
        w, square = rows[i], l2[i]
        for k in range(step.shape[1]):
            v, b = before[i, k], half * (den[k] + l1)
            g = den[k] * step[i, k] / max(v, least) + mass[k]
            q = square * v + w * (total - v)
            step[i, k] = v * g / max(b + np.sqrt(b * b + q * g), least)


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
    one = A.dtype.type(1)
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
            slope = (u - g) / max(u, g, A.dtype.type(1e-37))
            worst = max(worst, abs(min(A[i, k] * u, mass * slope)))
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
