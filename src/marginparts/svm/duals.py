"""Linear SVMs by dual coordinate descent (Hsieh et al. 2008), for the sake of their duals.

The margin components need the dual coefficients alpha of ``w = sum_i alpha_i y_i x_i`` (eq. 6).
LIBLINEAR computes them and does not return them, and recovering them from w is ill-conditioned.
For each sample the problem

    min  1/2 |w|^2 + sum_i C_i loss(y_i w.x_i)

has one dual variable; with ``G = y_i w.x_i - 1 + D_i alpha_i`` its best value is
``clip(alpha_i - G / (|x_i|^2 + D_i), 0, U_i)``. The squared hinge has ``D_i = 1 / (2 C_i)`` and no
upper bound, and its solution is unique even among duplicate samples; the hinge has ``D_i = 0`` and
``U_i = C_i``. A cost for each sample serves the transductive SVM. There is no bias: append a
constant feature for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Data

#: Problems solved side by side are cut so that their weight vectors stay below this many numbers.
_WEIGHTS = 1 << 26


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
    X = sp.csr_array(X).astype(np.float64)
    if max(X.nnz, *X.shape) < 2**31:  # one kernel, however the indices came
        X.indices, X.indptr = (A.astype(np.int32, copy=False) for A in (X.indices, X.indptr))
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
