"""The two kernels in plain NumPy: the oracle for every other backend, never optimized.

Sparse data is handled over its nonzeros alone, as everywhere; apart from that, each line is the
formula. Keep it readable, not fast.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Matrix
from marginparts.backends.base import Backend, column_sums, least_entry, tiny


class ReferenceBackend(Backend):
    """Plain NumPy and SciPy."""

    name = "reference"

    def ratio_matmul(self, X: Matrix, A: Array, B: Array) -> Array:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X."""
        rows, columns, x = _nonzeros(X)
        fitted = np.sum(A[rows] * B[columns], axis=1)
        ratio = np.divide(x, fitted, out=np.zeros_like(x), where=fitted > tiny(A.dtype))
        ratios = sp.csr_array((ratio.astype(np.float64), (rows, columns)), shape=X.shape)
        return np.asarray(ratios @ B, dtype=A.dtype)

    def divergence(self, X: Matrix, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x + a.b`` (eq. 2)."""
        rows, columns, x = _nonzeros(X)
        fitted = np.asarray(np.sum(A[rows] * B[columns], axis=1, dtype=np.float64))
        seen = fitted > 0
        if np.any(x[~seen] > least_entry(A.dtype)):
            return float("inf")  # an entry that cannot be explained
        x, fitted = (v[seen].astype(np.float64) for v in (x, fitted))
        total = column_sums(A) @ column_sums(B)  # the sum of all a.b without forming A @ B.T
        return float(np.sum(x * np.log(x / fitted) - x) + total)


def _nonzeros(X: Matrix) -> tuple[Array, Array, Array]:
    """Rows, columns and values of the nonzeros."""
    found = sp.coo_array(X)
    return found.row, found.col, found.data
