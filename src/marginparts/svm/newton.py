"""A linear SVM with the squared hinge by Newton's method: exact, and fast for few columns.

The squared hinge is quadratic wherever the set of samples within the margin stays the same, so a
Newton step lands on the optimum of the present set, and a handful of steps reaches the optimum
itself (Keerthi & DeCoste 2005). With q columns a step needs one q x q Gram matrix of the samples
within the margin. From one step to the next, and from one cost to the next, few samples enter or
leave that set, so its matrix is brought up to date by those that did. The gradient is always that
of all samples, so nothing is lost by it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Steps and steps of a line search, at most; about five of each are usual.
_STEPS, _LINE_STEPS = 100, 30

#: The gradient at the end, beside the one at zero.
_TOL = 1e-6


def gram_of(Z: Matrix, counts: Vector) -> Matrix:
    """Return ``sum_i counts_i z_i z_i'`` of the rows of Z (m, q)."""
    return np.asarray(Z.T @ (counts[:, None] * Z))


class SquaredHinge:
    """Minimizes ``|w|^2 / 2 + C sum_i counts_i max(0, 1 - y_i z_i w)^2``, for one C after another.

    Parameters
    ----------
    Z : (m, q)
    y : (m,)
        Signs, -1 and 1.
    counts : (m,) or None
        How much each sample counts.
    whole : (q, q) or None
        `gram_of` all samples, for those who know it: questions about the same samples share it.
    """

    def __init__(
        self, Z: Matrix, y: Vector, counts: Vector | None = None, whole: Matrix | None = None
    ) -> None:
        self._Z, self._y = Z, y
        self._counts = np.ones(len(y)) if counts is None else counts
        self._whole = self._gram = whole
        self._within = np.ones(len(y), dtype=bool)
        self._w = np.zeros(Z.shape[1])
        # where the sums cancel, rounding is all there is
        rounding = 1e-6 * np.linalg.norm(self._counts @ np.abs(Z))
        self._size = float(max(np.linalg.norm((self._counts * y) @ Z), rounding))

    def at(self, C: float) -> Vector:
        """Return the optimum w (q,) for a cost, sought from that of the last one."""
        Z, y, w = self._Z, self._y, self._w
        costs, margins = C * self._counts, y * (Z @ w)
        for _ in range(_STEPS):
            pull = 2 * costs * y * np.maximum(1 - margins, 0)
            gradient = w - pull @ Z
            if np.linalg.norm(gradient) <= _TOL * 2 * C * self._size:
                break
            hessian = 2 * C * self._gram_within(margins < 1)
            diagonal = np.diag_indices_from(hessian)
            hessian[diagonal] += 1
            # equal columns and a huge cost: rounding must not make it indefinite
            hessian[diagonal] += np.finfo(float).eps * np.trace(hessian)
            step = -cho_solve(cho_factor(hessian, overwrite_a=True, check_finite=False), gradient)
            change = y * (Z @ step)
            size = _line_search(w, step, margins, change, costs)
            w, margins = w + size * step, margins + size * change
        self._w = w
        return w

    def _gram_within(self, now: NDArray[np.bool_]) -> Matrix:
        """Return the Gram matrix of some samples, by the shortest way from one that is known."""
        if self._whole is None:
            self._whole = gram_of(self._Z, self._counts)
        if self._gram is None:
            self._gram = self._whole
        entered, left = now & ~self._within, self._within & ~now
        moved = int(entered.sum() + left.sum())
        if moved > now.sum():
            gram = self._gram_of(now)
        elif moved > (~now).sum():
            gram = self._whole - self._gram_of(~now)
        elif moved:
            gram = self._gram + self._gram_of(entered) - self._gram_of(left)
        else:
            return self._gram
        self._gram, self._within = gram, now
        return gram

    def _gram_of(self, some: NDArray[np.bool_]) -> Matrix:
        return gram_of(self._Z[some], self._counts[some])


def _line_search(w: Vector, step: Vector, margins: Vector, change: Vector, costs: Vector) -> float:
    """Return the best multiple of a step: the zero of a slope that rises in straight pieces."""
    low, high, size = 0.0, np.inf, 1.0
    ahead, curve = float(w @ step), float(step @ step)
    for _ in range(_LINE_STEPS):
        slack = 1 - margins - size * change
        within = slack > 0
        moved = change[within]
        dear = 2 * costs[within] * moved
        slope = ahead + size * curve - float(dear @ slack[within])
        bend = curve + float(dear @ moved)
        if slope > 0:
            high = size
        else:
            low = size
        new = size - slope / bend
        if not low < new < high:
            new = (low + high) / 2 if np.isfinite(high) else 2 * size
        if abs(new - size) <= 1e-9 * size:
            return new
        size = new
    return size
