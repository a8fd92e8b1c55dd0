"""Two-class questions over the rows, and the dual coefficients of who answers them.

A linear classifier's weight vector is a weighted sum of its samples, ``w = sum_i alpha_i y_i x_i``
with ``alpha_i >= 0``: eq. 6. Here are the alphas, by source, and how they become S (eqs. 9, 17).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from marginparts._types import Array
from marginparts.labels import BinaryTask
from marginparts.svm.duals import DualProblem, solve_duals

#: Where directions may come from, besides a function of one's own.
SOURCES = ("svm", "perceptron", "averaged-perceptron", "pa", "cw", "arow", "class")

#: ``source(features, signs) -> alpha``: the dual coefficients of one's own classifier.
DualSource = Callable[[sp.csr_array, NDArray[np.float64]], Array]


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

    def directions(self, alphas: list[Array] | None = None) -> sp.csr_array:
        """Return S (n, 2p), in float64, of these alphas or of others."""
        own = self.alphas if alphas is None else alphas
        own = [alpha * self.carry[task.rows] for alpha, task in zip(own, self.tasks, strict=True)]
        S = columns_of(self.tasks, own, self.seen.shape[0])
        if np.all(self.factors == 1):
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
                stacklevel=5,
            )
        return [solution.alpha for solution in solutions]
    from marginparts.svm._perceptrons import duals_of_passes

    return [
        duals_of_passes(seen[task.rows], task.signs, source, cost, seed)
        for task, cost in zip(tasks, costs, strict=True)
    ]


def _own_duals(source: DualSource, rows: sp.csr_array, signs: NDArray[np.float64]) -> Array:
    """Ask a user's function, and check what it says."""
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
