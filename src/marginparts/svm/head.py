"""The linear SVM on the codes, one for each class or label.

With few columns Newton's method solves it (`marginparts.svm.newton`): several times faster than a
general solver, and exact. For sparse rows, or many columns, it is LIBLINEAR.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from marginparts._types import Array, Data
from marginparts.backends.base import inverse_or_zero, safe_ratio
from marginparts.labels import BinaryTask, Labels
from marginparts.svm.class_weights import ClassWeight, task_weights
from marginparts.svm.newton import SquaredHinge, gram_of

Vector = NDArray[np.float64]

#: Up to here the Gram matrices of Newton's method are cheap; beyond it LIBLINEAR takes over.
_FEW_COLUMNS = 1000

#: Entries of the rows, over all questions, from which on threads are worth their start.
_LARGE = 1_000_000

#: A solver's weights (r,) and intercept for a cost.
Solver = Callable[[float], Vector]


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


def fit_head(Z: Data, labels: Labels, C: float, **how: Any) -> Head:
    """Train on the rows whose labels are known, for one cost; see `Heads`."""
    return Heads(Z, labels, **how).at(C)


class Heads:
    """Trains on the rows whose labels are known, for one cost after another.

    Parameters
    ----------
    Z : (n, r) array or sparse matrix
    labels : Labels
        Of the same n rows; those without a label are left out. A class without a labeled row is
        never predicted.
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
    """

    def __init__(
        self,
        Z: Data,
        labels: Labels,
        *,
        normalize: bool = True,
        class_weight: ClassWeight = None,
        weights: Array | None = None,
        seed: int = 0,
        center: bool = False,
    ) -> None:
        known = np.flatnonzero(labels.labeled)
        Z, self._labels = Z[known], labels.take(known)
        counts = np.ones(len(known)) if weights is None else weights[known]
        self._size = None
        if not normalize:
            squares = row_norms(Z.astype(np.float64), squared=True)
            self._size = float(np.sqrt(np.average(squares, weights=self._labels.weights))) or 1.0
        rows = scaled_rows(Z, self._size)
        self._mean, self._spread = np.zeros(Z.shape[1]), 1.0
        if center:
            self._mean, self._spread = _mean_and_spread(rows, self._labels.weights)
            rows = (rows - self._mean) / self._spread
        newton = not sp.issparse(rows) and Z.shape[1] <= _FEW_COLUMNS
        several = self._labels.multilabel
        tasks = self._labels.tasks() if several else _class_tasks(self._labels)
        own = [
            task_weights(task, self._labels, class_weight) * counts_of(counts, task, k)
            for k, task in enumerate(tasks)
        ]
        solver = _newton_solvers if newton else partial(_liblinear_solvers, seed=seed)
        self._solvers = solver(rows, tasks, own)
        # LIBLINEAR draws from one stream of random numbers for all threads
        self._n_jobs = -1 if newton and rows.size * len(tasks) > _LARGE else 1

    def at(self, C: float) -> Head:
        """Return the hyperplanes for a cost."""
        found = Parallel(self._n_jobs, backend="threading")(
            delayed(solve)(C) for solve in self._solvers
        )
        W = np.reshape(found, (len(self._solvers), len(self._mean) + 1))
        coef = W[:, :-1] / self._spread
        head = Head(coef, W[:, -1] - coef @ self._mean, self._size)
        labels = self._labels
        one_for_all = labels.multilabel or len(labels.classes) == 2
        return head if one_for_all else _of_all_classes(head, labels)


def _newton_solvers(rows: Any, tasks: list[BinaryTask], counts: list[Vector]) -> list[Solver]:
    """Return the solver of each question about some rows (n, r), which count so much each."""
    rows = np.hstack([rows, np.ones((len(rows), 1))])
    counts = [_over_all(len(rows), task, own) for task, own in zip(tasks, counts, strict=True)]
    whole = None
    if len(counts) > 1 and all(np.array_equal(own, counts[0]) for own in counts[1:]):
        whole = gram_of(rows, counts[0])
    solvers: list[Solver] = []
    for task, own in zip(tasks, counts, strict=True):
        signs = np.ones(len(rows))
        signs[task.rows] = task.signs
        solvers.append(_constant(rows.shape[1], task) or SquaredHinge(rows, signs, own, whole).at)
    return solvers


def _over_all(n: int, task: BinaryTask, counts: Vector) -> Vector:
    """Return what each of n rows counts: those that a question leaves out count nothing."""
    if len(task.rows) == n:
        return counts
    found = np.zeros(n)
    found[task.rows] = counts
    return found


def _liblinear_solvers(
    rows: Data, tasks: list[BinaryTask], counts: list[Vector], *, seed: int
) -> list[Solver]:
    """The same with LIBLINEAR, for rows (n, r)."""
    return [
        _constant(rows.shape[1] + 1, task) or partial(_liblinear_weights, rows, task, own, seed)
        for task, own in zip(tasks, counts, strict=True)
    ]


def _constant(q: int, task: BinaryTask) -> Solver | None:
    """Return a solver with nothing to solve: what all samples have is always given, or never."""
    if len(np.unique(task.signs)) == 2:
        return None
    always = np.append(np.zeros(q - 1), task.signs[0] if len(task.signs) else -1.0)
    return lambda C: always


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


def _liblinear_weights(rows: Data, task: BinaryTask, counts: Vector, seed: int, C: float) -> Vector:
    """Train one SVM; return its weights and its intercept, which is penalized like a weight."""
    from sklearn.svm import LinearSVC

    Z = rows if len(task.rows) == rows.shape[0] else rows[task.rows]
    if sp.issparse(Z):  # LIBLINEAR knows 32-bit indices only
        csr, dtype = sp.csr_array(Z), np.int32
        arrays = (csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype))
        Z = sp.csr_array(arrays, shape=csr.shape)
    # the primal solver is the steadier one when there are more samples than columns
    dual = Z.shape[0] < Z.shape[1]
    cost = C * counts
    C = float(np.max(cost))
    svm = LinearSVC(
        C=C, dual=dual, tol=1e-3 if dual else 1e-2, max_iter=10_000, random_state=seed
    ).fit(Z, task.signs, sample_weight=cost / C)
    return np.append(svm.coef_.ravel(), svm.intercept_)
