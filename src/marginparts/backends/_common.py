"""What every backend must agree on to the last digit: the one epsilon, and how a step ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginparts._types import Array
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


def composed_half_step(
    ratio_matmul: Callable[[Any, Array, Array], Array],
    X: Any,
    A: Array,
    B: Array,
    den: Array,
    weight: Array | None,
    also: Also | None,
    plus: Plus | None,
) -> Array:
    """`half_step` from a `ratio_matmul`, for backends that do not fuse the two."""
    dtype = A.dtype.type
    numerator = ratio_matmul(X, A, B)
    if also is not None:
        numerator = numerator + dtype(also.weight) * ratio_matmul(also.X, A, also.B)
    if plus is not None:
        numerator = numerator + dtype(plus.weight) * (plus.S @ plus.T)
    step = A * numerator * inverse_or_zero(den, A.dtype)
    if weight is not None:
        step /= weight[:, None].astype(A.dtype)
    return step.astype(A.dtype, copy=False)


def safe_ratio(numerator: Array, denominator: Array) -> Array:
    """Return ``numerator / denominator``, and 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape), numerator.dtype)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
