"""Dual coefficients that move with the parts: one objective for V, H and S (docs/math.md, 23).

    J = D(X, H V') + sum_k [ lam * D(XS_k, HS_k V') + mu_k * F_k(alpha_k) ]

with the negated SVM dual ``F = 1/2 |sum_i alpha_i y_i x_i|^2 + sum_i alpha_i^2 / (4 C_i) - sum_i
alpha_i`` of each two-class question k, whose components are the two rows of XS_k. An update of V or
H lowers the first two terms and leaves F alone; for V and H as they are, J is convex in the alphas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import kl_div

from marginparts._types import Array, Data
from marginparts.svm.duals import DualProblem, Questions, solve_duals

#: What the dual counts at the start, beside the loss of a question's components.
_MARGIN = 3.0

#: The margins that a sample may be asked for, once it is told what it costs the parts.
_ASKED = (0.1, 2.0)

#: The least ratio of a component to its fit of which prices know.
_LEAST = 0.05

#: How far to go towards the new classifier, the first try first.
_DAMPED = tuple(0.5**k for k in range(1, 11))


class _Point(NamedTuple):
    """The alphas (m,) of a question, and what is linear in them."""

    alpha: Array
    XS: Array  # (2, d)
    HS: Array  # (2, r)
    w: Array  # (f,)

    def towards(self, other: _Point, share: float) -> _Point:
        """Return a point between two."""
        return _Point(*(a + share * (b - a) for a, b in zip(self, other, strict=True)))


class Joint(NamedTuple):
    """What is constant while parts and directions move: the data, the questions and their weights.

    Attributes
    ----------
    X : (n, d) array or CSR array
    asked : Questions
    lam : float
    mu : (p,) array
        Weights of the duals.
    """

    X: Data
    asked: Questions
    lam: float
    mu: Array

    @classmethod
    def of(cls, X: Data, asked: Questions, lam: float, H: Array, V: Array) -> Joint:
        """Weigh each dual so that at the start it is a given multiple of its components' loss."""
        new = cls(X, asked, lam, np.zeros(len(asked.tasks)))
        H, V = (A.astype(np.float64, copy=False) for A in (H, V))
        for k, alpha in enumerate(asked.alphas):
            point = new._point(k, alpha.astype(np.float64), H)
            loss, size = new.value(k, point, V), -new.dual(k, point)
            new.mu[k] = _MARGIN * loss / size if size > 0 else 0.0
        return new

    def duals(self, alphas: list[Array]) -> float:
        """Return ``sum_k mu_k F_k``, which the loss of NMF-alpha lacks to be J."""
        nothing = np.zeros((self.X.shape[0], 1))
        points = [self._point(k, alpha, nothing) for k, alpha in enumerate(alphas)]
        return float(sum(mu * self.dual(k, points[k]) for k, mu in enumerate(self.mu)))

    def dual(self, k: int, point: _Point) -> float:
        """Return F of a question: the SVM dual, to be minimized."""
        alpha, w = point.alpha, point.w
        return float(w @ w / 2 + np.sum(alpha * (alpha / (4 * self.asked.costs[k]) - 1)))

    def value(self, k: int, point: _Point, V: Array) -> float:
        """Return what question k has in J."""
        loss = kl_div(point.XS, np.maximum(point.HS @ V.T, 0)).sum()
        return self.lam * float(loss) + self.mu[k] * self.dual(k, point)

    def moved(self, alphas: list[Array], H: Array, V: Array) -> tuple[list[Array], float]:
        """Return alphas for which J is no larger, and by how much it falls."""
        H, V = (A.astype(np.float64, copy=False) for A in (H, V))
        steps = [self._step(k, alpha, H, V) for k, alpha in enumerate(alphas)]
        return [alpha for alpha, _ in steps], sum(fall for _, fall in steps)

    def _step(self, k: int, alpha: Array, H: Array, V: Array) -> tuple[Array, float]:
        """Go some way to the classifier that knows what each sample costs the parts."""
        now = self._point(k, alpha.astype(np.float64), H)
        if self.mu[k] <= 0:
            return alpha, 0.0
        before = self.value(k, now, V)
        goal = self._point(k, self._answer(k, now, H, V), H)
        for share in _DAMPED:
            new = now.towards(goal, share)
            fall = before - self.value(k, new, V)
            if fall > 0:
                return new.alpha, fall
        return alpha, 0.0

    def _point(self, k: int, alpha: Array, H: Array) -> _Point:
        task, (plus, minus) = self.asked.tasks[k], self._units(k)
        positive = task.signs > 0
        S = np.stack([alpha * plus * positive, alpha * minus * ~positive])
        w = self.asked.seen[task.rows].T @ (alpha * task.signs)
        return _Point(alpha, np.asarray(S @ self.X[task.rows]), S @ H[task.rows], np.asarray(w))

    def _units(self, k: int) -> tuple[Array, Array]:
        """Return what an alpha of each row is in S, as a positive and as a negative sample."""
        carry, factors = self.asked.carry[self.asked.tasks[k].rows], self.asked.factors
        return carry * factors[k], carry * factors[len(self.asked.tasks) + k]

    def prices(self, k: int, point: _Point, H: Array, V: Array) -> Array:
        """Return the slopes (m,) of the components' divergence along the alphas."""
        fit = point.HS @ V.T
        ratio = np.divide(point.XS, fit, out=np.ones_like(fit), where=fit > 0)
        # a component that has nothing of a feature gains without end by the first of it
        logs = np.log(np.maximum(ratio, _LEAST))
        rows = self.asked.tasks[k].rows
        slopes = np.asarray(self.X[rows] @ logs.T) + H[rows] @ (V.T @ (1 - ratio).T)
        own = np.where(self.asked.tasks[k].signs > 0, *(slopes * np.stack(self._units(k), 1)).T)
        return np.asarray(self.lam * own)

    def _answer(self, k: int, now: _Point, H: Array, V: Array) -> Array:
        """Minimize ``mu F`` and the prices times the alphas: an SVM that asks samples for less.

        A sample of price g is asked for the margin ``t = 1 - g / mu``; with ``x / t`` and ``C t^2``
        that is the SVM which asks all for 1, and its alpha is ours times t.
        """
        task, cost = self.asked.tasks[k], self.asked.costs[k]
        t = np.clip(1 - self.prices(k, now, H, V) / self.mu[k], *_ASKED)
        seen = sp.csr_array(sp.diags_array(1 / t) @ self.asked.seen[task.rows])
        problem = DualProblem(np.arange(len(t)), task.signs, cost * t**2, now.alpha * t)
        (solution,) = solve_duals(seen, [problem], tol=1e-3, max_epochs=1000)
        return solution.alpha / t
