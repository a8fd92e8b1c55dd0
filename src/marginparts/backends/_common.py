"""What every backend must agree on to the last digit: the one epsilon, and how a step ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginparts._types import Array, Step
from marginparts.backends import Also, Plus


def tiny(dtype: Any) -> float:
    """Return the smallest a.b that counts as positive: the one epsilon of the package.

    Below it ``x / a.b`` could overflow. Such an entry cannot be explained (most often a word
    that never occurred in the training rows), and both kernels skip it.
    """
    return 1e-30 if dtype == np.float32 else 1e-290


def column_sums(A: Array) -> Array:
    """Sums over rows, in float64 whatever the factor's type."""
    return np.asarray(A.sum(axis=0, dtype=np.float64))


def inverse_or_zero(den: Array, dtype: Any) -> Array:
    """Return ``1 / den``, and 0 where ``den`` is 0: a dead component stays dead, without a NaN.

    A sum below the smallest normal number of the factor's type counts as 0.
    """
    alive = den >= np.finfo(dtype).tiny
    return np.divide(1.0, den, out=np.zeros(len(den)), where=alive).astype(dtype)


def numerator_of(
    ratio_matmul: Callable[[Any, Array, Array], Array],
    X: Any,
    A: Array,
    B: Array,
    also: Also | None,
    plus: Plus | None,
) -> Array:
    """Return ``ratio_matmul(X, A, B) + also + plus``, for backends that do not fuse them."""
    dtype = A.dtype.type
    numerator = ratio_matmul(X, A, B)
    if also is not None:
        numerator = numerator + dtype(also.weight) * ratio_matmul(also.X, A, also.B)
    if plus is not None:
        numerator = numerator + dtype(plus.weight) * (plus.S @ plus.T)
    return numerator


def violation_of(A: Array, numerator: Array, denominator: Array) -> float:
    """Return how far a factor is from optimal: 0 if no entry of it can lower the loss.

    An entry a with numerator G and denominator u is optimal if both its share ``a u`` of its row's
    mass ``M = sum a G`` and its slope ``(u - G) / max(u, G)`` are nonnegative and one of them is 0.
    A row counts by its mass, with its worst entry.
    """
    mass = np.sum(A * numerator, axis=1, dtype=np.float64, keepdims=True)
    larger = np.maximum(denominator, numerator)
    slope = np.divide(denominator - numerator, larger, out=np.zeros(A.shape), where=larger > 0)
    gap = np.abs(np.minimum(A * denominator, mass * slope))
    return relative_violation(float(mass.sum()), float(gap.max(axis=1, initial=0).sum()))


def relative_violation(mass: float, worst: float) -> float:
    """Return the violations of all rows as a share of their mass; 0 where there is none."""
    return float(worst / mass) if mass > 0 else 0.0


def multiplicative_step(A: Array, numerator: Array, denominator: Array, gauge: bool) -> Step:
    """Return ``A * numerator / denominator``, with 0 / 0 = 0, as a step."""
    # in this order: a ratio to a denominator that all but vanished would be infinite
    new = safe_ratio(A * numerator, denominator)
    return Step(new, violation_of(A, numerator, denominator) if gauge else None)


def moved_ahead(now: Array, before: Array, b: float, least: float) -> Array:
    """Return ``max(now + b * (now - before), least * now)``."""
    dtype = now.dtype.type
    return np.maximum(now + dtype(b) * (now - before), dtype(least) * now)


def safe_ratio(numerator: Array, denominator: Array) -> Array:
    """Return ``numerator / denominator``, and 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape), numerator.dtype)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
