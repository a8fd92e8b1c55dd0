"""Constrained NMF of Liu & Wu 2010: samples of one class share one code (eqs. 19-20).

    loss = |X - (A' P) V'|^2      A stacks the labels (c, m) and an identity for unlabeled rows

``P`` (c + n - m, r) holds a code for each class and one for each unlabeled sample. Everything runs
on ``Xt = A X`` (class sums, then the unlabeled rows) and ``A A' = blockdiag(Y'Y, I)``, so that A is
never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from marginparts._types import Array, Operator, State
from marginparts.losses.least_squares import MultiplicativeProblem


@dataclass
class LiuWu2010Problem(MultiplicativeProblem):
    """What is constant in a run."""

    Xt: Operator  # (c + n - m, d), prepared: class sums, then the unlabeled rows
    gram: Array  # (c, c), Y'Y: how many labeled samples each two classes share
    x_squared: float  # |X|^2 of the data itself

    blocks: ClassVar[tuple[str, ...]] = ("V", "P")

    def ratio(self, state: State, block: str) -> tuple[Array, Array]:
        """Return what the update of a factor divides."""
        V, P = state["V"], state["P"]
        if block == "V":
            return self.Xt.T @ P, V @ (P.T @ self._with_gram(P))
        return self.Xt @ V, self._with_gram(P) @ (V.T @ V)

    def _with_gram(self, P: Array) -> Array:
        """Return ``A A' P``."""
        c = len(self.gram)
        return np.concatenate([self.gram @ P[:c], P[c:]])

    def loss(self, state: State) -> float:
        """Return eq. 20, squared."""
        V, P = (state[name].astype(np.float64) for name in ("V", "P"))
        cross = float(np.sum((self.Xt @ V) * P))
        fitted = float(np.sum((V.T @ V) * (P.T @ self._with_gram(P))))
        return max(self.x_squared - 2 * cross + fitted, 0.0)
