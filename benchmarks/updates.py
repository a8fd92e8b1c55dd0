"""One multiplicative update of V and of H, by our kernels and by the C loop.

Both start from the same factors every time and write to others, so that repeated measurements do
the same work. Both get factors whose rows are whole cache lines.
"""

from __future__ import annotations

from ctypes import CDLL
from typing import Any

import numpy as np

from c_loop import CMatrix, library
from marginparts.backends.cpu.backend import NumbaBackend
from marginparts.backends.cpu.storage import SparseMatrix


class Update:
    """An update through our backend.

    Parameters
    ----------
    X : SparseMatrix
        The data with its transpose.
    H, V : (n, r), (d, r)
        With r a power of two, 16 or larger: rows that need no filling up.
    """

    def __init__(self, X: SparseMatrix, H: np.ndarray, V: np.ndarray) -> None:
        self.backend = NumbaBackend()
        self.X, self.XT = self._prepared(X), self._prepared(X.T)
        self.H, self.V = self.backend.factor(H), self.backend.factor(V)
        self.new_H, self.new_V = self.backend.factor(H), self.backend.factor(V)
        self.H_sums = self.column_sums(self.H)
        self.half_step(self.XT, self.V, self.H, self.H_sums, self.new_V)
        self.V_sums = self.column_sums(self.new_V)

    def kernels(self) -> None:
        """Do both half-steps with column sums that are known."""
        self.half_step(self.XT, self.V, self.H, self.H_sums, self.new_V)
        self.half_step(self.X, self.H, self.new_V, self.V_sums, self.new_H)

    def whole(self) -> None:
        """Do both half-steps, column sums included."""
        self.half_step(self.XT, self.V, self.H, self.column_sums(self.H), self.new_V)
        self.half_step(self.X, self.H, self.new_V, self.column_sums(self.new_V), self.new_H)

    def _prepared(self, X: SparseMatrix) -> Any:
        X.tasks  # noqa: B018 - the cut is made once, when it is first asked for
        return X

    def column_sums(self, A: np.ndarray) -> np.ndarray:
        """Return the sums over rows in float64."""
        return self.backend.column_sums(A)

    def half_step(self, X: Any, A: Any, B: Any, den: Any, out: Any) -> None:
        """Write ``A * ((X / (A @ B.T)) @ B) / den`` to ``out``."""
        self.backend.half_step(X, A, B, den, out=out)


class CUpdate(Update):
    """The same update through the C loop, with column sums by NumPy."""

    def __init__(self, loop: CDLL, X: SparseMatrix, H: np.ndarray, V: np.ndarray) -> None:
        self.loop = loop
        super().__init__(X, H, V)

    def _prepared(self, X: SparseMatrix) -> CMatrix:
        return CMatrix(X.csr, self.loop)

    def column_sums(self, A: np.ndarray) -> np.ndarray:
        """Return the sums over rows in float64."""
        return A.sum(axis=0, dtype=np.float64)

    def half_step(self, X: Any, A: Any, B: Any, den: Any, out: Any) -> None:
        """Write ``A * ((X / (A @ B.T)) @ B) / den`` to ``out``."""
        X.half_step(A, B, den, out)


def updates_of(X: SparseMatrix, H: np.ndarray, V: np.ndarray) -> dict[str, Update]:
    """Return the update by each method, after a check that they agree."""
    found = {"marginparts": Update(X, H, V)}
    for name, rank in (("C loop", None), ("C loop, rank known", V.shape[1])):
        loop = library(rank)
        if loop is not None:
            found[name] = CUpdate(loop, X, H, V)
    for update in found.values():
        update.whole()
    # not closer: the C loop sums a frequent word's row in float32 alone, however long it is
    for update in found.values():
        np.testing.assert_allclose(update.new_V, found["marginparts"].new_V, rtol=0.02)
        np.testing.assert_allclose(update.new_H, found["marginparts"].new_H, rtol=0.02)
    return found
