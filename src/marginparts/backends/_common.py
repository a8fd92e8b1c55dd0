"""What every backend must agree on to the last digit: the one epsilon, and how a step ends."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from marginparts._types import Array, Factor, Step


@cache
def tiny(dtype: type | np.dtype[Any]) -> float:
    """Return the smallest a.b that counts as positive: the one epsilon of the package.

    Below it ``x / a.b`` could overflow. Such an entry cannot be explained (most often a word that
    never occurred in the training rows), and updates skip it.
    """
    return 1e-30 if dtype == np.float32 else 1e-290


def least_entry(dtype: type | np.dtype[Any]) -> float:
    """Return the smallest x whose missing fit counts; that of a smaller one is lost in rounding."""
    return 1e10 * tiny(dtype)


def column_sums(A: Array) -> Array:
    """Sums over rows, in float64 whatever the factor's type."""
    return np.asarray(A.sum(axis=0, dtype=np.float64))


def inverse_or_zero(den: Array, dtype: DTypeLike) -> Array:
    """Return ``1 / den``, and 0 where ``den`` is 0: a dead component stays dead, without a NaN.

    A sum below the smallest normal number of the factor's type counts as 0.
    """
    alive = den >= np.finfo(dtype).tiny
    return np.divide(1.0, den, out=np.zeros(len(den)), where=alive).astype(dtype)


def total_of(parts: Iterable[Array]) -> Array:
    """Return the sum of arrays of one shape, added up in float64 in their order, in their type."""
    total = dtype = None
    for part in parts:
        if total is None:
            total, dtype = part.astype(np.float64), part.dtype
        else:
            total += part
    assert total is not None
    return total.astype(dtype, copy=False)


def finished(
    A: Array, numerator: Array, den: Array, weight: Array | None = None, gauge: bool = False
) -> Step:
    """Return ``A * numerator / (weight[:, None] * den)`` as a step: how every update ends."""
    rows = np.ones((len(A), 1)) if weight is None else weight[:, None]
    step = A * numerator * inverse_or_zero(den, A.dtype) / rows
    step = step.astype(A.dtype, copy=False)
    return gauged(step, *violation_of(A, numerator, rows * den)) if gauge else Step(step)


def violation_of(A: Array, numerator: Array, denominator: Array) -> tuple[float, float]:
    """Return a factor's mass, and how far it is from optimal: 0 if no entry can lower the loss.

    An entry a with numerator G and denominator u is optimal if both its share ``a u`` of its row's
    mass ``M = sum a G`` and its slope ``(u - G) / max(u, G)`` are nonnegative and one of them is 0.
    A row counts by its mass, with its worst entry.
    """
    mass = np.sum(A * numerator, axis=1, dtype=np.float64, keepdims=True)
    larger = np.maximum(denominator, numerator)
    slope = np.divide(denominator - numerator, larger, out=np.zeros(A.shape), where=larger > 0)
    gap = np.abs(np.minimum(A * denominator, mass * slope))
    return float(mass.sum()), float(gap.max(axis=1, initial=0).sum())


def gauged(factor: Factor, mass: float, worst: float) -> Step:
    """Return a step with the violations of all rows as a share of their mass; 0 without any."""
    return Step(factor, float(worst / mass) if mass > 0 else 0.0, float(mass))


def multiplicative_step(A: Array, numerator: Array, denominator: Array, gauge: bool) -> Step:
    """Return ``A * numerator / denominator``, with 0 / 0 = 0, as a step."""
    # in this order: a ratio to a denominator that all but vanished would be infinite
    new = safe_ratio(A * numerator, denominator)
    return gauged(new, *violation_of(A, numerator, denominator)) if gauge else Step(new)


def moved_ahead(now: Array, before: Array, b: float, least: float) -> Array:
    """Return ``max(now + b * (now - before), least * now)``."""
    dtype = now.dtype.type
    return np.maximum(now + dtype(b) * (now - before), dtype(least) * now)


def safe_ratio(numerator: Array, denominator: Array) -> Array:
    """Return ``numerator / denominator``, and 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape), numerator.dtype)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
