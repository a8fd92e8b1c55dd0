"""The linear SVM on the codes, one for each class or label: exact, and fast for few columns.

The squared hinge is quadratic wherever the set of samples within the margin stays the same, so a
Newton step lands on the optimum of the present set, and a handful of steps reaches the optimum
itself (Keerthi & DeCoste 2005). With r columns a step costs one r x r Gram matrix of the samples
within the margin: several times faster than a general solver, and exact.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.extmath import row_norms

from marginparts._types import Array, Data
from marginparts.backends.base import inverse_or_zero, safe_ratio
from marginparts.labels import BinaryTask, ClassWeight, Labels, task_weights

Vector = NDArray[np.float64]

#: Up to here the Gram matrices of Newton's method are cheap; beyond it LIBLINEAR takes over.
_FEW_COLUMNS = 1000

#: Steps and steps of a line search, at most; about five of each are usual.
_STEPS, _LINE_STEPS = 100, 30

#: Entries of the rows, over all questions, from which on threads are worth their start.
_LARGE = 1_000_000

#: The gradient at the end, beside the one at zero.
_TOL = 1e-6


class Head(NamedTuple):
    """Hyperplanes: coefficients (p, r) and intercepts (p,), p = 1 for two classes."""

    coef: Vector
    intercept: Vector
    size: float | None = None

    def values(self, Z: Data) -> Vector:
        """Return decision values (n, p)."""
        return np.asarray(scaled_rows(Z, self.size) @ self.coef.T + self.intercept)


def scaled_rows(Z: Data, size: float | None) -> Data:
    """Scale rows to length 1 each, or all by one size: C then means the same for any data."""
    rows = Z.astype(np.float64)
    if size is not None:
        return rows * (1 / size)
    lengths = row_norms(rows)
    if sp.issparse(rows):
        return sp.diags_array(inverse_or_zero(lengths, lengths.dtype)) @ rows
    return safe_ratio(rows, lengths[:, None])


def fit_head(
    Z: Data,
    labels: Labels,
    C: float,
    *,
    normalize: bool = True,
    class_weight: ClassWeight = None,
    weights: Array | None = None,
    seed: int = 0,
    center: bool = False,
) -> Head:
    """Train on the rows whose labels are known.

    Parameters
    ----------
    Z : (n, r) array or sparse matrix
    labels : Labels
        Of the same n rows; those without a label are left out. A class without a labeled row is
        never predicted.
    C : float
    normalize : bool
        Give every row length 1, or else only all rows together (root mean square).
    class_weight : None, "balanced" or dict
        How much the samples of each class count.
    weights : (n,) or (n, p) array or None
        How much each row counts besides, or each entry of several labels.
    seed : int
    center : bool
        Let C count in units of the spread of the (dense) rows about their mean: what all rows have
        in common, however large, then does not matter.

    Returns
    -------
    Head
    """
    known = np.flatnonzero(labels.labeled)
    Z, labels = Z[known], labels.take(known)
    counts = np.ones(len(known)) if weights is None else weights[known]
    size = None
    if not normalize:
        squares = row_norms(Z.astype(np.float64), squared=True)
        size = float(np.sqrt(np.average(squares, weights=labels.weights))) or 1.0
    rows, r = scaled_rows(Z, size), Z.shape[1]
    mean, spread = _mean_and_spread(rows, labels.weights) if center else (np.zeros(r), 1.0)
    if center:
        rows = (rows - mean) / spread
    newton = not sp.issparse(rows) and r <= _FEW_COLUMNS
    if newton:
        rows = np.hstack([rows, np.ones((rows.shape[0], 1))])
    tasks = labels.tasks() if labels.multilabel else _class_tasks(labels)
    solve = squared_hinge_weights if newton else partial(_liblinear_weights, seed=seed)

    def weights_of(k: int, task: BinaryTask) -> Vector:
        if len(np.unique(task.signs)) < 2:  # what all samples have is always given, or never
            return np.append(np.zeros(r), task.signs[0] if len(task.signs) else -1.0)
        some = rows if len(task.rows) == rows.shape[0] else rows[task.rows]
        cost = C * task_weights(task, labels, class_weight) * counts_of(counts, task, k)
        return solve(some, task.signs, cost)

    # LIBLINEAR draws from one stream of random numbers for all threads
    n_jobs = -1 if newton and rows.size * len(tasks) > _LARGE else 1
    found = Parallel(n_jobs, backend="threading")(
        delayed(weights_of)(k, task) for k, task in enumerate(tasks)
    )
    W = np.reshape(found, (len(tasks), r + 1))
    coef, intercept = np.ascontiguousarray(W[:, :-1]), np.ascontiguousarray(W[:, -1])
    if center:
        coef = coef / spread
        intercept = intercept - coef @ mean
    head = Head(coef, intercept, size)
    return head if labels.multilabel or len(labels.classes) == 2 else _of_all_classes(head, labels)


def _mean_and_spread(rows: Array, weights: Array | None) -> tuple[Vector, float]:
    """Return the mean row, and the root of the mean squared distance from it (1 where it is 0)."""
    mean = np.asarray(np.average(rows, axis=0, weights=weights), dtype=np.float64)
    squares = row_norms(rows - mean, squared=True)
    return mean, float(np.sqrt(np.average(squares, weights=weights))) or 1.0


def counts_of(weights: Array, task: BinaryTask, k: int) -> Array:
    """Return what the rows of the k-th task count, of weights for rows or for entries."""
    return np.asarray((weights if weights.ndim == 1 else weights[:, k])[task.rows])


def _class_tasks(labels: Labels) -> list[BinaryTask]:
    """One question for two classes, one a class for more; over all rows, which are labeled."""
    present = np.arange(2) if len(labels.classes) == 2 else np.unique(labels.codes)
    positive = present if len(present) > 2 else present[-1:]
    rows = np.arange(len(labels.codes))
    return [BinaryTask(str(k), rows, np.where(labels.codes == k, 1.0, -1.0)) for k in positive]


def _of_all_classes(head: Head, labels: Labels) -> Head:
    """Return a head with a row for each class; one without a labeled row is never predicted."""
    present = np.unique(labels.codes)
    coef = np.zeros((len(labels.classes), head.coef.shape[1]))
    intercept = np.full(len(labels.classes), -np.inf)
    if len(present) == 2:  # one hyperplane speaks for both
        coef[present] = np.concatenate([-head.coef, head.coef])
        intercept[present] = np.repeat(head.intercept, 2) * (-1, 1)
    elif len(present) == 1:  # there is nothing to tell apart
        intercept[present] = 0.0
    else:
        coef[present], intercept[present] = head.coef, head.intercept
    return Head(coef, intercept, head.size)


def _liblinear_weights(Z: Data, y: Vector, cost: Vector, *, seed: int) -> Vector:
    """Train one SVM; return its weights and its intercept, which is penalized like a weight."""
    from sklearn.svm import LinearSVC

    if sp.issparse(Z):  # LIBLINEAR knows 32-bit indices only
        csr, dtype = sp.csr_array(Z), np.int32
        arrays = (csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype))
        Z = sp.csr_array(arrays, shape=csr.shape)
    # the primal solver is the steadier one when there are more samples than columns
    dual = Z.shape[0] < Z.shape[1]
    C = float(np.max(cost))
    svm = LinearSVC(
        C=C, dual=dual, tol=1e-3 if dual else 1e-2, max_iter=10_000, random_state=seed
    ).fit(Z, y, sample_weight=cost / C)
    return np.append(svm.coef_.ravel(), svm.intercept_)


def squared_hinge_weights(Z: Array, y: Vector, C: float | Vector) -> Vector:
    """Minimize ``|w|^2 / 2 + sum C max(0, 1 - y Z w)^2``.

    Parameters
    ----------
    Z : (n, q)
    y : (n,)
        Signs, -1 and 1.
    C : float or (n,)
        The cost of each sample.

    Returns
    -------
    w : (q,)
    """
    w, margins = np.zeros(Z.shape[1]), np.zeros(len(y))
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    # where the sums cancel, rounding is all there is
    sums = np.linalg.norm((C * y) @ Z), 1e-6 * np.linalg.norm(C @ np.abs(Z))
    enough = _TOL * 2 * float(max(sums))
    for _ in range(_STEPS):
        within = np.flatnonzero(margins < 1)
        inside = Z[within]
        cost = 2 * C[within]
        gradient = w - (cost * y[within] * (1 - margins[within])) @ inside
        if np.linalg.norm(gradient) <= enough:
            break
        hessian = inside.T @ (cost[:, None] * inside)
        hessian[np.diag_indices_from(hessian)] += 1
        # equal columns and a huge cost: rounding must not make it indefinite
        hessian[np.diag_indices_from(hessian)] += np.finfo(float).eps * np.trace(hessian)
        step = -cho_solve(cho_factor(hessian, overwrite_a=True, check_finite=False), gradient)
        change = y * (Z @ step)
        size = line_search(w, step, margins, change, C)
        w, margins = w + size * step, margins + size * change
    return w


def line_search(w: Vector, step: Vector, margins: Vector, change: Vector, C: Vector) -> float:
    """Return the best multiple of a step: the zero of a slope that rises in straight pieces."""
    low, high, size = 0.0, np.inf, 1.0
    ahead, curve = float(w @ step), float(step @ step)
    for _ in range(_LINE_STEPS):
        slack = 1 - margins - size * change
        within = slack > 0
        moved = change[within]
        dear = 2 * C[within] * moved
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
