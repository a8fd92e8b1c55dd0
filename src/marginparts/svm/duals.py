"""Dual coefficients of linear classifiers, and how they become S (eqs. 6, 9, 17).

A linear classifier's weight vector is a weighted sum of its samples, ``w = sum_i alpha_i y_i x_i``
with ``alpha_i >= 0``. Here are the alphas of two-class questions over the rows, by source. Those of
SVMs are found by dual coordinate descent (Hsieh et al. 2008): LIBLINEAR computes them and does not
return them, and recovering them from w is ill-conditioned. For each sample the problem

    min  1/2 |w|^2 + sum_i C_i loss(y_i w.x_i)

has one dual variable; with ``G = y_i w.x_i - 1 + D_i alpha_i`` its best value is
``clip(alpha_i - G / (|x_i|^2 + D_i), 0, U_i)``. The squared hinge has ``D_i = 1 / (2 C_i)`` and no
upper bound, and its solution is unique even among duplicate samples; the hinge has ``D_i = 0`` and
``U_i = C_i``. A cost for each sample serves the transductive SVM. There is no bias: append a
constant feature for one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from marginparts._types import Array, Data
from marginparts.labels import BinaryTask
from marginparts.validation import with_short_indices

#: Problems solved side by side are cut so that their weight vectors stay below this many numbers.
_WEIGHTS = 1 << 26


#: Where directions may come from, besides a function of one's own.
SOURCES = ("svm", "perceptron", "averaged-perceptron", "pa", "cw", "arow", "class")

#: ``source(features, signs) -> alpha``: the dual coefficients of one's own classifier.
DualSource = Callable[[sp.csr_array, NDArray[np.float64]], Array]


class DualProblem(NamedTuple):
    """One two-class problem over some rows of a shared matrix.

    Attributes
    ----------
    rows : (m,) int array
    signs : (m,) array of -1 and 1
    cost : (m,) array
        C_i of each sample, larger than 0.
    alpha : (m,) array or None
        A warm start.
    """

    rows: NDArray[np.intp]
    signs: NDArray[np.float64]
    cost: NDArray[np.float64]
    alpha: NDArray[np.float64] | None = None


class DualSolution(NamedTuple):
    """Dual coefficients (m,), weight vector (d,), whether the tolerance was met, and the passes."""

    alpha: NDArray[np.float64]
    w: NDArray[np.float64]
    converged: bool
    epochs: int = 0


def solve_duals(
    X: Data,
    problems: Sequence[DualProblem],
    *,
    loss: str = "squared_hinge",
    tol: float = 1e-3,
    max_epochs: int = 10_000,
    seed: int = 0,
) -> list[DualSolution]:
    """Train linear SVMs without a bias on rows of X, side by side on all cores.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    problems : sequence of DualProblem
    loss : {"squared_hinge", "hinge"}
    tol : float
        The projected gradients at the end lie within ``[-tol, tol]``.
    max_epochs : int
        Passes over a problem's samples at most.
    seed : int
        Seed of the random order.

    Returns
    -------
    list of DualSolution
        ``w`` equals ``X[rows].T @ (alpha * signs)`` up to rounding.
    """
    X = with_short_indices(sp.csr_array(X).astype(np.float64))
    each = max(1, _WEIGHTS // max(X.shape[1], 1))
    solutions: list[DualSolution] = []
    for first in range(0, len(problems), each):
        some = problems[first : first + each]
        solutions += _solve_some(X, some, loss, tol, max_epochs, seed + first)
    return solutions


def _solve_some(
    X: sp.csr_array,
    problems: Sequence[DualProblem],
    loss: str,
    tol: float,
    max_epochs: int,
    seed: int,
) -> list[DualSolution]:
    from marginparts._compiled import check_threads
    from marginparts.svm._dual_cd import solve_all

    check_threads()
    starts = np.cumsum([0] + [len(p.rows) for p in problems])
    rows = np.concatenate([p.rows for p in problems]).astype(np.int64)
    signs = np.concatenate([p.signs for p in problems]).astype(np.float64)
    cost = np.concatenate([p.cost for p in problems]).astype(np.float64)
    alpha = np.concatenate(
        [np.zeros(len(p.rows)) if p.alpha is None else p.alpha for p in problems]
    )
    squared = loss == "squared_hinge"
    diagonal = 0.5 / cost if squared else np.zeros_like(cost)
    upper = np.full_like(cost, np.inf) if squared else cost
    alpha = np.clip(alpha, 0, upper)
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    W = np.zeros((len(problems), X.shape[1]))
    epochs = solve_all(
        X.indptr, X.indices, X.data, norms, starts, rows, signs, diagonal, upper,
        alpha, W, tol, max_epochs, seed,
    )  # fmt: skip
    return [
        DualSolution(alpha[lo:hi], w, bool(count <= max_epochs), int(count))
        for lo, hi, w, count in zip(starts, starts[1:], W, epochs, strict=False)
    ]


class Questions(NamedTuple):
    """Two-class questions, and how their alphas become columns of S.

    Attributes
    ----------
    seen : (n, f) CSR array
        What the classifiers see.
    tasks : list of BinaryTask
    costs : list of (m,) arrays
        C of each sample of a task.
    alphas : list of (m,) arrays
    carry : (n,) array
        What a coefficient of a row of ``seen`` is as one of a row of X.
    factors : (2p,) array
        What the columns of S are multiplied by.
    """

    seen: sp.csr_array
    tasks: list[BinaryTask]
    costs: list[NDArray[np.float64]]
    alphas: list[Array]
    carry: Array
    factors: Array

    def some(self, numbers: list[int]) -> Questions:
        """Return those of these numbers."""
        return self._replace(
            tasks=[self.tasks[k] for k in numbers],
            costs=[self.costs[k] for k in numbers],
            alphas=[self.alphas[k] for k in numbers],
        )

    def directions(self, alphas: list[Array] | None = None) -> sp.csr_array:
        """Return S (n, 2p), in float64, of these alphas or of others."""
        own = self.alphas if alphas is None else alphas
        own = [alpha * self.carry[task.rows] for alpha, task in zip(own, self.tasks, strict=True)]
        S = columns_of(self.tasks, own, self.seen.shape[0])
        if np.all(self.factors == 1):  # also where there are none yet
            return S
        return sp.csr_array(S @ sp.diags_array(self.factors))


def duals_of(
    seen: sp.csr_array,
    tasks: list[BinaryTask],
    source: str | DualSource,
    costs: list[NDArray[np.float64]],
    seed: int,
) -> list[Array]:
    """Dual coefficients (m,) of each task's rows, which have a cost each."""
    if callable(source):
        return [_own_duals(source, seen[task.rows], task.signs) for task in tasks]
    if source == "class":
        return [np.ones(len(task.rows)) for task in tasks]
    if source == "svm":
        problems = [DualProblem(t.rows, t.signs, c) for t, c in zip(tasks, costs, strict=True)]
        solutions = solve_duals(seen, problems, tol=1e-4, seed=seed)
        if not all(solution.converged for solution in solutions):
            warnings.warn(
                "The SVMs behind the directions did not converge; their cost is too large for this "
                "data, use a smaller one.",
                ConvergenceWarning,
                stacklevel=6,
            )
        return [solution.alpha for solution in solutions]
    from marginparts.svm._perceptrons import duals_of_passes

    return [
        duals_of_passes(seen[task.rows], task.signs, source, cost, seed)
        for task, cost in zip(tasks, costs, strict=True)
    ]


def _own_duals(source: DualSource, rows: sp.csr_array, signs: NDArray[np.float64]) -> Array:
    """Call a user's function, and check what it returns."""
    alpha = np.asarray(source(rows, signs), dtype=np.float64)
    if alpha.shape != signs.shape or not np.isfinite(alpha).all() or (alpha < 0).any():
        raise ValueError(
            f"directions must return {len(signs)} finite coefficients that are 0 or larger, "
            f"one for each sample it was given; got shape {alpha.shape}."
        )
    return alpha


def columns_of(tasks: list[BinaryTask], alphas: list[Array], n: int) -> sp.csr_array:
    """Return S (n, 2p): ``alpha+`` of every task, then ``alpha-`` of every task (eqs. 9, 17)."""
    p = len(tasks)
    rows, columns, values = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0)]
    for t, (task, alpha) in enumerate(zip(tasks, alphas, strict=True)):
        rows.append(task.rows)
        columns.append(np.where(task.signs > 0, t, p + t))
        values.append(np.asarray(alpha, dtype=np.float64))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    S = sp.csr_array(entries, shape=(n, 2 * p))
    S.eliminate_zeros()
    return S
