"""The squared error of ``X ~ H V'`` without forming the product, and the map with V frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from marginparts._types import Array, Data, Operator, Problem, State, Step
from marginparts.backends.base import moved_ahead, multiplicative_step, safe_ratio


def squared_norm(X: Data) -> float:
    """Return ``|X|^2`` in float64, of data before it is prepared."""
    values = X if isinstance(X, np.ndarray) else X.data
    return float(np.sum(np.square(values, dtype=np.float64)))


def squared_error(x_squared: float, X: Operator, H: Array, V: Array) -> float:
    """Return ``|X - H V'|^2 = |X|^2 - 2 <X V, H> + <V'V, H'H>``."""
    H, V = H.astype(np.float64, copy=False), V.astype(np.float64, copy=False)
    error = x_squared - 2 * np.sum((X @ V) * H) + np.sum((V.T @ V) * (H.T @ H))
    return max(float(error), 0.0)


class MultiplicativeProblem(Problem):
    """What the models with a squared loss have in common: NumPy factors and no sweeps."""

    def ratio(self, state: State, block: str) -> tuple[Array, Array]:
        """Return numerator and denominator of the update of one factor."""
        raise NotImplementedError

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return the multiplicative update of one factor."""
        return multiplicative_step(state[block], *self.ratio(state, block), gauge)

    def ahead(self, block: str, now: Array, before: Array, b: float, least: float) -> Array:
        """Return a point ahead of a factor, for extrapolation."""
        return moved_ahead(now, before, b, least)


@dataclass
class LeastSquaresMap(MultiplicativeProblem):
    """Find H >= 0 with V frozen; all that is needed of the data is ``X V`` and ``V'V``."""

    XV: Array  # (n, r)
    gram: Array  # (r, r): V.T @ V

    blocks: ClassVar[tuple[str, ...]] = ("H",)

    def start(self) -> Array:
        """Return each row's best multiple of a flat code."""
        flat = np.ones(len(self.gram), self.XV.dtype)
        size = safe_ratio(self.XV @ flat, np.full(len(self.XV), flat @ self.gram @ flat))
        return np.asarray(size[:, None] * flat)

    def ratio(self, state: State, block: str) -> tuple[Array, Array]:
        """Return what the update of H divides."""
        return self.XV, state["H"] @ self.gram

    def loss(self, state: State) -> float:
        """Return the squared error up to the constant ``|X|^2``."""
        H = state["H"].astype(np.float64)
        return float(np.sum(H * (H @ self.gram - 2 * self.XV)))
