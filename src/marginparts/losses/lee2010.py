"""Semi-supervised NMF of Lee, Yoo & Choi 2010: factors that also regress the labels (eq. 18).

    loss = |X - H V'|^2 + lam * |Y - H_m U'|^2      over the m labeled rows, U (c, r)

Only known entries of Y take part, so partly known multilabel rows are welcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Operator, State
from marginparts.losses.least_squares import MultiplicativeProblem, squared_error


@dataclass
class Lee2010Problem(MultiplicativeProblem):
    """What is constant in a run."""

    X: Operator  # (n, d), prepared
    x_squared: float  # |X|^2
    Y: Array  # (m, c): indicator of the labeled rows, 0 where unknown
    known: Array  # (m, c): 1 where an entry of Y is known
    rows: NDArray[np.intp]  # (m,): the labeled rows of X
    lam: float

    blocks: ClassVar[tuple[str, ...]] = ("V", "U", "H")

    def ratio(self, state: State, block: str) -> tuple[Array, Array]:
        """Return what the update of a factor divides."""
        V, U, H = state["V"], state["U"], state["H"]
        H_m = H[self.rows]
        if block == "V":
            return self.X.T @ H, V @ (H.T @ H)
        if block == "U":
            return self.Y.T @ H_m, self._fitted(H_m, U).T @ H_m
        numerator, denominator = self.X @ V, H @ (V.T @ V)
        numerator[self.rows] += self.lam * (self.Y @ U)
        denominator[self.rows] += self.lam * (self._fitted(H_m, U) @ U)
        return numerator, denominator

    def _fitted(self, H_m: Array, U: Array) -> Array:
        """The regression's values where the labels are known."""
        return np.asarray(self.known * (H_m @ U.T))

    def loss(self, state: State) -> float:
        """Return eq. 18."""
        V, U, H = state["V"], state["U"], state["H"]
        residual = self.Y - self._fitted(H[self.rows], U)
        supervised = float(np.sum(residual**2, dtype=np.float64))
        return squared_error(self.x_squared, self.X, H, V) + self.lam * supervised
