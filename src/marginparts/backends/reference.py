"""The two kernels in plain NumPy: the oracle for every other backend, never optimized.

Sparse data is handled over its nonzeros alone, as everywhere; apart from that, each line is the
formula. Keep it readable, not fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Step
from marginparts.backends import Also, Plus
from marginparts.backends._common import (
    column_sums,
    finished,
    least_entry,
    moved_ahead,
    numerator_of,
    tiny,
    total_of,
)


class ReferenceBackend:
    """Plain NumPy and SciPy."""

    name = "reference"

    def prepare(self, X: Any, like: Any = None) -> Any:
        """Leave the data as it is: arrays and sparse matrices have ``.T`` and ``@`` already."""
        return X

    def ratio_matmul(self, X: Any, A: Array, B: Array) -> Array:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X."""
        rows, columns, x = _nonzeros(X)
        fitted = np.sum(A[rows] * B[columns], axis=1)
        ratio = np.divide(x, fitted, out=np.zeros_like(x), where=fitted > tiny(A.dtype))
        ratios = sp.csr_array((ratio.astype(np.float64), (rows, columns)), shape=X.shape)
        return np.asarray(ratios @ B, dtype=A.dtype)

    def divergence(self, X: Any, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x + a.b`` (eq. 2)."""
        rows, columns, x = _nonzeros(X)
        fitted = np.asarray(np.sum(A[rows] * B[columns], axis=1, dtype=np.float64))
        seen = fitted > 0
        if np.any(x[~seen] > least_entry(A.dtype)):
            return float("inf")  # an entry that cannot be explained
        x, fitted = (v[seen].astype(np.float64) for v in (x, fitted))
        total = column_sums(A) @ column_sums(B)  # the sum of all a.b without forming A @ B.T
        return float(np.sum(x * np.log(x / fitted) - x) + total)

    def half_step(
        self,
        X: Any,
        A: Array,
        B: Array,
        den: Array,
        *,
        weight: Array | None = None,
        also: Also | None = None,
        plus: Plus | None = None,
        out: Array | None = None,
        gauge: bool = False,
    ) -> Step:
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``."""
        return finished(A, numerator_of(self.ratio_matmul, X, A, B, also, plus), den, weight, gauge)

    def finish(
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return ``A * numerator / den``."""
        return finished(A, numerator, den, gauge=gauge)

    def total(self, parts: Iterable[Array]) -> Array:
        """Return the sum of factors, added up in float64."""
        return total_of(parts)

    def coefficients(self, S: Any, rows_of: Any = None) -> Any:
        """Leave it as it is."""
        return S

    def factor(self, A: Array, rows_of: Any = None) -> Array:
        """Return a copy."""
        return A.copy()

    def release(self, A: Array, r: int) -> Array:
        """Return the factor as it is."""
        return A

    def column_sums(self, A: Array) -> Array:
        """Return the sums over rows in float64."""
        return column_sums(A)

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Array:
        """Return ``max(now + b * (now - before), least * now)``."""
        return moved_ahead(now, before, b, least)


def _nonzeros(X: Any) -> tuple[Array, Array, Array]:
    """Rows, columns and values of the nonzeros."""
    X = sp.coo_array(X)
    return X.row, X.col, X.data
