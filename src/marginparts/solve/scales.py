"""Weights of rows and columns, as scales: the I-divergence is homogeneous.

With ``w * D(x, y) = D(w * x, w * y)`` the loss ``sum_ij w_i f_j D(x_ij, (H V')_ij)`` is that of the
data ``diag(w) X diag(f)`` with the factors ``diag(w) H`` and ``diag(f) V``. So weights cost one
scaled copy of the data, and no kernel knows of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data, Result
from marginparts.backends.base import safe_ratio
from marginparts.rows.base import OutOfCore, Rows


class Scales(NamedTuple):
    """What rows (n,) and columns (d,) are multiplied with, None for nothing; rows are positive."""

    rows: Array | None = None
    columns: Array | None = None

    @classmethod
    def of(cls, X: Rows, rows: Array | None, columns: Array | None = None) -> Scales:
        """Return scales in the type of the data; data that is not in memory has none."""
        given = [None if own is None else own.astype(X.dtype) for own in (rows, columns)]
        if isinstance(X, OutOfCore) and any(own is not None for own in given):
            raise ValueError("Weights need X in memory, and not rows on disk or on a cluster.")
        return cls(*given)

    @property
    def are_one(self) -> bool:
        """Whether they change nothing."""
        return self.rows is None and self.columns is None

    def data(self, X: Any) -> Any:
        """Return ``diag(rows) X diag(columns)``; without scales it is X itself."""
        if self.are_one:
            return X
        rows = np.ones(X.shape[0], X.dtype) if self.rows is None else self.rows
        columns = np.ones(X.shape[1], X.dtype) if self.columns is None else self.columns
        if isinstance(X, np.ndarray):
            scaled = X * rows[:, None]
            scaled *= columns
            return scaled
        values = X.data * np.repeat(rows, np.diff(X.indptr))
        values *= columns[X.indices]
        scaled = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        if not values.all():  # stored zeros are left out, in arrays of their own
            scaled = scaled.copy()
            scaled.eliminate_zeros()
        return scaled

    def column_masses(self, X: Any) -> Array:
        """Return the sums of the columns (d,) of the scaled data."""
        rows = np.ones(X.shape[0]) if self.rows is None else self.rows.astype(np.float64)
        sums = np.asarray(X.T @ rows).ravel()
        return sums if self.columns is None else sums * self.columns

    def start(self, H: Array, V: Array) -> tuple[Array, Array]:
        """Return the factors of the scaled data."""
        H = H if self.rows is None else H * self.rows[:, None]
        return H, V if self.columns is None else V * self.columns[:, None]

    def margins(self, S: Data | None) -> Data | None:
        """Return the S whose margin components of the scaled rows are those of the rows."""
        if S is None or self.rows is None:
            return S
        return sp.csr_array(sp.diags_array(1 / self.rows) @ S).astype(S.dtype)

    def back(self, result: Result) -> Result:
        """Return the factors and margin components of the data as it was."""
        H, V, XS = result.H, result.V, result.XS
        if self.rows is not None:
            H = H / self.rows[:, None]
        if self.columns is not None:
            V = safe_ratio(V, self.columns[:, None])
            if XS is not None:
                inverse = safe_ratio(np.ones_like(self.columns), self.columns)
                XS = Scales(columns=inverse).data(XS)
        return replace(result, H=H, V=V, XS=XS)
